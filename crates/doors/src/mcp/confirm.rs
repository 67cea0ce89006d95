//! A tool said that it did it: is it true? Asked in the background, while the caller has its answer.

use super::message::{Message, text};
use super::probe::ProbeSubject;
use super::result;
use super::route::GuardedCall;
use crate::hall::Hall;
use crate::wire::members::Members;
use bytes::Bytes;
use semel_core::json::Json;
use semel_core::policy::rule::Confirm;
use semel_gate::confirm::Witness;
use semel_gate::{GivenReply, Passed};
use semel_ledger::Found;
use std::sync::Arc;

/// The tool's answer, of now or of when it was done, as rules see it.
pub fn reply(passed: &Passed, live: Option<&Message>) -> Json {
    let recorded = match &passed.reply {
        GivenReply::Recorded(bytes) => Message::parse(Bytes::copy_from_slice(bytes)).ok(),
        GivenReply::Live | GivenReply::None => None,
    };
    let answered = recorded.as_ref().or(live).and_then(|answered| answered.body.as_ref());
    let result = answered.and_then(|body| Members::parse(text(body)));
    result.map_or(Json::Null, |found| result::value(&found))
}

/// Begins to ask, unless this process already does.
pub fn follow(hall: &Arc<Hall>, guarded: &Arc<GuardedCall>, done: Found, reply: Json) {
    let Some(followed) = hall.following.begin(&done) else { return };
    let (hall, guarded) = (Arc::clone(hall), Arc::clone(guarded));
    tokio::spawn(async move {
        if let (Ok(gate), Some(confirm)) = (&hall.gate, &guarded.rule.confirm) {
            let mut witness = ToolWitness { hall: &hall, guarded: &guarded, confirm, reply };
            // Where that cannot be written, it stays as it was reported.
            let _as_reported = gate.confirm(confirm, &done, &mut witness).await;
        }
        drop(followed);
    });
}

/// Asks by the way that the call itself came.
struct ToolWitness<'a> {
    hall: &'a Hall,
    guarded: &'a GuardedCall,
    confirm: &'a Confirm,
    reply: Json,
}

impl Witness for ToolWitness<'_> {
    async fn ask(&mut self) -> Result<bool, String> {
        let GuardedCall { server, call, rule, .. } = self.guarded;
        let subject = ProbeSubject { hall: self.hall, server, call, rule };
        subject.confirm(self.confirm, &self.reply).await
    }

    fn name(&self) -> String {
        self.confirm.call.name(&self.guarded.server.action(&self.guarded.call.tool))
    }
}
