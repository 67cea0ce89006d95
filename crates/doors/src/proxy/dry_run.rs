//! The dry run of a request, in the upstream's own words where its rule says how to ask for them.

use super::arguments::BodyShape;
use super::classify;
use super::guarded::GuardedRequest;
use super::inject::{self, RequestParts};
use super::upstream::HttpUpstream;
use crate::http::body;
use crate::reply::http as reply;
use http::header::{HeaderName, HeaderValue};
use http::{Method, Request, StatusCode};
use semel_core::answer::{Answer, EffectWord, Would};
use semel_core::class::Class;
use semel_core::json::Json;
use semel_core::policy::rule::{DryRunOption, EffectWording, Inject, InjectInto};
use semel_gate::Error;
use semel_gate::Gate;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// A dry run changes nothing; one that takes longer has failed.
const TAKES_MAX: Duration = Duration::from_secs(30);
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// The outcome that a request would have, with the upstream's own account. Nothing is claimed, and no effect is sent.
pub async fn answer(gate: &Gate, guarded: &GuardedRequest) -> Result<Answer, Error> {
    // Nothing is sent through it, so nobody waits for an answer.
    let mut upstream = HttpUpstream::of(guarded, oneshot::channel().0);
    let GuardedRequest { method, path, understood, .. } = guarded;
    let mut rule = understood.rule.clone();
    let ruled = rule.effect_word();
    if rule.class != Class::Read {
        let word = match classify::effect_word(StatusCode::OK, method, path, &rule, || Json::Null) {
            // A POST that works most often answers 201.
            EffectWord::Updated if ruled.is_none() && *method == Method::POST => EffectWord::Created,
            word => word,
        };
        Arc::make_mut(&mut rule).effect = Some(EffectWording::Word(word));
    }
    let mut answer = gate.dry_run(&guarded.intent, &rule, &mut upstream).await?;
    if let (Some(told), Some(own)) = (&mut answer.dry_run, &guarded.understood.rule.dry_run)
        && told.would == Would::Run
    {
        match request(guarded, own) {
            Ok(request) => {
                let asked = tokio::time::timeout(TAKES_MAX, ask(guarded, request)).await;
                let asked = asked.unwrap_or_else(|_| Err("it did not answer".into()));
                match asked {
                    Ok(said) => answer.take_own_dry_run(said, ruled),
                    Err(why) => told.changes = vec![json!({"own_dry_run_failed": why})],
                }
            }
            Err(why) => told.changes.push(json!({"own_dry_run_not_asked": why.to_string()})),
        }
    }
    Ok(answer)
}

/// Why a request cannot be made its upstream's dry run, and must not be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum NoDryRun {
    #[error("the request names another method than its own; the upstream may not know this dry run for that")]
    OtherMethod,
    #[error("the rule's dry_run does not fit this request")]
    NoPlace,
}

/// The request as its upstream's dry run.
fn request(guarded: &GuardedRequest, own: &DryRunOption) -> Result<Request<bytes::Bytes>, NoDryRun> {
    if guarded.understood.may_be_another {
        return Err(NoDryRun::OtherMethod);
    }
    let GuardedRequest { method, uri, headers, body, understood, offer, .. } = guarded;
    let (mut uri, mut headers, mut body) = (uri.clone(), headers.clone(), body.clone());
    // The key is for the effect.
    headers.remove(&offer.key_header);
    let (into, value) = match own {
        DryRunOption::Header(name, value) => {
            let name = HeaderName::try_from(name).map_err(|_| NoDryRun::NoPlace)?;
            headers.insert(name, HeaderValue::from_str(value).map_err(|_| NoDryRun::NoPlace)?);
            (None, value)
        }
        DryRunOption::Arg(name, value) => {
            let into = match name.split_once('.') {
                Some(("query", name)) => InjectInto::Query(name.to_owned()),
                Some(("body", name)) => InjectInto::Body(name.to_owned()),
                _ => InjectInto::Body(name.clone()),
            };
            (Some(into), value)
        }
        DryRunOption::Flag(_) => return Err(NoDryRun::NoPlace),
    };
    if let Some(into) = into {
        let inject = Inject { into, form: Default::default(), length: None, valid_for: None };
        if !inject::fits(&inject, &understood.arguments) {
            return Err(NoDryRun::NoPlace);
        }
        let shape: &BodyShape = &understood.arguments.shape;
        let parts = RequestParts { uri: &mut uri, headers: &mut headers, body: &mut body, shape };
        inject::put_value(&inject, value, parts);
    }
    let mut request = Request::new(body);
    *request.method_mut() = method.clone();
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    Ok(request)
}

async fn ask(guarded: &GuardedRequest, request: Request<bytes::Bytes>) -> Result<Value, String> {
    let client = &guarded.client;
    let prepared = client.prepare_read().await.map_err(|error| error.to_string())?;
    let response = client.send(prepared, request).await.map_err(|error| error.to_string())?;
    let (head, body) = response.into_parts();
    let body = body::read(body, ANSWER_BYTES_MAX, TAKES_MAX).await.map_err(|error| error.to_string())?;
    match head.status {
        StatusCode::NO_CONTENT => Ok(Value::Null),
        status if status.is_success() => Ok(reply::value(&body).to_value()),
        status => Err(classify::line(status, &body)),
    }
}
