//! A guarded command on its way through the gate: the same call for the hook that looks and for `semel began` that claims.

use super::plan::Plan;
use async_trait::async_trait;
use semel::call::claim;
use semel_core::answer::{Answer, EffectWord, OutcomeWord};
use semel_core::effect::{Effect, Evidence, NotAppliedWhy, Reply};
use semel_core::ids::{AttemptNo, Nonce, Reason, Run};
use semel_core::intent::{Ask, AskedBy, Intent};
use semel_core::json::{self, Json};
use semel_core::outcome::Outcome;
use semel_core::policy::rule::{Probe, Rule};
use semel_core::policy::{ActionFacts, Policy};
use semel_core::redact::secret_values;
use semel_core::wording;
use semel_gate::upstream::{CallView, NotStarted, ProbeAnswer, Sending, Sent, Upstream};
use semel_gate::{BeginAnswer, ClaimHolder, Gate, GivenReply, HandedTo, Passed, SettleAnswer, Settlement};
use semel_ledger::entropy::{Entropy as _, OsEntropy};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A client may run a command in the background, and nobody sees it die. A later end still counts.
const DEADLINE: Duration = Duration::from_secs(10 * 60);

/// The tenant and the principal of whoever calls from this machine.
const LOCAL: &str = semel::LOCAL;

/// A planned command under the policy.
#[derive(Debug)]
pub struct ShellCall<'a> {
    plan: &'a Plan,
    arguments: Json,
    pub rule: Rule,
}

/// The answer to a command that is about to run.
#[derive(Debug)]
pub enum Begun {
    /// Run it; this is the claim.
    Run(String),
    /// Run it; nothing is recorded.
    Unrecorded,
    /// Do not run it: it was done before, and this is its answer.
    Done(Box<Passed>),
    /// Do not run it.
    Held(Box<Answer>),
}

impl<'a> ShellCall<'a> {
    /// `cwd`: where the command runs. The hook only knows where the line begins.
    pub fn of(plan: &'a Plan, policy: &Policy, cwd: Option<&Path>) -> Result<ShellCall<'a>, String> {
        let mut arguments = json::parse(plan.arguments.get()).map_err(|error| error.to_string())?;
        if let (Json::Object(members), Some(cwd)) = (&mut arguments, cwd)
            && members.get("cwd").is_some()
        {
            members.insert("cwd".to_owned(), Json::str(&cwd.to_string_lossy()));
        }
        let rule = policy.rule_for(&ActionFacts::new(&plan.action, &arguments));
        let mut rule = Arc::unwrap_or_clone(rule);
        rule.sorting.set_surroundings_aside(&arguments, false);
        let asked = plan.timeout_seconds.map_or(DEADLINE, Duration::from_secs).max(DEADLINE);
        rule.timeout = rule.timeout.or(Some(asked));
        Ok(ShellCall { plan, arguments, rule })
    }

    /// The command's words; none of a request.
    pub fn argv(&self) -> Vec<String> {
        let words = self.arguments.get("argv").and_then(Json::as_array).unwrap_or_default();
        words.iter().filter_map(Json::as_str).map(str::to_owned).collect()
    }

    /// Values that the rule calls secret.
    pub fn secrets(&self) -> Vec<String> {
        secret_values(&self.arguments, &self.rule.sorting.secret)
    }

    fn intent(&self, gate: &Gate) -> Result<Intent, Box<Answer>> {
        let run = match self.plan.run_is_named {
            true => Run::named(&self.plan.run),
            false => Run::inferred(&self.plan.run),
        };
        let again = self.plan.again.as_ref().map(|effect| Reason::parse(&format!("repeat of {effect}")));
        let ask = Ask {
            tenant: LOCAL,
            principal: LOCAL,
            authority: "",
            action: &self.plan.action,
            arguments: &self.arguments,
            run: run.ok(),
            key: None,
            again: again.and_then(Result::ok),
            asked_by: AskedBy::Agent,
            call_id: self.plan.call_id.clone(),
            live_connection: false,
            serialize_by: None,
            replay_refusals: false,
        };
        Intent::of(&ask, &self.rule, gate.ledger.secret()).map_err(|missing| {
            let trouble = wording::key_required(&missing);
            Box::new(Answer::of_trouble(self.rule.tier(), OutcomeWord::Refused, trouble))
        })
    }

    /// Looks whether the command may run, and claims nothing.
    pub async fn look(&mut self, gate: &Gate) -> Result<Begun, semel_gate::Error> {
        // A wait here would hold up the client.
        self.rule.wait = Duration::ZERO;
        let mut upstream = Shell { is_ready: false };
        Ok(match self.ask(gate, &mut upstream).await? {
            // Nothing but the readiness stood against it.
            Begun::Held(answer) if upstream.was_asked(&answer) => Begun::Run(String::new()),
            begun => begun,
        })
    }

    /// Takes the claim.
    pub async fn begin(&self, gate: &Gate) -> Result<Begun, semel_gate::Error> {
        self.ask(gate, &mut Shell { is_ready: true }).await
    }

    async fn ask(&self, gate: &Gate, upstream: &mut Shell) -> Result<Begun, semel_gate::Error> {
        let intent = match self.intent(gate) {
            Ok(intent) => intent,
            Err(answer) => return Ok(Begun::Held(answer)),
        };
        let to = HandedTo { holder: ClaimHolder::Client, nonce: Nonce(OsEntropy.bits()) };
        Ok(match gate.begin(&intent, &self.rule, upstream, to).await? {
            BeginAnswer::Run(handle) => Begun::Run(claim::write(&handle)),
            BeginAnswer::Unrecorded => Begun::Unrecorded,
            BeginAnswer::Answered(passed) if passed.answer.ok => Begun::Done(passed),
            BeginAnswer::Answered(passed) => Begun::Held(Box::new(passed.answer)),
        })
    }
}

/// A shell that runs the command by itself, once it may.
#[derive(Debug)]
struct Shell {
    is_ready: bool,
}

impl Shell {
    /// Whether an answer says no more than that this was not ready.
    fn was_asked(&self, answer: &Answer) -> bool {
        let code = answer.trouble.as_ref().map(|trouble| trouble.code);
        !self.is_ready && code == Some(semel_core::answer::Code::NotStarted)
    }
}

#[async_trait]
impl Upstream for Shell {
    async fn prepare(&mut self) -> Result<(), NotStarted> {
        match self.is_ready {
            true => Ok(()),
            false => Err(NotStarted { why: String::new(), data: Value::Null }),
        }
    }

    async fn send(&mut self, _: Sending<'_>) -> Sent {
        unreachable!("the client's shell runs the command")
    }

    /// A probe of a rule may take long, and a client waits for its hook.
    async fn probe(&mut self, _: &Probe, _: Option<&Effect>) -> ProbeAnswer {
        ProbeAnswer::Unknown { why: "a hook asks nothing".to_owned() }
    }

    fn sends_while_alive(&self) -> bool {
        false
    }

    fn view(&self) -> Option<CallView> {
        None
    }

    fn join(&mut self, _: &Effect, _: AttemptNo) {}

    fn release(&mut self) {}
}

/// Records what became of a claim. `None`: the ledger does not know it.
pub async fn settle(gate: &Gate, claim: &str, sent: Sent) -> Result<Option<Box<Passed>>, semel_gate::Error> {
    let Some((effect, attempt, nonce)) = claim::read(claim) else { return Ok(None) };
    let settlement = Settlement { effect, attempt, nonce, holder: ClaimHolder::Client, sent, undo: None };
    Ok(match gate.settle(settlement).await? {
        SettleAnswer::Recorded(passed) => Some(passed),
        SettleAnswer::Otherwise(_) | SettleAnswer::NoSuchClaim => None,
    })
}

/// A success of which only the end is known yet.
pub fn succeeded(word: EffectWord) -> Sent {
    Sent::of(Outcome::Applied { evidence: Evidence::Reported, word, reply: Reply::Unknown })
}

pub fn in_doubt(why: &str) -> Sent {
    Sent::of(Outcome::InDoubt { why: why.to_owned(), sender_gone: false })
}

pub fn never_sent(why: &str) -> Sent {
    let why = NotAppliedWhy::NeverSent(why.to_owned());
    Sent::of(Outcome::NotApplied { why, reply: Reply::Unknown })
}

/// The reply of an answer, if the record has it.
pub fn recorded(passed: &Passed) -> Option<&[u8]> {
    match &passed.reply {
        GivenReply::Recorded(bytes) => Some(bytes),
        GivenReply::Live | GivenReply::None => None,
    }
}
