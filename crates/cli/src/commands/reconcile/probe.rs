//! The outside as the probe of each effect's rule sees it.

use super::intended::transcript_files;
use crate::args::ReconcileArgs;
use crate::context::Context;
use crate::output::counted;
use crate::{probe_access, server_runtime};
use anyhow::Context as _;
use semel_core::digest::{Digest, Secret};
use semel_core::effect::{Doubt, Effect, State};
use semel_core::identity::{Marks, sort};
use semel_core::json::Json;
use semel_core::policy::rule::Probe;
use semel_core::policy::{ActionFacts, Policy};
use semel_core::time::At;
use semel_detect::reconcile::Comparison;
use semel_detect::reconcile::transcript::for_each_action;
use semel_doors::query::{Credentials, Query, QueryFinding, Subject};
use semel_gate::clock::{Clock, SystemClock};
use semel_ledger::Ledger;
use std::collections::HashMap;

/// Arguments of calls, by action and fingerprint.
type KnownArguments = HashMap<(String, Digest), Json>;

/// Asks about the effects that happened or are in doubt. The number is of those that could not be asked about.
pub fn ask(
    context: &Context,
    args: &ReconcileArgs,
    ledger: &Ledger,
    effects: &[Effect],
) -> anyhow::Result<(Vec<Comparison>, usize)> {
    let policy = context.policy()?;
    let known = known_arguments(args, &policy, ledger.secret())?;
    let backends = probe_access::alone(context, &policy);
    let runtime = server_runtime::runtime()?;
    let (mut found, mut without_probe, mut without_arguments) = (Vec::new(), 0, 0);
    let nothing = Json::object::<String, 0>([]);
    for effect in effects.iter().filter(|effect| is_asked_about(effect)) {
        let facts = &effect.facts;
        let arguments = known.get(&(facts.action.clone(), effect.marks.fingerprint));
        let rule = match arguments {
            Some(arguments) => policy.rule_for(&ActionFacts::new(&facts.action, arguments)),
            None => policy.rule_kept(&facts.action, &facts.rule),
        };
        let Some(probe) = &rule.probe else {
            without_probe += 1;
            continue;
        };
        if arguments.is_none() && probe.needs_arguments() {
            without_arguments += 1;
            continue;
        }
        let subject = Subject {
            action: &facts.action,
            arguments: arguments.unwrap_or(&nothing),
            effect: Some(effect),
            reply: None,
            credentials: Credentials::None,
        };
        let query = Query { backends: &backends, policy: &policy, subject, signals: None };
        let asked_at = SystemClock::start().now();
        let finding = runtime.block_on(query.probe(probe));
        let by = format!("the probe {}", probe.call.name(&facts.action));
        found.push(comparison(effect, probe, finding, by, asked_at));
    }
    let say = |number: usize, why: &str| {
        if number > 0 {
            let effects = counted(number, "effect was", "effects were");
            context.output.say(format_args!("semel: {effects} not asked about: {why}"));
        }
    };
    say(without_probe, "their rules have no probe");
    say(
        without_arguments,
        "their probes need arguments, which the ledger does not keep; --transcript brings those of a session",
    );
    Ok((found, without_probe + without_arguments))
}

fn is_asked_about(effect: &Effect) -> bool {
    effect.undone.is_none() && matches!(effect.state, State::Applied(_) | State::InDoubt(_))
}

fn known_arguments(args: &ReconcileArgs, policy: &Policy, secret: &Secret) -> anyhow::Result<KnownArguments> {
    let mut known = KnownArguments::new();
    let Some(path) = &args.transcript else { return Ok(known) };
    let (files, options) = transcript_files(args, path, SystemClock::start().now())?;
    for file in files {
        let read = for_each_action(&file.path, &options, |call| {
            let rule = policy.rule_for(&ActionFacts::new(&call.action, &call.arguments));
            let marks = Marks::of(secret, &call.action, &sort(&call.arguments, &rule.sorting));
            known.insert((call.action, marks.fingerprint), call.arguments);
        });
        read.with_context(|| file.path.display().to_string())?;
    }
    Ok(known)
}

fn comparison(effect: &Effect, probe: &Probe, finding: QueryFinding, by: String, asked_at: At) -> Comparison {
    let id = effect.id.to_string();
    let (action, subject) = (effect.facts.action.clone(), effect.facts.subject.clone());
    let is_doubt = matches!(effect.state, State::InDoubt(_));
    let why = match finding {
        QueryFinding::Yes { .. } if !probe.tells_apart(effect.occurrence.number) => {
            "found, but that may be one that was done before: the probe does not ask when".to_owned()
        }
        QueryFinding::Yes { .. } if is_doubt => {
            return Comparison::NowDecidable { id, action, subject, happened: true, row: Some(by) };
        }
        QueryFinding::Yes { .. } => return Comparison::Matched { id, row: by },
        QueryFinding::No if !is_doubt => return Comparison::AbsentOutside { id, action, subject },
        QueryFinding::No if may_believe_no(effect, probe, asked_at) => {
            return Comparison::NowDecidable { id, action, subject, happened: false, row: Some(by) };
        }
        QueryFinding::No => "not found, but it may still be carried out".to_owned(),
        QueryFinding::Unknown(why) => why,
    };
    Comparison::Undecided { id, action, subject, why }
}

/// A claim that the store forgot has a sender that nobody knows: its absence is a person's to judge.
fn may_believe_no(effect: &Effect, probe: &Probe, asked_at: At) -> bool {
    let is_forgotten = effect.attempts.is_empty()
        || matches!(&effect.state, State::InDoubt(doubt) if doubt.why == Doubt::Epoch);
    !is_forgotten && effect.may_believe_no(probe.quiet, asked_at)
}
