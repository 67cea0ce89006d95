//! A model behind an API, as the gate sees it: one request out, one answer read to its end.

use super::api::ModelApi;
use super::attachment::{Attachment, AttachmentSender};
use super::classify;
use super::live_answer::{AnswerEnd, AnswerForm, LiveAnswer, LiveAnswers};
use super::meter::Meter;
use super::read::{self, Reception};
use super::request::ModelOutgoing;
use super::stop::{EarlyStop, stops};
use super::usage::{self, TokenUsage};
use crate::delivery::Delivery;
use crate::http::client::{Client, Failed, Incoming, Prepared};
use crate::http::server::{Revocable, lets_send};
use crate::proxy::Offer;
use crate::redact::Secrets;
use crate::services::Services;
use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use semel_core::class::Class;
use semel_core::digest::Digest;
use semel_core::effect::{Effect, NotAppliedWhy, Reply};
use semel_core::ids::AttemptNo;
use semel_core::json::{self, Json};
use semel_core::outcome::Outcome;
use semel_core::policy::rule::{InjectInto, Probe, Rule};
use semel_gate::clock::Clock;
use semel_gate::upstream::{CallView, NotStarted, ProbeAnswer, Sending, Sent, Upstream};
use semel_ledger::journal;
use semel_ledger::store::Durability;
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(Debug)]
pub struct ModelUpstream<'a> {
    pub offer: &'a Offer,
    pub api: ModelApi,
    pub rule: &'a Rule,
    pub services: &'a Services,
    pub lives: &'a Arc<LiveAnswers>,
    pub meter: &'a Meter,
    /// Where the run's fence is found, if the request belongs to a run.
    pub run: Option<Digest>,
    /// The caller's token, where it can be revoked.
    pub token: Option<&'a Revocable>,
    /// The request, until it is sent; one call sends a generation once.
    pub outgoing: Option<ModelOutgoing>,
    pub attachments: AttachmentSender,
    /// To the upstream, for its caller.
    pub client: Client,
    pub prepared: Option<Prepared>,
    /// The answer of the newest attempt of this call's own.
    pub own: Option<AttemptAnswer>,
    /// It was ended because its run was cancelled.
    pub cancelled: bool,
    /// The tokens that are counted for it.
    pub used: Option<TokenUsage>,
}

/// The answer of an attempt of this call's own. If nobody says how it ended, it broke off.
#[derive(Debug)]
pub struct AttemptAnswer {
    live: Arc<LiveAnswer>,
    /// How it ends for its readers, unless it turns out to be the answer.
    otherwise: AnswerEnd,
    cost: Option<TokenUsage>,
    status: Option<StatusCode>,
}

impl AttemptAnswer {
    /// It is settled as the answer.
    pub fn settled(mut self, delivery: Option<Delivery>) {
        self.otherwise = AnswerEnd::Answer { delivery, cost: self.cost };
    }
}

impl Drop for AttemptAnswer {
    fn drop(&mut self) {
        self.live.finish(std::mem::replace(&mut self.otherwise, AnswerEnd::Cut));
    }
}

impl ModelUpstream<'_> {
    /// `None`: it was sent before.
    fn request(&mut self, sending: &Sending<'_>) -> Option<Request<Bytes>> {
        let ModelOutgoing { uri, mut headers, body } = match self.rule.class {
            Class::Generate => self.outgoing.take()?,
            _ => self.outgoing.clone()?,
        };
        if let (Some(recorded), Some(InjectInto::Header(name))) =
            (&sending.recorded, self.rule.inject.as_ref().map(|inject| &inject.into))
            && let (Ok(name), Ok(key)) =
                (name.parse::<HeaderName>(), HeaderValue::from_str(recorded.idempotency_key))
        {
            headers.insert(name, key);
        }
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        Some(request)
    }

    async fn exchange(&mut self, sending: &Sending<'_>) -> Result<Response<Incoming>, Outcome> {
        let never =
            |why: String| Outcome::NotApplied { why: NotAppliedWhy::NeverSent(why), reply: Reply::Unknown };
        let prepared = match self.prepared.take().and_then(Prepared::fresh) {
            Some(prepared) => prepared,
            None => {
                let prepared = Box::pin(self.client.prepare()).await;
                prepared.map_err(|error| never(error.to_string()))?
            }
        };
        let request = self.request(sending).ok_or_else(|| never("it was sent by this call before".into()))?;
        match tokio::time::timeout(read::SILENCE_MAX, self.client.send(prepared, request)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(Failed::NeverSent(why))) => Err(never(why)),
            Ok(Err(Failed::Lost(why))) => Err(Outcome::InDoubt { why, sender_gone: true }),
            Err(_) => {
                let why = format!("no answer began within {} seconds", read::SILENCE_MAX.as_secs());
                Err(Outcome::InDoubt { why, sender_gone: true })
            }
        }
    }

    /// Sends, and reads the response to its end, for all who follow it.
    async fn carry_out(&mut self, sending: &Sending<'_>, live: &LiveAnswer) -> classify::ClassifiedAnswer {
        let api = self.api;
        let asked =
            self.outgoing.as_ref().map(|ModelOutgoing { headers, body, .. }| (headers.clone(), body.clone()));
        // Boxed, so that what is left while the answer comes is small: thousands may be coming.
        let response = match Box::pin(self.exchange(sending)).await {
            Ok(response) => response,
            Err(outcome) => return (outcome, None),
        };
        let head = Arc::new(read::head(&response, self.offer));
        live.begin(Arc::clone(&head));
        let received_at = match head.form {
            AnswerForm::Document => read::document(live, response.into_body()).await,
            AnswerForm::Events => read::events(api, live, response.into_body()).await,
        };
        // Only what went wrong is told in words of the API, which may repeat what it was asked with.
        let told = !head.status.is_success() || !matches!(received_at, Reception::Whole);
        let secrets = asked.filter(|_| told).map(|(headers, body)| {
            let body = json::parse_bounded(&body).unwrap_or(Json::Null);
            Secrets::of_request(&Json::object([("args", body)]), self.rule, &headers)
        });
        let read = classify::outcome(api, &head, live, &received_at, self.rule, secrets.as_ref());
        let is_answer = matches!(read.0, Outcome::Applied { .. });
        let cost =
            live.whole().ok().filter(|_| is_answer).and_then(|pieces| usage::of(api, head.form, &pieces));
        let used = match (cost, &received_at) {
            (Some(cost), _) => cost,
            // Generated tokens are paid for, whether it came whole or not.
            (None, Reception::Failed { .. } | Reception::Broken(_)) => self.so_far(live),
            (None, Reception::Whole) => TokenUsage::default(),
        };
        self.uses(used);
        if let Some(own) = &mut self.own {
            own.cost = cost;
            own.status = Some(head.status);
            own.otherwise = match received_at {
                Reception::Failed { closed: false } => AnswerEnd::CutAtError,
                Reception::Failed { closed: true } => AnswerEnd::Error,
                Reception::Whole if !is_answer => AnswerEnd::Error,
                Reception::Whole | Reception::Broken(_) => AnswerEnd::Cut,
            };
        }
        read
    }

    fn uses(&mut self, used: TokenUsage) {
        self.meter.used(self.services, used);
        self.used = (used != TokenUsage::default()).then_some(used);
    }

    fn so_far(&self, live: &LiveAnswer) -> TokenUsage {
        let (form, pieces) = live.so_far();
        usage::so_far(self.api, form, &pieces)
    }

    /// The outcome of a generation that was ended from here: its connection is closed.
    async fn stopped(&mut self, stop: EarlyStop, sending: &Sending<'_>, live: &LiveAnswer) -> Outcome {
        let used = self.so_far(live);
        self.uses(used);
        let TokenUsage { input, output, .. } = used;
        self.cancelled = stop == EarlyStop::Cancelled;
        let why = match stop {
            EarlyStop::Cancelled => "its run was cancelled",
            EarlyStop::Abandoned => "nobody was there to read it",
        };
        if let (Ok(gate), Some(recorded)) = (&self.services.gate, &sending.recorded) {
            let data = json!({"why": why, "input_tokens": input, "output_tokens": output, "estimated": true});
            let now = self.services.clock.now();
            let line = journal::note("generation_ended", Some(recorded.effect), self.run, data, now);
            let _counted_elsewhere_too = gate.ledger.note(line, Durability::Lazy).await;
        }
        let why = match input {
            Some(input) => format!("{why}; it was ended after {input} tokens in and about {output} out"),
            None => {
                format!("{why}; it was ended after about {output} tokens out; how many went in is not known")
            }
        };
        match self.rule.class {
            // There is nothing that it could still do.
            Class::Generate => {
                Outcome::NotApplied { why: NotAppliedWhy::Refused(why), reply: Reply::Unknown }
            }
            _ => Outcome::InDoubt { why, sender_gone: true },
        }
    }
}

#[async_trait]
impl Upstream for ModelUpstream<'_> {
    async fn prepare(&mut self) -> Result<(), NotStarted> {
        self.prepared = self.prepared.take().and_then(Prepared::fresh);
        if self.prepared.is_none() {
            let prepared = self.client.prepare().await;
            self.prepared =
                Some(prepared.map_err(|error| NotStarted { why: error.to_string(), data: Value::Null })?);
        }
        lets_send(self.token).await
    }

    async fn send(&mut self, sending: Sending<'_>) -> Sent {
        let effect = sending.recorded.map(|recorded| recorded.effect.id);
        let live = match sending.recorded {
            Some(recorded) => self.lives.of(recorded.effect.id, recorded.attempt),
            None => self.lives.unrecorded(),
        };
        let _nobody_follows =
            self.attachments.send(Attachment { reader: live.reader(), effect, joined: false });
        self.own = Some(AttemptAnswer {
            live: Arc::clone(&live),
            otherwise: AnswerEnd::Cut,
            cost: None,
            status: None,
        });
        let stops = stops(self.services, self.rule, self.run, &live);
        let (outcome, reply) = tokio::select! {
            biased;
            read = self.carry_out(&sending, &live) => read,
            stop = stops => (Box::pin(self.stopped(stop, &sending, &live)).await, None),
        };
        let status = self.own.as_ref().and_then(|own| own.status).map(|status| status.as_u16());
        let (input, output) = (self.used.and_then(|used| used.input), self.used.map(|used| used.output));
        let description = json!({
            "status": status, "model": self.meter.model, "input_tokens": input, "output_tokens": output,
        });
        Sent { reply, tokens: self.used, description, ..Sent::of(outcome) }
    }

    async fn probe(&mut self, _: &Probe, _: Option<&Effect>) -> ProbeAnswer {
        ProbeAnswer::Unknown { why: "a generation cannot be asked for".into() }
    }

    /// The API is the upstream, not the sender.
    fn sends_while_alive(&self) -> bool {
        false
    }

    fn view(&self) -> Option<CallView> {
        None
    }

    fn release(&mut self) {}

    /// Its caller follows the attempt in flight, if that is one of this process.
    fn join(&mut self, effect: &Effect, attempt: AttemptNo) {
        let live = self.lives.of(effect.id, attempt);
        if live.is_kept() {
            let attachment = Attachment { reader: live.reader(), effect: Some(effect.id), joined: true };
            let _nobody_follows = self.attachments.send(attachment);
        }
    }
}
