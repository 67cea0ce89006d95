//! The quarantine of a ledger that may have forgotten claims: how it is seen, begun and ended.

use crate::args::{EndQuarantineArgs, MarkRestoredArgs};
use crate::change;
use crate::context::Context;
use crate::open::TENANT;
use crate::operator::Operator;
use crate::output::{counted, stderr_is_terminal};
use crate::terminal_text;
use anyhow::Context as _;
use semel::command::Change;
use semel_core::answer::EffectWord;
use semel_core::ids::Reason;
use semel_core::time::{At, in_words};
use semel_doors::stats;
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::command_key::CommandKey;
use semel_ledger::small_records::{Epoch, QUARANTINE};
use serde_json::{Value, json};
use std::process::ExitCode;

pub fn show(context: &Context) -> anyhow::Result<ExitCode> {
    let clock = SystemClock::start();
    let epoch = standing(context, &clock)?;
    if context.output.json {
        context.output.document(&document(epoch.as_ref(), clock.now()));
        return Ok(ExitCode::SUCCESS);
    }
    Ok(context.answer(change(EffectWord::None, epoch.as_ref(), clock.now())))
}

/// `semel ledger mark-restored`.
pub fn begin(context: &Context, args: &MarkRestoredArgs) -> anyhow::Result<Change> {
    let clock = SystemClock::start();
    let (reason, now) = (Reason::parse(&args.reason).context("--reason")?, clock.now());
    let key = change::key(&args.change, &[b"mark-restored", reason.as_str().as_bytes()]);
    if args.change.dry_run {
        return rehearse(key, standing(context, &clock)?.as_ref(), now);
    }
    let (epoch, is_new) = block_on(context.ledger(&clock)?.bump_epoch_once(reason.as_str(), key, now))?;
    Ok(change(if is_new { EffectWord::Updated } else { EffectWord::Noop }, Some(&epoch), now))
}

/// `semel ledger end-quarantine`.
pub fn end(context: &Context, args: &EndQuarantineArgs) -> anyhow::Result<Change> {
    let operator = Operator::unless_dry(context, &args.operator, &args.change)?;
    let clock = SystemClock::start();
    let now = clock.now();
    let Some(operator) = operator else {
        let epoch = standing(context, &clock)?;
        let is_over = epoch.as_ref().is_none_or(|epoch| epoch.accepted);
        let effect = if is_over { EffectWord::Noop } else { EffectWord::Updated };
        return Ok(Change::would(effect, document(epoch.as_ref(), now)));
    };
    let ledger = context.ledger(&clock)?;
    let what = "End the quarantine? Calls that may be older than the loss run then.";
    let by = operator.confirm(&ledger, TENANT, what)?;
    let (epoch, is_new) = block_on(ledger.accept_epoch(&by, now))?;
    let doubts = block_on(stats::in_doubt(&ledger, None, now))?;
    let hint = (doubts > 0).then(|| {
        let effects = counted(doubts as usize, "effect is", "effects are");
        format!("{effects} still in doubt. A person settles each:\nhint: semel ledger  # lists them")
    });
    let change = change(if is_new { EffectWord::Updated } else { EffectWord::Noop }, Some(&epoch), now);
    Ok(Change { hint, ..change })
}

fn standing(context: &Context, clock: &SystemClock) -> anyhow::Result<Option<Epoch>> {
    let ledger = context.existing_ledger(clock)?;
    Ok(ledger.map(|ledger| block_on(ledger.epoch())).transpose()?.and_then(|(_, epoch)| epoch))
}

/// A dry run of a command that begins an epoch.
pub fn rehearse(key: Option<CommandKey>, epoch: Option<&Epoch>, now: At) -> anyhow::Result<Change> {
    let is_repeat = CommandKey::is_repeat(key, epoch.and_then(|epoch| epoch.command))?;
    let effect = if is_repeat { EffectWord::Noop } else { EffectWord::Updated };
    Ok(Change::would(effect, document(epoch, now)))
}

pub fn quarantined_until(epoch: &Epoch, now: At) -> Option<At> {
    epoch.forgotten_before(now).map(|_| epoch.since.plus(QUARANTINE))
}

fn document(epoch: Option<&Epoch>, now: At) -> Value {
    json!({
        "number": epoch.map_or(1, |epoch| epoch.number),
        "since": epoch.map(|epoch| epoch.since.to_string()),
        "reason": epoch.map(|epoch| &epoch.reason),
        "accepted": epoch.is_none_or(|epoch| epoch.accepted),
        "quarantined_until": epoch.and_then(|epoch| quarantined_until(epoch, now)).map(|at| at.to_string()),
    })
}

/// The quarantine as it stands after a command.
pub fn change(effect: EffectWord, epoch: Option<&Epoch>, now: At) -> Change {
    let until = epoch.and_then(|epoch| quarantined_until(epoch, now));
    let text = match (epoch, until) {
        (None, _) => "No quarantine: as far as is known, this ledger has lost nothing.".to_owned(),
        (Some(Epoch { since, reason, .. }), Some(until)) => format!(
            "Quarantine since {since}: {}\nCalls that may be older are held until {until} ({} more).",
            terminal_text::line(reason),
            in_words(until.since(now))
        ),
        (Some(Epoch { since, reason, .. }), None) => {
            format!("No quarantine. The last one began {since}: {}", terminal_text::line(reason))
        }
    };
    let hint = (until.is_some() && stderr_is_terminal())
        .then(|| "hint: if no older call will be retried: semel ledger end-quarantine".to_owned());
    Change { hint, ..Change::new(effect, document(epoch, now), text) }
}
