//! A call is asked for: the server gives the right to send it, or its answer.

use super::client::{ANSWER_TAKES_MAX, ApiReply, PAUSE_FIRST, PAUSE_MAX, Unanswered, bytes_of};
use super::forms::{CallClaim, CallForm, TIMEOUT_MS_MAX, WAIT_MS_MAX};
use super::rule_form::RuleForm;
use super::{RemoteCall, RemoteGate, RemotePassed, answer};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use semel_core::answer::{Answer, Trouble};
use semel_core::class::Class;
use semel_core::digest::Secret;
use semel_core::intent::Intent;
use semel_core::wording;
use semel_gate::{GivenReply, Passed};
use semel_ledger::entropy::{Entropy, OsEntropy};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::time::Duration;

/// How long after its first failure a call is asked for again before it is given up. A try that is under way is not cut
/// short: one that is never answered takes the wait and [`ANSWER_TAKES_MAX`]. Longer would only hide the trouble from the
/// caller; a server that is restarted is back within it, mostly.
const BEGIN_PATIENCE: Duration = Duration::from_secs(5);

/// Nobody sees a laptop die, so its claim ends by time alone. Most commands end within an hour; the outcome of a longer
/// one still counts, and only looks like a doubt in between.
const DEADLINE: Duration = Duration::from_secs(3600);

/// The server's answer to the request to send.
pub(super) enum Begun {
    Run(Box<CallClaim>),
    Answered(Box<RemotePassed>),
}

impl RemoteGate {
    /// Says what would happen, and sends nothing.
    pub async fn dry_run(&self, call: RemoteCall<'_>) -> Result<Answer, Trouble> {
        let intent = local_intent(call)?;
        if call.rule.class == Class::Read {
            return Ok(semel_gate::dry_run_of_read(&intent, call.rule));
        }
        let form = form_of(call, true)?;
        match self.begin(&form).await? {
            Begun::Answered(answered) if answered.passed.answer.dry_run.is_some() => {
                Ok(answered.passed.answer)
            }
            Begun::Answered(answered) => match answered.passed.answer.trouble {
                Some(trouble) => Err(trouble),
                None => Err(wording::ledger_unavailable(
                    "the server did not answer with a dry run; it runs another version of semel",
                )),
            },
            Begun::Run(_) => Err(wording::ledger_unavailable(
                "the server answered a dry run with a claim; it runs another version of semel",
            )),
        }
    }

    pub(super) async fn begin(&self, form: &CallForm) -> Result<Begun, Trouble> {
        let body = bytes_of(form);
        let within = Duration::from_millis(form.wait_ms) + ANSWER_TAKES_MAX;
        let (mut pause, mut failing_since) = (PAUSE_FIRST, None);
        let mut perhaps_claimed = false;
        loop {
            let why = match self.access.post("/calls/begin", body.clone(), within).await {
                Ok(reply) if reply.is_transient() => reply.detail(),
                Ok(reply) => return self.read_begun(reply),
                Err(Unanswered::Untrusted(why)) => return Err(wording::not_started(&why)),
                Err(unanswered) => {
                    perhaps_claimed |= matches!(unanswered, Unanswered::Lost(_));
                    unanswered.why().to_owned()
                }
            };
            let now = self.clock.elapsed();
            if now > *failing_since.get_or_insert(now) + BEGIN_PATIENCE {
                let claimed = match perhaps_claimed && !form.dry_run {
                    true => {
                        "; the server may have a claim of this call, and then holds its repeats until its deadline"
                    }
                    false => "",
                };
                return Err(wording::ledger_unavailable(&format!("{why}{claimed}")));
            }
            self.clock.sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// A person looks at the ledger where it is: from here `semel ledger` is refused.
    pub(super) fn at_the_server(&self, mut answer: Answer) -> Answer {
        let there = |text: &mut String| *text = text.replace("semel ledger)", "semel ledger on the server)");
        if let Some(reason) = &mut answer.reason {
            there(reason);
        }
        if let Some(trouble) = &mut answer.trouble {
            there(&mut trouble.next_step);
            if trouble.human_next_step.contains("semel ledger") {
                trouble.human_next_step =
                    format!("on the server {}: {}", self.access, trouble.human_next_step);
            }
        }
        answer
    }

    fn read_begun(&self, reply: ApiReply) -> Result<Begun, Trouble> {
        if reply.status.is_success() && reply.body["outcome"] == "run" {
            let claim = CallClaim::deserialize(&reply.body);
            let unread = |_| {
                wording::ledger_unavailable(
                    "the server's claim cannot be read; it runs another version of semel",
                )
            };
            return claim.map(|claim| Begun::Run(Box::new(claim))).map_err(unread);
        }
        let Some(answer) = answer::read(&reply.body).map(|answer| self.at_the_server(answer)) else {
            return Err(wording::not_started(&reply.refusal(&self.access)));
        };
        let bytes = reply.body["reply_base64"].as_str().and_then(|text| STANDARD.decode(text).ok());
        let reply = bytes.map_or(GivenReply::None, GivenReply::Recorded);
        let passed = Passed { answer, reply, delivery: None };
        Ok(Begun::Answered(Box::new(RemotePassed::plain(passed))))
    }
}

/// The call as this side sees it. Its keys are of no use to anybody: the server's secret is not here.
pub(super) fn local_intent(call: RemoteCall<'_>) -> Result<Intent, Trouble> {
    Intent::of(call.ask, call.rule, &Secret::new([0; 32])).map_err(|missing| wording::key_required(&missing))
}

pub(super) fn form_of(call: RemoteCall<'_>, dry_run: bool) -> Result<CallForm, Trouble> {
    let RemoteCall { ask, rule, class } = call;
    let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let arguments = RawValue::from_string(ask.arguments.canonical());
    let arguments = arguments.map_err(|error| wording::not_started(&error.to_string()))?;
    Ok(CallForm {
        action: ask.action.to_owned(),
        arguments,
        rule: RuleForm::of(rule),
        authority: ask.authority.to_owned(),
        class,
        key: ask.key.as_ref().map(|key| key.as_str().to_owned()),
        run: ask.run.as_ref().map(|run| run.id.clone()),
        run_inferred: ask.run.as_ref().is_some_and(|run| !run.named),
        again: ask.again.as_ref().map(|again| again.as_str().to_owned()),
        call_id: ask.call_id.clone(),
        live_connection: ask.live_connection,
        serialize_by: ask.serialize_by.clone().or_else(|| rule.resource(ask.arguments)),
        replay_refusals: ask.replay_refusals,
        nonce: format!("{:032x}", OsEntropy.bits()),
        timeout_ms: millis(rule.timeout.unwrap_or(DEADLINE)).clamp(1, TIMEOUT_MS_MAX),
        wait_ms: millis(rule.wait).min(WAIT_MS_MAX),
        dry_run,
        not_ready: None,
    })
}
