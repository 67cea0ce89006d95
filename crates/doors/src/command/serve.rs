//! The command behind the door: found, started, watched, read.

use super::child::{self, Ended, Plan, Signals};
use super::classify::{self, Meaning, Reading};
use super::intent::CommandLine;
use super::render::{self, Output, REPLY_BYTES_MAX, Said};
use super::stream::{Sink, Taken};
use semel_core::answer::EffectWord;
use semel_core::effect::{Effect, Evidence, NotAppliedWhy, Reply};
use semel_core::json::Json;
use semel_core::outcome::Outcome;
use semel_core::policy::rule::{Call, EffectWording, InjectInto, Probe, Rule};
use semel_gate::clock::Clock;
use semel_gate::upstream::{NotStarted, ProbeAnswer, Sending, Sent, Upstream};
use semel_ledger::holders::FileHolders;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// A probe asks a question; one that takes longer than this has no answer.
const PROBE_TIMEOUT: Duration = Duration::from_secs(30);

/// One wrapped command.
#[derive(Debug)]
pub struct CommandUpstream<'a, C> {
    line: &'a CommandLine,
    rule: &'a Rule,
    /// Its lock is inherited by the child, so that the holder counts as alive until the whole tree is gone.
    holders: &'a FileHolders,
    clock: &'a C,
    show: Show,
    /// The caller's standard input is handed through unread.
    pass_input: bool,
    /// `PATH` of this process.
    search: OsString,
    /// `--effect` of this call.
    said_effect: Option<EffectWord>,
    signals: Option<Signals>,
    program: Option<PathBuf>,
    ended: Option<Ended>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Show {
    /// Output streams through as it comes.
    Live,
    /// Output goes into the answer alone.
    InAnswer,
}

/// What `semel run` decides before a command is wrapped.
#[derive(Debug)]
pub struct Options {
    pub show: Show,
    pub pass_input: bool,
    pub search: OsString,
    pub effect: Option<EffectWord>,
}

impl<'a, C: Clock> CommandUpstream<'a, C> {
    pub fn new(
        line: &'a CommandLine,
        rule: &'a Rule,
        holders: &'a FileHolders,
        clock: &'a C,
        options: Options,
    ) -> Self {
        CommandUpstream {
            line,
            rule,
            holders,
            clock,
            show: options.show,
            pass_input: options.pass_input,
            search: options.search,
            said_effect: options.effect,
            signals: None,
            program: None,
            ended: None,
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

    /// What the caller has seen on stdout already, of this call's own attempt.
    pub fn shown_stdout(&self) -> &[u8] {
        match (&self.ended, self.show) {
            (Some(ended), Show::Live) => &ended.stdout.kept,
            _ => &[],
        }
    }

    /// Whether somebody asked this call to end: whoever did is not waiting for its answer.
    pub fn was_asked_to_end(&self) -> bool {
        self.signals.as_ref().is_some_and(|signals| signals.asked_to_end().is_some())
    }

    /// Runs the tool's own dry run, as the rule maps it. It changes nothing by the tool's own word.
    pub fn own_dry_run(&mut self, flag: &str) -> Result<Value, NotStarted> {
        let program = find(&self.line.argv[0], &self.search, Path::new(&self.line.cwd))?;
        let mut command = self.command(&program);
        command.arg(flag).stdin(Stdio::null());
        let output =
            command.output().map_err(|error| NotStarted { why: error.to_string(), data: Value::Null })?;
        let code = output.status.code().unwrap_or(-1);
        Ok(Output { exit_code: code, stdout: output.stdout, stderr: output.stderr }.data())
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        std::os::unix::process::CommandExt::arg0(&mut command, &self.line.argv[0]);
        command.args(&self.line.argv[1..]).current_dir(&self.line.cwd);
        command
    }

    fn run(&mut self, mut command: Command, timeout: Option<Duration>) -> Result<Ended, NotRun> {
        match (&self.line.input, self.pass_input) {
            (Some(_), _) => {}
            (None, true) => drop(command.stdin(Stdio::inherit())),
            (None, false) => drop(command.stdin(Stdio::null())),
        }
        let (stdout, stderr) = match self.show {
            Show::Live => (Sink::Stdout(std::io::stdout()), Sink::Stderr(std::io::stderr())),
            Show::InAnswer => (Sink::Nowhere, Sink::Nowhere),
        };
        let plan = Plan {
            command,
            input: self.line.input.as_deref(),
            stdout,
            stderr,
            kept_max: REPLY_BYTES_MAX,
            timeout,
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

    fn effect_word(&self, said: Said, output: &Output) -> EffectWord {
        let by_rule = match &self.rule.effect {
            Some(EffectWording::Word(word)) => Some(*word),
            Some(EffectWording::Expression(expression)) => {
                let reply = reply_json(&output.stdout);
                expression.eval(&[("reply", &reply)]).ok().and_then(|word| EffectWord::parse(word.as_str()?))
            }
            None => None,
        };
        by_rule.or(self.said_effect).or(said.effect).unwrap_or_else(|| render::word_by_verb(&self.line.argv))
    }

    fn read(&self, ended: &Ended) -> Sent {
        let reading =
            classify::read(self.line.program(), ended.status, ended.timed_out, &ended.stderr.kept, self.rule);
        let too_large = ended.stdout.kept.len() + ended.stderr.kept.len() > REPLY_BYTES_MAX;
        let output = Output {
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
        let secrets = render::secret_values(&self.line.arguments(), &self.rule.sorting.secret);
        let bytes = (!too_large).then(|| output.scrubbed(&secrets).encode());
        let reply = match &bytes {
            Some(_) => Reply::Kept,
            None => Reply::TooLarge(ended.stdout.total + ended.stderr.total),
        };
        Sent { outcome: self.outcome(reading, reply, &output), reply: bytes, data }
    }

    fn outcome(&self, reading: Reading, reply: Reply, output: &Output) -> Outcome {
        match reading.meaning {
            Meaning::Succeeded => {
                let said = render::said(&output.stdout);
                let evidence = if said.only_accepted { Evidence::Accepted } else { Evidence::Reported };
                Outcome::Applied { evidence, word: self.effect_word(said, output), reply }
            }
            Meaning::NeverSent => Outcome::NotApplied { why: NotAppliedWhy::Refused(reading.line), reply },
            Meaning::Refused => Outcome::NotApplied { why: NotAppliedWhy::Refused(reading.line), reply },
            // Whether its tree is gone is found out when somebody looks.
            Meaning::Ambiguous => Outcome::InDoubt { why: reading.line, sender_gone: false },
        }
    }

    fn probe_command(&self, probe: &Probe) -> Result<Command, String> {
        let Call::Command { argv } = &probe.call else {
            return Err("only probes by command can be asked from the command line".into());
        };
        let arguments = self.line.arguments();
        let rendered: Vec<String> = argv
            .iter()
            .map(|template| template.render(&arguments, semel_core::policy::template::Encoding::Plain))
            .collect::<Result<_, _>>()
            .map_err(|missing| missing.to_string())?;
        let first = rendered.first().ok_or("the probe has no command")?;
        let program =
            find(first, &self.search, Path::new(&self.line.cwd)).map_err(|not_started| not_started.why)?;
        let mut command = Command::new(program);
        command.args(&rendered[1..]).current_dir(&self.line.cwd).stdin(Stdio::null());
        Ok(command)
    }

    fn ask(&mut self, probe: &Probe) -> Result<(ExitStatus, bool, Vec<u8>), String> {
        let command = self.probe_command(probe)?;
        let signals = match &self.signals {
            Some(signals) => signals,
            None => self.signals.insert(Signals::listen().map_err(|error| error.to_string())?),
        };
        let plan = Plan {
            command,
            input: None,
            stdout: Sink::Nowhere,
            stderr: Sink::Nowhere,
            kept_max: REPLY_BYTES_MAX,
            timeout: Some(PROBE_TIMEOUT),
        };
        let elapsed = || self.clock.elapsed();
        let ended = child::run(plan, signals, &elapsed, |_| ()).map_err(|error| error.to_string())?;
        let whole = ended.stdout.total <= REPLY_BYTES_MAX as u64;
        Ok((ended.status, ended.timed_out || !whole, capped(&ended.stdout)))
    }
}

impl<C: Clock> Upstream for CommandUpstream<'_, C> {
    async fn prepare(&mut self) -> Result<(), NotStarted> {
        self.program = Some(find(&self.line.argv[0], &self.search, Path::new(&self.line.cwd))?);
        if !Path::new(&self.line.cwd).is_dir() {
            let why = format!("there is no directory {}", self.line.cwd);
            return Err(NotStarted { why, data: json!({"exit_code": 125}) });
        }
        let cannot =
            |error: std::io::Error| NotStarted { why: error.to_string(), data: json!({"exit_code": 125}) };
        if self.signals.is_none() {
            self.signals = Some(Signals::listen().map_err(cannot)?);
        }
        Ok(())
    }

    async fn send(&mut self, sending: Sending<'_>) -> Sent {
        let never = |why: String, code: i32| Sent {
            outcome: Outcome::NotApplied { why: NotAppliedWhy::NeverSent(why), reply: Reply::Unknown },
            reply: None,
            data: json!({"exit_code": code}),
        };
        if let Some(signal) = self.signals.as_ref().and_then(Signals::asked_to_end) {
            return never(format!("semel was asked to end by signal {signal}"), 125);
        }
        let program = self.program.clone().expect("prepare found the program");
        let mut command = self.command(&program);
        command.env_remove("SEMEL_FAILPOINTS");
        if let Some(recorded) = sending.recorded {
            // For tools that want to name their own work by it.
            command
                .env("SEMEL_EFFECT_ID", recorded.effect.id.to_string())
                .env("SEMEL_ATTEMPT", recorded.attempt.to_string())
                .env("SEMEL_IDEMPOTENCY_KEY", recorded.idempotency_key);
            self.inject(&mut command, recorded.idempotency_key);
        }
        match self.run(command, sending.timeout) {
            Ok(ended) => {
                let sent = self.read(&ended);
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
            Err(NotRun::LostSight(error)) => Sent {
                outcome: Outcome::InDoubt {
                    why: format!("semel lost sight of it: {error}"),
                    sender_gone: false,
                },
                reply: None,
                data: Value::Null,
            },
        }
    }

    async fn probe(&mut self, probe: &Probe, effect: Option<&Effect>) -> ProbeAnswer {
        let (status, unusable, stdout) = match self.ask(probe) {
            Ok(answer) => answer,
            Err(why) => return ProbeAnswer::Unknown { why },
        };
        if unusable {
            return ProbeAnswer::Unknown { why: "it did not end in time, or said too much".into() };
        }
        let yes = |stdout: Vec<u8>| {
            let reply = (!stdout.is_empty()).then(|| Output::of_stdout(stdout).scrubbed(&[]).encode());
            ProbeAnswer::Yes { reply, word: None }
        };
        let Some(found) = &probe.found else {
            return match status.code() {
                Some(0) => yes(stdout),
                Some(1) => ProbeAnswer::No,
                Some(code) => ProbeAnswer::Unknown { why: format!("it exited with {code}") },
                None => ProbeAnswer::Unknown { why: "it died by a signal".into() },
            };
        };
        let resp = probe_response(status, &stdout);
        let arguments = self.line.arguments();
        let argv = arguments.get("argv").cloned().unwrap_or(Json::Null);
        let attempt = effect.map_or(Json::Null, attempt_facts);
        let variables = [("resp", &resp), ("argv", &argv), ("attempt", &attempt)];
        match found.eval_bool(&variables) {
            Ok(false) => ProbeAnswer::No,
            Ok(true) => {
                let reply = probe.reply.as_ref().and_then(|reply| reply.eval(&variables).ok());
                yes(reply.map_or(stdout, |reply| format!("{}\n", reply.canonical()).into_bytes()))
            }
            Err(error) => ProbeAnswer::Unknown { why: error.to_string() },
        }
    }

    fn sends_while_alive(&self) -> bool {
        true
    }

    fn let_go(&mut self) {
        // Who left the group and lost the lock was handed to us when its parent ended, and is written down.
        let heirs = child::heirs();
        if !heirs.is_empty() {
            let _the_lock_alone_must_do = self.holders.acts_through(&heirs);
        }
        self.holders.let_go();
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

fn capped(taken: &Taken) -> Vec<u8> {
    taken.kept[..taken.kept.len().min(REPLY_BYTES_MAX)].to_vec()
}

/// As a shell would report it.
fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

fn reply_json(stdout: &[u8]) -> Json {
    semel_core::json::parse_bytes(stdout.trim_ascii()).unwrap_or(Json::Null)
}

/// What `found` sees of a probe: `resp.exit`, `resp.text`, and the members of its output if that is JSON.
fn probe_response(status: ExitStatus, stdout: &[u8]) -> Json {
    let exit = Json::from(Value::from(exit_code(status)));
    let text = Json::str(&String::from_utf8_lossy(stdout));
    let json = reply_json(stdout);
    let mut members: Vec<(String, Json)> = match &json {
        Json::Object(object) => object.iter().map(|(name, value)| (name.to_owned(), value.clone())).collect(),
        _ => Vec::new(),
    };
    members.extend([("exit".to_owned(), exit), ("text".to_owned(), text), ("json".to_owned(), json)]);
    Json::Object(members.into_iter().collect())
}

fn attempt_facts(effect: &Effect) -> Json {
    let started = effect.attempts.first().map_or(effect.opened_at, |attempt| attempt.claimed_at);
    Json::from(json!({"started": started.to_string(), "started_unix": started.0 / 1_000_000}))
}

/// Finds a program as `execvp` would, so that a missing one is known before anything is claimed.
fn find(name: &str, search: &OsString, cwd: &Path) -> Result<PathBuf, NotStarted> {
    let executable =
        |path: &Path| path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    let refuse = |why: String, code: i32| Err(NotStarted { why, data: json!({"exit_code": code}) });
    if name.contains('/') {
        let path = cwd.join(name);
        return match path.metadata() {
            Err(_) => refuse(format!("there is no program {name}"), 127),
            Ok(_) if executable(&path) => Ok(path),
            Ok(_) => refuse(format!("{name} is not executable"), 126),
        };
    }
    let mut found_plain = false;
    for directory in std::env::split_paths(search) {
        let path = cwd.join(directory).join(name);
        if executable(&path) {
            return Ok(path);
        }
        found_plain |= path.is_file();
    }
    match found_plain {
        true => refuse(format!("{name} is not executable"), 126),
        false => refuse(format!("there is no program {name} on PATH"), 127),
    }
}
