//! Asking whether a request was carried out, and whether a reported success is true.

use super::guard::Guarded;
use super::intent::ACCOUNTS;
use super::reply::{self, Kept};
use super::secrets::{self, Secrets};
use super::upstream::{Live, LiveBody};
use crate::ask::asks::Asks;
use crate::ask::origins::Origin;
use crate::ask::{Asker, Lent, Matter, Reply, Told};
use http::{HeaderMap, StatusCode};
use semel_core::effect::Effect;
use semel_core::json::Json;
use semel_core::policy::rule::Probe;
use semel_gate::upstream::ProbeAnswer;
use semel_gate::{GivenReply, Passed};
use semel_ledger::Found;
use std::borrow::Cow;
use std::sync::Arc;

/// What a question about a request may use of it.
struct About<'a> {
    guarded: &'a Guarded,
    upstream: Origin,
    /// What its caller shows to the upstream, and the account that it acts for: questions to the same upstream show it
    /// too.
    headers: HeaderMap,
}

impl<'a> About<'a> {
    fn of(guarded: &'a Guarded) -> About<'a> {
        let tells = |name: &str| secrets::is_credential(name) || ACCOUNTS.contains(&name);
        let shown = guarded.headers.iter().filter(|(name, _)| tells(name.as_str()));
        let headers = shown.map(|(name, value)| (name.clone(), value.clone())).collect();
        About { guarded, upstream: Origin::of(guarded.offer.client.target()), headers }
    }

    fn asker(&'a self, effect: Option<&'a Effect>, reply: Option<&'a Json>) -> Asker<'a> {
        let Guarded { hall, understood, .. } = self.guarded;
        let lent = Lent::Credential { upstream: &self.upstream, headers: &self.headers };
        let arguments = &understood.arguments.json;
        let matter = Matter { action: &understood.action, arguments, effect, reply, lent };
        Asker { means: &hall.means, policy: &hall.policy, matter, signals: None }
    }
}

/// Did it happen?
pub async fn probe(
    probe: &Probe,
    effect: Option<&Effect>,
    guarded: &Guarded,
    secrets: &Secrets,
) -> (ProbeAnswer, Option<Json>) {
    let about = About::of(guarded);
    match about.asker(effect, None).probe(probe).await {
        Told::No => (ProbeAnswer::No, None),
        Told::Unknown(why) => (ProbeAnswer::Unknown { why }, None),
        Told::Yes(reply) => {
            let found = reply.as_ref().map(|reply| match reply {
                Reply::Value(value) => value.clone(),
                Reply::Printed(stdout) => reply::value(stdout),
            });
            let reply = reply.map(|reply| match reply {
                Reply::Value(value) => recorded("application/json", value.canonical().into_bytes(), secrets),
                Reply::Printed(stdout) => recorded("text/plain; charset=utf-8", stdout, secrets),
            });
            (ProbeAnswer::Yes { reply, word: None }, found)
        }
    }
}

/// A reply that a question brought back, in the form of an answer.
fn recorded(kind: &'static str, body: Vec<u8>, secrets: &Secrets) -> Vec<u8> {
    let headers = [("content-type", Cow::Borrowed(kind))].into_iter();
    reply::encode(StatusCode::OK, headers, &secrets.out_of_body(&body.into()))
}

/// What the upstream answered, now or when it was done, as rules see it.
pub fn reply(passed: &Passed, live: Option<&Live>) -> Json {
    match (&passed.reply, live) {
        (GivenReply::Live, Some(Live { body: LiveBody::Whole(body), .. })) => reply::value(body),
        (GivenReply::Recorded(bytes), _) => Kept::of_any(bytes.clone()).value(),
        _ => Json::Null,
    }
}

/// Begins to ask whether a success is true, unless this process already does. The caller has its answer meanwhile.
pub fn follow(guarded: &Arc<Guarded>, done: Found, reply: Json) {
    let following = &guarded.offer.following;
    let Some(id) = done.effect().map(|effect| effect.id).filter(|id| following.begin(*id)) else { return };
    let guarded = Arc::clone(guarded);
    tokio::spawn(async move {
        if let (Ok(gate), Some(confirm)) = (&guarded.hall.gate, &guarded.understood.rule.confirm) {
            let about = About::of(&guarded);
            let mut asks = Asks { asker: about.asker(None, Some(&reply)), confirm };
            // What cannot be written stays as it was reported.
            let _as_reported = gate.confirm(confirm, &done, &mut asks).await;
        }
        guarded.offer.following.end(id);
    });
}
