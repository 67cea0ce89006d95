//! `semel ledger copy`: the whole ledger in another place, compared with the first.

use super::progress::ProgressLine;
use crate::args::CopyArgs;
use crate::context::Context;
use crate::output::Hinted;
use semel::command::Change;
use semel::ledger_address::{LedgerAddress, Purpose};
use semel_core::answer::EffectWord;
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::Ledger;
use semel_ledger::copy::{CopyPlan, CopyPurpose, CopyReport, Inventory, copy};
use serde_json::{Value, json};

pub fn run(context: &Context, args: &CopyArgs) -> anyhow::Result<Change> {
    let environment = &context.environment;
    let from = LedgerAddress::named("FROM", &args.from, &environment.settings)?;
    let to = LedgerAddress::named("TO", &args.to, &environment.settings)?;
    let clock = SystemClock::start();
    if !from.is_founded() {
        return Err(Hinted::error(
            format!("nothing was copied: there is no ledger at {from}"),
            "semel doctor",
        ));
    }
    if from.to_string() == to.to_string() {
        anyhow::bail!("nothing was copied: FROM and TO are the same place");
    }
    let source = from.open(&environment.settings, &clock, Purpose::Reading)?;
    if source.store().is_newer() {
        anyhow::bail!("nothing was copied: a newer semel has written {from}; copy it with that one");
    }
    if block_on(source.is_empty())? {
        anyhow::bail!("nothing was copied: the ledger at {from} is empty; is it the right one?");
    }
    let mut document = json!({"from": from.to_string(), "to": to.to_string()});
    if args.change.dry_run {
        document["in_flight"] = json!(block_on(source.in_flight(clock.now()))?);
        // A server is not asked: the first connection founds a ledger there.
        let is_there = matches!(&to, LedgerAddress::File(_))
            && to.is_founded()
            && is_done(context, &source, &to, &clock)?;
        return Ok(Change::would(if is_there { EffectWord::Noop } else { EffectWord::Created }, document));
    }
    let plan = CopyPlan { from: from.to_string(), purpose: CopyPurpose::Move, now: clock.now() };
    let report = into(context, &source, &to, &plan, &clock)?;
    document["verified"] = report.is_new.into();
    if !report.is_new {
        return Ok(Change::noop(document, format!("{to} is a copy of {from} already, and complete.")));
    }
    add_counts(&mut document, &report);
    let text = format!(
        "Copied {from} to {to}: {}. Both were read again and are the same.",
        words(&report.inventory)
    );
    let hint = format!(
        "Use one of them from now on, and not both: a call that is made with each happens twice.\nhint: point every \
         process at {to}, and move {from} out of the way"
    );
    Ok(Change { hint: Some(hint), ..Change::created(document, text) })
}

/// Copies into a place that need not be founded yet.
pub fn into(
    context: &Context,
    from: &Ledger,
    to: &LedgerAddress,
    plan: &CopyPlan,
    clock: &SystemClock,
) -> anyhow::Result<CopyReport> {
    let secret = Some(from.secret().clone());
    let target = to.open_for_copy(&context.environment.settings, clock, Purpose::Command, secret)?;
    let mut line = ProgressLine::new(context.output);
    let copied = block_on(copy(from, &target, plan, &mut |progress| line.show(progress)));
    line.end();
    // Of a file, so that it alone is all of the ledger.
    target.store().fold_back();
    let report = copied?;
    to.expect(&target)?;
    Ok(report)
}

fn is_done(
    context: &Context,
    from: &Ledger,
    to: &LedgerAddress,
    clock: &SystemClock,
) -> anyhow::Result<bool> {
    let there = to.open(&context.environment.settings, clock, Purpose::Reading)?;
    Ok(there.secret().check_value() == from.secret().check_value() && block_on(there.copy_mark())?.is_some())
}

pub fn add_counts(document: &mut Value, report: &CopyReport) {
    document["resumed"] = report.resumed.into();
    document["copied"] = json!(report.inventory);
}

pub fn words(inventory: &Inventory) -> String {
    let Inventory { effects, replies, journal, cells } = inventory;
    format!(
        "effects {}, replies {}, lines of the journal {}, cells {}",
        effects.count, replies.count, journal.count, cells.count
    )
}
