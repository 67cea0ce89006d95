//! From a request to the gate, and from what comes of it to whoever asked.

use super::api::{ModelApi, path_behind};
use super::attachment::{self, Attachment, AttachmentSender};
use super::call::ModelCall;
use super::intent;
use super::live_answer::{AnswerForm, AnswerHead, LiveAnswers, ModelCallGuard};
use super::meter::Meter;
use super::render;
use super::request::{self, BODY_BYTES_MAX, ModelOutgoing, ParsedRequest};
use super::upstream::ModelUpstream;
use crate::delivery::Delivery;
use crate::http::server::{caller, problem};
use crate::proxy::opened::EarlyRefusal;
use crate::proxy::{self, OpenedRequest};
use crate::services::Services;
use axum::body::Body;
use axum::response::Response;
use http::StatusCode;
use http::header::EXPECT;
use semel_core::answer::{Answer, OutcomeWord, Trouble};
use semel_core::class::Class;
use semel_core::intent::Intent;
use semel_core::policy::Rule;
use semel_core::wording;
use semel_gate::clock::Clock;
use semel_gate::{Error, GivenReply, Passed, unrecorded};
use std::sync::Arc;
use std::time::Duration;

/// Between the settlement of an attempt and the end of its answer lie microseconds.
const ENDING_TAKES_MAX: Duration = Duration::from_millis(100);

/// Answers a request for a generation.
pub async fn answer(
    services: &Arc<Services>,
    lives: &Arc<LiveAnswers>,
    opened: OpenedRequest<'_>,
    body: Body,
) -> Response {
    let received_at = services.clock.elapsed();
    let OpenedRequest { offer, mut parts, .. } = opened;
    let caller = match caller(services.secret(), offer.run.as_ref(), &mut parts) {
        Ok(caller) => caller,
        Err(response) => {
            let waits = parts.headers.contains_key(EXPECT);
            return EarlyRefusal { response, waits }.respond(body);
        }
    };
    let path = path_behind(parts.uri.path(), &offer.name).to_owned();
    let Some(api) = ModelApi::of(offer.speaks, &path) else {
        return problem(StatusCode::NOT_FOUND, "no model is asked there");
    };
    let body = match proxy::intake::whole_body(&parts.headers, body, BODY_BYTES_MAX).await {
        Ok(body) => body,
        Err(refused) => return *refused,
    };
    let ParsedRequest { request, arguments, metadata, outgoing } =
        match request::read(offer, api, &path, &caller, parts, body) {
            Ok(read) => read,
            Err(bad) => return problem(StatusCode::BAD_REQUEST, &format!("nothing was sent: {bad}")),
        };
    let rule = intent::rule(&services.policy, &request, &arguments);
    let intent = services.secret().map(|secret| {
        let authority = proxy::intent::authority(offer, &outgoing.headers, secret);
        intent::intent(&request, &arguments, &rule, &authority, &caller, secret)
    });
    drop(arguments);
    let client = offer.client.for_principal(&caller.whose());
    let meter = Meter { tenant: caller.tenant, model: metadata.model.clone().unwrap_or_default() };
    let (services, lives, offer) = (Arc::clone(services), Arc::clone(lives), Arc::clone(offer));
    let call = Arc::new(ModelCall {
        services,
        lives,
        offer,
        request,
        rule,
        received_at,
        token: caller.token,
        meter,
        client,
    });
    match intent.transpose() {
        Ok(intent) => {
            let intent = intent.map(|intent| Box::new(Intent { metadata, ..intent }));
            call.answer(intent, outgoing).await
        }
        Err(missing) => render::response(&call, alone(&call.rule, wording::key_required(&missing)), None),
    }
}

impl ModelCall {
    /// Goes through the gate in a task of its own: whoever asked may go away. The answer is given as soon as it
    /// begins, if it comes in the form that was asked for.
    async fn answer(self: Arc<Self>, intent: Option<Box<Intent>>, outgoing: ModelOutgoing) -> Response {
        let Some(guard) = self.lives.enter() else {
            let mut response = problem(StatusCode::SERVICE_UNAVAILABLE, "too many generations are under way");
            response.headers_mut().insert(http::header::RETRY_AFTER, http::HeaderValue::from_static("1"));
            return response;
        };
        let (attachments, mut receiver) = attachment::channel();
        let mut pass = tokio::spawn(Arc::clone(&self).pass(intent, outgoing, attachments, guard));
        let mut attachment: Option<Attachment> = None;
        loop {
            tokio::select! {
                biased;
                newer = receiver.next() => attachment = Some(newer),
                head = begins(&mut attachment, self.request.form) => {
                    let attachment = attachment.expect("it has begun");
                    return render::following(&self, attachment, &head);
                }
                passed = &mut pass => {
                    attachment = receiver.newest().or(attachment);
                    let passed = passed.unwrap_or_else(|_| alone(&self.rule, wording::lost_sight()));
                    if let Some(Attachment { reader, joined: true, .. }) = &mut attachment {
                        // The ledger may be faster than whoever ends the answer that this call has joined.
                        let _still_coming = tokio::time::timeout(ENDING_TAKES_MAX, reader.ended()).await;
                    }
                    return render::response(&self, passed, attachment);
                }
            }
        }
    }

    async fn pass(
        self: Arc<Self>,
        intent: Option<Box<Intent>>,
        outgoing: ModelOutgoing,
        attachments: AttachmentSender,
        _guard: ModelCallGuard,
    ) -> Passed {
        let ModelCall { services, offer, request, rule, meter, token, .. } = &*self;
        let _in_flight = services.in_flight.begin();
        let run = intent.as_ref().and_then(|intent| intent.run_key);
        let (outgoing, api) = (Some(outgoing), request.api);
        let mut model = ModelUpstream {
            offer,
            api,
            rule,
            services,
            lives: &self.lives,
            meter,
            run,
            token: token.as_ref(),
            outgoing,
            attachments,
            client: self.client.clone(),
            prepared: None,
            own: None,
            cancelled: false,
            used: None,
        };
        // Futures that few requests need are boxed: they would take room in all of them.
        let (gate, intent) = match (&services.gate, intent) {
            (Ok(gate), Some(intent)) => (gate, intent),
            _ if rule.class == Class::Read => {
                let passed = Box::pin(unrecorded(rule, &mut model)).await;
                return finish(&self, model, passed);
            }
            (gate, _) => {
                let why = gate.as_ref().err().map_or("it has no secret", |why| why);
                return alone(rule, wording::ledger_unavailable(why));
            }
        };
        let unavailable = |error: Error| alone(rule, wording::ledger_unavailable(&error.to_string()));
        if request.dry_run {
            let answered = Box::pin(gate.dry_run(&intent, rule, &mut model)).await;
            let would = |answer| Passed { answer, reply: GivenReply::None, delivery: None };
            return answered.map_or_else(unavailable, would);
        }
        let passed = gate.pass(&intent, rule, &mut model).await.unwrap_or_else(unavailable);
        finish(&self, model, passed)
    }
}

/// Lets those who follow the attempt of this call have its end, now that it is settled. A connection that was not used
/// is given back.
fn finish(call: &ModelCall, mut model: ModelUpstream<'_>, mut passed: Passed) -> Passed {
    if let Some(prepared) = model.prepared.take() {
        model.client.keep(prepared);
    }
    if let (true, Some(run)) = (model.cancelled, &call.request.run) {
        passed.answer.trouble = passed.answer.trouble.map(|_| wording::ended(&run.id));
    }
    if let Some(own) = model.own
        && passed.answer.ok
        && passed.reply == GivenReply::Live
    {
        // A client that has taken a stream so far takes its end; a document comes whole, and may come too late.
        let late_from = match call.request.form {
            AnswerForm::Document => Some(call.received_at + call.rule.late_after),
            AnswerForm::Events => None,
        };
        own.settled(Delivery::of(&call.services, passed.delivery.take(), late_from));
    }
    passed
}

/// Resolves when the very bytes of the answer at hand can be given on.
async fn begins(attachment: &mut Option<Attachment>, form: AnswerForm) -> Arc<AnswerHead> {
    let Some(Attachment { reader, joined, .. }) = attachment else { return std::future::pending().await };
    match reader.begun().await {
        // The upstream's answer to this very request is in the form that it chose.
        Some(head) if !*joined || head.form == form => head,
        _ => std::future::pending().await,
    }
}

pub fn alone(rule: &Rule, trouble: Trouble) -> Passed {
    let answer = Answer::of_trouble(rule.tier(), OutcomeWord::Refused, trouble);
    Passed { answer, reply: GivenReply::None, delivery: None }
}
