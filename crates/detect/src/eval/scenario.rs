//! Scenarios: who works on which task in which world, and the effects that are wanted in the end.
//!
//! Most are data, `eval/scenarios.toml`: a family is the product of its agents, faults and tasks. Others are made of the
//! golden pairs ([`super::golden`]).

use super::fault::WorldFault;
use super::golden::PairCall;
use super::world::{LogLine, WorldPlan};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scenario {
    pub name: String,
    /// The one door that it is for. `None`: every door.
    pub door: Option<EvalDoor>,
    pub agent: Agent,
    pub plan: WorldPlan,
    /// Something between agent and guard sends each call twice.
    pub is_delivered_twice: bool,
    pub wanted: Vec<WantedEffect>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvalDoor {
    Command,
    Mcp,
    Http,
}

impl EvalDoor {
    pub const ALL: [EvalDoor; 3] = [EvalDoor::Command, EvalDoor::Mcp, EvalDoor::Http];

    pub fn word(self) -> &'static str {
        match self {
            EvalDoor::Command => "command",
            EvalDoor::Mcp => "mcp",
            EvalDoor::Http => "http",
        }
    }

    pub fn parse(word: &str) -> Option<EvalDoor> {
        EvalDoor::ALL.into_iter().find(|door| door.word() == word)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Agent {
    Scripted(AgentKind, Task),
    /// Makes these calls, one after another; the first and the last are the same intent, or are not.
    Pair {
        calls: Vec<PairCall>,
        is_same: bool,
    },
    /// A language model works on the task.
    Model,
}

/// An effect on one entity, and how often it should happen.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WantedEffect {
    /// Calls that are this effect, in whatever words: tool and arguments.
    pub calls: Vec<(String, Value)>,
    pub times: usize,
}

impl WantedEffect {
    pub fn is(&self, line: &LogLine) -> bool {
        self.calls.iter().any(|(tool, args)| *tool == line.tool && *args == line.args)
    }
}

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
    /// Its user stops it in the middle of the call, and wants it after all.
    Stopped,
    /// Does it twice, and means it.
    Deliberate,
    /// Does it, something else, and the first once more.
    BackAndForth,
}

impl AgentKind {
    fn wanted(self, task: &Task) -> Vec<WantedEffect> {
        let effect = |args: Vec<&Value>, times: usize| WantedEffect {
            calls: args.into_iter().map(|args| (task.tool.clone(), args.clone())).collect(),
            times,
        };
        let own = std::iter::once(&task.args).chain(&task.reworded).collect();
        match self {
            AgentKind::Deliberate => vec![effect(own, 2)],
            AgentKind::BackAndForth => vec![effect(own, 2), effect(task.other.iter().collect(), 1)],
            _ => vec![effect(own, 1)],
        }
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    pub tool: String,
    pub args: Value,
    /// The same thing in other words.
    pub reworded: Option<Value>,
    /// Something else on the same resource.
    pub other: Option<Value>,
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
}

/// The scenarios of scripted agents that are shipped.
pub fn shipped() -> Vec<Scenario> {
    read(include_str!("../../eval/scenarios.toml")).expect("the shipped scenarios read; a test sees to it")
}

/// The same tasks and faults, with a model as the agent.
pub fn for_model() -> Vec<Scenario> {
    let mut scenarios: Vec<Scenario> = Vec::new();
    for mut scenario in shipped() {
        if let Agent::Scripted(kind, _) = &scenario.agent {
            scenario.name = scenario.name.replace(&format!("/{}/", word(kind)), "/model/");
        }
        scenario.agent = Agent::Model;
        let is_like =
            |other: &Scenario| Scenario { name: scenario.name.clone(), ..other.clone() } == scenario;
        if !scenarios.iter().any(is_like) {
            scenarios.push(scenario);
        }
    }
    scenarios
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
                        door: None,
                        agent: Agent::Scripted(*agent, task.clone()),
                        plan: fault.plan(),
                        is_delivered_twice: *fault == WorldFault::DeliveredTwice,
                        wanted: agent.wanted(task),
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
    use super::super::golden;
    use super::super::world::EffectTime;
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn there_are_more_than_a_hundred_scenarios_with_names_of_their_own() {
        let scenarios: Vec<Scenario> = shipped().into_iter().chain(golden::scenarios()).collect();
        let names: HashSet<&str> = scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
        assert!(shipped().len() >= 100, "{}", shipped().len());
        assert_eq!(names.len(), scenarios.len());
        let model: HashSet<String> = for_model().into_iter().map(|scenario| scenario.name).collect();
        assert_eq!(model.len(), for_model().len());
    }

    #[test]
    fn lost_before_and_lost_after_differ_in_nothing_but_the_effect() {
        let scenarios = shipped();
        for (after, before) in [("/lost_after", "/lost_before"), ("/crash_after", "/crash_before")] {
            let mut pairs = 0;
            for lost in scenarios.iter().filter(|scenario| scenario.name.ends_with(before)) {
                let name = lost.name.replace(before, after);
                let twin = scenarios.iter().find(|scenario| scenario.name == name);
                let mut twin = twin.unwrap_or_else(|| panic!("{} has no twin", lost.name)).clone();
                assert_eq!((twin.plan.effect, lost.plan.effect), (EffectTime::Now, EffectTime::Never));
                twin.plan.effect = EffectTime::Never;
                twin.name.clone_from(&lost.name);
                assert_eq!(twin, *lost);
                pairs += 1;
            }
            assert!(pairs >= 6, "{before}: {pairs}");
        }
    }
}
