//! A tool said that it did it: is it true? Asked in the background, while the caller has its answer.

use super::door::{Door, Guarded};
use super::message::{Message, text};
use super::probe;
use super::word;
use crate::wire::members::Members;
use bytes::Bytes;
use semel_core::json::Json;
use semel_gate::confirm::Witness;
use semel_gate::{GivenReply, Passed};
use semel_ledger::RecordSnapshot;
use std::sync::Arc;

/// The tool's answer, of now or of when it was done, as rules see it.
pub fn reply(passed: &Passed, live: Option<&Message>) -> Json {
    let recorded = match &passed.reply {
        GivenReply::Recorded(bytes) => Message::parse(Bytes::copy_from_slice(bytes)).ok(),
        GivenReply::Live | GivenReply::None => None,
    };
    let answered = recorded.as_ref().or(live).and_then(|answered| answered.body.as_ref());
    let result = answered.and_then(|body| Members::parse(text(body)));
    result.map_or(Json::Null, |result| word::value(&result))
}

/// Begins to ask, unless this process already does.
pub fn follow(door: &Arc<Door>, guarded: &Arc<Guarded>, done: Found, reply: Json) {
    let Some(followed) = door.services.active_confirms.begin(&done) else { return };
    let (door, guarded) = (Arc::clone(door), Arc::clone(guarded));
    tokio::spawn(async move {
        if let (Ok(gate), Some(confirm)) = (&door.services.gate, &guarded.rule.confirm) {
            let mut asks = Asks { door: &door, guarded: &guarded, reply };
            // Where that cannot be written, it stays as it was reported.
            let _as_reported = gate.confirm(confirm, &done, &mut asks).await;
        }
        drop(followed);
    });
}

/// Asks by the way that the call itself came.
struct Asks<'a> {
    door: &'a Door,
    guarded: &'a Guarded,
    reply: Json,
}

impl Witness for Asks<'_> {
    async fn ask(&mut self) -> Result<bool, String> {
        let confirm = self.guarded.rule.confirm.as_ref().ok_or("there is nothing to ask")?;
        probe::confirm(confirm, &self.reply, &self.door.upstream(self.guarded)).await
    }

    fn name(&self) -> String {
        let action = self.guarded.server.action(&self.guarded.call.tool);
        self.guarded.rule.confirm.as_ref().map(|confirm| confirm.call.name(&action)).unwrap_or_default()
    }
}
