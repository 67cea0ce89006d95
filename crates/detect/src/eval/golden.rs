//! The project's golden pairs (`spec/golden`) as scenarios: a duplicate must happen once, a repeat or another entity
//! twice.
//!
//! A pair says which answer semel should give under which policy; any guard can be asked how often things happened. So
//! the pairs that need no policy, no passing time and no names of semel's own are taken, at the door for which they were
//! written. At the command door the caller's key alone decides, and there are none.

use super::scenario::{Agent, EvalDoor, Scenario, WantedEffect};
use super::world::{EffectTime, FirstAnswer, WorldPlan};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

const FILES: [&str; 5] = [
    include_str!("../../../../spec/golden/entities.toml"),
    include_str!("../../../../spec/golden/machines.toml"),
    include_str!("../../../../spec/golden/messages.toml"),
    include_str!("../../../../spec/golden/payment.toml"),
    include_str!("../../../../spec/golden/work.toml"),
];

/// Members that say what semel answers, or only describe.
const NOT_OURS: [&str; 4] = ["theme", "variant", "expect", "out"];

/// One call of a pair.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairCall {
    pub tool: String,
    pub args: Value,
    pub again: Option<String>,
    /// A new session makes it.
    pub restart: bool,
}

#[derive(Debug, Deserialize)]
struct GoldenFile {
    pair: Vec<GoldenPair>,
}

#[derive(Debug, Deserialize)]
struct GoldenPair {
    name: String,
    door: String,
    call: String,
    #[serde(default)]
    args: Map<String, Value>,
    hints: Option<Value>,
    first: Option<GoldenFirst>,
    duplicate: Option<GoldenSide>,
    repeat: Option<GoldenSide>,
    other: Option<GoldenSide>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Debug, Default, Deserialize)]
struct GoldenFirst {
    done: Option<bool>,
    answer: Option<String>,
    status: Option<u16>,
    reply: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct GoldenSide {
    first: Option<GoldenFirst>,
    #[serde(default)]
    change: Map<String, Value>,
    #[serde(default)]
    without: Vec<String>,
    call: Option<String>,
    again: Option<String>,
    #[serde(default)]
    between: Vec<GoldenBetween>,
    #[serde(default)]
    restart: bool,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct GoldenBetween {
    call: String,
    #[serde(default)]
    args: Map<String, Value>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

pub fn scenarios() -> Vec<Scenario> {
    let read = |text: &&str| -> GoldenFile {
        toml::from_str(text).expect("the golden pairs read; a test sees to it")
    };
    let mut scenarios = Vec::new();
    for pair in FILES.iter().map(read).flat_map(|file| file.pair) {
        let sides = [("duplicate", &pair.duplicate), ("repeat", &pair.repeat), ("other", &pair.other)];
        for (kind, side) in sides {
            scenarios.extend(side.as_ref().and_then(|side| scenario(&pair, kind, side)));
        }
    }
    scenarios
}

/// `None`: it needs more than any guard has.
fn scenario(pair: &GoldenPair, kind: &str, side: &GoldenSide) -> Option<Scenario> {
    let untold = GoldenFirst::default();
    let first = side.first.as_ref().or(pair.first.as_ref()).unwrap_or(&untold);
    let rests = [&pair.rest, &side.rest, &first.rest];
    let needs_more = |rest: &Map<String, Value>| rest.keys().any(|name| !NOT_OURS.contains(&name.as_str()));
    if rests.into_iter().chain(side.between.iter().map(|between| &between.rest)).any(needs_more) {
        return None;
    }
    let door = EvalDoor::parse(&pair.door).filter(|door| *door != EvalDoor::Command)?;
    let call = |name: &str, args: Map<String, Value>| -> Option<PairCall> {
        Some(PairCall { tool: tool(door, &pair.call, name)?, args: args.into(), again: None, restart: false })
    };
    let mut args = pair.args.clone();
    args.retain(|name, _| !side.without.contains(name));
    args.extend(side.change.clone());
    let mut calls = vec![call(&pair.call, pair.args.clone())?];
    for between in &side.between {
        calls.push(call(&between.call, between.args.clone())?);
    }
    let last = call(side.call.as_ref().unwrap_or(&pair.call), args)?;
    calls.push(PairCall { again: side.again.clone(), restart: side.restart, ..last });
    let is_done = first.done.unwrap_or(true);
    let mut plan = WorldPlan::new(
        if is_done { EffectTime::Now } else { EffectTime::Never },
        match first.answer.as_deref().unwrap_or("ok") {
            "ok" => FirstAnswer::Success(first.reply.clone()),
            "lost" => FirstAnswer::Lost,
            words => FirstAnswer::Error(first.status.unwrap_or(500), words.to_owned()),
        },
    );
    plan.tools = calls.iter().map(|call| listing(call, pair.hints.as_ref())).collect();
    plan.tools.dedup_by_key(|tool| tool["name"].clone());
    let is_same = kind == "duplicate";
    Some(Scenario {
        name: format!("{kind}/{}", pair.name),
        door: Some(door),
        wanted: wanted(&calls, is_same, is_done),
        agent: Agent::Pair { calls, is_same },
        plan,
        is_delivered_twice: false,
    })
}

/// The name under which the world knows a call. `None`: it goes to another server.
fn tool(door: EvalDoor, first: &str, call: &str) -> Option<String> {
    match door {
        EvalDoor::Http => Some(call.strip_prefix("POST /").unwrap_or(call).to_owned()),
        _ => {
            let (server, tool) = call.split_once('/')?;
            (first.split_once('/')?.0 == server).then(|| tool.to_owned())
        }
    }
}

fn listing(call: &PairCall, hints: Option<&Value>) -> Value {
    let names = call.args.as_object().into_iter().flatten().map(|(name, _)| (name.clone(), json!({})));
    let schema = json!({"type": "object", "properties": names.collect::<Map<_, _>>()});
    let mut tool = json!({"name": call.tool, "inputSchema": schema});
    if let Some(hints) = hints {
        tool["annotations"] = hints.clone();
    }
    tool
}

/// The effects of the first and the last call.
fn wanted(calls: &[PairCall], is_same: bool, is_done: bool) -> Vec<WantedEffect> {
    let effect = |call: &PairCall, times: usize| WantedEffect {
        calls: vec![(call.tool.clone(), call.args.clone())],
        times,
    };
    let [first, .., last] = calls else { return Vec::new() };
    let before = usize::from(is_done);
    let is_equal = (&first.tool, &first.args) == (&last.tool, &last.args);
    match (is_same, is_equal) {
        (true, _) => {
            let both = [effect(first, 1), effect(last, 1)];
            vec![WantedEffect { calls: both.into_iter().flat_map(|effect| effect.calls).collect(), times: 1 }]
        }
        (false, true) => vec![effect(last, before + 1)],
        (false, false) => vec![effect(first, before), effect(last, 1)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_pairs_of_mcp_and_http_are_scenarios() {
        let scenarios = scenarios();
        let count = |door: EvalDoor, kind: &str| {
            let is = |scenario: &&Scenario| scenario.door == Some(door) && scenario.name.starts_with(kind);
            scenarios.iter().filter(is).count()
        };
        let counts = [EvalDoor::Mcp, EvalDoor::Http]
            .map(|door| [count(door, "duplicate/"), count(door, "repeat/"), count(door, "other/")]);
        let [[same, repeats, others], [http_same, http_repeats, _]] = counts;
        assert!(same >= 60 && repeats >= 70 && others >= 20, "{counts:?}");
        assert!(http_same >= 15 && http_repeats >= 15, "{counts:?}");
    }

    #[test]
    fn a_duplicate_is_wanted_once_and_a_repeat_as_often_as_it_is_meant() {
        let scenarios = scenarios();
        let times = |name: &str| -> Vec<usize> {
            let scenario = scenarios.iter().find(|scenario| scenario.name == name);
            scenario.unwrap_or_else(|| panic!("{name}")).wanted.iter().map(|effect| effect.times).collect()
        };
        assert_eq!(times("duplicate/refund: the answer was lost"), [1]);
        assert_eq!(times("repeat/refund: the answer was lost"), [2]);
        assert_eq!(times("other/entity: invoice numbers"), [1, 1]);
        // The card was declined, so that the second charge is the first one that happens.
        assert_eq!(times("repeat/charge: done, with an error that says nothing"), [1]);
    }
}
