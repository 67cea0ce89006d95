//! The meaning of an upstream's answer: the one table of this door.

use super::api::ModelApi;
use super::live_answer::{AnswerForm, AnswerHead, LiveAnswer};
use super::read::Reception;
use super::recording;
use crate::redact::MayHoldSecret;
use crate::redact::SecretParts;
use crate::redact::Secrets;
use bytes::Bytes;
use http::StatusCode;
use semel_core::answer::EffectWord;
use semel_core::effect::{Evidence, NotAppliedWhy, Reply};
use semel_core::outcome::Outcome;
use semel_core::policy::rule::{EffectWording, Failure, Rule};
use serde_json::Value;

/// A refusal of up to this size is kept, so that twins get it too.
const REFUSAL_BYTES_MAX: usize = 1 << 20;

/// The ledger shows this much of a refusal.
const SHOWN_CHARS_MAX: usize = 200;

/// An outcome, with the reply to record.
pub type ClassifiedAnswer = (Outcome, Option<Vec<u8>>);

/// `secrets` are what the request held that must not be written down; an API may repeat them in a refusal. What a model
/// says is kept to the byte, but for what the rule calls secret of it.
pub fn outcome(
    api: ModelApi,
    head: &AnswerHead,
    live: &LiveAnswer,
    received_at: &Reception,
    rule: &Rule,
    secrets: Option<&Secrets>,
) -> ClassifiedAnswer {
    let shown = |outcome: Outcome| match secrets {
        Some(secrets) => secrets.out_of_outcome(outcome),
        None => outcome,
    };
    let doubt = |why: String| (shown(Outcome::InDoubt { why, sender_gone: true }), None);
    match received_at {
        Reception::Broken(why) => return doubt(why.clone()),
        Reception::Failed { .. } => return doubt("the stream carried an error instead of its end".into()),
        Reception::Whole => {}
    }
    let kept = live.whole();
    if !head.status.is_success() {
        let pieces = kept.unwrap_or_default();
        let body = joined(&pieces);
        let small = body.len() <= REFUSAL_BYTES_MAX;
        let body = match secrets {
            Some(secrets) => secrets.out_of_body(&body).ok(),
            None => Some(body),
        };
        let why = words(head.status, body.as_deref().unwrap_or_default());
        if !is_refusal(head.status) || rule.failure == Failure::InDoubt {
            return doubt(why);
        }
        let reply = body.filter(|_| small).map(|body| recording::written(head, &[body]));
        let recorded = if reply.is_some() { Reply::Kept } else { Reply::Unknown };
        let refused = Outcome::NotApplied { why: NotAppliedWhy::Refused(why), reply: recorded };
        return (shown(refused), reply);
    }
    let evidence = match &kept {
        Ok(pieces) if head.form == AnswerForm::Document => match document(api, &joined(pieces)) {
            Some(evidence) => evidence,
            None => return doubt("what came is no answer of this API".into()),
        },
        _ => Evidence::Reported,
    };
    let word = match &rule.effect {
        Some(EffectWording::Word(word)) => *word,
        _ => EffectWord::Created,
    };
    match kept {
        Ok(pieces) => match without_parts(&pieces, rule) {
            Ok(pieces) => {
                let reply = Some(recording::written(head, &pieces));
                (Outcome::Applied { evidence, word, reply: Reply::Kept }, reply)
            }
            Err(MayHoldSecret) => {
                let bytes = pieces.iter().map(|piece| piece.len() as u64).sum();
                (Outcome::Applied { evidence, word, reply: Reply::TooLarge(bytes) }, None)
            }
        },
        Err(long) => (Outcome::Applied { evidence, word, reply: Reply::TooLarge(long.0) }, None),
    }
}

/// An answer as it may be kept: to the byte, unless its rule calls a part of it secret.
fn without_parts(pieces: &[Bytes], rule: &Rule) -> Result<Vec<Bytes>, MayHoldSecret> {
    let parts = SecretParts::of(rule);
    let kept = if parts.is_empty() { None } else { parts.out_of_text(&joined(pieces))? };
    Ok(kept.map_or_else(|| pieces.to_vec(), |kept| vec![kept.into()]))
}

/// The evidence of a successful document; `None` if it is no answer.
fn document(api: ModelApi, body: &[u8]) -> Option<Evidence> {
    let document: Value = serde_json::from_slice(body).ok()?;
    let is_answer = match api {
        ModelApi::Chat => document["choices"].is_array(),
        ModelApi::Responses => document["output"].is_array() || document["status"].is_string(),
        ModelApi::Messages => document["content"].is_array(),
    };
    // A response that is made in the background is asked for later, by its id.
    let later =
        api == ModelApi::Responses && matches!(document["status"].as_str(), Some("queued" | "in_progress"));
    is_answer.then_some(if later { Evidence::Accepted } else { Evidence::Reported })
}

/// Statuses that certainly turn a request away: 4xx but the three that leave it open, 307 and 308.
fn is_refusal(status: StatusCode) -> bool {
    let open = [StatusCode::REQUEST_TIMEOUT, StatusCode::CONFLICT, StatusCode::TOO_EARLY];
    let moved = [StatusCode::TEMPORARY_REDIRECT, StatusCode::PERMANENT_REDIRECT];
    status.is_client_error() && !open.contains(&status) || moved.contains(&status)
}

/// A status with the API's own words about it, in one line.
fn words(status: StatusCode, body: &[u8]) -> String {
    let said = serde_json::from_slice::<Value>(body).ok();
    let message = said.as_ref().and_then(|said| said["error"]["message"].as_str());
    let text = message.map_or_else(
        || String::from_utf8_lossy(&body[..body.len().min(4 * SHOWN_CHARS_MAX)]).into_owned(),
        str::to_owned,
    );
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().filter(|shown| !shown.is_control()).take(SHOWN_CHARS_MAX).collect();
    format!("HTTP {}: {line}", status.as_u16()).trim_end_matches([':', ' ']).to_owned()
}

pub fn joined(pieces: &[Bytes]) -> Bytes {
    match pieces {
        [one] => one.clone(),
        pieces => pieces.concat().into(),
    }
}
