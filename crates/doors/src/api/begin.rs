//! `begin`: code that calls tools itself asks for the right to make one attempt.

use super::calls::{check_length, check_nonce};
use super::claim;
use super::client_effect::reply_of;
use super::client_upstream::ClientUpstream;
use super::problem::{Problem, problem_of};
use super::request::{ApiPrincipal, ApiRequest};
use super::respond;
use super::server::ApiServer;
use crate::background_confirm::BackgroundConfirm;
use crate::call_options::CallOptions;
use crate::delivery::Delivery;
use crate::remote_gate::forms::{CALL_ID_CHARS_MAX, NONCE_PATTERN, RESOURCE_CHARS_MAX};
use crate::reply::to_json;
use axum::response::Response;
use http::StatusCode;
use schemars::JsonSchema;
use semel_core::answer::Answer;
use semel_core::class::{Class, Tier};
use semel_core::digest::Secret;
use semel_core::ids::{AttemptNo, EffectId, IdempotencyKey, Nonce, Reason, Run};
use semel_core::intent::{Ask, AskedBy, Intent};
use semel_core::json::{self, Json};
use semel_core::policy::rule::Rule;
use semel_core::policy::{ActionFacts, Policy, duration};
use semel_core::wording;
use semel_gate::{BeginAnswer, ClaimHandle, GivenReply, Passed};
use semel_ledger::entropy::{Entropy, OsEntropy};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Duration;

/// Nobody sees a client die, so its attempt is not merely slow for a day, as a command's is. A late answer still
/// counts.
const DEADLINE: Duration = Duration::from_secs(300);
const DEADLINE_MAX: Duration = Duration::from_secs(24 * 3600);

/// How long a request may be kept waiting for a twin.
const WAIT_MAX: Duration = Duration::from_secs(60);

const ACTION_CHARS_MAX: usize = 255;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct Begin {
    /// What is to be done: `fn:NAME`.
    #[schemars(regex(pattern = r"^fn:[!-~]{1,252}$"))]
    action: String,
    /// What it is done with; rules see it as `args`.
    #[schemars(with = "Option<std::collections::BTreeMap<String, serde_json::Value>>")]
    arguments: Option<Box<RawValue>>,
    /// A key that names this request; the same key again is the same effect.
    #[schemars(regex(pattern = r"^[!-~]{1,255}$"))]
    key: Option<String>,
    /// The run this call belongs to; the header `Semel-Run-Id` is stronger.
    #[schemars(regex(pattern = r"^[!-~]{1,255}$"))]
    run: Option<String>,
    /// Do it once more on purpose; the same reason again is the same repetition.
    #[schemars(regex(pattern = r"^[!-~]{1,255}$"))]
    again: Option<String>,
    /// The class decides about repeats. It can ask for more protection than the policy gives, not for less.
    class: Option<Class>,
    /// How long the client may take; 5m unless given here or in the rule.
    #[schemars(regex(pattern = r"^([1-9][0-9]{0,3}s|[1-9][0-9]{0,2}m|1?[0-9]h)$"))]
    timeout: Option<String>,
    /// How long to wait for a twin before answering `in_flight`.
    #[schemars(regex(pattern = r"^([0-9]|[1-5][0-9]|60)s$"))]
    wait: Option<String>,
    /// Take turns with other calls on this resource.
    #[schemars(length(min = 1, max = RESOURCE_CHARS_MAX))]
    serialize_by: Option<String>,
    /// The model's id of the call.
    #[schemars(length(min = 1, max = CALL_ID_CHARS_MAX))]
    call_id: Option<String>,
    /// A random name of this attempt. Whoever lost the answer asks again with it and gets the same claim.
    #[schemars(regex(pattern = NONCE_PATTERN))]
    nonce: Option<String>,
    /// Say what would happen, and do nothing. The header `Semel-Dry-Run: 1` says the same.
    #[serde(default)]
    dry_run: bool,
}

/// Either the right to run, or the answer.
#[derive(JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "BeginAnswer")]
#[allow(dead_code, reason = "it is only described")]
pub enum BegunForm {
    Run(ToRun),
    Answer(Box<Answer>),
}

/// Send it now, then settle with the claim.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ToRun {
    outcome: RunOutcome,
    /// Null for a read and in observe mode: nothing is recorded, and there is nothing to settle.
    claim: Option<String>,
    #[schemars(with = "Option<String>")]
    effect_id: Option<EffectId>,
    #[schemars(with = "Option<u32>")]
    attempt: Option<AttemptNo>,
    tier: Tier,
    /// Settled later than this, it is in doubt in between.
    deadline: Option<String>,
    /// For the upstream: the same for every attempt of this effect.
    idempotency_key: Option<String>,
    /// The same was done and delivered before; its class lets it run again.
    possible_repeat: bool,
    /// The ledger may lose its newest entries in a crash of its server, and this claim with them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    best_effort: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum RunOutcome {
    Run,
}

pub async fn begin(api: Arc<ApiServer>, request: ApiRequest) -> Result<Response, Problem> {
    let (who, bytes_max) = (request.who.clone(), request.bytes_max());
    let _until_it_is_answered = api.turn(&who, bytes_max).await?;
    let (metadata, token, options) =
        (request.metadata.clone(), request.token.clone(), request.options.clone());
    let (who, header_run, received_at, wanted) = request.json::<Begin>().await?;
    let gate = api.gate()?;
    let wanted = BeginRequest::read(wanted, header_run, options)?;
    let rule = wanted.rule(&api.services.policy)?;
    let ask = wanted.ask(&who);
    let mut intent = Intent::of(&ask, &rule, gate.ledger.secret())
        .map_err(|missing| Problem::of_trouble(wording::key_required(&missing)))?;
    intent.metadata = metadata;
    let client = ClientUpstream::of(&api.services, &wanted.action, &wanted.arguments, &rule);
    let mut client = client.showing(token.as_ref());
    if wanted.dry_run {
        return respond::json(&gate.dry_run(&intent, &rule, &mut client).await?);
    }
    let nonce = wanted.nonce(&who, gate.ledger.secret());
    match gate.begin(&intent, &rule, &mut client, nonce).await? {
        BeginAnswer::Run(taken) => respond::json(&ToRun::with(&taken)),
        BeginAnswer::Unrecorded => respond::json(&ToRun::unrecorded(&rule)),
        BeginAnswer::Answered(mut passed) => {
            // The process that asked before may have ended.
            if let (Some(confirm), Some(done)) = (&rule.confirm, gate.unconfirmed(&rule, &mut passed)) {
                let reply = match &passed.reply {
                    GivenReply::Recorded(bytes) => reply_of(Some(bytes)),
                    GivenReply::Live | GivenReply::None => Json::Null,
                };
                let (confirm, action, arguments) = (confirm.clone(), wanted.action, wanted.arguments);
                let question = BackgroundConfirm { confirm, action, arguments, reply, credential: None };
                question.start(&api.services, done);
            }
            answered(api, *passed, received_at, rule.late_after)
        }
    }
}

fn answered(
    api: Arc<ApiServer>,
    passed: Passed,
    received_at: Duration,
    late_after: Duration,
) -> Result<Response, Problem> {
    let Passed { answer, reply, delivery } = passed;
    if !answer.ok {
        let problem = problem_of(&answer);
        return Err(match &reply {
            // The upstream's refusal of a twin's attempt.
            GivenReply::Recorded(bytes) => {
                let data: serde_json::Value = serde_json::from_str(to_json(bytes).get()).unwrap_or_default();
                problem.with("data", data)
            }
            _ => problem,
        });
    }
    let text = respond::answer(&answer, &reply)?;
    Ok(respond::delivering(text, Delivery::of(&api.services, delivery, Some(received_at + late_after))))
}

/// A wanted, understood and checked.
struct BeginRequest {
    action: String,
    arguments: Json,
    key: Option<IdempotencyKey>,
    run: Option<Run>,
    again: Option<Reason>,
    class: Option<Class>,
    timeout: Option<Duration>,
    wait: Option<Duration>,
    serialize_by: Option<String>,
    call_id: Option<String>,
    nonce: Option<String>,
    dry_run: bool,
}

impl BeginRequest {
    fn read(wanted: Begin, header_run: Option<Run>, options: CallOptions) -> Result<BeginRequest, Problem> {
        let name = wanted.action.strip_prefix("fn:").unwrap_or_default();
        let visible = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if name.is_empty() || wanted.action.len() > ACTION_CHARS_MAX || !visible(name) {
            return Err(Problem::bad(format!(
                "action is fn:NAME, of at most {ACTION_CHARS_MAX} visible characters"
            )));
        }
        let arguments = match wanted.arguments {
            None => Json::object::<&str, 0>([]),
            Some(raw) => {
                json::parse(raw.get()).map_err(|error| Problem::bad(format!("arguments: {error}")))?
            }
        };
        if arguments.as_object().is_none() {
            return Err(Problem::bad("arguments must be an object"));
        }
        let bad = |what: &str, error: &dyn std::fmt::Display| Problem::bad(format!("{what}: {error}"));
        let named = wanted.run.as_deref().map(Run::named).transpose().map_err(|error| bad("run", &error))?;
        let again =
            wanted.again.as_deref().map(Reason::parse).transpose().map_err(|error| bad("again", &error))?;
        let key = wanted
            .key
            .as_deref()
            .map(IdempotencyKey::parse)
            .transpose()
            .map_err(|error| bad("key", &error))?;
        check_length("serialize_by", wanted.serialize_by.as_ref(), RESOURCE_CHARS_MAX)?;
        check_length("call_id", wanted.call_id.as_ref(), CALL_ID_CHARS_MAX)?;
        wanted.nonce.as_deref().map(check_nonce).transpose()?;
        Ok(BeginRequest {
            arguments: Json::object([("args", arguments)]),
            key,
            run: header_run.or(named),
            again: again.or(options.again),
            class: wanted.class,
            timeout: span("timeout", wanted.timeout.as_deref(), DEADLINE_MAX)?.filter(|span| !span.is_zero()),
            wait: span("wait", wanted.wait.as_deref(), WAIT_MAX)?,
            serialize_by: wanted.serialize_by,
            call_id: wanted.call_id,
            nonce: wanted.nonce,
            dry_run: wanted.dry_run || options.dry_run,
            action: wanted.action,
        })
    }

    /// The policy's rule, with what this one call says about itself.
    fn rule(&self, policy: &Policy) -> Result<Rule, Problem> {
        let facts = ActionFacts::new(&self.action, &self.arguments);
        let operator = policy.rule_for(&facts);
        if let Some(weaker) = self.class.and_then(|class| policy.too_weak(class, &operator)) {
            return Err(Problem::new(StatusCode::FORBIDDEN, format!("class {weaker}")));
        }
        let rule = policy.rule_for(&ActionFacts { class_override: self.class, ..facts });
        let mut rule = Arc::unwrap_or_clone(rule);
        rule.timeout = Some(self.timeout.or(rule.timeout).unwrap_or(DEADLINE).min(DEADLINE_MAX));
        rule.wait = self.wait.unwrap_or(rule.wait).min(WAIT_MAX);
        Ok(rule)
    }

    fn ask<'a>(&'a self, who: &'a ApiPrincipal) -> Ask<'a> {
        Ask {
            tenant: &who.tenant,
            principal: &who.principal,
            authority: "",
            action: &self.action,
            arguments: &self.arguments,
            run: self.run.clone(),
            key: self.key.clone(),
            again: self.again.clone(),
            asked_by: AskedBy::Agent,
            call_id: self.call_id.clone(),
            live_connection: false,
            serialize_by: self.serialize_by.clone(),
            replay_refusals: false,
        }
    }

    fn nonce(&self, who: &ApiPrincipal, secret: &Secret) -> Nonce {
        self.nonce.as_ref().map_or_else(|| Nonce(OsEntropy.bits()), |nonce| who.nonce(nonce, secret))
    }
}

fn span(what: &str, text: Option<&str>, max: Duration) -> Result<Option<Duration>, Problem> {
    let Some(text) = text else { return Ok(None) };
    let span = duration::parse(text).map_err(|error| Problem::bad(format!("{what}: {error}")))?;
    match span > max {
        true => Err(Problem::bad(format!("{what} is at most {}", duration::text(max)))),
        false => Ok(Some(span)),
    }
}

impl ToRun {
    fn with(taken: &ClaimHandle) -> ToRun {
        ToRun {
            outcome: RunOutcome::Run,
            claim: Some(claim::write(taken)),
            effect_id: Some(taken.effect),
            attempt: Some(taken.attempt),
            tier: taken.tier,
            deadline: Some(taken.deadline.to_string()),
            idempotency_key: Some(taken.idempotency_key.clone()),
            possible_repeat: taken.possible_repeat,
            best_effort: taken.best_effort,
        }
    }

    fn unrecorded(rule: &Rule) -> ToRun {
        ToRun {
            outcome: RunOutcome::Run,
            claim: None,
            effect_id: None,
            attempt: None,
            tier: rule.tier(),
            deadline: None,
            idempotency_key: None,
            possible_repeat: false,
            best_effort: false,
        }
    }
}
