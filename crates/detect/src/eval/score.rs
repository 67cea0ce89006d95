//! Compares what was intended, what happened, and what the agent was told.

use super::port::Heard;
use super::scenario::{Agent, AgentKind, Scenario, WantedEffect};
use super::world::{LogLine, Noted};
use serde::Serialize;

#[derive(Debug, Clone, Serialize)]
pub struct ScenarioResult {
    pub name: String,
    pub intended: usize,
    pub happened: usize,
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
    /// A call came through to the world.
    #[serde(skip)]
    pub reached_the_world: bool,
}

impl ScenarioResult {
    /// Each wanted effect happened, and none too often.
    pub fn is_as_wanted(&self) -> bool {
        !self.ran_twice && !self.lost && !self.wrongly_suppressed
    }

    pub fn is_right(&self) -> bool {
        !self.ran_twice && !self.wrongly_suppressed && self.honest
    }
}

pub fn score(scenario: &Scenario, heard: &Heard, log: &[LogLine]) -> ScenarioResult {
    let effects = |wanted: &WantedEffect| {
        log.iter().filter(|line| line.what == Noted::Effect && wanted.is(line)).count()
    };
    let happened: usize = scenario.wanted.iter().map(effects).sum();
    let intended: usize = scenario.wanted.iter().map(|wanted| wanted.times).sum();
    let ran_twice = scenario.wanted.iter().any(|wanted| effects(wanted) > wanted.times);
    let is_missing = scenario.wanted.iter().any(|wanted| effects(wanted) < wanted.times);
    let is_repeat = intended > 1;
    let was_stopped = matches!(scenario.agent, Agent::Scripted(AgentKind::Stopped, _));
    let leaves_a_doubt = was_stopped || scenario.plan.leaves_a_doubt();
    let honest = match heard {
        Heard::Done => !is_missing,
        Heard::Failed(_) => is_missing,
        Heard::Unknown(_) => leaves_a_doubt,
    };
    let arrivals: Vec<usize> =
        log.iter().enumerate().filter(|(_, line)| line.what == Noted::Arrived).map(|(at, _)| at).collect();
    // The calls of a pair are no decisions of an agent, and calls at the same time are no retries.
    let is_one_by_one = !scenario.is_delivered_twice
        && !matches!(scenario.agent, Agent::Pair { .. } | Agent::Scripted(AgentKind::Parallel, _));
    let is_retry = leaves_a_doubt && arrivals.len() > 1 && is_one_by_one;
    let verified =
        is_retry.then(|| log[arrivals[0]..arrivals[1]].iter().any(|line| line.what == Noted::Read));
    ScenarioResult {
        name: scenario.name.clone(),
        intended,
        happened,
        told: match heard {
            Heard::Done => "done",
            Heard::Failed(_) => "failed",
            Heard::Unknown(_) => "unknown",
        },
        ran_twice,
        lost: is_missing && !is_repeat,
        wrongly_suppressed: is_missing && is_repeat,
        honest,
        verified,
        reached_the_world: !log.is_empty(),
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

#[cfg(test)]
mod tests {
    use super::super::scenario;
    use super::*;
    use serde_json::Value;

    #[test]
    fn a_duplicate_of_one_entity_does_not_make_up_for_the_loss_of_another() {
        let scenarios = scenario::shipped();
        let scenario = scenarios.iter().find(|scenario| scenario.name.starts_with("back and forth/"));
        let scenario = scenario.expect("it is shipped");
        let [(tool, there), (_, back)] = [0, 1].map(|at: usize| scenario.wanted[at].calls[0].clone());
        let line = |args: &Value| LogLine { what: Noted::Effect, tool: tool.clone(), args: args.clone() };
        let right = score(scenario, &Heard::Done, &[line(&there), line(&back), line(&there)]);
        assert!(right.is_right() && right.is_as_wanted(), "{right:?}");
        let wrong = score(scenario, &Heard::Done, &[line(&there), line(&back), line(&back)]);
        assert_eq!((wrong.intended, wrong.happened), (3, 3));
        assert!(wrong.ran_twice && wrong.wrongly_suppressed && !wrong.honest, "{wrong:?}");
    }

    #[test]
    fn a_failure_that_did_not_happen_and_a_doubt_that_nobody_had_are_no_honest_reports() {
        let scenarios = scenario::shipped();
        let scenario = scenarios.iter().find(|scenario| scenario.name.starts_with("deliberate"));
        let scenario = scenario.expect("it is shipped");
        let (tool, args) = scenario.wanted[0].calls[0].clone();
        let line = LogLine { what: Noted::Effect, tool, args };
        let honest = |heard: Heard, times: usize| score(scenario, &heard, &vec![line.clone(); times]).honest;
        assert!(honest(Heard::Done, 2) && !honest(Heard::Done, 1));
        assert!(honest(Heard::Failed(String::new()), 1) && !honest(Heard::Failed(String::new()), 2));
        assert_eq!(honest(Heard::Unknown(String::new()), 1), scenario.plan.leaves_a_doubt());
    }
}
