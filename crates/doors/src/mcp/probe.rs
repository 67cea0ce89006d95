//! Asking whether a tool call happened, and whether its success is true.

use super::call::ToolCall;
use super::effect_word;
use super::message::{Message, text};
use super::result;
use super::route::GuardedCall;
use super::server::Server;
use crate::query::{Credentials, FoundReply, Query, Subject};
use crate::redact::Secrets;
use crate::reply::tool;
use crate::services::Services;
use crate::wire::members::Members;
use async_trait::async_trait;
use bytes::Bytes;
use semel_core::effect::Effect;
use semel_core::json::Json;
use semel_core::policy::Rule;
use semel_core::policy::rule::{Confirm, Probe};
use semel_gate::confirm::Witness;
use semel_gate::upstream::ProbeAnswer;
use semel_gate::{GivenReply, Passed};
use semel_ledger::RecordSnapshot;
use std::sync::Arc;

/// The call that is asked about.
#[derive(Debug, Clone, Copy)]
pub struct ProbeSubject<'a> {
    pub services: &'a Services,
    pub server: &'a Server,
    pub call: &'a ToolCall,
    pub rule: &'a Rule,
}

impl ProbeSubject<'_> {
    /// The finding, and the reply that was found with it, as rules see it.
    pub async fn probe(self, probe: &Probe, effect: Option<&Effect>) -> (ProbeAnswer, Option<Json>) {
        let (action, meta) = (self.server.action(&self.call.tool), self.call.meta());
        let finding = self.query(&action, &meta, effect, None).probe(probe).await;
        let secrets = Secrets::of(&self.call.arguments, self.rule);
        let mut found = None;
        let answer = finding.for_gate(&secrets, |reply| {
            found = reply.map(|reply| match reply {
                FoundReply::Value(value) => value,
                FoundReply::Printed(stdout) => Json::str(String::from_utf8_lossy(&stdout).trim()),
            });
            let said = found.as_ref().unwrap_or(&Json::Null);
            let word = effect_word::of_reply(said, self.rule, &self.call.tool);
            (found.as_ref().map(|reply| tool::encode(reply, &secrets)), word)
        });
        (answer, found)
    }

    /// Whether a reported success is true. An error means that it cannot be told.
    pub async fn confirm(self, confirm: &Confirm, reply: &Json) -> Result<bool, String> {
        let (action, meta) = (self.server.action(&self.call.tool), self.call.meta());
        self.query(&action, &meta, None, Some(reply)).confirm(confirm).await
    }

    fn query<'a>(
        &'a self,
        action: &'a str,
        meta: &'a str,
        effect: Option<&'a Effect>,
        reply: Option<&'a Json>,
    ) -> Query<'a> {
        let credentials = Credentials::Server { server: self.server, meta };
        let subject = Subject { action, arguments: &self.call.arguments, effect, reply, credentials };
        let Services { backends, policy, .. } = self.services;
        Query { backends, policy, subject, signals: None }
    }
}

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

/// Begins to ask whether a reported success is true, while the caller has its answer, unless this process already does.
pub fn confirm_later(
    services: &Arc<Services>,
    guarded: &Arc<GuardedCall>,
    done: RecordSnapshot,
    reply: Json,
) {
    let Some(followed) = services.active_confirms.begin(&done) else { return };
    let (services, guarded) = (Arc::clone(services), Arc::clone(guarded));
    tokio::spawn(async move {
        if let (Ok(gate), Some(confirm)) = (&services.gate, &guarded.rule.confirm) {
            let mut witness = ToolWitness { services: &services, guarded: &guarded, confirm, reply };
            // Where that cannot be written, it stays as it was reported.
            let _as_reported = gate.confirm(confirm, &done, &mut witness).await;
        }
        drop(followed);
    });
}

/// Asks by the way that the call itself came.
struct ToolWitness<'a> {
    services: &'a Services,
    guarded: &'a GuardedCall,
    confirm: &'a Confirm,
    reply: Json,
}

#[async_trait]
impl Witness for ToolWitness<'_> {
    async fn ask(&mut self) -> Result<bool, String> {
        let GuardedCall { server, call, rule, .. } = self.guarded;
        let subject = ProbeSubject { services: self.services, server, call, rule };
        subject.confirm(self.confirm, &self.reply).await
    }

    fn name(&self) -> String {
        self.confirm.call.name(&self.guarded.server.action(&self.guarded.call.tool))
    }
}
