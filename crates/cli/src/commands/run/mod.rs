//! `semel run`: any command, at most once.

mod piped;
mod request;
pub mod respond;

use super::Context;
use crate::args::{DRAIN_OUTPUT, Run as Args};
use crate::open::{self, LocalGate};
use crate::output::{ledger_hint, stderr_is_terminal};
use crate::policy_files;
use crate::probe_access;
use request::{RunRequest, named_action};
use respond::{
    dry_run, finish_trouble, finish_unavailable, give, not_understood, policy_invalid, say_waiting,
};
use semel_core::class::Class;
use semel_core::intent::Intent;
use semel_core::policy::{Policy, Rule, duration};
use semel_core::wording;
use semel_doors::command::confirm::Asks;
use semel_doors::command::serve::{CommandUpstream, Options, Show};
use semel_doors::command::stream::reader_is_gone;
use semel_gate::Passed;
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::holders::FileHolders;
use semel_ledger::place::Place;
use std::os::fd::AsFd;
use std::sync::Arc;

pub fn run(context: &Context, args: &Args) -> u8 {
    let parent = rustix::process::getppid();
    let request = match RunRequest::parse(context, args) {
        Ok(request) => request,
        Err(error) => return not_understood(context, &error),
    };
    let policy = match policy_files::load(&context.environment, context.global.policy.as_deref()) {
        Ok(policy) => policy,
        Err(unusable) => return policy_invalid(context, &unusable),
    };
    let arguments = request.line.arguments();
    let action = args.action.as_ref().map_or_else(|| request.line.action(), |name| named_action(name));
    let rule = match request.rule(&policy, &action, &arguments) {
        Ok(rule) => rule,
        Err(error) => return not_understood(context, &error),
    };
    let clock = SystemClock::start();
    let options = || Options {
        show: if context.output.json { Show::InAnswer } else { Show::Live },
        pass_input: request.pass_input,
        effect: request.effect,
        // Most commands are request nothing about.
        means: Arc::new(match rule.probe.is_some() || rule.confirm.is_some() {
            true => probe_access::alone(context, &policy),
            false => probe_access::commands(context),
        }),
        // A program that reads stderr learns it from the answer.
        waits: (stderr_is_terminal() && !context.output.quiet).then_some(say_waiting),
        output_drain: Some(drain),
    };
    let file = context.environment.ledger_file(context.global.ledger.as_deref());
    // A dry run founds no ledger: where there is none, nothing is known.
    let unfounded = args.dry_run && file.as_ref().is_ok_and(|file| !open::is_founded(&Place::at(file)));
    let nowhere = unfounded.then(tempfile::tempdir).and_then(Result::ok);
    let opened = file.map_err(|error| (error.to_string(), None)).and_then(|file| {
        let environment = &context.environment;
        let opened = match (args.dry_run, &nowhere) {
            (false, _) => open::ledger(&file, environment, &clock),
            // One whose founding was cut short must be founded before anything is known.
            (true, None) => open::reading(&file, environment, &clock)
                .or_else(|_| open::ledger(&file, environment, &clock)),
            (true, Some(nowhere)) => open::ledger(&nowhere.path().join("ledger.db"), environment, &clock),
        };
        opened.map_err(|error| (error.to_string(), ledger_hint(&error)))
    });
    let ledger = match opened {
        Ok(ledger) => ledger,
        // With the ledger unreachable, effects are refused before they are sent, and reads pass.
        Err(_) if rule.class == Class::Read && !args.dry_run => {
            let holders = FileHolders::in_directory(std::path::PathBuf::new());
            let mut upstream =
                CommandUpstream::new(&request.line, action, (&rule, &policy), &holders, &clock, options());
            let passed = block_on(semel_gate::unrecorded(&rule, &mut upstream));
            return give(context, &passed, &mut upstream).0;
        }
        Err((why, hint)) => return finish_unavailable(context, &rule, &why, hint),
    };
    let ask = request.ask(&action, &arguments);
    let intent = match Intent::of(&ask, &rule, ledger.secret()) {
        Ok(intent) => intent,
        Err(missing) => return finish_trouble(context, &rule, wording::key_required(&missing)),
    };
    let gate = open::gate(ledger, clock, policy.mode);
    let holders = gate.ledger.holders();
    let mut upstream =
        CommandUpstream::new(&request.line, action, (&rule, &policy), holders, &gate.clock, options());
    if args.dry_run {
        return match block_on(gate.dry_run(&intent, &rule, &mut upstream)) {
            Ok(answer) => dry_run(context, &rule, answer, &mut upstream),
            Err(error) => finish_unavailable(context, &rule, &error.to_string(), None),
        };
    }
    let passed = match block_on(gate.pass(&intent, &rule, &mut upstream)) {
        Ok(passed) => confirm(context, &gate, &rule, passed, &mut upstream),
        Err(semel_gate::Error::Ledger(error)) => {
            return finish_unavailable(context, &rule, &error.to_string(), ledger_hint(&error));
        }
    };
    let (code, accepted) = give(context, &passed, &mut upstream);
    if !accepted && !reader_is_gone(std::io::stdout().as_fd()) && !upstream.was_asked_to_end() {
        let id = passed.answer.effect_id.map_or_else(|| "EFFECT".to_owned(), |id| id.to_string());
        context.output.warn(format_args!(
            "semel: not all of its output could be written; what is recorded of it: semel ledger show {id}"
        ));
    }
    // A parent that has gone cannot have read the answer, whatever the pipe accepted.
    // Nor can one that request us to end, or closed its end of the pipe.
    let heard = accepted
        && rustix::process::getppid() == parent
        && !upstream.was_asked_to_end()
        && !reader_is_gone(std::io::stdout().as_fd());
    let delivery = passed.delivery.filter(|_| heard);
    if let Some(delivery) = delivery
        && let Err(error) = block_on(gate.delivered(&delivery))
    {
        context.output.say(format_args!("semel: the answer is not marked as delivered: {error}"));
    }
    // A count that is lost is no reason to say anything.
    let _uncounted = block_on(gate.write_counts());
    // Its name goes with the lock, unless something that the command left behind still holds on to it.
    gate.ledger.holders().let_go();
    keep_house(context, &gate, &policy);
    code
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
    gate: &LocalGate,
    rule: &Rule,
    mut passed: Passed,
    upstream: &mut CommandUpstream<'_, SystemClock>,
) -> Passed {
    let (Some(confirm), Some(done)) = (&rule.confirm, gate.unconfirmed(rule, &mut passed)) else {
        return passed;
    };
    // What it printed need not wait for that; its exit code does.
    upstream.deliver();
    let within = duration::text(confirm.within);
    context.output.say(format_args!("semel: asking for at most {within} whether it is true"));
    let mut asks = Asks::about(&passed, confirm, upstream);
    let confirmed = block_on(gate.confirm(confirm, &done, &mut asks));
    let told = confirmed.and_then(|confirmed| block_on(gate.confirmed_answer(passed.clone(), confirmed)));
    told.unwrap_or_else(|error| {
        context.output.say(format_args!("semel: what was request could not be recorded: {error}"));
        passed
    })
}

/// Retention runs by itself. Its trouble must not change the answer of a command that ran.
fn keep_house(context: &Context, gate: &LocalGate, policy: &Policy) {
    match block_on(gate.ledger.prune_if_due(policy.retention, gate.clock.now(), gate.clock.uptime())) {
        Ok(Some(_)) => gate.ledger.holders().sweep(),
        Ok(None) => {}
        Err(error) => context.output.say(format_args!("semel: retention did not run: {error}")),
    }
}
