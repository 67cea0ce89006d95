//! One API, as the gate sees it: one request out, one answer read.

use super::ask;
use super::classify::{self, Meaning};
use super::delivery::Part;
use super::guard::Guarded;
use super::headers;
use super::inject;
use super::reply::{self, REPLY_BYTES_MAX};
use super::secrets::Secrets;
use crate::http::body::{self, Unreadable};
use crate::http::client::{Failed, Incoming, Prepared};
use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body::Body;
use semel_core::effect::{Effect, Evidence, LastSend, NotAppliedWhy, Reply};
use semel_core::ids::{AttemptNo, EffectId};
use semel_core::intent::NamedBy;
use semel_core::json::Json;
use semel_core::outcome::Outcome;
use semel_core::policy::rule::Probe;
use semel_gate::clock::Clock;
use semel_gate::upstream::{NotStarted, ProbeAnswer, Recorded, Seen, Sending, Sent, Upstream};
use serde_json::{Value, json};
use std::pin::{Pin, pin};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// An answer may take as long as the upstream works.
const ANSWER_PAUSE_MAX: Duration = Duration::from_secs(24 * 3600);

/// A client that takes nothing of an answer for this long is gone; the upstream's answer is then read without it.
const READER_PAUSE_MAX: Duration = Duration::from_secs(10);

/// Parts of a large answer that wait to be taken.
const PARTS_WAITING_MAX: usize = 8;

/// What of an unclear answer is shown: enough to see what it was.
const SHOWN_BYTES_MAX: usize = 16 * 1024;

/// The upstream's own answer to the newest attempt.
#[derive(Debug)]
pub struct Live {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: LiveBody,
}

#[derive(Debug)]
pub enum LiveBody {
    Whole(Bytes),
    /// It is on its way to the client already; this is what is held back of it.
    Streamed {
        writer: Option<mpsc::Sender<Part>>,
        end: Bytes,
    },
}

/// An answer that begins to go out before its end is there.
#[derive(Debug)]
pub struct Begun {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub length: Option<u64>,
    pub parts: mpsc::Receiver<Part>,
    pub effect: EffectId,
    pub attempt: AttemptNo,
}

#[derive(Debug)]
pub struct HttpUpstream<'a> {
    guarded: &'a Guarded,
    prepared: Option<Prepared>,
    /// Gets an answer that is too large to be held back, once.
    begun: Option<oneshot::Sender<Begun>>,
    live: Option<Live>,
    /// What a probe brought back of a lost answer.
    found: Option<Json>,
}

impl<'a> HttpUpstream<'a> {
    pub fn of(guarded: &'a Guarded, begun: Option<oneshot::Sender<Begun>>) -> HttpUpstream<'a> {
        HttpUpstream { guarded, prepared: None, begun, live: None, found: None }
    }

    /// The newest answer. A connection that was not used is given back.
    pub fn finish(mut self) -> Option<Live> {
        if let Some(prepared) = self.prepared.take() {
            self.guarded.offer.client.keep(prepared);
        }
        self.live
    }

    /// The request for the upstream, with its idempotency key where the rule says so.
    fn request(&self, recorded: Option<&Recorded<'_>>) -> Request<Bytes> {
        let Guarded { method, uri, headers, body, understood, intent, .. } = self.guarded;
        let (mut uri, mut headers, mut body) = (uri.clone(), headers.clone(), body.clone());
        // A compressed answer could be given to a client that cannot read it, and hides what must not be kept.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let (Some(inject), Some(recorded)) = (&understood.rule.inject, recorded) {
            let own = intent.named_by == NamedBy::CallerKey
                && understood.key_in_place
                && recorded.effect.occurrence.number == 1;
            if !own {
                let shape = &understood.arguments.shape;
                let parts = inject::Parts { uri: &mut uri, headers: &mut headers, body: &mut body, shape };
                inject::put(inject, recorded.idempotency_key, parts);
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
        let client = &self.guarded.offer.client;
        let attempt = recorded.and_then(|recorded| recorded.effect.attempt(recorded.attempt));
        let is_late = || match attempt.map(|attempt| attempt.last_send) {
            Some(LastSend::By(last)) => self.guarded.hall.clock.now() > last,
            Some(LastSend::WhileAlive) | None => false,
        };
        let connected = |connected: Result<Prepared, crate::http::client::NotReached>| {
            connected.map_err(|error| Failed::NeverSent(error.to_string()))
        };
        let mut prepared = match self.prepared.take().filter(Prepared::is_fresh) {
            Some(prepared) => prepared,
            None => connected(client.prepare().await)?,
        };
        for again in [true, false] {
            if is_late() {
                return Err(Failed::NeverSent("the last moment for sending has passed".into()));
            }
            match client.send(prepared, self.request(recorded)).await {
                Err(Failed::NeverSent(_)) if again => prepared = connected(client.connect().await)?,
                sent => return sent,
            }
        }
        Err(Failed::NeverSent("the connection closed before anything was sent".into()))
    }

    /// Reads an answer to its end, and says what it means.
    async fn read(&mut self, recorded: Option<&Recorded<'_>>, response: Response<Incoming>) -> Sent {
        let (head, body) = response.into_parts();
        let Guarded { understood, offer, .. } = self.guarded;
        let meaning = classify::meaning(head.status, &understood.rule, &offer.keys);
        let keep = headers::is_read_as_it_is(&head.headers);
        let mut body = pin!(body);
        if meaning == Meaning::Ambiguous {
            // Its end would not make it any clearer.
            let shown = begins_with(&mut body).await;
            let words = classify::line(head.status, &shown);
            return self.unclear(words, shown_as(head.status, &shown));
        }
        let mut whole = BytesMut::new();
        let mut first = Bytes::new();
        let mut stream: Option<Stream> = None;
        let mut length = 0_u64;
        while !body.is_end_stream() {
            let data = match body::next(&mut body, ANSWER_PAUSE_MAX).await {
                Ok(Some(data)) => data,
                Ok(None) => break,
                Err(error) => {
                    let words =
                        format!("{}; its answer broke off: {error}", classify::line(head.status, b""));
                    return self.unclear(words, Value::Null);
                }
            };
            length += data.len() as u64;
            match &mut stream {
                Some(stream) => stream.give(data).await,
                None if length <= REPLY_BYTES_MAX as u64 && first.is_empty() && whole.is_empty() => {
                    first = data
                }
                None if length <= REPLY_BYTES_MAX as u64 => {
                    if whole.is_empty() {
                        whole.extend_from_slice(&std::mem::take(&mut first));
                    }
                    whole.extend_from_slice(&data);
                }
                None => {
                    let mut begun = self.begin(&head, body.size_hint(), length, recorded);
                    begun.give(std::mem::take(&mut first)).await;
                    begun.give(std::mem::take(&mut whole).freeze()).await;
                    begun.give(data).await;
                    stream = Some(begun);
                }
            }
        }
        let whole = if whole.is_empty() { first } else { whole.freeze() };
        let too_large = stream.is_some() || !keep;
        let meaning = match classify::within(meaning, &understood.rule, || reply::value(&whole)) {
            Ok(meaning) => meaning,
            Err(why) => {
                return self
                    .unclear(format!("the answer does not say: {why}"), shown_as(head.status, &whole));
            }
        };
        let secrets = self.secrets();
        let reply = (!too_large).then(|| kept(head.status, &head.headers, &whole, &secrets));
        let recorded_as = if too_large { Reply::TooLarge(length) } else { Reply::Kept };
        let outcome = match meaning {
            Meaning::Refused { answers_repeats } => {
                let why = NotAppliedWhy::Refused(classify::line(head.status, &whole));
                // Without a reply on record it answers nobody else.
                let reply = if answers_repeats { recorded_as } else { Reply::Unknown };
                Outcome::NotApplied { why, reply }
            }
            applied => {
                let evidence =
                    if applied == Meaning::Accepted { Evidence::Accepted } else { Evidence::Reported };
                let Guarded { method, path, .. } = self.guarded;
                let word = classify::effect_word(head.status, method, path, &understood.rule, || {
                    reply::value(&whole)
                });
                Outcome::Applied { evidence, word, reply: recorded_as }
            }
        };
        let reply = reply.filter(|_| {
            matches!(&outcome, Outcome::Applied { .. } | Outcome::NotApplied { reply: Reply::Kept, .. })
        });
        let body = match stream {
            Some(stream) => LiveBody::Streamed { writer: stream.writer, end: stream.held },
            None => LiveBody::Whole(whole),
        };
        self.live = Some(Live { status: head.status, headers: head.headers, body });
        Sent { outcome: secrets.out_of_outcome(outcome), reply, data: Value::Null }
    }

    /// Begins to give an answer on that is too large to be kept.
    fn begin(
        &mut self,
        head: &http::response::Parts,
        rest: http_body::SizeHint,
        so_far: u64,
        recorded: Option<&Recorded<'_>>,
    ) -> Stream {
        let (writer, parts) = mpsc::channel(PARTS_WAITING_MAX);
        let length = rest.exact().map(|rest| rest + so_far);
        let told = self.begun.take().zip(recorded).is_some_and(|(begun, recorded)| {
            let begin = Begun {
                status: head.status,
                headers: head.headers.clone(),
                length,
                parts,
                effect: recorded.effect.id,
                attempt: recorded.attempt,
            };
            begun.send(begin).is_ok()
        });
        Stream { writer: told.then_some(writer), held: Bytes::new() }
    }

    fn unclear(&self, why: String, data: Value) -> Sent {
        // It was sent whole, and once; what the upstream still does with it is what `quiet` is for.
        let outcome = Outcome::InDoubt { why, sender_gone: true };
        Sent { outcome: self.secrets().out_of_outcome(outcome), reply: None, data }
    }

    fn secrets(&self) -> Secrets {
        let Guarded { understood, headers, .. } = self.guarded;
        Secrets::of(&understood.arguments.json, &understood.rule, headers)
    }
}

/// A large answer on its way out. Its newest part is held back: with it the client would have everything.
struct Stream {
    /// `None`: nobody takes it any more.
    writer: Option<mpsc::Sender<Part>>,
    held: Bytes,
}

impl Stream {
    async fn give(&mut self, data: Bytes) {
        if data.is_empty() {
            return;
        }
        let before = std::mem::replace(&mut self.held, data);
        let Some(writer) = self.writer.as_ref().filter(|_| !before.is_empty()) else { return };
        let taken = tokio::time::timeout(READER_PAUSE_MAX, writer.send(Part::Some(before))).await;
        if !matches!(taken, Ok(Ok(()))) {
            // Rule 12: the answer is read to its end all the same.
            self.writer = None;
        }
    }
}

/// What the ledger keeps of an answer.
fn kept(status: StatusCode, headers: &HeaderMap, body: &Bytes, secrets: &Secrets) -> Vec<u8> {
    let headers = headers::kept(headers).filter_map(|(name, value)| Some((name, value.to_str().ok()?)));
    let headers = headers.map(|(name, value)| (name, secrets.out_of_line(value)));
    reply::encode(status, headers, &secrets.out_of_body(body))
}

/// The beginning of a body that is not read to its end.
async fn begins_with(body: &mut Pin<&mut Incoming>) -> Bytes {
    let mut shown = BytesMut::new();
    while shown.len() < SHOWN_BYTES_MAX && !body.is_end_stream() {
        match body::next(body, body::PAUSE_MAX).await {
            Ok(Some(data)) => shown.extend_from_slice(&data),
            Ok(None) | Err(Unreadable::Broken(_) | Unreadable::Stalled | Unreadable::TooLarge(_)) => break,
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

impl Upstream for HttpUpstream<'_> {
    async fn prepare(&mut self) -> Result<(), NotStarted> {
        let prepared = self.guarded.offer.client.prepare().await;
        let prepared = prepared.map_err(|error| NotStarted { why: error.to_string(), data: Value::Null })?;
        self.prepared = Some(prepared);
        Ok(())
    }

    /// Waits as long as it takes: an answer after the deadline still is evidence, and the caller is not kept by it.
    async fn send(&mut self, sending: Sending<'_>) -> Sent {
        let recorded = sending.recorded.as_ref();
        match self.exchange(recorded).await {
            Ok(response) => self.read(recorded, response).await,
            Err(Failed::NeverSent(why)) => {
                let outcome =
                    Outcome::NotApplied { why: NotAppliedWhy::NeverSent(why), reply: Reply::Unknown };
                Sent { outcome, reply: None, data: Value::Null }
            }
            Err(Failed::Lost(why)) => {
                let outcome = Outcome::InDoubt { why, sender_gone: false };
                Sent { outcome, reply: None, data: Value::Null }
            }
        }
    }

    async fn probe(&mut self, probe: &Probe, effect: Option<&Effect>) -> ProbeAnswer {
        let (answer, found) = ask::probe(probe, effect, self.guarded, &self.secrets()).await;
        self.found = found.or(self.found.take());
        answer
    }

    fn seen(&self) -> Option<Seen> {
        Some(ask::seen(self.guarded, self.live.as_ref(), self.found.as_ref(), &self.secrets()))
    }

    /// The upstream is not the sender: what it still does with a request is what `quiet` is for.
    fn sends_while_alive(&self) -> bool {
        false
    }

    fn let_go(&mut self) {}
}
