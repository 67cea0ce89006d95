//! Scenarios as data: `eval/*.toml`. A family is the product of its agents, faults and tasks.

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentKind {
    /// Tries again until it is told that it worked, four times at most.
    Naive,
    /// Looks before it tries again.
    VerifyFirst,
    /// Does it, forgets it, and does it once more.
    Amnesiac,
    /// Sends it twice at the same time.
    Parallel,
    /// Three layers that each try three times.
    Storm,
    /// Tries again in other words.
    Rewording,
    /// Two agents do the same on one resource.
    TwoWorkers,
    /// Gives up at the first failure.
    Careful,
    /// Does it twice, and means it.
    Deliberate,
    /// Does it, something else, and the first once more.
    BackAndForth,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WorldFault {
    None,
    /// The answer is lost; the effect happened.
    LostAfter,
    /// The answer is lost; the effect did not happen.
    LostBefore,
    /// The answer is lost, and the effect happens a little later.
    LateCommit,
    /// A server error, although it happened.
    UnavailableAfter,
    /// "Too many requests", although it happened.
    RateLimitedAfter,
    /// A success, although nothing happened.
    NeverDone,
    /// The tool dies behind the effect, or in front of it.
    CrashAfter,
    CrashBefore,
    /// The agent's call is delivered twice.
    DeliveredTwice,
    /// The answer is lost, and reads do not show the effect yet.
    StaleRead,
}

impl WorldFault {
    /// Whether the first try happened.
    pub fn commits(self) -> bool {
        !matches!(self, WorldFault::LostBefore | WorldFault::CrashBefore | WorldFault::NeverDone)
    }

    /// Whether the agent could know from the answer to its first try.
    pub fn leaves_a_doubt(self) -> bool {
        !matches!(self, WorldFault::None | WorldFault::DeliveredTwice | WorldFault::NeverDone)
    }
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    pub tool: String,
    pub args: Value,
    /// The same thing in other words.
    pub reworded: Option<Value>,
    /// Something else on the same resource.
    pub other: Option<Value>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Scenario {
    pub name: String,
    pub agent: AgentKind,
    pub fault: WorldFault,
    pub task: Task,
    /// How many effects are wanted in the end.
    pub intended: usize,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScenarioFile {
    tasks: Vec<NamedTask>,
    family: Vec<Family>,
}

#[derive(Debug, Deserialize)]
struct NamedTask {
    name: String,
    #[serde(flatten)]
    task: Task,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Family {
    name: String,
    agents: Vec<AgentKind>,
    faults: Vec<WorldFault>,
    tasks: Vec<String>,
    intended: usize,
}

/// The scenarios that are shipped.
pub fn shipped() -> Vec<Scenario> {
    read(include_str!("../../eval/scenarios.toml")).expect("the shipped scenarios read; a test sees to it")
}

pub fn read(text: &str) -> Result<Vec<Scenario>, String> {
    let file: ScenarioFile = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut scenarios = Vec::new();
    for family in &file.family {
        for name in &family.tasks {
            let task = file.tasks.iter().find(|task| task.name == *name);
            let task = &task.ok_or_else(|| format!("{}: there is no task `{name}`", family.name))?.task;
            for agent in &family.agents {
                for fault in &family.faults {
                    scenarios.push(Scenario {
                        name: format!("{}/{name}/{}/{}", family.name, word(agent), word(fault)),
                        agent: *agent,
                        fault: *fault,
                        task: task.clone(),
                        intended: family.intended,
                    });
                }
            }
        }
    }
    Ok(scenarios)
}

fn word(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn there_are_more_than_a_hundred_scenarios_with_names_of_their_own() {
        let scenarios = shipped();
        let names: HashSet<&str> = scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
        assert!(scenarios.len() >= 100, "{}", scenarios.len());
        assert_eq!(names.len(), scenarios.len());
    }
}
