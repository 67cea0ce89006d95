//! `semel ledger resolve`: what became of an effect that is in doubt.

use super::named::{self, recognisable};
use super::rule::{document, may_still_happen, rehearse, ruling};
use crate::args::ResolveArgs;
use crate::context::Context;
use crate::effect_json;
use crate::operator::Operator;
use crate::output::Hinted;
use anyhow::Context as _;
use semel::command::Change;
use semel_core::answer::EffectWord;
use semel_core::effect::{Applied, Effect, NotApplied, Reply, State};
use semel_core::ids::EffectId;
use semel_core::lifecycle::{Event, Illegal};
use semel_doors::reply::{REPLY_BYTES_MAX, encode_supplied};
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_gate::counts::Counts;
use semel_ledger::Error;
use semel_ledger::counts::Day;
use semel_ledger::rulings::RulingVerdict;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

pub fn run(context: &Context, args: &ResolveArgs) -> anyhow::Result<Change> {
    let operator = Operator::unless_dry(context, &args.operator, &args.change)?;
    let clock = SystemClock::start();
    let reply = args.reply.as_deref().map(read_reply).transpose()?;
    let ledger = context.existing_ledger(&clock)?;
    let (key, effect) = named::find_to_change(ledger.as_ref(), &args.name, &args.change, clock.now())?;
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
    let happened = if args.verdict.applied { "happened" } else { "did not happen" };
    if is_ruled(&effect, &verdict, || Ok(effect_json::reply(&ledger, key, &effect)?.1))? {
        let text = format!("Recorded before: {} {happened}.", effect.id);
        return Ok(Change::noop(document(&ledger, key, &effect)?, text));
    }
    let Some(operator) = operator else {
        let ruling = ruling(String::new(), &args.reason, clock.now())?;
        let event = match verdict {
            RulingVerdict::NotApplied => Event::RuledNotApplied { ruling },
            RulingVerdict::Applied { .. } => {
                Event::RuledApplied { ruling, word: EffectWord::Updated, reply: Reply::Unknown }
            }
        };
        rehearse(&effect, &event).map_err(|error| refused(error, effect.id))?;
        return Ok(Change::would(EffectWord::Updated, document(&ledger, key, &effect)?));
    };
    if !args.verdict.applied && may_still_happen(&ledger, &effect, clock.now()) {
        context.output.warn(format_args!(
            "warning: a process that may still carry out {} is alive; end it first, or it may happen twice",
            effect.id
        ));
    }
    let what = format!("Record that {} {happened}?", recognisable(&effect));
    let by = operator.confirm(&ledger, &effect.facts.tenant, what)?;
    let ruling = ruling(by, &args.reason, clock.now())?;
    let changed =
        block_on(ledger.resolve(effect.id, verdict, ruling)).map_err(|error| refused(error, effect.id))?;
    // The ruling stands, counted or not.
    let _uncounted = block_on(counts.write(&ledger, Day::of(clock.now())));
    let effect = changed.snapshot.effect().expect("it was just ruled on");
    let id = effect.id;
    let text = match (args.verdict.applied, args.reply.is_some()) {
        (true, true) => format!("Recorded: {id} happened. The next equal call gets this reply."),
        (true, false) => {
            format!(
                "Recorded: {id} happened. The next equal call is told so, without a reply: none is known. \
                 --reply gives one."
            )
        }
        (false, _) => format!("Recorded: {id} did not happen. The next equal call runs."),
    };
    let what = match (args.verdict.applied, args.reply.is_some()) {
        (true, false) => "take it back, or to rule again with --reply FILE",
        _ => "take it back",
    };
    let hint = format!("hint: to {what}: semel ledger reopen {id} --reason TEXT");
    let change = Change::updated(document(&ledger, key, effect)?, text);
    Ok(Change { hint: Some(hint), ..change })
}

/// Whether somebody has ruled the same. Another reply than the one on record is another ruling.
fn is_ruled(
    effect: &Effect,
    verdict: &RulingVerdict,
    recorded: impl FnOnce() -> anyhow::Result<Option<Vec<u8>>>,
) -> anyhow::Result<bool> {
    Ok(match (&effect.state, verdict) {
        (State::NotApplied(NotApplied { ruling: Some(_), .. }), RulingVerdict::NotApplied) => true,
        (State::Applied(Applied { ruling: Some(_), .. }), RulingVerdict::Applied { reply }) => {
            reply.is_none() || *reply == recorded()?
        }
        _ => false,
    })
}

/// The lifecycle's refusal, with what can be done instead.
pub fn refused(error: Error, id: EffectId) -> anyhow::Error {
    match error {
        Error::Illegal(Illegal { state: "in flight", .. }) => Hinted::error(
            format!("{id} has not reported its end; there is no doubt to rule on yet"),
            format!(
                "semel ledger show {id} names its deadline, if it has one; before it, end the process that runs it"
            ),
        ),
        Error::Illegal(Illegal { state, .. }) => Hinted::error(
            format!("{id} is {state}; there is no doubt to rule on"),
            format!("semel ledger show {id}"),
        ),
        error => error.into(),
    }
}

fn read_reply(path: &Path) -> anyhow::Result<Vec<u8>> {
    // A terminal that confirms cannot be the standard input that holds the reply.
    if let Some(json) = path.to_str().filter(|text| text.starts_with(['{', '['])) {
        return Ok(json.as_bytes().to_vec());
    }
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
