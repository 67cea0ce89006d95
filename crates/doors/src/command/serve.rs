//! The command behind the door: found, started, watched, read.

use super::classify::{self, CommandExit, ExitMeaning, ExitReading};
use super::intent::CommandLine;
use super::render;
use crate::process::child::{self, ChildPlan, FinishedChild, Signals};
use crate::process::program;
use crate::process::stream::{FinishedStream, Sink};
use crate::query::{Backends, Credentials, FoundReply, Query, Subject};
use crate::redact::SecretParts;
use crate::redact::Secrets;
use crate::reply::account::{self, ToolAccount};
use crate::reply::{CommandOutput, REPLY_BYTES_MAX};
use async_trait::async_trait;
use semel_core::answer::EffectWord;
use semel_core::effect::{Effect, Evidence, NotAppliedWhy, Reply};
use semel_core::ids::AttemptNo;
use semel_core::json::Json;
use semel_core::judgement::evidence;
use semel_core::outcome::Outcome;
use semel_core::own_tokens::{OPERATOR_TOKEN, SERVE_TOKEN};
use semel_core::policy::Policy;
use semel_core::policy::rule::{EffectWording, InjectInto, Probe, Rule};
use semel_core::redact::secret_values;
use semel_gate::clock::Clock;
use semel_gate::upstream::{CallView, NotStarted, ProbeAnswer, Sending, Sent, Upstream};
use semel_ledger::holders::Holders;
use serde_json::{Value, json};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// One wrapped command.
#[derive(Debug)]
pub struct CommandUpstream<'a> {
    line: &'a CommandLine,
    action: String,
    rule: &'a Rule,
    policy: &'a Policy,
    /// Its lock is inherited by the child, so that the holder counts as alive until the whole tree is gone.
    holders: &'a dyn Holders,
    clock: &'a dyn Clock,
    options: CommandOptions,
    signals: Option<Signals>,
    program: Option<PathBuf>,
    ended: Option<FinishedChild>,
    /// The reply, as a probe found it.
    found: Option<Json>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Show {
    /// Output streams through as it comes.
    Live,
    /// Output goes into the answer alone.
    InAnswer,
}

/// The settings of one wrapped command.
#[derive(Debug)]
pub struct CommandOptions {
    pub show: Show,
    /// The caller's standard input is handed through unread.
    pub pass_input: bool,
    /// `--effect` of this call.
    pub effect: Option<EffectWord>,
    /// Questions about the command are asked with these. Their shell is the command's own, too.
    pub backends: Arc<Backends>,
    /// Hears that the call waits for an attempt of somebody else's.
    pub waits: Option<fn(&Effect)>,
    /// Makes the program that reads on for whoever the command leaves behind.
    pub output_drain: Option<fn() -> Command>,
}

impl<'a> CommandUpstream<'a> {
    pub fn new(
        line: &'a CommandLine,
        action: String,
        (rule, policy): (&'a Rule, &'a Policy),
        holders: &'a dyn Holders,
        clock: &'a dyn Clock,
        options: CommandOptions,
    ) -> Self {
        CommandUpstream {
            line,
            action,
            rule,
            policy,
            holders,
            clock,
            options,
            signals: None,
            program: None,
            ended: None,
            found: None,
        }
    }

    /// Hands over the rest of the live output, after the settlement is durable. `true`: the last byte was accepted.
    pub fn deliver(&mut self) -> bool {
        match &mut self.ended {
            Some(ended) => {
                let stdout = ended.stdout.deliver();
                ended.stderr.deliver() && stdout
            }
            None => true,
        }
    }

    /// The part of stdout that the caller has seen already, of this call's own attempt.
    pub fn shown_stdout(&self) -> &[u8] {
        match (&self.ended, self.options.show) {
            (Some(ended), Show::Live) => &ended.stdout.kept,
            _ => &[],
        }
    }

    /// All that this call's own attempt printed on stdout, as far as it is kept.
    pub(super) fn printed(&self) -> &[u8] {
        self.ended.as_ref().map_or(&[], |ended| &ended.stdout.kept)
    }

    pub fn action(&self) -> &str {
        &self.action
    }

    /// The command as rules see it.
    pub fn arguments(&self) -> Json {
        self.line.arguments()
    }

    /// Whether somebody asked this call to end: whoever did is not waiting for its answer.
    pub fn was_asked_to_end(&self) -> bool {
        self.signals.as_ref().is_some_and(|signals| signals.asked_to_end().is_some())
    }

    /// Runs the tool's own dry run, as the rule maps it. It changes nothing by the tool's own word.
    pub fn own_dry_run(&mut self, flag: &str) -> Result<Value, NotStarted> {
        let program = program::find(
            &self.line.argv[0],
            &self.options.backends.shell.search,
            Path::new(&self.line.cwd),
        )?;
        let mut command = self.command(&program);
        command.arg(flag).stdin(Stdio::null());
        let output =
            command.output().map_err(|error| NotStarted { why: error.to_string(), data: Value::Null })?;
        let code = output.status.code().unwrap_or(-1);
        // An account of its own is structure; anything else it prints is text.
        if code == 0
            && let account @ Json::Object(_) = render::reply(&output.stdout)
            && ["effect", "changes"].iter().any(|name| account.get(name).is_some())
        {
            return Ok(account.to_value());
        }
        Ok(CommandOutput { exit_code: code, stdout: output.stdout, stderr: output.stderr }.data())
    }

    /// The word for its effect that this call or its rule fixes.
    pub fn ruled_word(&self) -> Option<EffectWord> {
        self.rule.effect_word().or(self.options.effect)
    }

    /// The word that a run will have, as far as that can be known before it.
    pub fn foreseen_word(&self) -> EffectWord {
        self.ruled_word().unwrap_or_else(|| render::word_by_verb(&self.line.argv))
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        std::os::unix::process::CommandExt::arg0(&mut command, &self.line.argv[0]);
        command.args(&self.line.argv[1..]).current_dir(&self.line.cwd).env_remove("SEMEL_FAILPOINTS");
        command.env_remove(OPERATOR_TOKEN).env_remove(SERVE_TOKEN);
        command
    }

    fn run(&mut self, mut command: Command, timeout: Option<Duration>) -> Result<FinishedChild, NotRun> {
        match (&self.line.input, self.options.pass_input) {
            (Some(_), _) => {}
            (None, true) => drop(command.stdin(Stdio::inherit())),
            (None, false) => drop(command.stdin(Stdio::null())),
        }
        let (stdout, stderr) = match self.options.show {
            Show::Live => (Sink::Stdout(std::io::stdout()), Sink::Stderr(std::io::stderr())),
            Show::InAnswer => (Sink::Nowhere, Sink::Nowhere),
        };
        let plan = ChildPlan {
            command,
            input: self.line.input.as_deref(),
            stdout,
            stderr,
            kept_max: REPLY_BYTES_MAX,
            timeout,
            output_drain: self.options.output_drain,
        };
        let signals = self.signals.as_ref().expect("prepare listens before anything is sent");
        self.holders.inheritable().map_err(NotRun::before)?;
        let elapsed = || self.clock.elapsed();
        let mut spawned = false;
        let ended = child::run(plan, signals, &elapsed, |group| {
            spawned = group.is_some();
            // Later children, such as probes, must not keep the holder alive.
            let _still_inheritable_is_only_slower = self.holders.seal();
            if let Some(group) = group {
                let _the_lock_alone_must_do = self.holders.acts_through(&[group]);
            }
        });
        ended.map_err(|error| if spawned { NotRun::LostSight(error) } else { NotRun::Never(error) })
    }

    fn inject(&self, command: &mut Command, key: &str) {
        match self.rule.inject.as_ref().map(|inject| &inject.into) {
            Some(InjectInto::Flag(flag)) => drop(command.arg(flag).arg(key)),
            Some(InjectInto::Env(name)) => drop(command.env(name, key)),
            // Headers and arguments belong to other doors.
            Some(_) | None => {}
        }
    }

    fn effect_word(&self, said: ToolAccount, stdout: &[u8]) -> EffectWord {
        let by_rule = match &self.rule.effect {
            Some(EffectWording::Word(word)) => Some(*word),
            Some(EffectWording::Expression(expression)) => {
                let reply = render::reply(stdout);
                expression.eval(&[("reply", &reply)]).ok().and_then(|word| EffectWord::parse(word.as_str()?))
            }
            None => None,
        };
        by_rule
            .or(self.options.effect)
            .or(said.effect)
            .unwrap_or_else(|| render::word_by_verb(&self.line.argv))
    }

    fn read(&self, ended: &FinishedChild, must_happen_once: bool) -> Sent {
        let (stdout, stderr) = (ended.stdout.both_ends(), ended.stderr.both_ends());
        let exit = CommandExit {
            status: ended.status,
            timed_out: ended.timed_out,
            stdout: &stdout,
            stderr: &stderr,
        };
        let argv = &self.line.argv;
        let settings = || classify::has_settings(argv, &self.options.backends.shell.curl_settings);
        let reading = classify::read(argv, exit, self.rule, must_happen_once, settings);
        // A process in the background may still do the deed of which the command said that it failed.
        let reading = match ended.left_running {
            true => ExitReading {
                meaning: ExitMeaning::Ambiguous,
                line: format!("{}, and something that it started is still running", reading.line),
            },
            false => reading,
        };
        let too_large = ended.stdout.kept.len() + ended.stderr.kept.len() > REPLY_BYTES_MAX;
        let output = CommandOutput {
            exit_code: exit_code(ended.status),
            stdout: capped(&ended.stdout),
            stderr: capped(&ended.stderr),
        };
        let mut data = output.data();
        data["exit_reading"] = Value::from(reading.line.as_str());
        if too_large {
            data["truncated"] =
                json!({"stdout_bytes": ended.stdout.total, "stderr_bytes": ended.stderr.total});
        }
        let secrets = secret_values(&self.line.arguments(), &self.rule.sorting.secret);
        let bytes = match output.scrubbed(&secrets, &SecretParts::of(self.rule)) {
            Ok(kept) if !too_large => Some(kept.encode()),
            _ => None,
        };
        let reply = match &bytes {
            Some(_) => Reply::Kept,
            None => Reply::TooLarge(ended.stdout.total + ended.stderr.total),
        };
        Sent { reply: bytes, data, ..Sent::of(self.outcome(reading, reply, &output)) }
    }

    fn outcome(&self, reading: ExitReading, reply: Reply, output: &CommandOutput) -> Outcome {
        match reading.meaning {
            ExitMeaning::Succeeded => {
                let said = account::read(&output.stdout);
                let evidence = match said.only_accepted {
                    true => Evidence::Accepted,
                    false => evidence::of_success(self.rule, || render::reply(&output.stdout)),
                };
                Outcome::Applied { evidence, word: self.effect_word(said, &output.stdout), reply }
            }
            ExitMeaning::NeverSent => {
                Outcome::NotApplied { why: NotAppliedWhy::Refused(reading.line), reply }
            }
            ExitMeaning::Refused => Outcome::NotApplied { why: NotAppliedWhy::Refused(reading.line), reply },
            ExitMeaning::Reported => {
                Outcome::NotApplied { why: NotAppliedWhy::Reported(reading.line), reply }
            }
            // Whether its tree is gone is found out when somebody looks.
            ExitMeaning::Ambiguous => Outcome::InDoubt { why: reading.line, sender_gone: false },
        }
    }

    fn listen(&mut self) -> std::io::Result<()> {
        if self.signals.is_none() {
            self.signals = Some(Signals::listen()?);
        }
        Ok(())
    }

    /// Questions about this command.
    pub(super) fn query<'b>(
        &'b self,
        arguments: &'b Json,
        effect: Option<&'b Effect>,
        reply: Option<&'b Json>,
    ) -> Query<'b> {
        let (backends, policy, signals) = (&self.options.backends, self.policy, self.signals.as_ref());
        let action = &self.action;
        Query {
            backends,
            policy,
            subject: Subject { action, arguments, effect, reply, credentials: Credentials::None },
            signals,
        }
    }
}

#[async_trait]
impl Upstream for CommandUpstream<'_> {
    async fn prepare(&mut self) -> Result<(), NotStarted> {
        self.program = Some(program::find(
            &self.line.argv[0],
            &self.options.backends.shell.search,
            Path::new(&self.line.cwd),
        )?);
        if !Path::new(&self.line.cwd).is_dir() {
            let why = format!("there is no directory {}", self.line.cwd);
            return Err(NotStarted { why, data: json!({"exit_code": 125}) });
        }
        self.listen().map_err(|error| NotStarted { why: error.to_string(), data: json!({"exit_code": 125}) })
    }

    async fn send(&mut self, sending: Sending<'_>) -> Sent {
        let never = |why: String, code: i32| {
            let why = NotAppliedWhy::NeverSent(why);
            let outcome = Outcome::NotApplied { why, reply: Reply::Unknown };
            Sent { data: json!({"exit_code": code}), ..Sent::of(outcome) }
        };
        if let Some(signal) = self.signals.as_ref().and_then(Signals::asked_to_end) {
            return never(format!("semel was asked to end by signal {signal}"), 125);
        }
        let program = self.program.clone().expect("prepare found the program");
        let mut command = self.command(&program);
        if let Some(recorded) = sending.recorded {
            // For tools that want to name their own work by it.
            command
                .env("SEMEL_EFFECT_ID", recorded.effect.id.to_string())
                .env("SEMEL_ATTEMPT", recorded.attempt.to_string())
                .env("SEMEL_IDEMPOTENCY_KEY", recorded.idempotency_key);
            // Its own calls through semel belong to the same run, and stop with it.
            let attempt = recorded.effect.attempt(recorded.attempt);
            if let Some(run) = attempt.and_then(|attempt| attempt.run.as_ref()) {
                command.env("SEMEL_RUN_ID", &run.id);
            }
            self.inject(&mut command, recorded.idempotency_key);
        }
        match self.run(command, sending.timeout) {
            Ok(ended) => {
                let once = sending.must_happen_once(self.rule);
                let sent = self.read(&ended, once);
                self.ended = Some(ended);
                sent
            }
            Err(NotRun::Never(error)) => {
                let code = match error.kind() {
                    std::io::ErrorKind::NotFound => 127,
                    std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ExecutableFileBusy => 126,
                    _ if error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => 126,
                    _ => 125,
                };
                never(format!("{}: {error}", self.line.argv[0]), code)
            }
            Err(NotRun::LostSight(error)) => {
                let why = format!("semel lost sight of it: {error}");
                Sent::of(Outcome::InDoubt { why, sender_gone: false })
            }
        }
    }

    async fn probe(&mut self, probe: &Probe, effect: Option<&Effect>) -> ProbeAnswer {
        if let Err(why) = self.listen() {
            return ProbeAnswer::Unknown { why: why.to_string() };
        }
        let arguments = self.line.arguments();
        let finding = self.query(&arguments, effect, None).probe(probe).await;
        finding.for_gate(&Secrets::of(&arguments, self.rule), |reply| {
            let stdout = reply.map(|reply| match reply {
                FoundReply::Printed(stdout) => {
                    self.found = Some(render::reply(&stdout));
                    stdout
                }
                FoundReply::Value(value) => {
                    let stdout = format!("{}\n", value.canonical()).into_bytes();
                    self.found = Some(value);
                    stdout
                }
            });
            let printed = stdout.as_deref().unwrap_or_default();
            let word = self.effect_word(account::read(printed), printed);
            let parts = SecretParts::of(self.rule);
            let reply = stdout.and_then(|stdout| CommandOutput::of_stdout(stdout).scrubbed(&[], &parts).ok());
            (reply.map(|kept| kept.encode()), word)
        })
    }

    fn view(&self) -> Option<CallView> {
        let whole = self.ended.as_ref().filter(|ended| ended.stdout.total <= REPLY_BYTES_MAX as u64);
        let reply = self.found.clone().or_else(|| whole.map(|ended| render::reply(&ended.stdout.kept)));
        let arguments = self.line.arguments();
        let places = self.query(&arguments, None, reply.as_ref()).subject.places();
        Some(CallView { places, cwd: self.line.cwd.clone() })
    }

    fn join(&mut self, effect: &Effect, _attempt: AttemptNo) {
        if let Some(waits) = self.options.waits {
            waits(effect);
        }
    }

    fn sends_while_alive(&self) -> bool {
        true
    }

    fn release(&mut self) {
        // A descendant that left the group and lost the lock came to us when its parent ended, and is written down.
        let heirs = child::heirs();
        if !heirs.is_empty() {
            let _the_lock_alone_must_do = self.holders.acts_through(&heirs);
        }
        self.holders.release_lock();
    }
}

/// Why there is no end of a command to read.
#[derive(Debug)]
enum NotRun {
    /// It was never started.
    Never(std::io::Error),
    /// It was, and may have acted.
    LostSight(std::io::Error),
}

impl NotRun {
    fn before(error: semel_ledger::Error) -> Self {
        NotRun::Never(std::io::Error::other(error))
    }
}

fn capped(taken: &FinishedStream) -> Vec<u8> {
    taken.kept[..taken.kept.len().min(REPLY_BYTES_MAX)].to_vec()
}

/// As a shell would report it.
fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}
