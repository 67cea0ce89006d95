//! The world of the demo: a directory that goes away, a bank, and the real binary with a ledger of its own.

use super::protocol::{self, Reply, Request};
use crate::config::Environment;
use crate::open::{self, TENANT};
use anyhow::Context as _;
use semel_doors::caller::OPERATOR_TOKEN;
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::tokens::{NewToken, Scope};
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::io::BufReader;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// A bank whose standard input is closed ends at once; one that has not by then is ended.
const BANK_ENDS_WITHIN: Duration = Duration::from_secs(2);

/// Alone in force, so that no policy of the user's gets into the demo.
const PAYMENTS: &str = r#"version = 1

[[rule]]
match = "cli:* demo pay --bank * charge *"
class = "consequential"
effect = "created"
"#;

/// The order is the identity; the memo is the model's prose.
const PAYMENTS_BY_ORDER: &str = r#"version = 1

[[rule]]
match = "cli:* demo pay --bank * charge *"
class = "consequential"
effect = "created"
key = ["argv[6]"]
content = ["argv[8]"]
"#;

#[derive(Debug)]
pub struct World {
    // In this order: the bank ends before its log goes.
    bank: Bank,
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

impl World {
    pub fn create(environment: &Environment) -> anyhow::Result<World> {
        let program = std::env::current_exe().context("semel does not know where it is")?;
        let directory = tempfile::Builder::new().prefix("semel-demo-").tempdir();
        let directory = directory.context("there is no temporary directory")?;
        for (rules, text) in [(Rules::Payments, PAYMENTS), (Rules::PaymentsByOrder, PAYMENTS_BY_ORDER)] {
            std::fs::write(directory.path().join(rules.file()), text)
                .context("a policy cannot be written")?;
        }
        let bank = Bank::start(&program, &directory.path().join("bank.log"))?;
        Ok(World { bank, directory, program, environment: environment.clone() })
    }

    /// Ends the bank and removes everything.
    pub fn end(mut self) -> anyhow::Result<()> {
        self.bank.end().context("the bank did not end")?;
        self.directory.close().context("the temporary directory cannot be removed")
    }

    /// What an agent runs to pay.
    pub fn pay(&self, request: &[&str]) -> Vec<OsString> {
        let bank = self.bank.address.to_string();
        let head = ["demo", "pay", "--bank", &bank];
        std::iter::once(self.program.clone().into_os_string())
            .chain(head.iter().chain(request).map(OsString::from))
            .collect()
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
    pub fn run(&self, rules: Rules, flags: &[&str], argv: &[OsString]) -> anyhow::Result<Answer> {
        self.start_run(rules, flags, argv)?.answer()
    }

    pub fn start_run(&self, rules: Rules, flags: &[&str], argv: &[OsString]) -> anyhow::Result<Running> {
        let mut command = self.command(self.program.as_os_str());
        command.env("SEMEL_POLICY", self.directory.path().join(rules.file()));
        command.args(["run", "--json"]).args(flags).arg("--").args(argv);
        Ok(Running(command.spawn().context("semel run cannot be started")?))
    }

    /// A command that takes a person: whoever plays one here has a token of this ledger.
    pub fn rule(&self, arguments: &[&str]) -> anyhow::Result<Output> {
        let clock = SystemClock::start();
        let file = self.directory.path().join("state/ledger.db");
        let new = NewToken::new(TENANT, Scope::Operator, Some("demo"), None)?;
        let made = block_on(open::ledger(&file, &self.environment, &clock)?.make_token(&new, clock.now()))?;
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
        if self.environment.allow_network_fs {
            command.env("SEMEL_ALLOW_NETWORK_FS", "1");
        }
        command
    }

    /// The next answer about this order will be lost, after the charge.
    pub fn lose_next_answer(&self, order: &str) -> anyhow::Result<()> {
        match protocol::ask(self.bank.address, &Request::LoseNextAnswer { order: order.to_owned() })? {
            Reply::AnswerWillBeLost => Ok(()),
            other => anyhow::bail!("the bank answered something else: {other:?}"),
        }
    }

    /// What the bank has in its log.
    pub fn charges(&self, order: &str) -> anyhow::Result<u64> {
        match protocol::ask(self.bank.address, &Request::Count { order: order.to_owned() })? {
            Reply::Count { count } => Ok(count),
            other => anyhow::bail!("the bank cannot count: {other:?}"),
        }
    }
}

/// A `semel run` under way.
#[derive(Debug)]
pub struct Running(Child);

impl Running {
    pub fn answer(self) -> anyhow::Result<Answer> {
        let output = self.0.wait_with_output().context("semel run was lost")?;
        let body = serde_json::from_slice(&output.stdout).with_context(|| {
            let said = String::from_utf8_lossy(&output.stderr);
            format!("semel run gave no answer ({}): {}", output.status, said.trim())
        })?;
        Ok(Answer { code: output.status.code(), body })
    }
}

/// What `semel run` told its caller.
#[derive(Debug)]
pub struct Answer {
    pub code: Option<i32>,
    pub body: Value,
}

impl Answer {
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
    protocol::parse::<protocol::Charge>(stdout.trim_ascii()).ok().map(|charge| charge.id)
}

/// The bank's process. It ends when its standard input closes, so it cannot outlive the demo.
#[derive(Debug)]
struct Bank {
    child: Child,
    stdin: Option<ChildStdin>,
    address: SocketAddr,
}

impl Bank {
    fn start(program: &Path, log: &Path) -> anyhow::Result<Bank> {
        let mut command = Command::new(program);
        command.args(["demo", "bank", "--log"]).arg(log).env_clear();
        // Ctrl-C is for the demo, which then closes the bank.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("the bank cannot be started")?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        // From here on dropping it ends the process, whatever goes wrong.
        let mut bank = Bank { child, stdin, address: ([127, 0, 0, 1], 0).into() };
        let line = stdout.map(|stdout| protocol::read_line(&mut BufReader::new(stdout))).transpose();
        let line =
            line.context("the bank's address cannot be read")?.flatten().context("the bank did not open")?;
        bank.address = String::from_utf8_lossy(&line).parse().context("the bank gave no address")?;
        Ok(bank)
    }

    fn end(&mut self) -> std::io::Result<()> {
        self.stdin = None;
        let clock = SystemClock::start();
        while self.child.try_wait()?.is_none() {
            if clock.elapsed() > BANK_ENDS_WITHIN {
                self.child.kill()?;
                self.child.wait()?;
                return Ok(());
            }
            block_on(clock.sleep(Duration::from_millis(2)));
        }
        Ok(())
    }
}

impl Drop for Bank {
    fn drop(&mut self) {
        // `World::end` reports trouble; here the demo has failed already, and says so.
        let _reported_elsewhere = self.end();
    }
}
