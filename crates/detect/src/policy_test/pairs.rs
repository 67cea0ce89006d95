//! Pairs of calls in the form of `spec/golden`: a call, and next ones with the answer that each should get.

use super::rehearsal::{HoldReason, Rehearsal, Treatment};
use crate::ending::Ending;
use crate::judge::Judge;
use crate::transcript::{ActionCall, ToolAnswer};
use semel_core::json::{self, Json};
use semel_core::policy::{Rule, call_arguments, duration};
use semel_core::time::At;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

#[derive(Debug, Deserialize)]
struct PairFile {
    pair: Vec<Pair>,
}

/// The fields that a rehearsal plays. A pair with others, such as a caller's key, needs doors and a world.
#[derive(Debug, Clone, Deserialize)]
struct Pair {
    name: String,
    door: String,
    #[serde(flatten)]
    call: PairCall,
    #[serde(default)]
    first: World,
    duplicate: Option<Side>,
    repeat: Option<Side>,
    other: Option<Side>,
    #[serde(flatten)]
    more: Map<String, Value>,
}

#[derive(Debug, Clone, Deserialize)]
struct PairCall {
    call: String,
    #[serde(default)]
    args: Map<String, Value>,
}

#[derive(Debug, Clone, Deserialize)]
struct Side {
    first: Option<World>,
    #[serde(default)]
    change: Map<String, Value>,
    #[serde(default)]
    without: Vec<String>,
    call: Option<String>,
    again: Option<String>,
    #[serde(default)]
    between: Vec<PairCall>,
    after: Option<String>,
    #[serde(default)]
    expect: ExpectedAnswer,
    #[serde(flatten)]
    more: Map<String, Value>,
}

/// The answers that a pair may ask for.
#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpectedAnswer {
    #[default]
    Ran,
    Replayed,
    Joined,
    Held,
    #[serde(rename = "held in_doubt")]
    InDoubt,
    #[serde(rename = "held superseded")]
    Superseded,
    #[serde(rename = "held held_for_person")]
    HeldForPerson,
    /// The call is sent, and the world refuses it.
    Refused,
    #[serde(rename = "refused drift")]
    Drift,
}

/// The world's part in a call.
#[derive(Debug, Clone, Default, Deserialize)]
struct World {
    answer: Option<String>,
    #[serde(flatten)]
    more: Map<String, Value>,
}

/// Words that say nothing to a rehearsal.
const IDLE: [&str; 8] = ["theme", "variant", "out", "world", "done", "converges", "restart", "expect"];

/// The pairs of a file under a policy.
#[derive(Debug, Default, Serialize)]
pub struct PairReport {
    /// Sides that were played, and those that need more than a rehearsal.
    pub tried: usize,
    pub not_tried: usize,
    pub wrong: Vec<WrongPair>,
}

#[derive(Debug, Serialize)]
pub struct WrongPair {
    pub name: String,
    pub side: &'static str,
    pub expected: ExpectedAnswer,
    pub got: &'static str,
}

/// Plays each side on a ledger of its own.
pub fn test(text: &str, judge: &Judge, report: &mut PairReport) -> Result<(), toml::de::Error> {
    for pair in toml::from_str::<PairFile>(text)?.pair {
        let sides = [("duplicate", &pair.duplicate), ("repeat", &pair.repeat), ("other", &pair.other)];
        for (name, side) in sides {
            let Some(side) = side else { continue };
            let Some((expected, got)) = play(&pair, side, judge) else {
                report.not_tried += 1;
                continue;
            };
            report.tried += 1;
            if !is_as_expected(expected, got) {
                let (name, side) = (pair.name.clone(), name);
                report.wrong.push(WrongPair { name, side, expected, got: got.word() });
            }
        }
    }
    Ok(())
}

fn play(pair: &Pair, side: &Side, judge: &Judge) -> Option<(ExpectedAnswer, Treatment)> {
    let first = side.first.as_ref().unwrap_or(&pair.first);
    let parts = [&pair.more, &side.more, &first.more];
    if parts.iter().any(|more| more.keys().any(|name| !IDLE.contains(&name.as_str()))) {
        return None;
    }
    let mut rehearsal = Rehearsal::new(judge);
    let mut call = |call: &PairCall, at: At, world: &World| {
        let action = action_call(&pair.door, call)?;
        Some(rehearsal.call(&action, at, |rule| world.ending(&action, rule)).treatment)
    };
    call(&pair.call, At(0), first)?;
    for between in &side.between {
        call(between, At(0), &World::default())?;
    }
    let mut next = pair.call.clone();
    next.args.retain(|name, _| !side.without.contains(name));
    next.args.extend(side.change.clone());
    next.args.extend(side.again.as_ref().map(|why| ("semel_again".to_owned(), json!(why))));
    next.call = side.call.clone().unwrap_or(next.call);
    let after = side.after.as_deref().map_or(Ok(std::time::Duration::ZERO), duration::parse).ok()?;
    Some((side.expect, call(&next, At(0).plus(after), &World::default())?))
}

fn action_call(door: &str, call: &PairCall) -> Option<ActionCall> {
    let value = |value: &Value| json::parse(&value.to_string()).ok();
    match door {
        "mcp" => {
            let action = format!("mcp:{}", call.call);
            let arguments = call_arguments::rooted(&action, value(&Value::Object(call.args.clone()))?);
            Some(ActionCall { action, arguments })
        }
        "command" => {
            let argv = shlex::split(&call.call)?;
            let program = argv.first()?.rsplit('/').next()?;
            let action = format!("cli:{program}");
            let arguments = Json::object([("argv", value(&json!(argv))?)]);
            Some(ActionCall { action, arguments })
        }
        "http" => {
            let (method, address) = call.call.split_once(' ')?;
            let (place, query) = address.split_once('?').unwrap_or((address, ""));
            let host = if place.starts_with('/') { "api.example.com" } else { "" };
            let action = format!("http:{method} {host}{place}");
            let query: Map<String, Value> = query
                .split('&')
                .filter_map(|pair| pair.split_once('='))
                .map(|(name, value)| (name.to_owned(), json!(value)))
                .collect();
            let arguments =
                call_arguments::rooted(&action, value(&json!({"body": call.args, "query": query}))?);
            Some(ActionCall { action, arguments })
        }
        _ => None,
    }
}

impl World {
    fn ending(&self, action: &ActionCall, rule: &Rule) -> Ending {
        let (is_error, text) = match self.answer.as_deref() {
            None | Some("ok") => (false, "ok"),
            Some("lost") => return Ending::InDoubt,
            Some(text) => (true, text),
        };
        let answer = ToolAnswer {
            id: Cow::Borrowed(""),
            is_error: Some(is_error),
            text: text.into(),
            interrupted: false,
        };
        Ending::of(Some(&answer), &action.action, rule.class)
    }
}

/// Whether a treatment leads to the answer that a pair writes.
fn is_as_expected(expected: ExpectedAnswer, got: Treatment) -> bool {
    match (expected, got) {
        (ExpectedAnswer::Ran | ExpectedAnswer::Refused, got) => got == Treatment::LetThrough,
        (ExpectedAnswer::Replayed | ExpectedAnswer::Joined, got) => got == Treatment::Collapsed,
        (ExpectedAnswer::Held, got) => matches!(got, Treatment::Held(_)),
        // A call that looks like one in doubt is in doubt.
        (ExpectedAnswer::InDoubt, Treatment::Held(why)) => {
            matches!(why, HoldReason::InDoubt | HoldReason::Lookalike)
        }
        (ExpectedAnswer::Superseded, Treatment::Held(why)) => why == HoldReason::Superseded,
        (ExpectedAnswer::HeldForPerson, Treatment::Held(why)) => why == HoldReason::NotAllowed,
        (ExpectedAnswer::Drift, Treatment::Held(why)) => why == HoldReason::Drift,
        _ => false,
    }
}
