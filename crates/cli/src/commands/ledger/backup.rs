//! `semel ledger backup`: the ledger and its secret in a file, while others go on.

use super::copy;
use crate::args::BackupArgs;
use crate::change;
use crate::context::Context;
use crate::output::Hinted;
use anyhow::bail;
use semel::command::Change;
use semel::ledger_address::{LedgerAddress, Purpose, sqlite_options};
use semel_core::answer::EffectWord;
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::command_key::CommandKey;
use semel_ledger::copy::{CopyMark, CopyPlan, CopyPurpose, CopyStage};
use semel_ledger::place::Place;
use semel_ledger::{Ledger, sqlite};
use serde_json::json;
use std::path::Path;

pub fn run(context: &Context, args: &BackupArgs) -> anyhow::Result<Change> {
    let clock = SystemClock::start();
    let from = context.ledger_address()?;
    if !from.is_founded() {
        return Err(Hinted::error(
            format!("nothing was written: there is no ledger at {from}"),
            "semel doctor",
        ));
    }
    let file = context.environment.settings.cwd.join(&args.file);
    let (to, now) = (Place::at(&file), clock.now());
    let key = change::key(&args.change, &[b"backup", file.as_os_str().as_encoded_bytes()]);
    let document =
        json!({"from": from.to_string(), "file": file, "secret": to.secret_file(), "at": now.to_string()});
    if file.symlink_metadata().is_ok() {
        let made_by = made_by(context, &file, &clock);
        return match CommandKey::is_repeat(key, made_by)? {
            true => Ok(Change::noop(document, format!("{} was written before.", file.display()))),
            false => Err(Hinted::error(
                format!("nothing was written: {} is there already", file.display()),
                "name another file",
            )),
        };
    }
    if args.change.dry_run {
        return Ok(Change::would(EffectWord::Created, document));
    }
    let ledger = from.open(&context.environment.settings, &clock, Purpose::Reading)?;
    if ledger.store().is_newer() {
        bail!("nothing was written: a newer semel has written the ledger; back it up with that one");
    }
    to.prepare(context.environment.settings.allow_network_fs)?;
    // It gets its name when it is whole.
    let partial = Place::at(file.with_added_extension("partial"));
    partial.remove();
    let plan = CopyPlan { from: from.to_string(), purpose: CopyPurpose::Backup { command: key }, now };
    let mark = CopyMark::new(&plan, CopyStage::Backup { at: now, command: key });
    let written = write(context, &from, &ledger, &partial, (&plan, &mark), &clock);
    let kept = written.and_then(|counts| {
        to.keep_secret(ledger.secret())?;
        if to.secret()?.is_none_or(|secret| secret.check_value() != ledger.secret().check_value()) {
            bail!("{} is the secret of another ledger; name another file", to.secret_file().display());
        }
        partial.move_to(&to)?;
        Ok(counts)
    });
    let counts = kept.inspect_err(|_| partial.remove())?;
    let mut document = document;
    document["copied"] = json!(counts);
    let text = format!(
        "Wrote {} ({}), and its secret {}. Keep both, where nobody else can read them.",
        file.display(),
        copy::words(&counts),
        to.secret_file().display()
    );
    Ok(Change::created(document, text))
}

/// Writes all of it, and reads it again.
fn write(
    context: &Context,
    from: &LedgerAddress,
    ledger: &Ledger,
    partial: &Place,
    (plan, mark): (&CopyPlan, &CopyMark),
    clock: &SystemClock,
) -> anyhow::Result<semel_ledger::copy::Inventory> {
    let address = LedgerAddress::File(partial.database().to_owned());
    match from {
        LedgerAddress::File(file) => {
            sqlite::back_up(&Place::at(file), partial, mark)?;
            partial.keep_secret(ledger.secret())?;
        }
        LedgerAddress::Server { .. } => {
            copy::into(context, ledger, &address, plan, clock)?;
        }
    }
    let copy = address.open(&context.environment.settings, clock, Purpose::Reading)?;
    let complaints = block_on(copy.store().check())?;
    if let Some(first) = complaints.first() {
        bail!("nothing was kept: what was written is damaged: {first}");
    }
    Ok(block_on(copy.inventory(&mut |_| ()))?)
}

/// The command that made a file, if that is a backup and came under a key.
fn made_by(context: &Context, file: &Path, clock: &SystemClock) -> Option<CommandKey> {
    let options = sqlite_options(file, &context.environment.settings, clock, Purpose::Reading);
    let address = LedgerAddress::File(options.place.database().to_owned());
    let ledger = address.open(&context.environment.settings, clock, Purpose::Reading).ok()?;
    match block_on(ledger.copy_mark()).ok()?? {
        CopyMark { stage: CopyStage::Backup { command, .. }, .. } => command,
        _ => None,
    }
}
