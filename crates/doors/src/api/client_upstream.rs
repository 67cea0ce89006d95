//! A client that calls a tool itself is its own upstream: nothing is sent from here. What its rule asks is asked from
//! here.

use crate::http::server::{Revocable, lets_send};
use crate::query::{Credentials, Query, Subject};
use crate::redact::SecretParts;
use crate::redact::Secrets;
use crate::services::Services;
use async_trait::async_trait;
use semel::call::reply::word_of;
use semel_core::effect::Effect;
use semel_core::ids::AttemptNo;
use semel_core::json::Json;
use semel_core::policy::rule::{Probe, Rule};
use semel_core::redact::redact;
use semel_gate::upstream::{CallView, NotStarted, ProbeAnswer, Sending, Sent, Upstream};
use serde_json::Value;

#[derive(Debug)]
pub struct ClientUpstream<'a> {
    services: &'a Services,
    action: &'a str,
    arguments: &'a Json,
    rule: &'a Rule,
    /// What it showed, where that can be revoked.
    token: Option<&'a Revocable>,
    /// Why the client could not send it now.
    not_ready: Option<&'a str>,
    /// What a probe found of its reply.
    found: Option<Json>,
}

impl<'a> ClientUpstream<'a> {
    pub fn of(
        services: &'a Services,
        action: &'a str,
        arguments: &'a Json,
        rule: &'a Rule,
    ) -> ClientUpstream<'a> {
        ClientUpstream { services, action, arguments, rule, token: None, not_ready: None, found: None }
    }

    pub fn showing(self, token: Option<&'a Revocable>) -> ClientUpstream<'a> {
        ClientUpstream { token, ..self }
    }

    pub fn unless_not_ready(self, not_ready: Option<&'a str>) -> ClientUpstream<'a> {
        ClientUpstream { not_ready, ..self }
    }

    fn subject<'b>(&'b self, effect: Option<&'b Effect>) -> Subject<'b> {
        let (action, arguments, reply) = (self.action, self.arguments, self.found.as_ref());
        Subject { action, arguments, effect, reply, credentials: Credentials::None }
    }
}

#[async_trait]
impl Upstream for ClientUpstream<'_> {
    async fn prepare(&mut self) -> Result<(), NotStarted> {
        if let Some(why) = self.not_ready {
            return Err(NotStarted { why: why.to_owned(), data: Value::Null });
        }
        lets_send(self.token).await
    }

    async fn send(&mut self, _: Sending<'_>) -> Sent {
        unreachable!("a claim that is taken away is never sent from here")
    }

    async fn probe(&mut self, probe: &Probe, effect: Option<&Effect>) -> ProbeAnswer {
        let Services { backends, policy, .. } = self.services;
        let query = Query { backends, policy, subject: self.subject(effect), signals: None };
        let finding = query.probe(probe).await;
        finding.for_gate(&Secrets::of(self.arguments, self.rule), |reply| {
            self.found = reply.map(|reply| {
                let mut clean = redact(&reply.into_json(), &[]);
                SecretParts::of(self.rule).hide_in(&mut clean);
                clean
            });
            (self.found.as_ref().map(|reply| reply.canonical().into_bytes()), word_of(self.rule))
        })
    }

    fn sends_while_alive(&self) -> bool {
        false
    }

    fn view(&self) -> Option<CallView> {
        self.found.as_ref()?;
        Some(CallView { places: self.subject(None).places(), cwd: "/".into() })
    }

    fn join(&mut self, _: &Effect, _: AttemptNo) {}

    fn release(&mut self) {}
}
