//! `settle`: what became of an attempt that a client made itself.

use super::claim;
use super::client_effect::{reply_of, undo_of, word_of};
use super::problem::Problem;
use super::request::{ApiPrincipal, ApiRequest};
use super::respond;
use super::server::ApiServer;
use crate::background_confirm::BackgroundConfirm;
use crate::delivery::Delivery;
use crate::redact::SecretParts;
use crate::remote_gate::forms::WHY_CHARS_MAX;
use crate::reply::{REPLY_BYTES_MAX, encode_json};
use axum::response::Response;
use http::StatusCode;
use schemars::JsonSchema;
use semel_core::answer::EffectWord;
use semel_core::effect::{Evidence, NotAppliedWhy, Reply, State};
use semel_core::ids::{AttemptNo, EffectId, Nonce, OwnerId};
use semel_core::json::Json;
use semel_core::outcome::Outcome;
use semel_core::policy::Rule;
use semel_core::redact::REDACTED;
use semel_gate::upstream::Sent;
use semel_gate::{GivenReply, Passed, SettleAnswer, Settlement};
use semel_ledger::Error;
use semel_ledger::record::StoredEffect;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::Arc;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct Settle {
    /// What `begin` gave.
    #[schemars(regex(pattern = r"^cl_[0-9A-HJKMNP-TV-Z]{26}_[0-9]{1,10}_[0-9a-f]{32}$"))]
    claim: String,
    outcome: SettledWord,
    /// What it answered, for whoever asks next.
    #[schemars(with = "Option<serde_json::Value>")]
    reply: Option<Box<RawValue>>,
    /// What it did: created, updated, deleted, sent, noop or none.
    effect: Option<DoneWord>,
    /// The upstream has taken it and not done it yet.
    #[serde(default)]
    accepted: bool,
    /// Why it was not applied, or why nobody knows.
    #[schemars(length(max = WHY_CHARS_MAX))]
    why: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SettledWord {
    /// It happened.
    Applied,
    /// It certainly did not.
    NotApplied,
    /// It may have happened.
    InDoubt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DoneWord {
    Created,
    Updated,
    Deleted,
    Sent,
    Noop,
    None,
}

impl From<DoneWord> for EffectWord {
    fn from(word: DoneWord) -> EffectWord {
        match word {
            DoneWord::Created => EffectWord::Created,
            DoneWord::Updated => EffectWord::Updated,
            DoneWord::Deleted => EffectWord::Deleted,
            DoneWord::Sent => EffectWord::Sent,
            DoneWord::Noop => EffectWord::Noop,
            DoneWord::None => EffectWord::None,
        }
    }
}

pub async fn settle(api: Arc<ApiServer>, request: ApiRequest) -> Result<Response, Problem> {
    let (who, _, received_at, settle) = request.json::<Settle>().await?;
    let gate = api.gate()?;
    let (known, effect, attempt, nonce) = known_claim(&api, &who, &settle.claim).await?;
    if !known.effect.facts.action.starts_with("fn:") {
        return Err(Problem::not_found("such claim"));
    }
    let rule = api.services.policy.rule_kept(&known.effect.facts.action, &known.effect.facts.rule);
    let sent = settle.sent(&rule)?;
    let undo = match &sent.outcome {
        Outcome::Applied { .. } => undo_of(&rule, &known.effect.facts.action, sent.reply.as_deref()),
        Outcome::NotApplied { .. } | Outcome::InDoubt { .. } => None,
    };
    let reply = reply_of(sent.reply.as_deref());
    let settlement = Settlement { effect, attempt, nonce, holder: OwnerId::AWAY, sent, undo };
    let mut passed = record(&api, settlement).await?;
    if let (Some(confirm), Some(done)) = (&rule.confirm, gate.unconfirmed(&rule, &mut passed)) {
        let (confirm, action) = (confirm.clone(), known.effect.facts.action.clone());
        // Its arguments are not kept; a question that needs them stays unanswered.
        let arguments = Json::object::<&str, 0>([]);
        let question = BackgroundConfirm { confirm, action, arguments, reply, credential: None };
        question.start(&api.services, done);
    }
    let text = respond::answer(&passed.answer, &GivenReply::None)?;
    let delivery = Delivery::of(&api.services, passed.delivery, Some(received_at + rule.late_after));
    Ok(respond::delivering(text, delivery))
}

/// The effect of a claim, and what the claim says.
pub async fn known_claim(
    api: &ApiServer,
    who: &ApiPrincipal,
    text: &str,
) -> Result<(StoredEffect, EffectId, AttemptNo, Nonce), Problem> {
    let unknown = || Problem::not_found("such claim");
    let (effect, attempt, nonce) = claim::read(text).ok_or_else(unknown)?;
    let known = match api.gate()?.ledger.by_id(effect).await {
        Err(Error::NoSuchEffect(_)) => return Err(unknown()),
        found => found?.1,
    };
    // Possession of a claim is not authentication.
    if !who.made(&known.effect) {
        return Err(unknown());
    }
    Ok((known, effect, attempt, nonce))
}

/// Records the outcome that a holder reports. A client that goes away in the middle has settled all the same.
pub async fn record(api: &Arc<ApiServer>, settlement: Settlement) -> Result<Box<Passed>, Problem> {
    let in_flight = api.services.in_flight.begin();
    let settling = Arc::clone(api);
    let settled = tokio::spawn(async move {
        let _in_flight = in_flight;
        settling.gate()?.settle(settlement).await.map_err(|error| unrecorded(&error))
    });
    let failed = |_| {
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "semel failed in the middle; the settlement may be recorded. It is safe to send it again, unchanged",
        )
    };
    match settled.await.map_err(failed)?? {
        SettleAnswer::NoSuchClaim => Err(Problem::not_found("such claim")),
        SettleAnswer::Otherwise(effect) => {
            let (id, word) = (effect.id, effect.state.word());
            let detail = match &effect.state {
                State::NotApplied(_) => format!("{id} was reported as done before, and was disproved since"),
                _ => format!("{id} is on record as {word}; a settlement cannot take a success back"),
            };
            Err(Problem::new(StatusCode::CONFLICT, detail).with("effect_id", effect.id.to_string()))
        }
        SettleAnswer::Recorded(passed) => Ok(passed),
    }
}

impl Settle {
    fn sent(self, rule: &Rule) -> Result<Sent, Problem> {
        let why = self.why.unwrap_or_default();
        if why.chars().count() > WHY_CHARS_MAX {
            return Err(Problem::bad(format!("why has at most {WHY_CHARS_MAX} characters")));
        }
        let why = redact_why(why, rule);
        let mut reply = self
            .reply
            .as_deref()
            .map(|reply| encode_json(reply.get().as_bytes(), rule))
            .transpose()
            .map_err(Problem::bad)?;
        let recorded = match reply.as_ref().map(Vec::len) {
            None => Reply::Unknown,
            Some(bytes) if bytes > REPLY_BYTES_MAX => {
                reply = None;
                Reply::TooLarge(bytes as u64)
            }
            Some(_) => Reply::Kept,
        };
        let outcome = match self.outcome {
            SettledWord::Applied => Outcome::Applied {
                evidence: if self.accepted { Evidence::Accepted } else { Evidence::Reported },
                word: self.effect.map_or(word_of(rule), EffectWord::from),
                reply: recorded,
            },
            SettledWord::NotApplied => {
                Outcome::NotApplied { why: NotAppliedWhy::Refused(why), reply: recorded }
            }
            SettledWord::InDoubt => {
                reply = None;
                Outcome::InDoubt { why, sender_gone: true }
            }
        };
        Ok(Sent { reply, ..Sent::of(outcome) })
    }
}

/// Errors like to repeat what came back.
pub fn redact_why(why: String, rule: &Rule) -> String {
    let mut why = Json::String(why);
    SecretParts::of(rule).hide_in(&mut why);
    why.as_str().unwrap_or(REDACTED).to_owned()
}

/// The call was made, so nothing may be said that sounds as if it was not.
fn unrecorded(error: &semel_gate::Error) -> Problem {
    let detail =
        format!("the settlement could not be recorded: {error}. It is safe to send it again, unchanged");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
}
