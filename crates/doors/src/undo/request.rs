//! An undo by an HTTP request: sent once, with the idempotency key of its effect.

use crate::http::body::{self, Unreadable};
use crate::http::client::{Client, Failed, Prepared};
use crate::http::target::Target;
use crate::proxy::classify::{self, StatusMeaning, is_gone};
use crate::proxy::graphql;
use crate::query::http::{address, content, request};
use crate::query::origins::UrlOrigin;
use crate::query::response::{ANSWER_BYTES_MAX, TAKES_MAX};
use crate::query::{FoundReply, Query, Subject};
use crate::redact::SecretParts;
use crate::redact::Secrets;
use crate::reply::account;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use semel_core::answer::EffectWord;
use semel_core::effect::{Effect, Evidence, NotAppliedWhy, Reply};
use semel_core::ids::AttemptNo;
use semel_core::json::{self, Json};
use semel_core::outcome::Outcome;
use semel_core::policy::Policy;
use semel_core::policy::graphql::Asked;
use semel_core::policy::rule::{EffectWording, Form, InjectInto, Probe, Rule};
use semel_core::policy::upstreams::{KEY_HEADER, Keys};
use semel_core::redact::redact;
use semel_core::undo::UndoBody;
use semel_gate::upstream::{CallView, NotStarted, ProbeAnswer, Sending, Sent, Upstream};
use serde_json::{Value, json};
use std::time::Duration;

/// Where the rule has no timeout: longer than any gateway waits.
const ANSWERS_WITHIN: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub struct RequestUpstream<'a> {
    client: Client,
    method: &'a str,
    headers: HeaderMap,
    body: Bytes,
    rule: &'a Rule,
    query: Query<'a>,
    /// What it asks of GraphQL.
    asked: Asked,
    prepared: Option<Prepared>,
    /// What it answered.
    pub heard: Option<Json>,
}

impl<'a> RequestUpstream<'a> {
    pub fn new(
        (method, url, body): (&'a str, &str, Option<&UndoBody>),
        rule: &'a Rule,
        query: Query<'a>,
    ) -> Result<Self, String> {
        let (target, mut headers) = address(url, &query.backends.origins, query.subject.credentials)?;
        let asked = asked(&target, body);
        let body = match body {
            None => Bytes::new(),
            Some(UndoBody { form: Form::Json, members }) => {
                headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
                Bytes::from(members.clone())
            }
            Some(UndoBody { form: Form::Urlencoded, members }) => {
                let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
                headers.insert(header::CONTENT_TYPE, kind);
                Bytes::from(urlencoded(members))
            }
        };
        let client = Client::to(target).map_err(|error| error.to_string())?;
        Ok(RequestUpstream { client, method, headers, body, rule, query, asked, prepared: None, heard: None })
    }

    async fn exchange(&mut self, key: Option<&str>) -> Result<(StatusCode, Result<Json, u64>), Lost> {
        let mut headers = self.headers.clone();
        if let Some(key) = key {
            let name = match self.rule.inject.as_ref().map(|inject| &inject.into) {
                Some(InjectInto::Header(name)) => name.as_str(),
                _ => KEY_HEADER,
            };
            let never = |why: String| Lost::NeverSent(why);
            let name: HeaderName = name.parse().map_err(|_| never(format!("{name} is no header")))?;
            headers.insert(name, HeaderValue::from_str(key).map_err(|error| never(error.to_string()))?);
        }
        let request = request(self.method, self.client.target(), headers, self.body.clone())
            .map_err(Lost::NeverSent)?;
        // Prepared once for a call; a second attempt of it makes a connection of its own.
        let prepared = match self.prepared.take().and_then(Prepared::fresh) {
            Some(prepared) => prepared,
            None => self.client.prepare().await.map_err(|error| Lost::NeverSent(error.to_string()))?,
        };
        let response = self.client.send(prepared, request).await.map_err(|failed| match failed {
            Failed::NeverSent(why) => Lost::NeverSent(why),
            Failed::Lost(why) => Lost::Unanswered(why),
        })?;
        let (head, body) = response.into_parts();
        let read = match body::read(body, ANSWER_BYTES_MAX, TAKES_MAX).await {
            Ok(bytes) => Ok(content(&head.headers, &bytes).unwrap_or(Json::Null)),
            Err(Unreadable::TooLarge(max)) => Err(max as u64),
            Err(error) => return Err(Lost::Unanswered(format!("{}: {error}", head.status.as_u16()))),
        };
        Ok((head.status, read))
    }

    /// As the HTTP door reads it. An undo happens once for each effect, so what proves nothing is a doubt.
    fn outcome(&self, status: StatusCode, read: &Result<Json, u64>) -> Outcome {
        let reply = match read {
            Ok(_) => Reply::Kept,
            Err(bytes) => Reply::TooLarge(*bytes),
        };
        let line = format!("HTTP {}", status.as_u16());
        let meaning = classify::meaning(status, self.rule, &Keys::default(), true);
        let within = |body: &Json| {
            classify::within(meaning, self.rule, &self.asked, true, body.canonical().as_bytes())
        };
        // Nobody refuses at such length.
        let told = read.as_ref().map_or(Ok(meaning), within);
        match told {
            Ok(StatusMeaning::Applied | StatusMeaning::Accepted) => {
                let body = read.as_ref().unwrap_or(&Json::Null);
                let accepted = status == StatusCode::ACCEPTED
                    || account::read(body.canonical().as_bytes()).only_accepted;
                let evidence = if accepted { Evidence::Accepted } else { Evidence::Reported };
                Outcome::Applied { evidence, word: self.word(status, body), reply }
            }
            Ok(StatusMeaning::Refused { .. } | StatusMeaning::Reported) => {
                let why = if status.is_success() { format!("{line}, which refuses it") } else { line };
                Outcome::NotApplied { why: NotAppliedWhy::Refused(why), reply }
            }
            Ok(StatusMeaning::Ambiguous) => {
                Outcome::InDoubt { why: format!("it answered {line}"), sender_gone: true }
            }
            Err(_) => {
                // An expression that fails tells what it failed at, and must not tell what is secret.
                let of_kept = read.as_ref().ok().map(|body| within(&self.kept(body)));
                let why = of_kept.and_then(Result::err).unwrap_or_else(|| "it does not say".to_owned());
                Outcome::InDoubt { why: format!("it answered {line}: {why}"), sender_gone: true }
            }
        }
    }

    /// What the ledger keeps of an answer.
    fn recorded(&self, status: Option<StatusCode>, body: &Json) -> Vec<u8> {
        let status = status.map(|status| status.as_u16());
        json!({"status": status, "body": self.kept(body).to_value()}).to_string().into_bytes()
    }

    /// A body without what must not be written.
    fn kept(&self, body: &Json) -> Json {
        let mut body = redact(body, &[]);
        SecretParts::of(self.rule).hide_in(&mut body);
        body
    }

    fn word(&self, status: StatusCode, reply: &Json) -> EffectWord {
        let by_rule = match &self.rule.effect {
            Some(EffectWording::Word(word)) => Some(*word),
            Some(EffectWording::Expression(expression)) => {
                let said = expression.eval(&[("reply", reply)]).ok();
                said.and_then(|said| EffectWord::parse(said.as_str()?))
            }
            None => None,
        };
        by_rule.unwrap_or(match self.method {
            "DELETE" => EffectWord::Deleted,
            _ if status == StatusCode::CREATED => EffectWord::Created,
            _ => EffectWord::Updated,
        })
    }
}

enum Lost {
    NeverSent(String),
    Unanswered(String),
}

impl Upstream for RequestUpstream<'_> {
    async fn prepare(&mut self) -> Result<(), NotStarted> {
        self.prepared = self.prepared.take().and_then(Prepared::fresh);
        if self.prepared.is_none() {
            let prepared = self.client.prepare().await;
            self.prepared =
                Some(prepared.map_err(|error| NotStarted { why: error.to_string(), data: Value::Null })?);
        }
        Ok(())
    }

    async fn send(&mut self, sending: Sending<'_>) -> Sent {
        let within = sending.timeout.unwrap_or(ANSWERS_WITHIN);
        let key = sending.recorded.map(|recorded| recorded.idempotency_key.to_owned());
        let lost = match tokio::time::timeout(within, self.exchange(key.as_deref())).await {
            Ok(Ok((status, read))) => {
                let was_sent_before = sending.recorded.is_some_and(|recorded| recorded.effect.has_unproven());
                let outcome = match self.outcome(status, &read) {
                    Outcome::NotApplied { .. } if was_sent_before && is_gone(self.method, status) => {
                        Outcome::gone()
                    }
                    outcome => outcome,
                };
                let body = read.as_ref().map_or(Value::Null, Json::to_value);
                let data = json!({"status": status.as_u16(), "body": body});
                let kept = read.as_ref().ok().map(|body| self.recorded(Some(status), body));
                self.heard = read.ok();
                return Sent { reply: kept, data, ..Sent::of(outcome) };
            }
            Ok(Err(lost)) => lost,
            Err(_) => Lost::Unanswered(format!("it did not answer within {} s", within.as_secs())),
        };
        let outcome = match lost {
            Lost::NeverSent(why) => {
                Outcome::NotApplied { why: NotAppliedWhy::NeverSent(why), reply: Reply::Unknown }
            }
            // Its connection is gone, so nothing more of it can be sent.
            Lost::Unanswered(why) => Outcome::InDoubt { why, sender_gone: true },
        };
        Sent::of(outcome)
    }

    async fn probe(&mut self, probe: &Probe, _: Option<&Effect>) -> ProbeAnswer {
        let finding = self.query.probe(probe).await;
        finding.for_gate(&Secrets::of(self.query.subject.arguments, self.rule), |reply| {
            let found = reply.map(FoundReply::into_json);
            let word = self.word(StatusCode::OK, found.as_ref().unwrap_or(&Json::Null));
            (found.map(|value| self.recorded(None, &value)), word)
        })
    }

    fn sends_while_alive(&self) -> bool {
        false
    }

    fn view(&self) -> Option<CallView> {
        let Subject { action, arguments, effect, credentials, .. } = self.query.subject;
        let reply = Some(self.heard.as_ref()?);
        let subject = Subject { action, arguments, effect, reply, credentials };
        Some(CallView { places: subject.places(), cwd: "/".into() })
    }

    fn join(&mut self, _: &Effect, _: AttemptNo) {}

    fn let_go(&mut self) {}
}

/// The action as rules name it: with the service's name where the address is a configured API's.
pub fn action(method: &str, url: &str, policy: &Policy) -> String {
    let Ok(target) = Target::parse(url) else { return format!("http:{method} {url}") };
    let origin = UrlOrigin::of(&target);
    let same = |api: &str| Target::parse(api).is_ok_and(|api| UrlOrigin::of(&api) == origin);
    let api = policy.upstreams.values().find(|api| same(&api.url));
    let service = api.map_or_else(|| target.authority().to_owned(), |api| api.service.clone());
    format!("http:{method} {service}{}", target.uri().path())
}

/// What rules see of the request.
pub fn arguments(url: &str, body: Option<&UndoBody>) -> Json {
    let (path, query) = match Target::parse(url) {
        Ok(target) => (target.uri().path().to_owned(), target.uri().query().unwrap_or_default().to_owned()),
        Err(_) => (url.to_owned(), String::new()),
    };
    let mut members = vec![("path".to_owned(), Json::str(&path))];
    if !query.is_empty() {
        members.push(("query".to_owned(), Json::str(&query)));
    }
    if let Some(mut body) = body.and_then(|body| json::parse(&body.members).ok()) {
        // Rules know a mutation by what the door tells of it.
        if let Ok(Some(graphql)) = graphql::of(&path, None, &body) {
            graphql.describe(&mut body);
        }
        members.push(("body".to_owned(), body));
    }
    Json::Object(members.into_iter().collect())
}

/// What its answer is read by.
fn asked(target: &Target, body: Option<&UndoBody>) -> Asked {
    let body = body.and_then(|body| json::parse(&body.members).ok());
    body.map_or(Asked::Unknown, |body| graphql::asked(target.uri().path(), None, &body))
}

/// Whether these are the arguments of a request in GraphQL. An undo is never a mere question.
pub fn speaks_graphql(arguments: &Json) -> bool {
    arguments.get("path").and_then(Json::as_str).is_some_and(graphql::is_graphql)
}

/// One object as the fields of a web form.
fn urlencoded(members: &str) -> String {
    let Ok(Json::Object(members)) = json::parse(members) else { return String::new() };
    let encoded = |text: &str| {
        let mut out = String::new();
        for byte in text.bytes() {
            match byte {
                b' ' => out.push('+'),
                b'-' | b'.' | b'_' | b'*' => out.push(char::from(byte)),
                byte if byte.is_ascii_alphanumeric() => out.push(char::from(byte)),
                byte => out.push_str(&format!("%{byte:02X}")),
            }
        }
        out
    };
    let fields = members.iter().map(|(name, value)| {
        let value = value.as_str().map_or_else(|| value.canonical(), str::to_owned);
        format!("{}={}", encoded(name), encoded(&value))
    });
    fields.collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_encoded_as_web_pages_do() {
        assert_eq!(urlencoded(r#"{"charge": "ch 1&a=b", "amount": 7}"#), "amount=7&charge=ch+1%26a%3Db");
    }

    #[test]
    fn the_action_has_the_name_of_the_service() {
        let policy = Policy::default();
        assert_eq!(
            action("DELETE", "https://api.example.com/v1/x/1?a=b", &policy),
            "http:DELETE api.example.com/v1/x/1"
        );
    }
}
