//! A server said that it did not do it, and then that it did. Heard in the background, while the caller has the first.

use super::door::{Door, Guarded};
use super::upstream::Second;
use semel_gate::Settlement;
use std::sync::Arc;

/// A success counts whenever it comes; a repeat that was made meanwhile is then known as a duplicate.
pub fn hear(door: &Arc<Door>, guarded: &Arc<Guarded>, second: Second) {
    let (door, guarded) = (Arc::clone(door), Arc::clone(guarded));
    tokio::spawn(async move {
        let Second { answer, effect, attempt, nonce, holder } = second;
        let Ok(answer) = answer.await else { return };
        let working = door.hall.busy.begin();
        if let (Ok(gate), Some(sent)) = (&door.hall.gate, door.upstream(&guarded).after_all(answer).await) {
            let settlement = Settlement { effect, attempt, nonce, holder, sent, undo: None };
            // What cannot be written stays as it was said first.
            let _as_it_was = gate.settle(settlement).await;
        }
        drop(working);
    });
}
