//! Asking whether a request was carried out, and whether a reported success is true.

use super::classify;
use super::guarded::GuardedRequest;
use super::intent::ACCOUNTS;
use super::upstream_answer::{AnswerBody, UpstreamAnswer};
use crate::background_confirm::BackgroundConfirm;
use crate::query::origins::UrlOrigin;
use crate::query::{Credentials, FoundReply, Query, Subject};
use crate::redact::{Secrets, body::is_credential};
use crate::reply::http::{self as reply, HttpReply};
use http::{HeaderMap, StatusCode};
use semel_core::effect::Effect;
use semel_core::json::Json;
use semel_core::policy::rule::Probe;
use semel_gate::upstream::{CallView, ProbeAnswer};
use semel_gate::{GivenReply, Passed};
use semel_ledger::RecordSnapshot;
use std::borrow::Cow;

/// The parts of a request that questions about it may use.
struct RequestQuery<'a> {
    guarded: &'a GuardedRequest,
    upstream: UrlOrigin,
    /// The credential that its caller shows to the upstream, and the account that it acts for: questions to the same
    /// upstream show it too.
    headers: HeaderMap,
}

impl<'a> RequestQuery<'a> {
    fn of(guarded: &'a GuardedRequest) -> RequestQuery<'a> {
        let tells = |name: &str| is_credential(name) || ACCOUNTS.contains(&name);
        let shown = guarded.headers.iter().filter(|(name, _)| tells(name.as_str()));
        let headers = shown.map(|(name, value)| (name.clone(), value.clone())).collect();
        RequestQuery { guarded, upstream: UrlOrigin::of(guarded.offer.client.target()), headers }
    }

    fn query(&'a self, effect: Option<&'a Effect>, reply: Option<&'a Json>) -> Query<'a> {
        let GuardedRequest { services, understood, .. } = self.guarded;
        let credentials = Credentials::Headers { upstream: &self.upstream, headers: &self.headers };
        let arguments = &understood.arguments.json;
        let subject = Subject { action: &understood.action, arguments, effect, reply, credentials };
        Query { backends: &services.backends, policy: &services.policy, subject, signals: None }
    }
}

/// Did it happen? With the reply that was found, as rules see it.
pub async fn probe(
    probe: &Probe,
    effect: Option<&Effect>,
    guarded: &GuardedRequest,
    secrets: &Secrets,
) -> (ProbeAnswer, Option<Json>) {
    let finding = RequestQuery::of(guarded).query(effect, None).probe(probe).await;
    let mut value = None;
    let answer = finding.for_gate(secrets, |reply| {
        value = reply.as_ref().map(|found| match found {
            FoundReply::Value(value) => value.clone(),
            FoundReply::Printed(stdout) => reply::value(stdout),
        });
        let status = guarded.usual_status();
        let reply = reply.and_then(|reply| {
            let body = match reply {
                FoundReply::Value(value) => value.canonical().into_bytes(),
                FoundReply::Printed(stdout) => stdout,
            };
            recorded(status, body, secrets)
        });
        let GuardedRequest { method, path, understood, .. } = guarded;
        let said = || value.clone().unwrap_or(Json::Null);
        (reply, classify::effect_word(status, method, path, &understood.rule, said))
    });
    (answer, value)
}

/// A reply that a question brought back, in the form of an answer.
fn recorded(status: StatusCode, body: Vec<u8>, secrets: &Secrets) -> Option<Vec<u8>> {
    let body = secrets.out_of_body(&body.into()).ok()?;
    let headers = [("content-type", Cow::Borrowed(reply::content_type(&body)))].into_iter();
    Some(reply::encode(status, headers, &body))
}

/// The upstream's reply, now or when it was done, as rules see it.
pub fn reply(passed: &Passed, live: Option<&UpstreamAnswer>) -> Json {
    match (&passed.reply, live) {
        (GivenReply::Live, Some(UpstreamAnswer { body: AnswerBody::Whole(body), .. })) => reply::value(body),
        (GivenReply::Recorded(bytes), _) => HttpReply::of_any(bytes.clone(), StatusCode::OK).value(),
        _ => Json::Null,
    }
}

/// The values of an undo: the request, and the known part of its answer. Secrets of that are taken
/// out first.
pub fn seen(
    guarded: &GuardedRequest,
    live: Option<&UpstreamAnswer>,
    found: Option<&Json>,
    secrets: &Secrets,
) -> CallView {
    let answered = match live {
        Some(UpstreamAnswer { body: AnswerBody::Whole(body), .. }) => {
            secrets.out_of_body(body).ok().map(|kept| reply::value(&kept))
        }
        Some(UpstreamAnswer { body: AnswerBody::Streamed(_), .. }) | None => None,
    };
    let reply = found.or(answered.as_ref());
    let places = RequestQuery::of(guarded).query(None, reply).subject.places();
    CallView { places, cwd: guarded.services.backends.shell.cwd.to_string_lossy().into_owned() }
}

/// Begins to ask whether a success is true, unless this process already does. The caller has its answer meanwhile.
pub fn follow(guarded: &GuardedRequest, done: RecordSnapshot, reply: Json) {
    let GuardedRequest { services, understood, .. } = guarded;
    let Some(confirm) = understood.rule.confirm.clone() else { return };
    let RequestQuery { upstream, headers, .. } = RequestQuery::of(guarded);
    let question = BackgroundConfirm {
        confirm,
        action: understood.action.clone(),
        arguments: understood.arguments.json.clone(),
        reply,
        credential: Some((upstream, headers)),
    };
    question.start(services, done);
}
