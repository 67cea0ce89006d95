//! A policy tried on calls in their order, with a ledger in memory. Core decides as it does for the gate; nothing is
//! sent, and the outcome of each call is the one on record.

use crate::ending::Ending;
use crate::judge::Judge;
use crate::transcript::ActionCall;
use semel_core::decide::{Decision, Past, Refusal, Replay, Situation, decide};
use semel_core::digest::Digest;
use semel_core::effect::{Effect, Evidence, LastSend, NotAppliedWhy, Occurrence, Reply};
use semel_core::effect_word::EffectWord;
use semel_core::ids::{AttemptNo, EffectId, Nonce, OwnerId, Reason};
use semel_core::intent::{Alike, Intent, NamedBy};
use semel_core::json::{Json, Path};
use semel_core::judgement::lookalike::{Lookalike, compare};
use semel_core::judgement::superseded::supersedes;
use semel_core::lifecycle::{Event, NewAttempt, next};
use semel_core::outcome::Outcome;
use semel_core::policy::Rule;
use semel_core::time::{At, Clocks};
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;

/// The guard's treatment of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Treatment {
    LetThrough,
    /// Answered from the record of an earlier call.
    Collapsed,
    /// Neither sent nor answered: somebody has to decide.
    Held(HoldReason),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldReason {
    InDoubt,
    Drift,
    Lookalike,
    Superseded,
    /// The rule requires key fields that the call does not have.
    KeyMissing,
    /// The rule leaves it to a person, or to nobody.
    NotAllowed,
}

impl Treatment {
    pub fn word(self) -> &'static str {
        match self {
            Treatment::LetThrough => "let through",
            Treatment::Collapsed => "collapsed",
            Treatment::Held(HoldReason::InDoubt) => "held: in doubt",
            Treatment::Held(HoldReason::Drift) => "held: drift",
            Treatment::Held(HoldReason::Lookalike) => "held: lookalike",
            Treatment::Held(HoldReason::Superseded) => "held: superseded",
            Treatment::Held(HoldReason::KeyMissing) => "held: key missing",
            Treatment::Held(HoldReason::NotAllowed) => "held: not allowed",
        }
    }
}

#[derive(Debug)]
pub struct Rehearsal<'j> {
    judge: &'j Judge,
    /// The newest effect of each intent.
    records: HashMap<Digest, Effect>,
    /// Intents by the outline, or the server of removals, that they are compared under.
    alike: HashMap<Digest, Vec<Digest>>,
    /// The intent that a key among the arguments leads to.
    aliases: HashMap<Digest, Digest>,
}

/// A call with the rule that took it.
#[derive(Debug)]
pub struct RehearsedCall {
    pub rule: Arc<Rule>,
    pub subject: String,
    pub treatment: Treatment,
}

impl<'j> Rehearsal<'j> {
    pub fn new(judge: &'j Judge) -> Rehearsal<'j> {
        Rehearsal { judge, records: HashMap::new(), alike: HashMap::new(), aliases: HashMap::new() }
    }

    /// One more call. `ending` says how it ended, for each class, should it be sent.
    pub fn call(&mut self, call: &ActionCall, at: At, ending: impl Fn(&Rule) -> Ending) -> RehearsedCall {
        let (call, again) = without_reason(call);
        let rule = self.judge.rule(&call);
        let Ok(intent) = self.judge.intent(&call, &rule, again) else {
            let treatment = Treatment::Held(HoldReason::KeyMissing);
            return RehearsedCall { rule, subject: String::new(), treatment };
        };
        let treatment = self.treat(&intent, &rule, at, ending);
        RehearsedCall { subject: intent.subject, rule, treatment }
    }

    fn treat(&mut self, intent: &Intent, rule: &Rule, at: At, ending: impl Fn(&Rule) -> Ending) -> Treatment {
        let own = intent.alias.and_then(|alias| self.aliases.get(&alias)).copied().unwrap_or(intent.key);
        let situation = Situation {
            now: at,
            uptime: None,
            newest_on_record: None,
            fenced: false,
            memory_boundary: None,
            forgotten_before: None,
            stands_for: None,
            reached_by_key: own != intent.key,
            past: Past::default(),
        };
        let newest = self.records.get(&own);
        match decide(newest, intent, rule, &situation) {
            Decision::Pass => Treatment::LetThrough,
            Decision::Claim(_) => match self.lookalike(intent, rule, at) {
                Some(reason) => Treatment::Held(reason),
                None => self.record(own, intent, rule, at, ending(rule)),
            },
            Decision::Resend => self.record(own, intent, rule, at, ending(rule)),
            Decision::Replay(Replay::Repeat)
                if newest.is_some_and(|made| self.is_superseded(intent, made)) =>
            {
                Treatment::Held(HoldReason::Superseded)
            }
            Decision::Replay(_)
            | Decision::ReplayRefusal
            | Decision::ReplayEarlier(..)
            | Decision::Join(_)
            | Decision::AnswerOwn
            | Decision::AnswerJoined
            | Decision::AnswerSentEarlier => Treatment::Collapsed,
            Decision::Look | Decision::Unremembered | Decision::StayInDoubt => {
                Treatment::Held(HoldReason::InDoubt)
            }
            Decision::Refuse(Refusal::Drift { .. }) => Treatment::Held(HoldReason::Drift),
            Decision::Refuse(_) => Treatment::Held(HoldReason::NotAllowed),
        }
    }

    /// The effect that a claim meets among those of its outline.
    fn lookalike(&self, intent: &Intent, rule: &Rule, at: At) -> Option<HoldReason> {
        let Alike::Outline { key, .. } = intent.alike else { return None };
        let clocks = Clocks { now: at, uptime: None };
        let others = self.alike.get(&key).into_iter().flatten().filter(|other| **other != intent.key);
        let mut others = others.filter_map(|other| self.records.get(other));
        let other = others.find(|other| compare(intent, rule, other, false, &clocks) != Lookalike::MayRun)?;
        Some(match self.is_superseded(intent, other) {
            true => HoldReason::Superseded,
            false => HoldReason::Lookalike,
        })
    }

    fn is_superseded(&self, intent: &Intent, made: &Effect) -> bool {
        let Alike::Outline { removals: Some(server), .. } = intent.alike else { return false };
        let removals = self.alike.get(&server).into_iter().flatten().filter_map(|key| self.records.get(key));
        intent.named_by != NamedBy::CallerKey
            && removals.into_iter().any(|later| supersedes(self.judge.secret(), later, made, None))
    }

    fn record(&mut self, own: Digest, intent: &Intent, rule: &Rule, at: At, ending: Ending) -> Treatment {
        let seed = intent.seed(EffectId(0), Occurrence::first(intent.again.clone()), rule);
        let attempt = NewAttempt {
            nonce: Nonce(0),
            owner: OwnerId(0),
            at,
            deadline: at,
            last_send: LastSend::By(at),
            call_id: None,
            run: None,
            epoch: 0,
            facts: Arc::clone(&seed.facts),
            marks: Arc::clone(&seed.marks),
            trace: None,
            uptime: None,
        };
        let claimed = Effect::claimed(seed, &attempt);
        let settled = Event::Settled { attempt: AttemptNo(1), outcome: outcome(ending), at };
        let settled = next(&claimed, &settled).map_or(claimed, |transition| transition.effect);
        let delivered = next(&settled, &Event::Delivered { at }).map(|transition| transition.effect);
        self.records.insert(own, delivered.unwrap_or(settled));
        if let Some(key) = intent.alike.key() {
            let known = self.alike.entry(key).or_default();
            if !known.contains(&own) {
                known.push(own);
            }
        }
        if let Some(alias) = intent.alias {
            self.aliases.entry(alias).or_insert(own);
        }
        Treatment::LetThrough
    }
}

/// A call without the word by which an agent repeats it on purpose, as a door takes it off.
fn without_reason(call: &ActionCall) -> (ActionCall, Option<Reason>) {
    let mut call = call.clone();
    let place = Path::to_member("args", "semel_again");
    let reason = place.find(&call.arguments).first().and_then(|(_, reason)| Json::as_str(reason));
    let reason = reason.and_then(|reason| Reason::parse(reason).ok());
    place.remove_from(&mut call.arguments);
    (call, reason)
}

fn outcome(ending: Ending) -> Outcome {
    let reply = Reply::Kept;
    match ending {
        Ending::Applied => {
            Outcome::Applied { evidence: Evidence::Reported, word: EffectWord::Unknown, reply }
        }
        Ending::Refused => Outcome::NotApplied { why: NotAppliedWhy::Refused(String::new()), reply },
        Ending::Failed => Outcome::NotApplied { why: NotAppliedWhy::Reported(String::new()), reply },
        Ending::InDoubt | Ending::Unanswered | Ending::HeldInDoubt => {
            Outcome::InDoubt { why: String::new(), sender_gone: true }
        }
    }
}
