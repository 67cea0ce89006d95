//! Scripted agents. They know no guard: they call, hear an answer, and do what their kind does.

use super::mcp_server::read_tool;
use super::port::{AgentCall, Heard, Port};
use super::scenario::{AgentKind, Scenario, WorldFault};
use super::world::wait_for_late_effects;
use serde_json::Value;

/// The tries of an agent that does not look.
const TRIES: usize = 4;
/// Arguments that say how, not what: a look leaves them out.
const WORDING: [&str; 3] = ["memo", "body", "note"];

/// Works on the task and says what the agent believes in the end.
pub fn work(scenario: &Scenario, port: &dyn Port, second: &dyn Port) -> Heard {
    let hand = Hand { scenario, port };
    let args = &scenario.task.args;
    match scenario.agent {
        AgentKind::Careful => hand.call(args, "one", None),
        AgentKind::Naive => hand.until_done(args, TRIES),
        AgentKind::Storm => hand.until_done(args, 9),
        AgentKind::VerifyFirst => hand.verify_first(),
        AgentKind::Amnesiac => {
            hand.until_done(args, 1);
            hand.call(args, "one", None)
        }
        AgentKind::Parallel => {
            let both = std::thread::scope(|scope| {
                let first = scope.spawn(|| hand.call(args, "one", None));
                [hand.call(args, "one", None), first.join().unwrap_or(Heard::Unknown("panicked".to_owned()))]
            });
            let [first, other] = both;
            if first == Heard::Done { first } else { other }
        }
        AgentKind::Rewording => {
            let heard = hand.call(args, "one", None);
            let reworded = scenario.task.reworded.as_ref().unwrap_or(args);
            match (heard, hand.call(reworded, "one", None)) {
                (Heard::Done, _) | (_, Heard::Done) => Heard::Done,
                (_, second) => second,
            }
        }
        AgentKind::TwoWorkers => {
            let heard = hand.call(args, "one", None);
            let colleague = Hand { scenario, port: second };
            match colleague.call(args, "one", None) {
                Heard::Done => Heard::Done,
                _ => heard,
            }
        }
        AgentKind::Deliberate => {
            let heard = hand.call(args, "one", None);
            match hand.call(args, "two", Some("the user asked for a second one")) {
                Heard::Done => heard,
                second => second,
            }
        }
        AgentKind::BackAndForth => {
            let other = scenario.task.other.as_ref().unwrap_or(args);
            let steps = [(args, "one"), (other, "two"), (args, "three")];
            steps
                .map(|(args, step)| hand.call(args, step, None))
                .into_iter()
                .find(|heard| *heard != Heard::Done)
                .unwrap_or(Heard::Done)
        }
    }
}

struct Hand<'a> {
    scenario: &'a Scenario,
    port: &'a dyn Port,
}

impl Hand<'_> {
    fn call(&self, args: &Value, step: &str, again: Option<&str>) -> Heard {
        let call = AgentCall { tool: &self.scenario.task.tool, args, step, again };
        if self.scenario.fault == WorldFault::DeliveredTwice {
            // Something between agent and guard sends it twice; the agent hears one answer.
            return std::thread::scope(|scope| {
                let copy = scope.spawn(|| self.port.call(&call).0);
                let heard = self.port.call(&call).0;
                match copy.join() {
                    Ok(other) if heard != Heard::Done => other,
                    _ => heard,
                }
            });
        }
        self.port.call(&call).0
    }

    fn until_done(&self, args: &Value, tries: usize) -> Heard {
        let mut last = Heard::Unknown(String::new());
        for _ in 0..tries {
            last = self.call(args, "one", None);
            if last == Heard::Done {
                break;
            }
        }
        last
    }

    fn verify_first(&self) -> Heard {
        let args = &self.scenario.task.args;
        for _ in 0..2 {
            match self.call(args, "one", None) {
                Heard::Done => return Heard::Done,
                heard => {
                    wait_for_late_effects();
                    if self.finds_it() {
                        return Heard::Done;
                    }
                    // A guard that holds the call has said that nobody knows.
                    if let Heard::Unknown(text) = &heard
                        && (text.contains("in_doubt") || text.contains("Do not call it again"))
                    {
                        return heard;
                    }
                }
            }
        }
        Heard::Unknown("not found after two tries".to_owned())
    }

    fn finds_it(&self) -> bool {
        let mut args = self.scenario.task.args.clone();
        if let Some(members) = args.as_object_mut() {
            members.retain(|name, _| !WORDING.contains(&name.as_str()));
        }
        let tool = read_tool(&self.scenario.task.tool);
        let call = AgentCall { tool, args: &args, step: "look", again: None };
        let (_, answer) = self.port.call(&call);
        answer.is_some_and(|answer| answer["items"].as_array().is_some_and(|items| !items.is_empty()))
    }
}
