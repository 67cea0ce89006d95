//! Who wants what, how often, and in which words. Drawn from the seed before anything runs.

use super::Sabotage;
use super::random::SharedRandom;
use super::upstream::{Fates, QUIET};
use super::world::CallIdentity;
use semel_core::class::Class;
use semel_core::digest::Secret;
use semel_core::effect::CallMark;
use semel_core::ids::{IdempotencyKey, Reason, Run};
use semel_core::intent::{Ask, Intent, NamedBy};
use semel_core::json::{Json, Path};
use semel_core::policy::rule::{
    CallerKey, Inject, InjectInto, Probe, Rule, RuleCall as ProbeCall, ScopeChoice,
};
use semel_core::policy::{ActionFacts, Policy};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

pub const TENANT: &str = "tenant";
pub const RUNS: [&str; 2] = ["run-a", "run-b"];
const REASONS: [&str; 2] = ["the customer asked for one more", "a second batch"];

pub fn secret() -> Secret {
    Secret::new([7; 32])
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    Opaque,
    Probed,
    Keyed,
    Convergent,
}

#[derive(Debug)]
pub struct SimulationPlan {
    /// Nothing may go wrong, so nothing may be in doubt.
    pub faultless: bool,
    /// The wall clock jumps.
    pub jumpy: bool,
    /// A replica that lags takes over, once.
    pub failover: bool,
    /// Each process runs one child at a time, as `semel run` does.
    pub children: bool,
    pub fates: Fates,
    pub store_faults_percent: u64,
    pub templates: Vec<CallTemplate>,
    /// One list of calls per agent, agents per process.
    pub processes: Vec<Vec<Vec<PlannedCall>>>,
    pub troubles: usize,
}

/// An intent that agents have.
#[derive(Debug)]
pub struct CallTemplate {
    pub kind: CallKind,
    pub action: String,
    pub rule: Rule,
    keys: KeyHabit,
    named_run: bool,
    /// A refusal answers the repeats of its key.
    pub keeps_refusals: bool,
    /// Callers take claims away, send by themselves, and bring back what became of it.
    pub away: bool,
}

/// Whether callers bring keys of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyHabit {
    None,
    One,
    /// As SDKs do, which make them up; some calls bring none.
    Several,
}

#[derive(Debug, Clone)]
pub struct PlannedCall {
    pub template: usize,
    pub wording: usize,
    pub amount: u64,
    pub run: usize,
    pub again: Option<usize>,
    pub call_id: Option<usize>,
    key: Option<usize>,
    /// Its process goes by an older policy, which knew neither of a key for the upstream nor of a probe.
    older_policy: bool,
    pub pause: Duration,
    /// Whether its answer reaches the caller.
    pub arrives: bool,
}

impl SimulationPlan {
    pub fn draw(random: &SharedRandom, broken: Option<Sabotage>) -> SimulationPlan {
        let hard = broken.is_some();
        let only = broken.map(|broken| match broken {
            Sabotage::HiddenResend
            | Sabotage::EpochMissed
            | Sabotage::FenceIgnored
            | Sabotage::NothingSynced
            | Sabotage::PastDropped => CallKind::Opaque,
            Sabotage::LivePronouncedDead | Sabotage::SilentPronouncedDead | Sabotage::LyingProbe => {
                CallKind::Probed
            }
        });
        let faultless = !hard && random.percent(20);
        let jumpy = !hard && !faultless && random.percent(25);
        let failover =
            !faultless && !jumpy && (broken == Some(Sabotage::EpochMissed) || !hard && random.percent(35));
        let children = random.percent(25);
        let often = |chance: u64| if faultless { 0 } else { chance };
        let fates = Fates {
            request_lost: often(8),
            answer_lost: often(if hard { 35 } else { 15 }),
            ambiguous: often(8),
            late_answer: often(8),
            refused: 8,
            never_sent: 4,
            probe_unknown: often(10),
            // What is in the network while the wall clock jumps forward can be taken for gone: a known limit.
            slow: !jumpy,
            refusals_stick: random.percent(50),
        };
        let kinds = [CallKind::Opaque, CallKind::Probed, CallKind::Keyed, CallKind::Convergent];
        let templates = (0..1 + random.below(3))
            .map(|n| {
                let kind = only.unwrap_or_else(|| *random.pick(&kinds));
                CallTemplate::draw(random, n, kind, (faultless, jumpy, children || hard))
            })
            .collect::<Vec<_>>();
        let processes = (0..2 + random.below(2))
            .map(|_| {
                let agents = if children { 1 } else { 1 + random.below(2) };
                (0..agents)
                    .map(|_| {
                        (0..2 + random.below(3)).map(|_| PlannedCall::draw(random, templates.len())).collect()
                    })
                    .collect()
            })
            .collect();
        SimulationPlan {
            faultless,
            jumpy,
            failover,
            children,
            fates,
            store_faults_percent: if faultless { 0 } else { [0, 0, 2, 6][random.below(4)] },
            templates,
            processes,
            troubles: if faultless { 0 } else { 1 + random.below(6) },
        }
    }
}

impl CallTemplate {
    fn draw(
        random: &SharedRandom,
        number: usize,
        kind: CallKind,
        (faultless, jumpy, children): (bool, bool, bool),
    ) -> CallTemplate {
        let action = format!("fn:charge_{number}");
        let rule = Policy::default().rule_for(&ActionFacts::new(&action, &Json::Null));
        let mut rule = Arc::unwrap_or_clone(rule);
        rule.class = match kind {
            CallKind::Convergent => Class::Convergent,
            _ if random.percent(25) => Class::Act,
            _ => Class::Consequential,
        };
        rule.wait = random.millis(500, 30_000);
        rule.timeout = match faultless {
            true => None,
            false => random.percent(70).then(|| random.millis(3_000, 20_000)),
        };
        rule.budget = 3;
        rule.scope = random.percent(50).then_some(ScopeChoice::Global);
        if random.percent(30) {
            rule.serialize_by = Some(path("args.customer"));
        }
        if random.percent(50) {
            rule.sorting.content = vec![path("args.body")];
        }
        if kind == CallKind::Probed {
            rule.probe = Some(Probe {
                call: ProbeCall::Command { argv: Vec::new() },
                found: None,
                reply: None,
                quiet: QUIET,
                before: random.percent(20),
            });
        }
        if kind == CallKind::Keyed {
            let valid_for = if random.percent(50) { 24 * 3600 } else { 180 };
            let into = InjectInto::Header("Idempotency-Key".into());
            rule.inject = Some(Inject {
                into,
                form: Default::default(),
                length: None,
                valid_for: Some(Duration::from_secs(valid_for)),
            });
        }
        let keys = match random.below(100) {
            0..30 => KeyHabit::One,
            30..50 => KeyHabit::Several,
            _ => KeyHabit::None,
        };
        if keys == KeyHabit::Several && random.percent(60) {
            rule.caller_key = CallerKey::Joins;
            rule.sorting.key = ["args.customer", "args.amount"].map(path).to_vec();
        }
        let keeps_refusals = random.percent(30);
        // Of a client nothing is known but its deadline, which a clock that goes back puts off.
        let away = !children && !jumpy && random.percent(25);
        if away && !faultless {
            // A client that says nothing has until then.
            rule.timeout = rule.timeout.or(Some(random.millis(3_000, 20_000)));
        }
        CallTemplate { kind, action, rule, keys, named_run: random.percent(70), keeps_refusals, away }
    }

    /// The rule as the process of this call knows it.
    pub fn rule(&self, call: &PlannedCall) -> Rule {
        match call.older_policy {
            true => Rule { inject: None, probe: None, ..self.rule.clone() },
            false => self.rule.clone(),
        }
    }

    /// What a call of this asks with.
    pub fn names(&self, intent: &Intent) -> Vec<CallIdentity> {
        let answers_repeats =
            intent.named_by == NamedBy::CallerKey || self.rule.class == Class::Consequential;
        let call = |id: &String| CallIdentity::Call(CallMark::of(id, &intent.marks).0);
        match &intent.again {
            Some(reason) => vec![CallIdentity::Reason(reason.as_str().to_owned())],
            None => {
                let plain = answers_repeats.then_some(CallIdentity::Plain);
                intent.call_id.as_ref().map(call).into_iter().chain(plain).collect()
            }
        }
    }

    pub fn intent(&self, call: &PlannedCall) -> Intent {
        let words = ["Your order has shipped.", "Good news: it has shipped!", "It is on its way to you."];
        let arguments: Json =
            json!({"args": {"customer": "ann", "amount": call.amount, "body": words[call.wording % words.len()]}})
                .into();
        let run = match self.named_run {
            true => Run::named(RUNS[call.run]),
            false => Run::inferred(RUNS[call.run]),
        };
        let ask = Ask {
            run: run.ok(),
            key: self.key(call).map(|key| IdempotencyKey::parse(&key).expect("it is one")),
            again: call.again.and_then(|reason| Reason::parse(REASONS[reason]).ok()),
            call_id: call.call_id.map(|id| format!("call-{id}")),
            replay_refusals: self.keeps_refusals,
            ..Ask::of((TENANT, "principal"), &self.action, &arguments)
        };
        Intent::of(&ask, &self.rule(call), &secret()).expect("no key is required here")
    }

    fn key(&self, call: &PlannedCall) -> Option<String> {
        match self.keys {
            KeyHabit::None => None,
            KeyHabit::One => Some(format!("key-{}", self.action)),
            KeyHabit::Several => call.key.map(|key| format!("key-{key}-{}", self.action)),
        }
    }
}

fn path(text: &str) -> Path {
    Path::parse(text).expect("a path")
}

impl PlannedCall {
    fn draw(random: &SharedRandom, templates: usize) -> PlannedCall {
        PlannedCall {
            template: random.below(templates),
            wording: if random.percent(25) { random.below(3) } else { 0 },
            amount: if random.percent(5) { 2 } else { 1 },
            run: random.below(RUNS.len()),
            again: random.percent(20).then(|| random.below(REASONS.len())),
            call_id: random.percent(30).then(|| random.below(3)),
            key: random.percent(80).then(|| random.below(3)),
            older_policy: random.percent(10),
            pause: random.millis(0, 6_000),
            arrives: random.percent(80),
        }
    }

    /// The same intent, wanted by somebody who comes later.
    pub fn plain(&self) -> PlannedCall {
        PlannedCall { again: None, call_id: None, older_policy: false, arrives: true, ..self.clone() }
    }
}
