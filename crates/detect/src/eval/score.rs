//! Compares what was intended, what happened, and what the agent was told.

use super::port::Heard;
use super::scenario::{AgentKind, Scenario};
use super::world::{LogLine, Noted};
use serde::Serialize;

#[derive(Debug, Clone, Serialize)]
pub struct ScenarioResult {
    pub name: String,
    pub intended: usize,
    pub happened: usize,
    /// Whether the first try had happened. `None`: its answer was not lost.
    pub committed: Option<bool>,
    pub told: &'static str,
    pub ran_twice: bool,
    /// A wanted effect did not happen.
    pub lost: bool,
    /// A repeat that was meant did not happen.
    pub wrongly_suppressed: bool,
    /// The agent was told the truth, or that nobody knows where nobody did.
    pub honest: bool,
    /// Something was read before it was sent again. `None`: it was not sent again.
    pub verified: Option<bool>,
}

impl ScenarioResult {
    pub fn is_right(&self) -> bool {
        !self.ran_twice && !self.wrongly_suppressed && self.honest
    }
}

pub fn score(scenario: &Scenario, heard: &Heard, log: &[LogLine]) -> ScenarioResult {
    let happened = log.iter().filter(|line| line.what == Noted::Effect).count();
    let is_repeat = matches!(scenario.agent, AgentKind::Deliberate | AgentKind::BackAndForth);
    let missing = happened < scenario.intended;
    let honest = match heard {
        Heard::Done => !missing,
        Heard::Failed(_) => happened == 0 || is_repeat,
        Heard::Unknown(_) => scenario.fault.leaves_a_doubt() || is_repeat,
    };
    let arrivals: Vec<usize> =
        log.iter().enumerate().filter(|(_, line)| line.what == Noted::Arrived).map(|(at, _)| at).collect();
    let verified = (scenario.fault.leaves_a_doubt() && arrivals.len() > 1)
        .then(|| log[arrivals[0]..arrivals[1]].iter().any(|line| line.what == Noted::Read));
    ScenarioResult {
        name: scenario.name.clone(),
        intended: scenario.intended,
        happened,
        committed: scenario.fault.leaves_a_doubt().then_some(scenario.fault.commits()),
        told: match heard {
            Heard::Done => "done",
            Heard::Failed(_) => "failed",
            Heard::Unknown(_) => "unknown",
        },
        ran_twice: happened > scenario.intended,
        lost: missing && !is_repeat,
        wrongly_suppressed: missing && is_repeat,
        honest,
        verified,
    }
}

/// The five numbers of a guard.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Numbers {
    pub scenarios: usize,
    pub ran_twice: usize,
    pub lost: usize,
    pub wrongly_suppressed: usize,
    pub honestly_reported: usize,
    /// Of the scenarios in which it was sent again after a doubt.
    pub verified: usize,
    pub sent_again: usize,
}

impl Numbers {
    pub fn of(results: &[ScenarioResult]) -> Numbers {
        let count = |test: fn(&ScenarioResult) -> bool| results.iter().filter(|result| test(result)).count();
        Numbers {
            scenarios: results.len(),
            ran_twice: count(|result| result.ran_twice),
            lost: count(|result| result.lost),
            wrongly_suppressed: count(|result| result.wrongly_suppressed),
            honestly_reported: count(|result| result.honest),
            verified: count(|result| result.verified == Some(true)),
            sent_again: count(|result| result.verified.is_some()),
        }
    }
}
