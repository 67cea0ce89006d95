//! Calls of doors on other machines: `semel run` and `semel mcp` under `SEMEL_SERVER`. The server decides and records;
//! the door sends, and knows what it saw.

use super::client_upstream::ClientUpstream;
use super::problem::{Problem, problem_of};
use super::request::ApiRequest;
use super::respond;
use super::server::ApiServer;
use super::settle::{known_claim, record};
use crate::redact::{MayHoldSecret, SecretParts, Secrets};
use crate::remote_gate::forms::{
    ACTION_PATTERN, AUTHORITY_CHARS_MAX, CALL_ID_CHARS_MAX, CallClaim, CallForm, CallOutcome,
    DeliveredAnswer, DeliveredForm, FORM_BYTES_MAX, FORM_REPLY_BYTES_MAX, RESOURCE_CHARS_MAX, RunWord,
    SettlementForm, TIMEOUT_MS_MAX, WAIT_MS_MAX, WHY_CHARS_MAX, Whoami,
};
use crate::remote_gate::rule_form::RefusedRule;
use crate::reply::{CommandOutput, tool};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use regex::Regex;
use semel::call::begin::{check_length, check_nonce};
use semel::call::claim;
use semel::call::reply::redact_why;
use semel_core::answer::EffectWord;
use semel_core::class::Class;
use semel_core::effect::{Evidence, NotAppliedWhy, Reply, State};
use semel_core::ids::{EffectId, IdempotencyKey, Reason, Run};
use semel_core::intent::{Ask, AskedBy, Intent};
use semel_core::json::{self, Json};
use semel_core::outcome::Outcome;
use semel_core::policy::rule::Failure;
use semel_core::policy::{ActionFacts, Rule};
use semel_core::wording;
use semel_gate::clock::Clock;
use semel_gate::upstream::Sent;
use semel_gate::{BeginAnswer, ClaimHolder, GivenReply, HandedTo, Passed, Settlement};
use semel_ledger::Error;
use serde_json::Value;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// Keeps tools that other machines reach apart from those of the same name behind this server.
const ELSEWHERE: &str = "elsewhere ";

pub async fn begin(api: Arc<ApiServer>, request: ApiRequest) -> Result<Response, Problem> {
    let (asking, bytes_max) = (request.who.clone(), request.bytes_max());
    let _until_it_is_answered = api.turn(&asking, bytes_max).await?;
    let (metadata, token) = (request.metadata.clone(), request.token.clone());
    let dry_run = request.options.dry_run;
    let (who, _, received_at, form) = request.json_of::<CallForm>(FORM_BYTES_MAX).await?;
    let gate = api.gate()?;
    check(&form)?;
    let arguments =
        json::parse(form.arguments.get()).map_err(|error| Problem::bad(format!("arguments: {error}")))?;
    if arguments.as_object().is_none() {
        return Err(Problem::bad("arguments must be an object"));
    }
    let bad = |what: &str, error: &dyn std::fmt::Display| Problem::bad(format!("{what}: {error}"));
    let key = form.key.as_deref().map(IdempotencyKey::parse).transpose();
    let key = key.map_err(|error| bad("key", &error))?;
    let again = form.again.as_deref().map(Reason::parse).transpose().map_err(|error| bad("again", &error))?;
    let run = match form.run_inferred {
        true => form.run.as_deref().map(Run::inferred).transpose(),
        false => form.run.as_deref().map(Run::named).transpose(),
    };
    let run = run.map_err(|error| bad("run", &error))?;
    let subject = (form.action.as_str(), &arguments);
    let rule = form.rule.into_rule(&api.services.policy, subject, form.class, key.is_some());
    let mut rule = rule.map_err(|refused| match refused {
        RefusedRule::Weak(_) => Problem::new(StatusCode::FORBIDDEN, refused.to_string()),
        RefusedRule::Bad(_) => unfit(refused.to_string()),
    })?;
    rule.timeout = Some(Duration::from_millis(form.timeout_ms));
    rule.wait = Duration::from_millis(form.wait_ms);
    let authority = match form.action.starts_with("mcp:") {
        true => format!("{ELSEWHERE}{}", form.authority),
        false => String::new(),
    };
    let ask = Ask {
        tenant: &who.tenant,
        principal: &who.principal,
        authority: &authority,
        action: &form.action,
        arguments: &arguments,
        run,
        key,
        again,
        asked_by: AskedBy::Agent,
        call_id: form.call_id.clone(),
        live_connection: form.live_connection,
        serialize_by: form.serialize_by.clone(),
        replay_refusals: form.replay_refusals,
    };
    // The request itself is well-formed: rule and arguments do not fit.
    let keyless = |missing| Problem::of_trouble(wording::key_required(&missing));
    let mut intent = Intent::of(&ask, &rule, gate.ledger.secret())
        .map_err(|missing| keyless(missing).under(StatusCode::UNPROCESSABLE_ENTITY))?;
    intent.metadata = metadata;
    let client = ClientUpstream::of(&api.services, &form.action, &arguments, &rule);
    let mut client = client.showing(token.as_ref()).unless_not_ready(form.not_ready.as_deref());
    if form.dry_run || dry_run {
        return respond::json(&gate.dry_run(&intent, &rule, &mut client).await?);
    }
    let nonce = who.nonce(&form.nonce, gate.ledger.secret());
    match gate.begin(&intent, &rule, &mut client, HandedTo::client(nonce)).await? {
        BeginAnswer::Run(taken) => respond::json(&CallClaim {
            outcome: RunWord::Run,
            claim: Some(claim::write(&taken)),
            effect_id: Some(taken.effect.to_string()),
            attempt: Some(taken.attempt.0),
            occurrence: taken.occurrence,
            class: taken.class,
            tier: taken.tier,
            deadline: Some(taken.deadline.to_string()),
            waited_ms: {
                let here = gate.clock.elapsed().saturating_sub(received_at);
                let timeout = Duration::from_millis(form.timeout_ms);
                waited_ms(here, taken.deadline.since(gate.clock.now()), timeout)
            },
            idempotency_key: Some(taken.idempotency_key.clone()),
            possible_repeat: taken.possible_repeat,
        }),
        BeginAnswer::Unrecorded => respond::json(&CallClaim {
            outcome: RunWord::Run,
            claim: None,
            effect_id: None,
            attempt: None,
            occurrence: 1,
            class: rule.class,
            tier: rule.tier(),
            deadline: None,
            waited_ms: 0,
            idempotency_key: None,
            possible_repeat: false,
        }),
        // Its own caller was not ready, and nothing of ours failed.
        BeginAnswer::Answered(passed) if form.not_ready.is_some() => {
            answered(*passed).map_err(|problem| problem.of_caller())
        }
        BeginAnswer::Answered(passed) => answered(*passed),
    }
}

/// How long a request that has been `here` for so long was there before its claim, which has so much time `left` of its
/// timeout. Zero for a claim that is older than the request: its sender counts from the first one.
///
/// `here` was measured before `left`, so a pause in between makes this too short, which makes the sender more careful.
fn waited_ms(here: Duration, left: Duration, timeout: Duration) -> u64 {
    let age = timeout.saturating_sub(left);
    here.saturating_sub(age).as_millis() as u64
}

/// The reply goes out as the bytes that it is. The door says when its own caller has got it.
fn answered(passed: Passed) -> Result<Response, Problem> {
    let Passed { answer, reply, .. } = passed;
    let reply = match &reply {
        GivenReply::Recorded(bytes) => Some(STANDARD.encode(bytes)),
        GivenReply::Live | GivenReply::None => None,
    };
    if !answer.ok && answer.trouble.is_some() {
        let problem = problem_of(&answer);
        return Err(match reply {
            Some(reply) => problem.with("reply_base64", reply),
            None => problem,
        });
    }
    let mut whole = serde_json::to_value(&answer).unwrap_or_default();
    if let Some(reply) = reply {
        whole["reply_base64"] = Value::from(reply);
    }
    respond::json(&whole)
}

/// Well-formed, and yet no call that can be.
fn unfit(detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
}

fn check(form: &CallForm) -> Result<(), Problem> {
    static ACTION: LazyLock<Regex> = LazyLock::new(|| Regex::new(ACTION_PATTERN).expect("a pattern"));
    if !ACTION.is_match(&form.action) {
        return Err(Problem::bad(format!(
            "action is cli:PROGRAM or mcp:SERVER/TOOL; it must match {ACTION_PATTERN}"
        )));
    }
    check_length("serialize_by", form.serialize_by.as_ref(), RESOURCE_CHARS_MAX)?;
    check_length("not_ready", form.not_ready.as_ref(), WHY_CHARS_MAX)?;
    check_length("call_id", form.call_id.as_ref(), CALL_ID_CHARS_MAX)?;
    if form.authority.chars().count() > AUTHORITY_CHARS_MAX {
        return Err(Problem::bad(format!("authority has at most {AUTHORITY_CHARS_MAX} characters")));
    }
    check_nonce(&form.nonce)?;
    if !(1..=TIMEOUT_MS_MAX).contains(&form.timeout_ms) || form.wait_ms > WAIT_MS_MAX {
        return Err(Problem::bad(format!(
            "timeout_ms is from 1 to {TIMEOUT_MS_MAX}, and wait_ms at most {WAIT_MS_MAX}"
        )));
    }
    if form.rule.class == Class::Read {
        return Err(unfit("reads need no claim; send the read directly"));
    }
    Ok(())
}

pub async fn settle(api: Arc<ApiServer>, request: ApiRequest) -> Result<Response, Problem> {
    // Its sender asks again until it is taken.
    let (asking, bytes_max) = (request.who.clone(), request.bytes_max());
    let _until_it_is_answered = api.turn(&asking, bytes_max).await?;
    let (who, _, _, form) = request.json_of::<SettlementForm>(FORM_BYTES_MAX).await?;
    let (known, effect, attempt, nonce) = known_claim(&api, &who, &form.claim).await?;
    let facts = &known.effect.facts;
    if !is_of_a_door(&facts.action) {
        return Err(Problem::not_found("such claim"));
    }
    let policy = &api.services.policy;
    let mut rule = Arc::unwrap_or_clone(policy.rule_kept(&facts.action, &facts.rule));
    // A rule of the caller's file may bear the name of another one here.
    let own = policy.rule_for(&ActionFacts::new(&facts.action, &Json::Null));
    rule.sorting.secret.extend_from_slice(&own.sorting.secret);
    let sent = sent_of(form, &facts.action, &rule)?;
    let settlement = Settlement { effect, attempt, nonce, holder: ClaimHolder::Client, sent, undo: None };
    answered(Passed { reply: GivenReply::None, ..*record(&api, settlement).await? })
}

/// An action whose door keeps replies in a form of its own, and says itself when they were delivered.
fn is_of_a_door(action: &str) -> bool {
    action.starts_with("cli:") || action.starts_with("mcp:")
}

fn sent_of(form: SettlementForm, action: &str, rule: &Rule) -> Result<Sent, Problem> {
    let SettlementForm { outcome, effect, evidence, why, reply_base64, reply_bytes, .. } = form;
    if why.chars().count() > WHY_CHARS_MAX {
        return Err(Problem::bad(format!("why has at most {WHY_CHARS_MAX} characters")));
    }
    let bytes = reply_base64.map(|text| STANDARD.decode(text)).transpose();
    let given = bytes.map_err(|error| unfit(format!("reply_base64: {error}")))?;
    let given_bytes = given.as_ref().map(|bytes| bytes.len() as u64);
    let reply = match given.as_deref().map(|bytes| without_secrets(bytes, action, rule)) {
        Some(Ok(None)) => return Err(unfit("reply_base64 is not a reply of this kind of action")),
        Some(Ok(kept)) => kept.filter(|kept| kept.len() <= FORM_REPLY_BYTES_MAX),
        Some(Err(MayHoldSecret)) | None => None,
    };
    let recorded = match (&reply, given_bytes.or(reply_bytes)) {
        (Some(_), _) => Reply::Kept,
        (None, Some(bytes)) => Reply::TooLarge(bytes),
        (None, None) => Reply::Unknown,
    };
    let why = redact_why(why, rule);
    let not_applied = |why| Outcome::NotApplied { why, reply: recorded };
    // The claim is past its last moment for sending at its deadline, and nothing else proves that its sender is gone.
    let in_doubt = |why| Outcome::InDoubt { why, sender_gone: false };
    let outcome = match outcome {
        CallOutcome::Applied => Outcome::Applied {
            evidence: match evidence {
                None | Some(Evidence::Reported) => Evidence::Reported,
                Some(evidence @ (Evidence::Accepted | Evidence::Probed)) => evidence,
                Some(Evidence::Ruled | Evidence::Confirmed) => {
                    return Err(unfit("evidence must be accepted, reported or probed"));
                }
            },
            word: effect.unwrap_or(EffectWord::Updated),
            reply: recorded,
        },
        // The operator's rule makes every failure a doubt, whoever read it.
        CallOutcome::Refused | CallOutcome::Reported if rule.failure == Failure::InDoubt => in_doubt(why),
        CallOutcome::Refused => not_applied(NotAppliedWhy::Refused(why)),
        CallOutcome::Reported => not_applied(NotAppliedWhy::Reported(why)),
        CallOutcome::NeverSent => not_applied(NotAppliedWhy::NeverSent(why)),
        CallOutcome::AwaitingInput => not_applied(NotAppliedWhy::AwaitingInput),
        CallOutcome::InDoubt => in_doubt(why),
    };
    let reply = reply.filter(|_| !matches!(outcome, Outcome::InDoubt { .. }));
    Ok(Sent { reply, ..Sent::of(outcome) })
}

/// A reply as it may be kept: its caller need not have the rule of this side. `None`: it is not a reply of this kind of action.
fn without_secrets(reply: &[u8], action: &str, rule: &Rule) -> Result<Option<Vec<u8>>, MayHoldSecret> {
    if action.starts_with("cli:") {
        let Some(output) = CommandOutput::decode(reply) else { return Ok(None) };
        return Ok(Some(output.scrubbed(&[], &SecretParts::of(rule))?.encode()));
    }
    let Ok(text) = std::str::from_utf8(reply) else { return Ok(None) };
    // The arguments are not at hand any more.
    let kept = tool::scrubbed(text, &Secrets::of(&Json::Null, rule))?;
    Ok(kept.map(String::into_bytes))
}

pub async fn delivered(api: Arc<ApiServer>, request: ApiRequest) -> Result<Response, Problem> {
    let (who, _, _, form) = request.json::<DeliveredForm>().await?;
    let gate = api.gate()?;
    let unknown = || Problem::not_found(&format!("effect {}", form.effect_id));
    let id = EffectId::parse(&form.effect_id).ok_or_else(unknown)?;
    let (key, known) = match gate.ledger.by_id(id).await {
        Err(Error::NoSuchEffect(_)) => return Err(unknown()),
        found => found?,
    };
    if !who.made(&known.effect) || !is_of_a_door(&known.effect.facts.action) {
        return Err(unknown());
    }
    let newest = gate.ledger.find(key).await?;
    let delivered =
        newest.effect().is_some_and(|effect| effect.id == id && matches!(effect.state, State::Applied(_)));
    if delivered {
        gate.delivered(&newest).await?;
    }
    respond::json(&DeliveredAnswer { delivered })
}

pub async fn whoami(api: Arc<ApiServer>, request: ApiRequest) -> Result<Response, Problem> {
    let who = request.who;
    respond::json(&Whoami {
        tenant: who.tenant,
        principal: who.principal,
        scope: who.scope.to_string(),
        time: api.services.clock.now().to_string(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_senders_last_moment_is_never_after_the_servers_deadline() {
        let seconds = Duration::from_secs;
        let timeout = seconds(60);
        let mut lost_to_care = Vec::new();
        // Seconds after the first request left its sender: when the last one came, was claimed, and was answered.
        for came in [0, 1, 7] {
            for (claimed, answered) in
                [(came, came), (came + 20, came + 20), (came + 20, came + 25), (0, came + 3)]
            {
                let deadline = seconds(claimed) + timeout;
                let waited = waited_ms(seconds(answered - came), deadline - seconds(answered), timeout);
                let last_moment = Duration::from_millis(waited) + timeout;
                assert!(last_moment <= deadline, "came {came}, claimed {claimed}, answered {answered}");
                lost_to_care.push(deadline - last_moment);
            }
        }
        assert!(
            lost_to_care.iter().all(|lost| *lost <= seconds(7)),
            "the way there at most: {lost_to_care:?}"
        );
        // A clock that was set back by nine seconds ends the claim nine seconds later.
        assert_eq!(waited_ms(seconds(2), timeout + seconds(9), timeout), 2_000);
    }
}
