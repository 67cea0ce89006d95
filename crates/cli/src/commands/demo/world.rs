//! The world of the demo: a directory that goes away, a book of charges, and the real binary with a ledger of its own.

use super::pay::{self, Charge};
use crate::config::Environment;
use crate::open::TENANT;
use anyhow::Context as _;
use semel::ledger_address::{LedgerAddress, Purpose};
use semel_core::own_tokens::OPERATOR_TOKEN;
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::tokens::{AccessScope, TokenRequest};
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// Alone in force, so that no policy of the user's gets into the demo.
const PAYMENTS: &str = r#"version = 1

[[rule]]
match = "cli:* demo pay --book * charge *"
class = "consequential"
effect = "created"
"#;

/// The order is the identity; the memo is the model's prose.
const PAYMENTS_BY_ORDER: &str = r#"version = 1

[[rule]]
match = "cli:* demo pay --book * charge *"
class = "consequential"
effect = "created"
key = ["argv[6]"]
content = ["argv[8]"]
"#;

#[derive(Debug)]
pub struct DemoWorld {
    directory: TempDir,
    program: PathBuf,
    environment: Environment,
}

/// Which policy holds.
#[derive(Debug, Clone, Copy)]
pub enum Rules {
    Payments,
    PaymentsByOrder,
}

impl Rules {
    fn file(self) -> &'static str {
        match self {
            Rules::Payments => "payments.toml",
            Rules::PaymentsByOrder => "payments-by-order.toml",
        }
    }
}

impl DemoWorld {
    pub fn create(environment: &Environment) -> anyhow::Result<DemoWorld> {
        let program = std::env::current_exe().context("semel does not know where it is")?;
        let directory = tempfile::Builder::new().prefix("semel-demo-").tempdir();
        let directory = directory.context("there is no temporary directory")?;
        for (rules, text) in [(Rules::Payments, PAYMENTS), (Rules::PaymentsByOrder, PAYMENTS_BY_ORDER)] {
            std::fs::write(directory.path().join(rules.file()), text)
                .context("a policy cannot be written")?;
        }
        let world = DemoWorld { directory, program, environment: environment.clone() };
        std::fs::write(world.book(), "").context("the book cannot be made")?;
        Ok(world)
    }

    fn book(&self) -> PathBuf {
        self.directory.path().join("book.jsonl")
    }

    /// Removes everything.
    pub fn end(self) -> anyhow::Result<()> {
        self.directory.close().context("the temporary directory cannot be removed")
    }

    /// The command by which an agent pays.
    pub fn pay(&self, request: &[&str]) -> Vec<OsString> {
        let (program, book) = (self.program.clone().into_os_string(), self.book().into_os_string());
        let head = [program, "demo".into(), "pay".into(), "--book".into(), book];
        head.into_iter().chain(request.iter().map(OsString::from)).collect()
    }

    /// The same as text, as `--probe` takes it.
    pub fn pay_text(&self, request: &[&str]) -> anyhow::Result<String> {
        let argv = self.pay(request);
        let words = argv.iter().map(|word| word.to_str()).collect::<Option<Vec<&str>>>();
        let words = words.context("semel lies in a directory whose name is not UTF-8")?;
        shlex::try_join(words).context("semel's path cannot be quoted")
    }

    /// The tool alone, as an agent without semel runs it.
    pub fn run_bare(&self, argv: &[OsString]) -> anyhow::Result<Output> {
        let [program, arguments @ ..] = argv else { anyhow::bail!("there is no command") };
        self.command(program).args(arguments).output().context("the tool cannot be started")
    }

    /// `semel run FLAGS -- ARGV`, answered as JSON.
    pub fn run(&self, rules: Rules, flags: &[&str], argv: &[OsString]) -> anyhow::Result<RunAnswer> {
        self.start_run(rules, flags, argv)?.answer()
    }

    pub fn start_run(&self, rules: Rules, flags: &[&str], argv: &[OsString]) -> anyhow::Result<PendingRun> {
        let mut command = self.command(self.program.as_os_str());
        command.env("SEMEL_POLICY", self.directory.path().join(rules.file()));
        command.args(["run", "--json"]).args(flags).arg("--").args(argv);
        Ok(PendingRun(command.spawn().context("semel run cannot be started")?))
    }

    /// A command that takes a person: whoever plays one here has a token of this ledger.
    pub fn rule(&self, arguments: &[&str]) -> anyhow::Result<Output> {
        let clock = SystemClock::start();
        let file = self.directory.path().join("state/ledger.db");
        let new = TokenRequest::new(TENANT, AccessScope::Operator, Some("demo"), None)?;
        let made = block_on(
            LedgerAddress::File(file)
                .open(&self.environment.settings, &clock, Purpose::Command)?
                .make_token(&new, clock.now()),
        )?;
        let mut command = self.command(self.program.as_os_str());
        command.env(OPERATOR_TOKEN, made.text).args(arguments);
        command.output().context("semel cannot be started")
    }

    /// Only what is named here gets in: neither the user's ledger nor policy, run or fault injection.
    fn command(&self, program: &OsStr) -> Command {
        let directory = self.directory.path();
        let mut command = Command::new(program);
        command
            .current_dir(directory)
            .env_clear()
            .env("PATH", &self.environment.search)
            .env("SEMEL_STATE_DIR", directory.join("state"))
            .env("SEMEL_POLICY", directory.join(Rules::Payments.file()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if self.environment.settings.allow_network_fs {
            command.env("SEMEL_ALLOW_NETWORK_FS", "1");
        }
        command
    }

    pub fn kill_next_charge(&self, order: &str) -> anyhow::Result<()> {
        pay::kill_next_charge(&self.book(), order)
    }

    /// How often the book has a charge of this order.
    pub fn charges(&self, order: &str) -> anyhow::Result<u64> {
        let all = pay::charges(&self.book())?;
        Ok(all.iter().filter(|charge| charge.order == order).count() as u64)
    }
}

/// A `semel run` under way.
#[derive(Debug)]
pub struct PendingRun(Child);

impl PendingRun {
    pub fn answer(self) -> anyhow::Result<RunAnswer> {
        let output = self.0.wait_with_output().context("semel run was lost")?;
        let body = serde_json::from_slice(&output.stdout).with_context(|| {
            let said = String::from_utf8_lossy(&output.stderr);
            format!("semel run gave no answer ({}): {}", output.status, said.trim())
        })?;
        Ok(RunAnswer { code: output.status.code(), body })
    }
}

/// The answer of `semel run` to its caller.
#[derive(Debug)]
pub struct RunAnswer {
    pub code: Option<i32>,
    pub body: Value,
}

impl RunAnswer {
    pub fn text(&self, field: &str) -> &str {
        self.body[field].as_str().unwrap_or_default()
    }

    pub fn succeeded(&self, outcome: &str) -> bool {
        self.code == Some(0) && self.body["ok"] == true && self.text("outcome") == outcome
    }

    pub fn held(&self) -> bool {
        self.code == Some(121) && self.body["ok"] == false && self.text("code") == "in_doubt"
    }

    /// The charge that the tool printed, be it now or when it ran.
    pub fn charge(&self) -> Option<String> {
        charge_in(self.body["data"]["stdout"].as_str()?.as_bytes())
    }
}

pub fn charge_in(stdout: &[u8]) -> Option<String> {
    serde_json::from_slice::<Charge>(stdout).ok().map(|charge| charge.id)
}
