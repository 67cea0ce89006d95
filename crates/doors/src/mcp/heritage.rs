//! What was left behind by processes that stood here before: a client that is started anew starts semel anew too, and
//! nobody was there to be told what became of its last calls.
//!
//! The place is the server's name in one run, or in one directory where no run is named, for one principal with one
//! credential. One process may serve many runs, and so stand in many places: in each of them it is named to those that
//! come after it until one has told there what it left, so it is told once, or again if two come at the same moment.

use super::door::{Door, Guarded};
use super::own_tools;
use semel_core::digest::{Digest, Secret};
use semel_core::effect::{Effect, State};
use semel_core::ids::{EffectId, OwnerId};
use semel_core::intent::{principal_mark, run_key};
use semel_gate::clock::Clock;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Agents resume within a day; what is older is for people to look at.
const TOLD_WITHIN: Duration = Duration::from_secs(24 * 3600);

/// Runs of which one connection knows who served them before. Of those that are forgotten it only asks again.
const RUNS_MAX: usize = 1_000;

/// The other processes at the places of this connection, as far as it knows: by the run, or by none.
#[derive(Debug, Default)]
pub struct Elders(Mutex<HashMap<Option<String>, Known>>);

#[derive(Debug, Default)]
struct Known {
    /// Those that still lived when it last looked. `None`: it has not looked yet.
    living: Option<Vec<OwnerId>>,
    /// Those that have ended, and whose news it has.
    gone: Vec<OwnerId>,
    /// Those of them whose news have not left yet.
    untold: Vec<OwnerId>,
}

impl Elders {
    fn of<T>(&self, run: Option<&str>, then: impl FnOnce(&mut Known) -> T) -> T {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let run = run.map(str::to_owned);
        if all.len() >= RUNS_MAX && !all.contains_key(&run) {
            all.clear();
        }
        then(all.entry(run).or_default())
    }
}

/// Says that this process is here, before it claims anything, and learns what those have left that have ended. A ledger
/// in trouble has no news: the call itself will say so.
pub async fn learn(door: &Door, guarded: &Guarded) {
    let Ok(gate) = &door.hall.gate else { return };
    let (caller, ledger) = (&guarded.connection.caller, &gate.ledger);
    let (elders, run) = (&guarded.connection.elders, guarded.named_run());
    let ended = |owner: &OwnerId| ledger.is_alive(*owner).is_ok_and(|alive| !alive);
    if elders.of(run, |known| known.living.as_ref().is_some_and(|living| !living.iter().any(ended))) {
        return;
    }
    let Ok(others) = ledger.serves(place(door, guarded, ledger.secret())).await else { return };
    let gone = elders.of(run, |known| {
        known.living = Some(others.living);
        let gone: Vec<_> = others.gone.into_iter().filter(|owner| !known.gone.contains(owner)).collect();
        known.gone.extend(&gone);
        gone
    });
    if gone.is_empty() {
        return;
    }
    let now = door.hall.clock.now();
    let run_key = run.map(|run| run_key(ledger.secret(), &caller.tenant, run));
    let Ok(left) = ledger.left_by(&gone, run_key, TOLD_WITHIN, now).await else {
        // The next call looks again.
        elders.of(run, |known| *known = Known::default());
        return;
    };
    let own = principal_mark(ledger.secret(), &caller.tenant, &caller.principal);
    // The oldest is told first.
    for (key, known) in left.into_iter().rev() {
        let facts = &known.effect.facts;
        let is_own = facts.tenant == caller.tenant && facts.principal == own;
        let is_here = guarded.server.has_done(facts, ledger.secret());
        if !is_own || !is_here || run_of(&known.effect) != run {
            continue;
        }
        let mut effect = known.effect;
        if effect.open_attempt().is_some() {
            // Looking notices that its holder has died.
            let Ok(found) = ledger.observe(key, now).await else { continue };
            let Some(observed) = found.effect().filter(|observed| observed.id == effect.id) else { continue };
            effect = observed.clone();
        }
        if let Some((effect, words)) = news_of(&effect) {
            guarded.news().learns(effect, words);
        }
    }
    elders.of(run, |known| known.untold.extend(&gone));
}

/// An answer leaves, and with it what was learnt before it. Who has left more than one answer tells is told once the
/// last of it has left.
pub async fn tell(door: &Door, guarded: &Guarded) {
    let Ok(gate) = &door.hall.gate else { return };
    let (elders, run) = (&guarded.connection.elders, guarded.named_run());
    if elders.of(run, |known| known.untold.is_empty()) || guarded.news().has_more() {
        return;
    }
    let told = elders.of(run, |known| std::mem::take(&mut known.untold));
    let place = place(door, guarded, gate.ledger.secret());
    let _told_again = gate.ledger.told_of(place, &told).await;
}

fn place(door: &Door, guarded: &Guarded, secret: &Secret) -> Digest {
    let (caller, server) = (&guarded.connection.caller, &guarded.server);
    let directory = || door.hall.means.shell.cwd.to_string_lossy();
    let (kind, where_it_is) = match guarded.named_run() {
        Some(run) => ("run", run.into()),
        None => ("directory", directory()),
    };
    let place = [&caller.tenant, &caller.principal, &server.name, &server.authority, kind, &*where_it_is];
    secret.mac("line", &place.map(str::as_bytes))
}

/// The run whose call tried it last. An effect that was begun in one run may have been tried again in another.
fn run_of(effect: &Effect) -> Option<&str> {
    let run = effect.newest_attempt().and_then(|last| last.run.as_ref());
    run.filter(|run| run.named).map(|run| run.id.as_str())
}

/// What nobody was told, as far as anybody knows. A refusal has no mark, and may be tried again in any case.
fn news_of(effect: &Effect) -> Option<(EffectId, String)> {
    let advice = match &effect.state {
        State::Applied(_) if effect.delivered_at.is_none() => {
            " The same call gets its answer; it is not done again."
        }
        State::InDoubt(_) => "",
        _ => return None,
    };
    let what = own_tools::told(effect);
    Some((
        effect.id,
        format!("An earlier call from here, whose answer may not have reached you: {what}.{advice}"),
    ))
}
