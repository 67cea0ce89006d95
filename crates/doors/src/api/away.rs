//! A client that calls a tool itself is its own upstream: nothing is sent from here. What its rule asks is asked from
//! here.

use super::begin::word_of;
use crate::ask::{Asker, Lent, Matter, Reply, Told};
use crate::hall::Hall;
use crate::http::server::{Revocable, lets_send};
use crate::redact::SecretParts;
use crate::redact::Secrets;
use semel_core::effect::Effect;
use semel_core::ids::AttemptNo;
use semel_core::json::Json;
use semel_core::policy::rule::{Probe, Rule};
use semel_core::redact::redact;
use semel_gate::upstream::{CallView, NotStarted, ProbeAnswer, Sending, Sent, Upstream};

#[derive(Debug)]
pub struct Client<'a> {
    hall: &'a Hall,
    action: &'a str,
    arguments: &'a Json,
    rule: &'a Rule,
    /// What it showed, where that can be revoked.
    token: Option<&'a Revocable>,
    /// What a probe found of its reply.
    found: Option<Json>,
}

impl<'a> Client<'a> {
    pub fn of(hall: &'a Hall, action: &'a str, arguments: &'a Json, rule: &'a Rule) -> Client<'a> {
        Client { hall, action, arguments, rule, token: None, found: None }
    }

    pub fn showing(self, token: Option<&'a Revocable>) -> Client<'a> {
        Client { token, ..self }
    }

    fn matter<'b>(&'b self, effect: Option<&'b Effect>) -> Matter<'b> {
        let (action, arguments, reply) = (self.action, self.arguments, self.found.as_ref());
        Matter { action, arguments, effect, reply, lent: Lent::Nothing }
    }
}

impl Upstream for Client<'_> {
    async fn prepare(&mut self) -> Result<(), NotStarted> {
        lets_send(self.token).await
    }

    async fn send(&mut self, _: Sending<'_>) -> Sent {
        unreachable!("a claim that is taken away is never sent from here")
    }

    async fn probe(&mut self, probe: &Probe, effect: Option<&Effect>) -> ProbeAnswer {
        let Hall { means, policy, .. } = self.hall;
        let asker = Asker { means, policy, matter: self.matter(effect), signals: None };
        let told = asker.probe(probe).await;
        let secrets = Secrets::of(self.arguments, self.rule);
        match told {
            Told::No => ProbeAnswer::No,
            Told::Unknown(why) => ProbeAnswer::Unknown { why: secrets.out_of_line(&why).into_owned() },
            Told::Yes { reply: found, reply_failed } => {
                let found = found.map(|reply| match reply {
                    Reply::Value(value) => value,
                    Reply::Printed(stdout) => Json::str(&String::from_utf8_lossy(&stdout)),
                });
                self.found = found.map(|reply| {
                    let mut clean = redact(&reply, &[]);
                    SecretParts::of(self.rule).hide_in(&mut clean);
                    clean
                });
                let reply = self.found.as_ref().map(|reply| reply.canonical().into_bytes());
                let reply_failed = reply_failed.map(|why| secrets.out_of_line(&why).into_owned());
                ProbeAnswer::Yes { reply, word: Some(word_of(self.rule)), reply_failed }
            }
        }
    }

    fn sends_while_alive(&self) -> bool {
        false
    }

    fn view(&self) -> Option<CallView> {
        self.found.as_ref()?;
        Some(CallView { places: self.matter(None).places(), cwd: "/".into() })
    }

    fn join(&mut self, _: &Effect, _: AttemptNo) {}

    fn let_go(&mut self) {}
}
