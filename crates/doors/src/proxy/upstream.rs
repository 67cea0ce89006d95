//! One API, as the gate sees it: one request out, one answer read.

use super::classify::{self, StatusMeaning};
use super::content_type;
use super::guarded::GuardedRequest;
use super::headers;
use super::inject;
use super::key;
use super::query;
use super::streamed::{CollectedBody, HoldLimit, StreamWriter, StreamedHead, collect};
use super::upstream_answer::{AnswerBody, UpstreamAnswer};
use crate::http::body;
use crate::http::client::{Failed, Incoming, LastMoment, Prepared};
use crate::http::server::lets_send;
use crate::redact::SecretParts;
use crate::redact::Secrets;
use crate::reply::{REPLY_BYTES_MAX, http as reply};
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use http::header::CONTENT_LENGTH;
use http::response::Parts as Head;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body::Body;
use semel_core::effect::{Effect, Evidence, LastSend, NotAppliedWhy, Reply};
use semel_core::ids::AttemptNo;
use semel_core::intent::NamedBy;
use semel_core::json::Json;
use semel_core::judgement::evidence;
use semel_core::outcome::Outcome;
use semel_core::policy::rule::Probe;
use semel_gate::upstream::{CallView, NotStarted, ProbeAnswer, Recorded, Sending, Sent, Upstream};
use serde_json::{Value, json};
use std::pin::pin;
use std::time::Duration;
use tokio::sync::oneshot;

/// This much of an unclear answer is shown: enough to recognise it.
const SHOWN_BYTES_MAX: usize = 16 * 1024;

/// The part of an answer that is read for a refusal. A larger one says by its status what it means: nobody refuses at
/// such length.
pub const JUDGED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Where the rule of an undo has no timeout: longer than any gateway waits.
const UNDO_ANSWERS_WITHIN: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub struct HttpUpstream<'a> {
    guarded: &'a GuardedRequest,
    prepared: Option<Prepared>,
    /// Gets an answer that is too large to be held back, once.
    begun: Option<oneshot::Sender<StreamedHead>>,
    live: Option<UpstreamAnswer>,
    /// The reply to a lost request, as a probe found it.
    found: Option<Json>,
    /// An undo: its caller waits for the end of it, and its key goes along whatever its rule says.
    undoes: bool,
}

impl<'a> HttpUpstream<'a> {
    pub fn of(guarded: &'a GuardedRequest, begun: oneshot::Sender<StreamedHead>) -> HttpUpstream<'a> {
        HttpUpstream { guarded, prepared: None, begun: Some(begun), live: None, found: None, undoes: false }
    }

    pub fn for_undo(guarded: &'a GuardedRequest) -> HttpUpstream<'a> {
        HttpUpstream { guarded, prepared: None, begun: None, live: None, found: None, undoes: true }
    }

    /// The newest answer. A connection that was not used is given back.
    pub fn finish(mut self) -> Option<UpstreamAnswer> {
        if let Some(prepared) = self.prepared.take() {
            self.guarded.client.keep(prepared);
        }
        self.live
    }

    /// The request for the upstream, with its idempotency key where the rule says so.
    fn request(&self, recorded: Option<&Recorded<'_>>) -> Request<Bytes> {
        let GuardedRequest { method, uri, headers, body, understood, intent, offer, .. } = self.guarded;
        let (mut uri, mut headers, mut body) = (uri.clone(), headers.clone(), body.clone());
        if let Some(recorded) = recorded {
            // The client's key stands for the first effect of its record; a deliberate repeat is another one.
            let first = recorded.effect.occurrence.number == 1;
            let own = first && intent.named_by == NamedBy::CallerKey;
            match &understood.rule.inject {
                Some(inject) if !(own && understood.key_in_place) => {
                    let shape = &understood.arguments.shape;
                    let parts =
                        inject::RequestParts { uri: &mut uri, headers: &mut headers, body: &mut body, shape };
                    inject::put(inject, recorded.idempotency_key, parts);
                }
                None if self.undoes => key::insert(&mut headers, offer, recorded.idempotency_key),
                None if !first => key::replace(&mut headers, offer, recorded.idempotency_key),
                _ => {}
            }
        }
        if body.is_empty() {
            // Some servers want to be told that nothing comes.
            headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        let mut request = Request::new(body);
        *request.method_mut() = method.clone();
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        request
    }

    /// Sends once. What certainly did not leave on an old connection may leave on a new one.
    async fn exchange(&mut self, recorded: Option<&Recorded<'_>>) -> Result<Response<Incoming>, Failed> {
        let client = &self.guarded.client;
        let attempt = recorded.and_then(|recorded| recorded.effect.attempt(recorded.attempt));
        let last_moment = match attempt.map(|attempt| attempt.last_send) {
            Some(LastSend::By(at)) => Some(LastMoment { clock: self.guarded.services.clock.clone(), at }),
            Some(LastSend::WhileAlive) | None => None,
        };
        let prepared = match self.prepared.take().and_then(Prepared::fresh) {
            Some(prepared) => prepared,
            None => client.prepare().await.map_err(|error| Failed::NeverSent(error.to_string()))?,
        };
        client.send_before(last_moment, prepared, self.request(recorded)).await
    }

    async fn send_and_read(&mut self, sending: Sending<'_>) -> Sent {
        match self.exchange(sending.recorded.as_ref()).await {
            Ok(response) => self.read(sending, response).await,
            Err(Failed::NeverSent(why)) => {
                let why = NotAppliedWhy::NeverSent(why);
                Sent::of(Outcome::NotApplied { why, reply: Reply::Unknown })
            }
            Err(Failed::Lost(why)) => Sent::of(Outcome::InDoubt { why, sender_gone: false }),
        }
    }

    /// Reads an answer to its end, and says what it means.
    async fn read(&mut self, sending: Sending<'_>, response: Response<Incoming>) -> Sent {
        let (head, body) = response.into_parts();
        let GuardedRequest { services, understood, offer, method, path, .. } = self.guarded;
        let (rule, recorded) = (&understood.rule, sending.recorded.as_ref());
        let keyed = rule.inject.is_some() || understood.key_in_place;
        let once = sending.must_happen_once(rule);
        let heard = || sending.progress.note(&services.clock);
        heard();
        let meaning = classify::meaning(head.status, rule, &offer.keys, keyed);
        if meaning == StatusMeaning::Ambiguous {
            // Its end would not make it any clearer.
            let shown = begins_with(body).await;
            let kept = self.secrets().out_of_body(&shown).unwrap_or_default();
            return self.unclear(classify::line(head.status, &kept), shown_as(head.status, &shown));
        }
        let (begun, has_end) = (self.begun.take(), body.has_end());
        // What a rule reads is held back even where it is not kept: half of it with the client, it could not be judged.
        let more = rule.refused.is_some().then_some((JUDGED_BYTES_MAX, &offer.large_answers));
        let held = HoldLimit { bytes_max: REPLY_BYTES_MAX, more };
        let collected = collect(body, held, heard, |length| begin(&head, length, begun, recorded)).await;
        let (whole, writer, length, _room) = match collected {
            Ok(CollectedBody::Whole(whole, room)) if has_end || !is_cut(&head, &whole) => {
                let length = whole.len() as u64;
                (whole, None, length, room)
            }
            Ok(CollectedBody::Streamed(writer, length)) => (Bytes::new(), Some(writer), length, None),
            Ok(CollectedBody::Whole(..)) => {
                return self.unclear(broke_off(&head, "it is not whole"), Value::Null);
            }
            Err(error) => return self.unclear(broke_off(&head, &error.to_string()), Value::Null),
        };
        let is_readable = headers::is_read_as_it_is(&head.headers);
        let said = match writer {
            // It was asked for in plain; a rule must not judge bytes that it cannot read.
            None if !is_readable && rule.refused.is_some() => {
                Err("it is compressed, so its rule cannot read it".into())
            }
            None => classify::within(meaning, rule, &understood.arguments.asked, once, &whole),
            Some(_) => Ok(meaning),
        };
        let meaning = match said {
            Ok(StatusMeaning::Applied) if classify::is_only_accepted(&whole) => StatusMeaning::Accepted,
            Ok(meaning) => meaning,
            Err(why) => {
                let why = format!("the answer is unclear: {}", self.told(meaning, &whole, once, why));
                let shown =
                    if whole.len() > REPLY_BYTES_MAX { &whole[..SHOWN_BYTES_MAX] } else { &whole[..] };
                return self.unclear(why, shown_as(head.status, shown));
            }
        };
        let secrets = self.secrets();
        let keeps = writer.is_none() && whole.len() <= REPLY_BYTES_MAX && is_readable;
        let refused = matches!(meaning, StatusMeaning::Refused { .. } | StatusMeaning::Reported);
        let kept_body = (keeps || refused).then(|| secrets.out_of_body(&whole).ok()).flatten();
        let reply = kept_body.as_ref().filter(|_| keeps).map(|body| recordable(&head, body, &secrets));
        let kept = if reply.is_some() { Reply::Kept } else { Reply::TooLarge(length) };
        let was_sent_before = recorded.is_some_and(|recorded| recorded.effect.has_unproven());
        let outcome = match meaning {
            StatusMeaning::Refused { .. }
                if was_sent_before && writer.is_none() && classify::is_gone(method.as_str(), head.status) =>
            {
                return Sent::of(Outcome::gone());
            }
            StatusMeaning::Refused { answers_repeats } => {
                let said = kept_body.as_deref().unwrap_or_default();
                let why = NotAppliedWhy::Refused(classify::line(head.status, said));
                // Without a reply on record it answers nobody else.
                Outcome::NotApplied { why, reply: if answers_repeats { kept } else { Reply::Unknown } }
            }
            StatusMeaning::Reported => {
                let said = kept_body.as_deref().unwrap_or_default();
                let why = NotAppliedWhy::Reported(classify::line(head.status, said));
                Outcome::NotApplied { why, reply: Reply::Unknown }
            }
            applied => {
                let evidence = match applied {
                    StatusMeaning::Accepted => Evidence::Accepted,
                    _ => evidence::of_success(rule, || reply::value(&whole)),
                };
                let word = classify::effect_word(head.status, method, path, rule, || reply::value(&whole));
                Outcome::Applied { evidence, word, reply: kept }
            }
        };
        let reply = match &outcome {
            Outcome::Applied { reply: Reply::Kept, .. } | Outcome::NotApplied { reply: Reply::Kept, .. } => {
                reply
            }
            _ => None,
        };
        let body = writer.map_or(AnswerBody::Whole(whole), AnswerBody::Streamed);
        self.live = Some(UpstreamAnswer { status: head.status, headers: head.headers, body });
        Sent { reply, ..Sent::of(secrets.out_of_outcome(outcome)) }
    }

    /// Why nobody can say what an answer means, as it may be written. An expression that fails tells what it failed at.
    fn told(&self, meaning: StatusMeaning, whole: &Bytes, once: bool, why: String) -> String {
        let GuardedRequest { understood, .. } = self.guarded;
        let rule = &understood.rule;
        if SecretParts::of(rule).is_empty() {
            return why;
        }
        let kept = self.secrets().out_of_body(whole).ok();
        let asked = &understood.arguments.asked;
        let of_kept = kept.map(|kept| classify::within(meaning, rule, asked, once, &kept));
        of_kept.and_then(Result::err).unwrap_or_else(|| "it may hold a secret that its rule names".into())
    }

    fn unclear(&self, why: String, data: Value) -> Sent {
        // It was sent whole, and once; what the upstream still does with it is what `quiet` is for.
        let outcome = Outcome::InDoubt { why, sender_gone: true };
        Sent { data, ..Sent::of(self.secrets().out_of_outcome(outcome)) }
    }

    fn secrets(&self) -> Secrets {
        let GuardedRequest { understood, headers, .. } = self.guarded;
        Secrets::of_request(&understood.arguments.json, &understood.rule, headers)
    }
}

/// Begins to give an answer on that is too large to be kept.
fn begin(
    head: &Head,
    length: Option<u64>,
    begun: Option<oneshot::Sender<StreamedHead>>,
    recorded: Option<&Recorded<'_>>,
) -> StreamWriter {
    let (Some(begun), Some(recorded)) = (begun, recorded) else { return StreamWriter::to_nobody() };
    let (writer, parts) = StreamWriter::new();
    let (status, headers) = (head.status, head.headers.clone());
    let (effect, attempt) = (recorded.effect.id, recorded.attempt);
    // The caller may have gone; then there is nobody to give it to.
    let _asked = begun.send(StreamedHead { status, headers, length, parts, effect, attempt });
    writer
}

/// Whether a body that ends with its connection ends too early. Only JSON can be seen to be whole.
fn is_cut(head: &Head, body: &[u8]) -> bool {
    content_type::of(&head.headers).contains("json")
        && !body.is_empty()
        && semel_core::json::parse_bytes(body).is_err()
}

fn broke_off(head: &Head, why: &str) -> String {
    format!("{}; the answer broke off: {why}", classify::line(head.status, b""))
}

/// An answer as the ledger keeps it. `body`: without secrets.
fn recordable(head: &Head, body: &Bytes, secrets: &Secrets) -> Vec<u8> {
    let headers = reply::replayed(&head.headers)
        .filter_map(|(name, value)| Some((name, std::str::from_utf8(value.as_bytes()).ok()?)));
    let headers = headers.map(|(name, value)| (name, secrets.out_of_header(value)));
    reply::encode(head.status, headers, body)
}

/// The beginning of a body that is not read to its end.
async fn begins_with(body: Incoming) -> Bytes {
    let mut body = pin!(body);
    let mut shown = BytesMut::new();
    while shown.len() < SHOWN_BYTES_MAX && !body.is_end_stream() {
        match body::next(&mut body, body::PAUSE_MAX).await {
            Ok(Some(data)) => shown.extend_from_slice(&data),
            Ok(None) | Err(_) => break,
        }
    }
    shown.truncate(SHOWN_BYTES_MAX);
    shown.freeze()
}

/// An answer that does not tell, as the caller is shown it.
fn shown_as(status: StatusCode, body: &[u8]) -> Value {
    let body = match semel_core::json::parse_bytes(body) {
        Ok(json) => json.to_value(),
        Err(_) => Value::String(String::from_utf8_lossy(body).into_owned()),
    };
    json!({"status": status.as_u16(), "body": body})
}

#[async_trait]
impl Upstream for HttpUpstream<'_> {
    async fn prepare(&mut self) -> Result<(), NotStarted> {
        self.prepared = self.prepared.take().and_then(Prepared::fresh);
        if self.prepared.is_none() {
            let prepared = self.guarded.client.prepare().await;
            self.prepared =
                Some(prepared.map_err(|error| NotStarted { why: error.to_string(), data: Value::Null })?);
        }
        lets_send(self.guarded.token.as_ref()).await
    }

    /// Waits as long as it takes: an answer after the deadline still is evidence, and the caller is not kept by it. The
    /// caller of an undo is, so there it is a doubt.
    async fn send(&mut self, sending: Sending<'_>) -> Sent {
        if !self.undoes {
            return self.send_and_read(sending).await;
        }
        let within = sending.timeout.unwrap_or(UNDO_ANSWERS_WITHIN);
        let sent = tokio::time::timeout(within, self.send_and_read(sending)).await;
        let late = || format!("it did not answer within {} s", within.as_secs());
        // Its connection is gone, so nothing more of it can be sent.
        sent.unwrap_or_else(|_| Sent::of(Outcome::InDoubt { why: late(), sender_gone: true }))
    }

    async fn probe(&mut self, probe: &Probe, effect: Option<&Effect>) -> ProbeAnswer {
        let (answer, found) = query::probe(probe, effect, self.guarded, &self.secrets()).await;
        self.found = found.or(self.found.take());
        answer
    }

    fn view(&self) -> Option<CallView> {
        Some(query::seen(self.guarded, self.live.as_ref(), self.found.as_ref(), &self.secrets()))
    }

    /// The upstream is not the sender: what it still does with a request is what `quiet` is for.
    fn sends_while_alive(&self) -> bool {
        false
    }

    fn join(&mut self, _: &Effect, _: AttemptNo) {}

    fn release(&mut self) {}
}
