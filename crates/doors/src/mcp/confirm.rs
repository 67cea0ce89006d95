//! A tool said that it did it: is it true? Asked in the background, while the caller has its answer.

use super::door::{Door, Guarded};
use super::members::Members;
use super::message::{Message, text};
use super::probe;
use super::word;
use semel_core::json::Json;
use semel_core::policy::rule::Confirm;
use semel_gate::clock::Clock;
use semel_ledger::Found;
use std::sync::Arc;
use std::time::Duration;

/// Most truths can be seen at once; others take as long as a replica lags.
const ASK_AGAIN_FIRST: Duration = Duration::from_millis(500);
const ASK_AGAIN_MAX: Duration = Duration::from_secs(15);

/// Asks until it is true, or until the rule's time is over. Only a clear no at the very end refutes: a read may lag, and
/// one that fails says nothing.
pub async fn follow(
    door: Arc<Door>,
    guarded: Arc<Guarded>,
    confirm: Confirm,
    done: Found,
    live: Option<Message>,
) {
    let Ok(gate) = &door.hall.gate else { return };
    let result =
        live.as_ref().and_then(|live| live.body.as_ref()).and_then(|body| Members::parse(text(body)));
    let reply = result.map_or(Json::Null, |result| word::value(&result));
    let until = door.hall.clock.elapsed() + confirm.within;
    let mut pause = ASK_AGAIN_FIRST;
    loop {
        let said = probe::confirms(&confirm, &reply, &door.upstream(&guarded)).await;
        let now = door.hall.clock.now();
        // What cannot be written stays as it was reported.
        match said {
            Ok(true) => {
                let _as_reported = gate.ledger.confirmed(&done, now).await;
                return;
            }
            Ok(false) if door.hall.clock.elapsed() >= until => {
                let what = format!("{} did not show it", guarded.server.name);
                let _as_reported = gate.ledger.refuted(&done, what, now).await;
                return;
            }
            Err(_) if door.hall.clock.elapsed() >= until => return,
            Ok(false) | Err(_) => {}
        }
        let left = until.saturating_sub(door.hall.clock.elapsed());
        door.hall.clock.sleep(pause.min(left).max(Duration::from_millis(10))).await;
        pause = (pause * 2).min(ASK_AGAIN_MAX);
    }
}
