//! `semel run`: any command, at most once.

mod piped;
mod request;
pub mod respond;

use crate::args::{DRAIN_OUTPUT, RunArgs};
use crate::context::Context;
use crate::notify;
use crate::open;
use crate::output::{Hinted, ledger_hint, stderr_is_terminal};
use crate::probe_access;
use crate::{server_access, server_runtime};
use request::{RunRequest, named_action};
use respond::{
    dry_run, finish_trouble, finish_unavailable, finish_unopened, not_understood, policy_invalid, respond,
    say_waiting,
};
use rustix::process::Pid;
use semel::ledger_address::{LedgerAddress, Purpose};
use semel::policy_files;
use semel_core::answer::Answer;
use semel_core::class::Class;
use semel_core::intent::Intent;
use semel_core::json::Json;
use semel_core::policy::{Policy, Rule, duration};
use semel_core::wording;
use semel_doors::command::confirm::CommandWitness;
use semel_doors::command::serve::{CommandOptions, CommandUpstream, Show};
use semel_doors::process::stream::reader_is_gone;
use semel_doors::remote_gate::{RemoteCall, RemoteGate, RemotePassed, ServerAccess};
use semel_gate::Gate;
use semel_gate::Passed;
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_gate::look::Look;
use semel_ledger::holders::{FileHolders, Holders};
use semel_ledger::{Error, Ledger};
use std::os::fd::AsFd;
use std::sync::Arc;

pub fn run(context: &Context, args: &RunArgs) -> u8 {
    let parent = rustix::process::getppid();
    let server = match server_access::of(context) {
        Ok(server) => server,
        Err(error) => return not_understood(context, &error),
    };
    let call = match PreparedRun::prepare(context, args) {
        Ok(call) => call,
        Err(code) => return code,
    };
    if let Some(access) = server {
        return call.ask_server(context, access, args.dry_run, parent);
    }
    let clock = SystemClock::start();
    match open_ledger(context, args.dry_run, &clock) {
        Ok(opened) if args.dry_run => call.dry_run(context, opened, clock),
        Ok(opened) => call.pass(context, opened, clock, parent),
        // With the ledger unreachable, effects are refused before they are sent, and reads pass.
        Err(_) if call.rule.class == Class::Read && !args.dry_run => call.pass_unrecorded(context, &clock),
        Err(Unopened { why, hint, waits }) => finish_unopened(context, &call.rule, &why, waits, hint),
    }
}

/// A request with its rule: all that is known before the ledger is opened.
struct PreparedRun {
    request: RunRequest,
    policy: Policy,
    action: String,
    arguments: Json,
    rule: Rule,
}

struct OpenedLedger {
    ledger: Ledger,
    /// A dry run founds no ledger: where there is none, it looks at an empty one, which goes with it.
    _empty: Option<tempfile::TempDir>,
}

/// Why there is no ledger, and what to do about it.
struct Unopened {
    why: String,
    hint: Option<String>,
    /// It may be there later.
    waits: bool,
}

fn open_ledger(context: &Context, dry_run: bool, clock: &SystemClock) -> Result<OpenedLedger, Unopened> {
    let environment = &context.environment;
    let unopened = |error: anyhow::Error| Unopened {
        why: error.to_string(),
        hint: crate::output::hint(&error),
        waits: false,
    };
    let address = context.ledger_address().map_err(unopened)?;
    let empty = (dry_run && !address.is_founded()).then(tempfile::tempdir).and_then(Result::ok);
    let opened = match (dry_run, &empty) {
        (false, _) => address.open(&environment.settings, clock, Purpose::Command),
        // One whose founding was cut short must be founded before anything is known.
        (true, None) => address
            .open(&environment.settings, clock, Purpose::Reading)
            .or_else(|_| address.open(&environment.settings, clock, Purpose::Command)),
        (true, Some(empty)) => LedgerAddress::File(empty.path().join("ledger.db")).open(
            &environment.settings,
            clock,
            Purpose::Command,
        ),
    };
    match opened {
        Ok(ledger) => Ok(OpenedLedger { ledger, _empty: empty }),
        Err(error) => Err(Unopened {
            why: error.to_string(),
            hint: ledger_hint(&error),
            waits: matches!(error, Error::Engine { .. } | Error::NotRead { .. } | Error::NotWritten { .. }),
        }),
    }
}

impl PreparedRun {
    /// A call that makes no sense is answered here, with its exit code.
    fn prepare(context: &Context, args: &RunArgs) -> Result<PreparedRun, u8> {
        let request = RunRequest::parse(context, args).map_err(|error| not_understood(context, &error))?;
        let policy = policy_files::load(&context.environment.settings, context.global.policy.as_deref())
            .map_err(|unusable| policy_invalid(context, &unusable))?;
        let arguments = request.line.arguments();
        let action = args.action.as_ref().map_or_else(|| request.line.action(), |name| named_action(name));
        let rule = request.rule(&policy, &action, &arguments);
        let rule = rule.map_err(|error| not_understood(context, &error))?;
        Ok(PreparedRun { request, policy, action, arguments, rule })
    }

    fn pass_unrecorded(&self, context: &Context, clock: &SystemClock) -> u8 {
        let holders = FileHolders::in_directory(std::path::PathBuf::new());
        let mut upstream = self.upstream(context, &holders, clock);
        let passed = block_on(semel_gate::unrecorded(&self.rule, &mut upstream));
        respond(context, &passed, &mut upstream).0
    }

    fn dry_run(&self, context: &Context, opened: OpenedLedger, clock: SystemClock) -> u8 {
        let (gate, intent) = match self.intent(context, opened.ledger, clock) {
            Ok(made) => made,
            Err(code) => return code,
        };
        let mut upstream = self.upstream(context, gate.ledger.holders(), &*gate.clock);
        match block_on(gate.dry_run(&intent, &self.rule, &mut upstream)) {
            Ok(answer) => dry_run(context, &self.rule, answer, &mut upstream),
            Err(error) => finish_unavailable(context, &self.rule, &error.to_string(), None),
        }
    }

    fn pass(&self, context: &Context, opened: OpenedLedger, clock: SystemClock, parent: Option<Pid>) -> u8 {
        let (gate, intent) = match self.intent(context, opened.ledger, clock) {
            Ok(made) => made,
            Err(code) => return code,
        };
        let mut upstream = self.upstream(context, gate.ledger.holders(), &*gate.clock);
        let passed = match block_on(gate.pass(&intent, &self.rule, &mut upstream)) {
            Ok(passed) => confirm(context, &gate, &self.rule, passed, &mut upstream),
            Err(semel_gate::Error::Ledger(error)) => {
                let code = finish_unavailable(context, &self.rule, &error.to_string(), ledger_hint(&error));
                block_on(gate.settle_unheld());
                return code;
            }
        };
        let (code, answer) = deliver(context, &gate, passed, &mut upstream, parent);
        // Also those of earlier calls, whose own answers waited here for the ledger.
        block_on(gate.settle_pending());
        notify::before_the_end(context, &gate, &self.policy, &answer);
        // A count that is lost is no reason to say anything.
        let _uncounted = block_on(gate.write_counts());
        // Its name goes with the lock, unless something that the command left behind still holds on to it.
        gate.ledger.holders().release_lock();
        keep_retention(context, &gate, &self.policy);
        code
    }

    /// The same where the ledger is behind a server elsewhere.
    fn ask_server(&self, context: &Context, access: ServerAccess, dry_run: bool, parent: Option<Pid>) -> u8 {
        if self.request.probe.is_some() {
            let what =
                "--probe is asked by the gate itself, and SEMEL_SERVER says that it is behind a server";
            let hint = "leave --probe out; a doubt is ruled on at the server";
            return not_understood(context, &Hinted::error(what, hint));
        }
        let runtime = match server_runtime::runtime() {
            Ok(runtime) => runtime,
            Err(error) => return not_understood(context, &error.into()),
        };
        let clock = SystemClock::start();
        let gate = RemoteGate::new(access, Arc::new(clock.clone()), self.policy.mode);
        // Nobody sees a lock from there: time alone ends the claim.
        let holders = FileHolders::in_directory(std::path::PathBuf::new());
        let mut upstream = self.upstream(context, &holders, &clock);
        let ask = self.request.ask(&self.action, &self.arguments);
        let call = RemoteCall { ask: &ask, rule: &self.rule, class: self.request.class };
        if dry_run {
            return match runtime.block_on(gate.dry_run(call)) {
                Ok(answer) => respond::dry_run(context, &self.rule, answer, &mut upstream),
                Err(trouble) => finish_trouble(context, &self.rule, trouble),
            };
        }
        let RemotePassed { passed, undelivered, unsettled: _ } =
            runtime.block_on(gate.pass(call, &Look::default(), &mut upstream));
        let (code, heard) = give(context, &passed, &mut upstream, parent);
        if let Some(undelivered) = undelivered.filter(|_| heard)
            && let Err(error) = runtime.block_on(gate.delivered(undelivered.effect))
        {
            context.output.say(format_args!("semel: the answer is not marked as delivered: {error}"));
        }
        code
    }

    fn intent(&self, context: &Context, ledger: Ledger, clock: SystemClock) -> Result<(Gate, Intent), u8> {
        let ask = self.request.ask(&self.action, &self.arguments);
        let intent = Intent::of(&ask, &self.rule, ledger.secret())
            .map_err(|missing| finish_trouble(context, &self.rule, wording::key_required(&missing)))?;
        Ok((open::gate(ledger, clock, self.policy.mode), intent))
    }

    fn upstream<'a>(
        &'a self,
        context: &Context,
        holders: &'a dyn Holders,
        clock: &'a dyn Clock,
    ) -> CommandUpstream<'a> {
        let asks = self.rule.probe.is_some() || self.rule.confirm.is_some();
        let options = CommandOptions {
            show: if context.output.json { Show::InAnswer } else { Show::Live },
            pass_input: self.request.pass_input,
            effect: self.request.effect,
            // Most commands are asked nothing about.
            backends: Arc::new(match asks {
                true => probe_access::alone(context, &self.policy),
                false => probe_access::commands(context),
            }),
            // A program that reads stderr learns it from the answer.
            waits: (stderr_is_terminal() && !context.output.quiet).then_some(say_waiting),
            output_drain: Some(drain),
        };
        let rule = (&self.rule, &self.policy);
        CommandUpstream::new(&self.request.line, self.action.clone(), rule, holders, clock, options)
    }
}

/// Gives the answer to the caller, and marks it as delivered if the caller can have read it.
fn deliver(
    context: &Context,
    gate: &Gate,
    passed: Passed,
    upstream: &mut CommandUpstream<'_>,
    parent: Option<Pid>,
) -> (u8, Answer) {
    let (code, heard) = give(context, &passed, upstream, parent);
    if let Some(delivery) = passed.delivery.filter(|_| heard)
        && let Err(error) = block_on(gate.delivered(&delivery))
    {
        context.output.say(format_args!("semel: the answer is not marked as delivered: {error}"));
    }
    (code, passed.answer)
}

/// Gives the answer to the caller. Returns the exit code, and whether the caller can have read it.
fn give(
    context: &Context,
    passed: &Passed,
    upstream: &mut CommandUpstream<'_>,
    parent: Option<Pid>,
) -> (u8, bool) {
    let (code, accepted) = respond(context, passed, upstream);
    let reader_left = reader_is_gone(std::io::stdout().as_fd());
    if !accepted && !reader_left && !upstream.was_asked_to_end() {
        let id = passed.answer.effect_id.map_or_else(|| "EFFECT".to_owned(), |id| id.to_string());
        let there = if context.environment.server.is_some() { "on the server: " } else { "" };
        context.output.warn(format_args!(
            "semel: not all of its output could be written. The record has it: {there}semel ledger show {id}"
        ));
    }
    // A parent that has gone cannot have read the answer, whatever the pipe accepted. Nor can one that asked us to end,
    // or closed its end of the pipe.
    let heard = accepted
        && rustix::process::getppid() == parent
        && !upstream.was_asked_to_end()
        && !reader_is_gone(std::io::stdout().as_fd());
    (code, heard)
}

/// This program, to read the output of background processes once nobody else does.
fn drain() -> std::process::Command {
    // Where it lies is not known in every sandbox; its name is.
    let mut drain = std::process::Command::new(std::env::current_exe().unwrap_or_else(|_| "semel".into()));
    drain.arg(DRAIN_OUTPUT);
    drain
}

/// Reads standard input to its end.
pub fn drain_output() {
    let _gone_is_read = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
}

/// Where the rule says how, asks whether a reported success is true, until it is or the rule's time is over. Afterwards
/// nobody is left to ask.
fn confirm(
    context: &Context,
    gate: &Gate,
    rule: &Rule,
    mut passed: Passed,
    upstream: &mut CommandUpstream<'_>,
) -> Passed {
    let (Some(confirm), Some(done)) = (&rule.confirm, gate.unconfirmed(rule, &mut passed)) else {
        return passed;
    };
    // Its output need not wait for that; its exit code does.
    upstream.deliver();
    let within = duration::text(confirm.within);
    context.output.say(format_args!("semel: asking for at most {within} whether it is true"));
    let mut asks = CommandWitness::about(&passed, confirm, upstream);
    let confirmed = block_on(gate.confirm(confirm, &done, &mut asks));
    let told = confirmed.and_then(|confirmed| block_on(gate.confirmed_answer(passed.clone(), confirmed)));
    told.unwrap_or_else(|error| {
        context.output.say(format_args!("semel: the result of the confirm could not be recorded: {error}"));
        passed
    })
}

/// Retention runs by itself. Its trouble must not change the answer of a command that ran.
fn keep_retention(context: &Context, gate: &Gate, policy: &Policy) {
    match block_on(gate.ledger.prune_if_due(policy.retention, gate.clock.now(), gate.clock.uptime())) {
        Ok(Some(_)) => gate.ledger.holders().sweep(),
        Ok(None) => {}
        Err(error) => context.output.say(format_args!("semel: retention did not run: {error}")),
    }
}
