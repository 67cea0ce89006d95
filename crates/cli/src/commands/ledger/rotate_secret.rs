//! `semel ledger rotate-secret`: a new secret, and with it an epoch.

use super::quarantine::{change, rehearse};
use crate::args::RotateSecretArgs;
use crate::change;
use crate::context::Context;
use crate::output::{Hinted, counted};
use anyhow::Context as _;
use semel::command::Change;
use semel::ledger_address::{LedgerAddress, Purpose, sqlite_options};
use semel_core::answer::EffectWord;
use semel_core::ids::Reason;
use semel_core::time::At;
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::command_key::CommandKey;
use semel_ledger::spool::SpoolReport;
use semel_ledger::sqlite::{SecretRenewal, renew_secret};
use semel_ledger::{Error, Ledger};

pub fn run(context: &Context, args: &RotateSecretArgs) -> anyhow::Result<Change> {
    let clock = SystemClock::start();
    let (reason, now) = (Reason::parse(&args.reason).context("--reason")?, clock.now());
    let key =
        change::key(&args.change, &[b"rotate-secret", reason.as_str().as_bytes(), &[u8::from(args.replace)]]);
    let address = context.ledger_address()?;
    let file = address.file("rotate-secret")?;
    let old = match context.existing_ledger(&clock) {
        // A ledger that has lost its secret does not open, and needs a new one.
        Err(error) if lacks_its_secret(&error) => None,
        found => found?,
    };
    let epoch = old.as_ref().map(|old| block_on(old.epoch())).transpose()?.and_then(|(_, epoch)| epoch);
    if args.change.dry_run {
        return rehearse(key, epoch.as_ref(), now);
    }
    if CommandKey::is_repeat(key, epoch.as_ref().and_then(|epoch| epoch.command))? {
        // The first one may have been killed before it wrote them.
        if let Some(ledger) = &old {
            block_on(ledger.link_undos())?;
        }
        return Ok(change(EffectWord::Noop, epoch.as_ref(), now));
    }
    let renewal = if args.replace { SecretRenewal::Replace } else { SecretRenewal::OnlyIfMissing };
    if let Some(old) = old.as_ref().filter(|_| args.replace) {
        import_answers(old, &address, now)?;
        block_on(old.link_undos())?;
    }
    let options = sqlite_options(file, &context.environment.settings, &clock, Purpose::Command);
    let epoch = renew_secret(&options, renewal, reason.as_str(), key, now)?;
    if old.is_none()
        && let Some(ledger) = context.existing_ledger(&clock)?
    {
        block_on(ledger.link_undos())?;
    }
    context.output.say(
        "The ledger has a new secret and recognises none of its earlier calls. Calls that it has not seen are held \
         until the quarantine ends. Cancel those runs again that must stay cancelled.",
    );
    Ok(change(EffectWord::Updated, Some(&epoch), now))
}

fn lacks_its_secret(error: &anyhow::Error) -> bool {
    match error.downcast_ref() {
        Some(Error::SecretMissing { .. } | Error::WrongSecret { .. }) => true,
        Some(Error::Damaged { path, .. }) => path.extension().is_some_and(|extension| extension == "secret"),
        _ => false,
    }
}

/// Answers that wait on this host are sealed with the secret: under another one nobody can read them.
fn import_answers(ledger: &Ledger, address: &LedgerAddress, now: At) -> anyhow::Result<()> {
    block_on(ledger.import_all(now))?;
    let SpoolReport { waiting, damaged } = ledger.spooled()?;
    let count = waiting.len() + damaged.len();
    if count == 0 {
        return Ok(());
    }
    let answers = counted(count, "answer that waits", "answers that wait");
    let below = address.spool();
    Err(Hinted::error(
        format!("the secret was not changed: {answers} in {} cannot be imported", below.display()),
        "semel doctor; rule on the calls that they answer (semel ledger), then remove the files",
    ))
}
