//! `probe`: whoever calls a tool itself can also look itself whether a doubtful call happened, and tell what it saw.

use super::find_effect;
use super::problem::Problem;
use super::request::ApiRequest;
use super::respond;
use super::server::ApiServer;
use crate::effect_json::EffectJson;
use axum::response::Response;
use http::StatusCode;
use schemars::JsonSchema;
use semel::call::reply::{encode_json, undo_of, word_of};
use semel_core::effect::State;
use semel_core::policy::duration;
use semel_core::time::At;
use semel_ledger::rulings::Probed;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Duration;

/// How long after the last possible sending a no begins to count, where no rule says.
const QUIET: Duration = Duration::from_secs(5);

/// An effect may have happened since, so an old no is worth nothing.
const ASKED_AGO_MAX_MS: u64 = 3_600_000;

/// The client's count ends when it sends; the rest is time on the way.
const ON_ITS_WAY: Duration = Duration::from_secs(2);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schemars(rename = "Probe")]
pub struct ProbeForm {
    /// What a read-only question has shown.
    found: FoundWord,
    /// How long ago the question was begun, by the client's own count. Needed for a no: it speaks for that moment.
    #[schemars(with = "Option<u64>", range(min = 0, max = 3_600_000))]
    asked_ms_ago: Option<serde_json::Number>,
    /// How long after the last possible sending a no begins to count, where no rule says: 5s unless given.
    #[schemars(regex(pattern = r"^[0-9]{1,6}(s|m|h)$"))]
    quiet: Option<String>,
    /// What was found, for whoever asks next.
    #[schemars(with = "Option<serde_json::Value>")]
    reply: Option<Box<RawValue>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FoundWord {
    /// It is there. This always counts.
    Yes,
    /// It is not there. This counts once nothing can be sent for it any more, and some quiet time after.
    No,
}

pub async fn probe(api: Arc<ApiServer>, request: ApiRequest) -> Result<Response, Problem> {
    let id = request.param("id").to_owned();
    let (who, _, _, probe) = request.json::<ProbeForm>().await?;
    let gate = api.gate()?;
    let now = gate.clock.now();
    let (key, effect) = find_effect::by_name(&api, &who, &id, now).await?;
    let about = |what: &str| Problem::new(StatusCode::CONFLICT, format!("{} {what}", effect.id));
    if !who.made(&effect) || !effect.facts.action.starts_with("fn:") {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "nothing was changed: only the principal that made the call may report a probe",
        ));
    }
    if !matches!(effect.state, State::InDoubt(_)) {
        return Err(about(&format!("is {}; there is no doubt to clear", effect.state.word())));
    }
    let seen = gate.ledger.find(key).await?;
    if seen.effect().map(|newest| newest.id) != Some(effect.id) {
        return Err(about("is no longer the newest of its record"));
    }
    let rule = api.services.policy.rule_kept(&effect.facts.action, &effect.facts.rule);
    let probed = match probe.found {
        FoundWord::Yes => {
            let reply = probe
                .reply
                .as_deref()
                .map(|reply| encode_json(reply.get().as_bytes(), &rule))
                .transpose()
                .map_err(Problem::bad)?;
            let undo = undo_of(&rule, &effect.facts.action, reply.as_deref());
            Probed::Yes { word: word_of(&rule), reply, undo }
        }
        FoundWord::No => {
            let own = probe.quiet.as_deref().map(duration::parse).transpose();
            let own = own.map_err(|error| Problem::bad(format!("quiet: {error}")))?;
            Probed::No { quiet: rule.probe.as_ref().map_or(own.unwrap_or(QUIET), |probe| probe.quiet) }
        }
    };
    let ago = probe.asked_ms_ago.as_ref().map(|ago| whole(ago).filter(|ago| *ago <= ASKED_AGO_MAX_MS));
    let asked_at = match (probe.found, ago) {
        (FoundWord::Yes, _) => now,
        (FoundWord::No, Some(Some(ago))) => {
            let ago = Duration::from_millis(ago) + ON_ITS_WAY;
            At(now.0.saturating_sub(ago.as_micros() as u64))
        }
        (FoundWord::No, Some(None)) => {
            return Err(Problem::bad(
                "asked_ms_ago is the age of the question in milliseconds, up to an hour",
            ));
        }
        (FoundWord::No, None) => {
            return Err(about(
                "was not found, and asked_ms_ago is missing. Say in it how long ago it was asked",
            ));
        }
    };
    let counts = match &probed {
        Probed::No { quiet } => gate.may_count_no(&effect, *quiet).await,
        Probed::Yes { .. } => true,
    };
    let changed = if counts { gate.ledger.probed(&seen, probed, asked_at).await? } else { None };
    let Some(changed) = changed else {
        let detail = "was not found, but it may still be carried out. Nothing was changed; ask again later";
        return Err(about(detail).with("is_it_safe_to_retry", "wait"));
    };
    let found = changed.snapshot;
    let effect = found.effect().unwrap_or(&effect);
    respond::json(&EffectJson::read(&gate.ledger, key, effect).await?)
}

/// JSON has one kind of number: 5.0 is as whole as 5.
fn whole(number: &serde_json::Number) -> Option<u64> {
    let small =
        |number: f64| (number.fract() == 0.0 && (0.0..1e15).contains(&number)).then_some(number as u64);
    number.as_u64().or_else(|| number.as_f64().and_then(small))
}
