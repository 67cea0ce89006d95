//! A model behind an API, as the gate sees it: one request out, one answer read to its end.

use super::asked::Asked;
use super::classify;
use super::live::{Ended, Form, Live, Lives, Reader};
use super::read::{self, Came};
use crate::http::client::{Failed, Incoming, Prepared};
use crate::leaving::Left;
use crate::proxy::Offer;
use bytes::Bytes;
use http::header::HOST;
use http::{HeaderName, HeaderValue, Method, Request, Response};
use http_body_util::Full;
use semel_core::effect::{Effect, NotAppliedWhy, Reply};
use semel_core::ids::{AttemptNo, EffectId};
use semel_core::outcome::Outcome;
use semel_core::policy::rule::{InjectInto, Probe, Rule};
use semel_gate::upstream::{NotStarted, ProbeAnswer, Sending, Sent, Upstream};
use semel_ledger::Found;
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::mpsc;

/// An answer that is coming, for whoever asked.
#[derive(Debug)]
pub struct Attached {
    pub reader: Reader,
    /// `None` where nothing is recorded.
    pub effect: Option<EffectId>,
    /// It is somebody else's attempt.
    pub joined: bool,
}

#[derive(Debug)]
pub struct Model<'a> {
    pub offer: &'a Offer,
    pub asked: &'a Asked,
    pub rule: &'a Rule,
    pub lives: &'a Arc<Lives>,
    pub tell: mpsc::UnboundedSender<Attached>,
    pub prepared: Option<Prepared>,
    /// The answer of the newest attempt of this call's own.
    pub own: Option<Own>,
}

/// The answer of an attempt of this call's own. If nobody says how it ended, it broke off.
#[derive(Debug)]
pub struct Own {
    live: Arc<Live>,
    /// How it ends for its readers, unless it turns out to be the answer.
    otherwise: Ended,
}

impl Own {
    /// It is settled as the answer.
    pub fn settled(mut self, delivery: Option<Arc<Found>>, leaving: Option<Arc<Left>>) {
        self.otherwise = Ended::Answer { delivery, leaving };
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.live.finish(std::mem::replace(&mut self.otherwise, Ended::Cut));
    }
}

impl Model<'_> {
    fn request(&self, sending: &Sending<'_>) -> Request<Full<Bytes>> {
        let target = self.offer.client.target();
        let mut request = Request::new(Full::new(self.asked.body.clone()));
        *request.method_mut() = Method::POST;
        let base = target.uri().path().trim_end_matches('/');
        *request.uri_mut() = format!("{base}{}", self.asked.path).parse().unwrap_or_default();
        let mut headers = self.asked.headers.clone();
        if let Ok(host) = HeaderValue::from_str(target.authority()) {
            headers.insert(HOST, host);
        }
        if let (Some(recorded), Some(InjectInto::Header(name))) =
            (&sending.recorded, self.rule.inject.as_ref().map(|inject| &inject.into))
            && let (Ok(name), Ok(key)) =
                (name.parse::<HeaderName>(), HeaderValue::from_str(recorded.idempotency_key))
        {
            headers.insert(name, key);
        }
        *request.headers_mut() = headers;
        request
    }

    async fn exchange(&mut self, sending: &Sending<'_>) -> Result<Response<Incoming>, Outcome> {
        let never =
            |why: String| Outcome::NotApplied { why: NotAppliedWhy::NeverSent(why), reply: Reply::Unknown };
        let prepared = match self.prepared.take().filter(Prepared::is_fresh) {
            Some(prepared) => prepared,
            None => self.offer.client.prepare().await.map_err(|error| never(error.to_string()))?,
        };
        let request = self.request(sending);
        match tokio::time::timeout(read::SILENCE_MAX, self.offer.client.send(prepared, request)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(Failed::NeverSent(why))) => Err(never(why)),
            Ok(Err(Failed::Lost(why))) => Err(Outcome::InDoubt { why, sender_gone: true }),
            Err(_) => {
                let why = format!("no answer began within {} seconds", read::SILENCE_MAX.as_secs());
                Err(Outcome::InDoubt { why, sender_gone: true })
            }
        }
    }

    /// Reads a response to its end, for all who follow it.
    async fn answer(&mut self, live: &Live, response: Response<Incoming>) -> classify::Read {
        let head = read::head(&response);
        live.begin(head.clone());
        let came = match head.form {
            Form::Document => read::document(live, response.into_body()).await,
            Form::Events => read::events(self.asked.api, live, response.into_body()).await,
        };
        let read = classify::outcome(self.asked.api, &head, live, &came, self.rule);
        let is_error = !matches!(came, Came::Broken(_)) && !matches!(read.0, Outcome::Applied { .. });
        if let Some(own) = self.own.as_mut().filter(|_| is_error) {
            own.otherwise = Ended::Error;
        }
        read
    }
}

impl Upstream for Model<'_> {
    async fn prepare(&mut self) -> Result<(), NotStarted> {
        let prepared = self.offer.client.prepare().await;
        self.prepared =
            Some(prepared.map_err(|error| NotStarted { why: error.to_string(), data: Value::Null })?);
        Ok(())
    }

    async fn send(&mut self, sending: Sending<'_>) -> Sent {
        let effect = sending.recorded.map(|recorded| recorded.effect.id);
        let live = match sending.recorded {
            Some(recorded) => self.lives.of(recorded.effect.id, recorded.attempt),
            None => self.lives.unrecorded(),
        };
        let _caller_is_gone = self.tell.send(Attached { reader: live.reader(), effect, joined: false });
        self.own = Some(Own { live: Arc::clone(&live), otherwise: Ended::Cut });
        let (outcome, reply) = match self.exchange(&sending).await {
            Ok(response) => self.answer(&live, response).await,
            Err(outcome) => (outcome, None),
        };
        Sent { outcome, reply, data: Value::Null }
    }

    async fn probe(&mut self, _: &Probe, _: Option<&Effect>) -> ProbeAnswer {
        ProbeAnswer::Unknown { why: "a generation cannot be asked for".into() }
    }

    /// The API is the upstream, not the sender.
    fn sends_while_alive(&self) -> bool {
        false
    }

    fn let_go(&mut self) {}

    /// Its caller follows the attempt in flight, if that is one of this process.
    fn joins(&mut self, effect: &Effect, attempt: AttemptNo) {
        let live = self.lives.of(effect.id, attempt);
        if live.is_kept() {
            let attached = Attached { reader: live.reader(), effect: Some(effect.id), joined: true };
            let _caller_is_gone = self.tell.send(attached);
        }
    }
}
