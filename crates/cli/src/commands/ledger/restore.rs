//! `semel ledger restore`: an older state in the place of the ledger. An epoch begins, because nobody knows what was done
//! since; and the effects that a person should look at are listed.

use super::copy;
use super::quarantine::quarantined_until;
use crate::args::RestoreArgs;
use crate::change;
use crate::context::Context;
use crate::effect_json::{self, EffectJson};
use crate::output::{Hinted, counted};
use crate::table;
use anyhow::{Context as _, bail};
use semel::command::Change;
use semel::ledger_address::{LedgerAddress, Purpose};
use semel_core::answer::EffectWord;
use semel_core::digest::{Digest, Secret};
use semel_core::effect::{Effect, State};
use semel_core::ids::Reason;
use semel_core::time::{At, in_words};
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::Ledger;
use semel_ledger::command_key::CommandKey;
use semel_ledger::copy::{CopyMark, CopyPlan, CopyPurpose, CopyReport, CopyStage};
use semel_ledger::place::Place;
use semel_ledger::sqlite::Replacement;
use semel_ledger::store::{By, Cursor, JournalLine, PAGE_ROWS_MAX};
use serde_json::{Value, json};

/// More are counted, and `semel ledger list` has them.
const LISTED_MAX: usize = 50;

pub fn run(context: &Context, args: &RestoreArgs) -> anyhow::Result<Change> {
    let environment = &context.environment;
    let clock = SystemClock::start();
    let (reason, now) = (Reason::parse(&args.reason).context("--reason")?, clock.now());
    let backup = LedgerAddress::File(environment.settings.cwd.join(&args.file));
    let to = context.ledger_address()?;
    if !backup.is_founded() {
        bail!("nothing was restored: there is no backup at {backup}");
    }
    if backup.to_string() == to.to_string() {
        bail!("nothing was restored: the backup stands in the place of the ledger; move it elsewhere first");
    }
    let from = backup.open(&environment.settings, &clock, Purpose::Reading)?;
    let name = backup.to_string();
    let key = change::key(&args.change, &[b"restore", name.as_bytes(), reason.as_str().as_bytes()]);
    let mut document = json!({"backup": name, "ledger": to.to_string()});
    let stands = match &to {
        // A server is not asked: the first connection founds a ledger there.
        LedgerAddress::Server { .. } if args.change.dry_run => Standing::Free,
        _ => Standing::of(context, &to, &from, &name, key, &clock)?,
    };
    if stands == Standing::Restored {
        return Ok(Change::noop(document, format!("{to} was restored from {backup} before.")));
    }
    if stands == Standing::Other && !(args.replace && matches!(to, LedgerAddress::File(_))) {
        let hint = match &to {
            LedgerAddress::File(_) => "stop all that use it; --replace sets it aside, under another name",
            LedgerAddress::Server { .. } => {
                "a ledger on a server is not set aside: name an empty place there, with another schema=NAME or ledger=NAME"
            }
        };
        return Err(Hinted::error(format!("nothing was restored: there is a ledger at {to}"), hint));
    }
    if args.change.dry_run {
        return Ok(Change::would(EffectWord::Created, document));
    }
    let purpose = CopyPurpose::Restore { reason: reason.as_str().to_owned(), command: key };
    let plan = CopyPlan { from: name, purpose, now };
    let report = match &to {
        LedgerAddress::File(file) => {
            let (report, aside) = replace(context, &from, &to, &Place::at(file), &plan, &clock)?;
            if let Some(aside) = aside {
                document["set_aside"] = json!(aside.database());
            }
            report
        }
        LedgerAddress::Server { .. } => copy::into(context, &from, &to, &plan, &clock)?,
    };
    copy::add_counts(&mut document, &report);
    let ledger = to.open(&environment.settings, &clock, Purpose::Command)?;
    let text = look_at(&ledger, &from, &mut document, now)?;
    Ok(Change {
        hint: Some(
            "Revoke and cancel again what was revoked or cancelled since: the backup does not know it.\n\
             hint: semel ledger  # what needs a person"
                .to_owned(),
        ),
        ..Change::created(document, text)
    })
}

/// The place that a backup shall have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Nothing is there, or this very restoring was interrupted.
    Free,
    /// The same command has restored it.
    Restored,
    Other,
}

impl Standing {
    fn of(
        context: &Context,
        to: &LedgerAddress,
        from: &Ledger,
        name: &str,
        key: Option<CommandKey>,
        clock: &SystemClock,
    ) -> anyhow::Result<Standing> {
        let LedgerAddress::File(file) = to else {
            // Looking founds a ledger there, so that is done with the secret that it shall have.
            let secret = Some(from.secret().clone());
            let ledger = to.open_for_copy(&context.environment.settings, clock, Purpose::Command, secret)?;
            return Standing::of_ledger(&ledger, from, name, key);
        };
        let place = Place::at(file);
        let is_free = |place: &Place| -> anyhow::Result<bool> {
            let is_its_own = |secret: &_| from.secret().check_value() == Secret::check_value(secret);
            Ok(!place.has_database()? && place.secret()?.as_ref().is_none_or(is_its_own))
        };
        if !place.directory().exists() || is_free(&place)? {
            return Ok(Standing::Free);
        }
        match to.open_for_copy(&context.environment.settings, clock, Purpose::Reading, None) {
            Ok(ledger) => Standing::of_ledger(&ledger, from, name, key),
            // A damaged one is often why a backup is restored.
            Err(_) => Ok(Standing::Other),
        }
    }

    fn of_ledger(
        ledger: &Ledger,
        from: &Ledger,
        name: &str,
        key: Option<CommandKey>,
    ) -> anyhow::Result<Standing> {
        let command = block_on(ledger.epoch())?.1.and_then(|epoch| epoch.command);
        if CommandKey::is_repeat(key, command)? {
            return Ok(Standing::Restored);
        }
        let mark = block_on(ledger.copy_mark())?;
        let is_its_own = ledger.secret().check_value() == from.secret().check_value();
        let is_begun =
            matches!(&mark, Some(CopyMark { from, stage: CopyStage::Copying(_), .. }) if from == name);
        match is_begun || is_its_own && mark.is_none() && block_on(ledger.is_empty())? {
            true => Ok(Standing::Free),
            false => Ok(Standing::Other),
        }
    }
}

/// Builds the whole ledger beside its place before that changes.
fn replace(
    context: &Context,
    from: &Ledger,
    to: &LedgerAddress,
    place: &Place,
    plan: &CopyPlan,
    clock: &SystemClock,
) -> anyhow::Result<(CopyReport, Option<Place>)> {
    let newest = newest_unless_busy(context, to, clock)?;
    let replacement = Replacement::begin(place, context.environment.settings.allow_network_fs)?;
    let partial = LedgerAddress::File(replacement.partial().database().to_owned());
    let report = copy::into(context, from, &partial, plan, clock)?;
    // The new epoch began before these calls, and would not hold them.
    if newest_unless_busy(context, to, clock)? != newest {
        bail!("nothing was restored: the ledger was used meanwhile; stop all that use it, and restore again");
    }
    let aside = replacement.finish(&format!("replaced-{}", clock.now().0))?;
    Ok((report, aside))
}

/// The newest line of the ledger that is to be replaced. `None`: it has none, or cannot be read.
fn newest_unless_busy(
    context: &Context,
    to: &LedgerAddress,
    clock: &SystemClock,
) -> anyhow::Result<Option<(Cursor, JournalLine)>> {
    let Ok(ledger) = to.open_for_copy(&context.environment.settings, clock, Purpose::Reading, None) else {
        return Ok(None);
    };
    let busy = block_on(ledger.in_flight(clock.now()))?;
    if let Some(first) = busy.first() {
        let calls = counted(busy.len(), "call is", "calls are");
        bail!("nothing was restored: {calls} in flight, effect {first} first; stop all that use the ledger");
    }
    Ok(block_on(ledger.newest_line()).unwrap_or_default())
}

/// Says what a person should look at.
fn look_at(ledger: &Ledger, from: &Ledger, document: &mut Value, now: At) -> anyhow::Result<String> {
    let made = match block_on(from.copy_mark())? {
        Some(CopyMark { stage: CopyStage::Backup { at, .. }, .. }) => Some(at),
        _ => block_on(from.newest_instant())?,
    };
    let mut open: [Vec<(Digest, Effect)>; 2] = Default::default();
    let (mut damaged, mut after) = (0, None);
    loop {
        let page = block_on(ledger.listing(By::Open, after, PAGE_ROWS_MAX))?;
        damaged += page.damaged.len();
        for (key, stored) in page.items {
            let was_in_flight = matches!(stored.effect.state, State::InFlight { .. });
            open[usize::from(was_in_flight)].push((key, stored.effect));
        }
        match page.next {
            None => break,
            next => after = next,
        }
    }
    let [in_doubt, in_flight] = &open;
    let listed = |effects: &[(Digest, Effect)]| -> anyhow::Result<Vec<EffectJson>> {
        let some = effects.iter().take(LISTED_MAX);
        Ok(some.map(|(key, effect)| effect_json::read(ledger, *key, effect)).collect::<Result<_, _>>()?)
    };
    let until = block_on(ledger.epoch())?.1.and_then(|epoch| quarantined_until(&epoch, now));
    document["backup_from"] = json!(made.map(|at| at.to_string()));
    document["quarantined_until"] = json!(until.map(|at| at.to_string()));
    document["in_doubt"] = json!({"count": in_doubt.len(), "items": listed(in_doubt)?});
    document["was_in_flight"] = json!({"count": in_flight.len(), "items": listed(in_flight)?});
    document["damaged"] = damaged.into();
    let mut text = match made {
        Some(at) => format!("Restored the state of {at}, {} ago.", in_words(now.since(at))),
        None => "Restored a ledger without any call.".to_owned(),
    };
    if let Some(until) = until {
        text.push_str(&format!(
            "\nIt does not know what was done since: calls that it has not seen, and that may be older than now, are held \
             until {until}."
        ));
    }
    for (effects, what) in [
        (in_doubt, "in doubt when the backup was made"),
        (in_flight, "in flight when the backup was made: nobody knows here how it ended"),
    ] {
        if !effects.is_empty() {
            text.push_str(&format!("\n\n{} {what}\n", counted(effects.len(), "effect", "effects")));
            let some = effects.iter().take(LISTED_MAX).map(|(_, effect)| effect);
            text.push_str(&table::effects(some, now, false));
        }
    }
    if damaged > 0 {
        text.push_str(&format!(
            "\n\n{} cannot be read: semel doctor --full",
            counted(damaged, "record", "records")
        ));
    }
    Ok(text)
}
