//! `semel cancel`: nothing more starts in a run.

use crate::args::CancelArgs;
use crate::context::Context;
use crate::effect_json::{self, EffectJson};
use crate::open::TENANT;
use crate::operator::Operator;
use crate::output::counted;
use crate::terminal_text;
use semel::command::Change;
use semel_core::answer::EffectWord;
use semel_core::ids::{Reason, Run};
use semel_core::subject::in_short;
use semel_doors::known_run::{is_on_record, lists_effects};
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::cancel::CancelReport;
use semel_ledger::record::StoredEffect;
use std::fmt::Write as _;

pub fn run(context: &Context, args: &CancelArgs) -> anyhow::Result<Change> {
    use anyhow::Context as _;
    let operator = match args.lift {
        true => Operator::unless_dry(context, &args.operator, &args.change)?,
        false => None,
    };
    let clock = SystemClock::start();
    let run = Run::named(&args.run).context("RUN")?;
    let reason = args.reason.as_deref().map(Reason::parse).transpose().context("--reason")?;
    let reason = reason.map(|reason| reason.as_str().to_owned());
    if args.change.dry_run {
        let ledger = context.existing_ledger(&clock)?;
        let fence = ledger.map(|ledger| block_on(ledger.standing_fence(TENANT, &run.id))).transpose()?;
        let is_cancelled = fence.flatten().is_some();
        let document = serde_json::json!({"schema_version": 1, "run": run.id, "cancelled": is_cancelled});
        return Ok(Change::would(effect(is_cancelled, args.lift), document));
    }
    let ledger = context.ledger(&clock)?;
    let reason = match operator {
        None => reason,
        Some(operator) => {
            let what = format!("Let run {} start things again?", terminal_text::line(&run.id));
            let by = operator.confirm(&ledger, TENANT, what)?;
            Some(reason.map_or_else(|| by.clone(), |reason| format!("{by}: {reason}")))
        }
    };
    let known = block_on(is_on_record(&ledger, TENANT, &run.id))?;
    let was_cancelled = block_on(ledger.standing_fence(TENANT, &run.id))?.is_some();
    let cancelled = block_on(ledger.cancel(TENANT, &run.id, args.lift, reason, clock.now()))?;
    let known = known || lists_effects(&cancelled);
    // Every effect of a run lies under its own key; the reply is not what a cancel is about.
    let effects = |known: &[StoredEffect]| -> anyhow::Result<Vec<EffectJson>> {
        known
            .iter()
            .map(|known| {
                let (key, known) = block_on(ledger.by_id(known.effect.id))?;
                Ok(effect_json::read(&ledger, key, &known.effect)?)
            })
            .collect()
    };
    let prevented = cancelled.prevented.iter();
    let prevented: Vec<_> = prevented
        .map(|(action, subject)| serde_json::json!({"action": action, "subject": subject}))
        .collect();
    let undo: Vec<_> = cancelled
        .undoable()
        .map(|(known, call)| serde_json::json!({"effect_id": known.effect.id, "call": call.to_string()}))
        .collect();
    let mut document = serde_json::json!({
        "schema_version": 1,
        "run": run.id,
        "cancelled": !args.lift,
        "known": known,
        "applied": effects(&cancelled.applied)?,
        "in_flight": effects(&cancelled.in_flight)?,
        "in_doubt": effects(&cancelled.in_doubt)?,
        "prevented": prevented,
        "undo": undo,
        "drained": cancelled.drained,
    });
    if !cancelled.damaged.is_empty() {
        document["damaged"] = cancelled.damaged.len().into();
    }
    Ok(Change::new(effect(was_cancelled, args.lift), document, text(&cancelled, known, args)?))
}

fn effect(was_cancelled: bool, lift: bool) -> EffectWord {
    if was_cancelled == lift { EffectWord::Updated } else { EffectWord::Noop }
}

fn text(cancelled: &CancelReport, known: bool, args: &CancelArgs) -> Result<String, std::fmt::Error> {
    let run = terminal_text::line(&args.run);
    let mut text = if args.lift {
        format!("Run {run} may start things again.\n")
    } else {
        format!("Run {run} is cancelled: nothing more starts in it.\n")
    };
    if !known {
        text.push_str("No such run so far.");
        text.push_str(if args.lift {
            "\n"
        } else {
            " Future calls under this name are blocked; is the name right?\n"
        });
    }
    let effects = |known: &[StoredEffect]| -> Vec<String> {
        known
            .iter()
            .map(|StoredEffect { effect, .. }| {
                format!("{}  {}  {}", effect.id, effect.facts.action, in_short(&effect.facts.subject))
            })
            .collect()
    };
    let prevented =
        cancelled.prevented.iter().map(|(action, subject)| format!("{action}  {subject}")).collect();
    let undoable = cancelled.undoable().map(|(known, call)| format!("{}  {call}", known.effect.id)).collect();
    let groups = [
        ("applied", effects(&cancelled.applied)),
        ("in flight", effects(&cancelled.in_flight)),
        ("in doubt", effects(&cancelled.in_doubt)),
        ("prevented", prevented),
        ("undo", undoable),
    ];
    for (name, lines) in groups {
        writeln!(
            text,
            "{name}: {}",
            if lines.is_empty() { "none".to_owned() } else { lines.len().to_string() }
        )?;
        for line in lines {
            writeln!(text, "  {}", terminal_text::line(&line))?;
        }
    }
    if !args.lift {
        writeln!(text, "drained: {}", if cancelled.drained { "yes" } else { "no" })?;
    }
    if !cancelled.damaged.is_empty() {
        let records = counted(cancelled.damaged.len(), "record", "records");
        writeln!(text, "{records} cannot be read and may be of this run: semel doctor --full")?;
    }
    if !cancelled.drained && !args.lift {
        writeln!(text, "Something may still be sent: ask again with semel cancel {run}")?;
    }
    Ok(text)
}
