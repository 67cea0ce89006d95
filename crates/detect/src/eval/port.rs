//! The way of an agent's calls to the world, through a guard or without one.

use semel_core::judgement::error_text;
use serde_json::Value;
use std::fmt;
use std::time::Duration;

/// An agent waits this long for an answer.
pub const PATIENCE: Duration = Duration::from_millis(1_500);

/// The result of a call, as the agent hears it.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    Done,
    /// It failed, clearly.
    Failed(String),
    /// Nobody says whether it happened.
    Unknown(String),
}

/// One call of an agent.
#[derive(Debug, Clone)]
pub struct AgentCall<'a> {
    /// Over HTTP it may be a method and a path, `PUT /v1/things`.
    pub tool: &'a str,
    pub args: &'a Value,
    /// The agent's own name for the step.
    pub step: &'a str,
    /// It repeats an earlier one on purpose.
    pub again: Option<&'a str>,
}

pub trait Port: fmt::Debug + Send + Sync {
    fn call(&self, call: &AgentCall<'_>) -> (Heard, Option<Value>);

    /// Begins a call and stops it once `is_time` says so, as a user does. Nobody hears the answer.
    fn call_and_stop(&self, call: &AgentCall<'_>, is_time: &dyn Fn() -> bool);

    /// The tools as a guard lists them. `None`: it lists none.
    fn tools(&self) -> Option<Vec<Value>> {
        None
    }
}

/// Words of an answer that leave the outcome open, beside those of a lost answer. They are nobody's own words.
pub const OPEN_WORDS: [&str; 5] = ["may have", "still running", "in progress", "not known", "unknown"];

/// An answer that is no success, as the agent hears it.
pub fn failure(text: String) -> Heard {
    let lower = text.to_lowercase();
    if error_text::lost(&text).is_some() || OPEN_WORDS.iter().any(|word| lower.contains(word)) {
        Heard::Unknown(text)
    } else {
        Heard::Failed(text)
    }
}
