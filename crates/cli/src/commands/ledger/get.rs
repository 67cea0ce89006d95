//! `semel ledger get`: the recorded reply of an effect.

use super::walk::{self, Which};
use super::{named, reply_data};
use crate::args::Get;
use crate::commands::{Context, EXIT_FINDINGS};
use crate::effect_json::{self, ReplyKept};
use crate::house::{LocalLedger, TENANT};
use crate::output::{Hinted, counted, hint};
use semel_core::digest::Digest;
use semel_core::effect::Effect;
use semel_core::identity::{IntentDigest, IntentParts, alias_key, intent_key, quoted_for_a_shell};
use semel_core::ids::{EffectId, IdempotencyKey};
use semel_core::time::At;
use semel_doors::command::render::Output as CommandOutput;
use semel_doors::proxy::reply::Kept;
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::small_records::Alias;
use std::io::{ErrorKind, Write};
use std::ops::ControlFlow;
use std::process::ExitCode;

pub fn run(context: &Context, args: &Get) -> anyhow::Result<ExitCode> {
    let clock = SystemClock::start();
    let ledger = context.existing_ledger(&clock)?;
    let (key, effect) = match (&args.key, &args.effect) {
        (Some(key), _) => {
            let parsed = IdempotencyKey::parse(key)?;
            let now = clock.now();
            let found = ledger.as_ref().map(|ledger| by_key(ledger, &parsed, now)).transpose()?.flatten();
            let Some(found) = found else {
                // Not a mistake of the caller: after a lost answer this is the question.
                let hint = "nothing was claimed under it; semel ledger list";
                context
                    .output
                    .error(&Hinted::error(format!("no effect with the key {key} in this ledger"), hint));
                return Ok(ExitCode::from(EXIT_FINDINGS));
            };
            found
        }
        (None, name) => {
            let name = name.as_deref().unwrap_or_default();
            named::find(ledger.as_ref(), name).map_err(|error| perhaps_a_key(error, name))?
        }
    };
    let ledger = ledger.expect("an effect was found in it");
    let effect = super::walk::now_of(&ledger, key, effect, clock.now())?;
    let (kept, bytes) = effect_json::reply(&ledger, key, &effect)?;
    if context.output.json {
        let data = bytes.as_deref().map(reply_data);
        context.output.document(&serde_json::json!({
            "effect_id": effect.id,
            "state": semel_ledger::journal::state_word(&effect.state),
            "reply": kept,
            "data": data,
        }));
    } else if let Some(bytes) = &bytes {
        write(bytes)?;
    } else {
        let state = effect.state.word();
        let why = match kept {
            ReplyKept::Pruned => "its reply is no longer kept".to_owned(),
            ReplyKept::TooLarge => "its reply was too large to keep".to_owned(),
            ReplyKept::Kept | ReplyKept::Unknown => {
                effect_json::why(&effect).unwrap_or_else(|| "its reply is not known".to_owned())
            }
        };
        let id = effect.id;
        let hint = format!("semel ledger show {id}");
        context
            .output
            .error(&Hinted::error(format!("{id} is {state} and has no reply to give: {why}"), hint));
    }
    Ok(if bytes.is_some() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FINDINGS) })
}

/// Both are names, and whoever has only one of them will try it. It is not looked up as the other by itself: the end of
/// an id can be a key as well.
fn perhaps_a_key(error: anyhow::Error, name: &str) -> anyhow::Error {
    let is_key = EffectId::parse(name).is_none() && IdempotencyKey::parse(name).is_ok();
    match hint(&error).filter(|_| is_key && error.is::<Hinted>()) {
        Some(hint) => {
            let get = format!("semel ledger get --key {}", quoted_for_a_shell(name));
            Hinted::error(error.to_string(), format!("{hint}; if it is an idempotency key: {get}"))
        }
        None => error,
    }
}

/// The newest effect under a caller's key: the key as identity, else what a rule's fields made of it, else the same of
/// whoever came through another door.
fn by_key(ledger: &LocalLedger, key: &IdempotencyKey, now: At) -> anyhow::Result<Option<(Digest, Effect)>> {
    let parts = IntentParts { tenant: TENANT, principal: TENANT, authority: "", scope: "global" };
    let digest = IntentDigest::of_caller_key(key.as_str());
    let named = intent_key(ledger.secret(), &parts, &digest);
    let found = block_on(ledger.find(named))?;
    if let Some(known) = found.newest {
        return Ok(Some((named, known.effect.clone())));
    }
    if let Some(Alias { key, stands_for }) =
        block_on(ledger.alias(alias_key(ledger.secret(), &parts, key.as_str())))?.1
    {
        let newest = block_on(ledger.find(key))?.newest.map(|known| known.effect.clone());
        let is_it = |effect: &Effect| stands_for.is_none_or(|it| it.is(effect));
        return Ok(match (newest.filter(is_it), stands_for) {
            (Some(effect), _) => Some((key, effect)),
            (None, Some(it)) => {
                let earlier = block_on(ledger.occurrence(key, it.number))?.map(|known| known.effect);
                earlier.filter(is_it).map(|effect| (key, effect))
            }
            (None, None) => None,
        });
    }
    // Whose it was and where it went are in its key, and only its caller knows them.
    let mut newest = None;
    let damaged = walk::effects(ledger, Which::default(), now, |found, effect| {
        if effect.facts.caller_key && effect.facts.digest == digest {
            newest = Some((found, effect));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    // Whoever asks may do what is said to be unknown.
    if damaged > 0 {
        let records = counted(damaged, "record", "records");
        let what = format!("{records} cannot be read, and any of them may be under this key");
        return Err(Hinted::error(what, "semel doctor --full"));
    }
    Ok(newest)
}

/// Data as it was: to the byte, each stream to its own. A reader that has gone is no error.
fn write(reply: &[u8]) -> std::io::Result<()> {
    let answer = || Kept::decode(reply.to_vec()).map(|kept| CommandOutput::of_stdout(kept.body.to_vec()));
    let output = CommandOutput::decode(reply).or_else(answer);
    let output = output.unwrap_or_else(|| CommandOutput::of_stdout(reply.to_vec()));
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(&output.stdout).and_then(|()| stdout.flush());
    let written = written.and_then(|()| std::io::stderr().write_all(&output.stderr));
    written.or_else(|error| if error.kind() == ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })
}
