//! `semel ledger resolve`: what became of an effect that is in doubt.

use super::named::{self, recognisable};
use super::rule::{may_still_happen, ruling};
use crate::args::ResolveArgs;
use crate::context::Context;
use crate::effect_json;
use crate::operator::Operator;
use crate::output::Hinted;
use anyhow::Context as _;
use semel_core::ids::EffectId;
use semel_core::lifecycle::Illegal;
use semel_doors::reply::{REPLY_BYTES_MAX, encode_supplied};
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_gate::counts::Counts;
use semel_ledger::Error;
use semel_ledger::counts::Day;
use semel_ledger::rulings::RulingVerdict;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

pub fn run(context: &Context, args: &ResolveArgs) -> anyhow::Result<ExitCode> {
    let operator = Operator::find(context, args.operator.token.as_deref())?;
    let clock = SystemClock::start();
    let reply = args.reply.as_deref().map(read_reply).transpose()?;
    let ledger = context.existing_ledger(&clock)?;
    let (key, effect) = named::find(ledger.as_ref(), &args.name, clock.now())?;
    let counts = Arc::new(Counts::default());
    let witness: Arc<Counts> = Arc::clone(&counts);
    let ledger = ledger.expect("an effect was found in it").observed_by(witness);
    let verdict = if args.verdict.applied {
        let facts = &effect.facts;
        let kept = |reply| -> anyhow::Result<Vec<u8>> {
            let rule = context.policy()?.rule_kept(&facts.action, &facts.rule);
            encode_supplied(&facts.action, &rule, reply).map_err(anyhow::Error::msg)
        };
        RulingVerdict::Applied { reply: reply.map(kept).transpose().context("--reply")? }
    } else {
        RulingVerdict::NotApplied
    };
    if !args.verdict.applied && may_still_happen(&ledger, &effect, clock.now()) {
        context.output.warn(format_args!(
            "warning: a process that may still carry out {} is alive; end it first, or it may happen twice",
            effect.id
        ));
    }
    let happened = if args.verdict.applied { "happened" } else { "did not happen" };
    let what = format!("Record that {} {happened}?", recognisable(&effect));
    let by = operator.confirm(&ledger, &effect.facts.tenant, what)?;
    let ruling = ruling(by, &args.reason, clock.now())?;
    let changed =
        block_on(ledger.resolve(effect.id, verdict, ruling)).map_err(|error| refused(error, effect.id))?;
    // The ruling stands, counted or not.
    let _uncounted = block_on(counts.write(&ledger, Day::of(clock.now())));
    let effect = changed.snapshot.effect().expect("it was just ruled on");
    if context.output.json {
        context.output.document(&effect_json::read(&ledger, key, effect)?);
        return Ok(ExitCode::SUCCESS);
    }
    let id = effect.id;
    context.output.data(match (args.verdict.applied, args.reply.is_some()) {
        (true, true) => format!("Recorded: {id} happened. The next equal call gets this reply."),
        (true, false) => {
            format!("Recorded: {id} happened. The next equal call is told so; its reply is not known.")
        }
        (false, _) => format!("Recorded: {id} did not happen. The next equal call runs."),
    });
    context.output.say(format_args!("hint: to take it back: semel ledger reopen {id} --reason TEXT"));
    Ok(ExitCode::SUCCESS)
}

/// The lifecycle's refusal, with what can be done instead.
pub fn refused(error: Error, id: EffectId) -> anyhow::Error {
    match error {
        Error::Illegal(Illegal { state: "in flight", .. }) => Hinted::error(
            format!("{id} is still running; there is no doubt to rule on"),
            "wait for it, or end the process that runs it",
        ),
        Error::Illegal(Illegal { state, .. }) => Hinted::error(
            format!("{id} is {state}; there is no doubt to rule on"),
            format!("semel ledger show {id}"),
        ),
        error => error.into(),
    }
}

fn read_reply(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut reply = Vec::new();
    let limit = REPLY_BYTES_MAX as u64 + 1;
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(limit).read_to_end(&mut reply)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut reply))
    };
    read.with_context(|| format!("cannot read the reply {}", path.display()))?;
    if reply.len() > REPLY_BYTES_MAX {
        anyhow::bail!("the reply has more than {REPLY_BYTES_MAX} bytes, which is all that is kept of one");
    }
    Ok(reply)
}
