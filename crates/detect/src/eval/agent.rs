//! Agents. They know no guard: they call, hear an answer, and do what their kind does.

use super::golden::PairCall;
use super::model::{self, ChatModel};
use super::port::{AgentCall, Heard, Port};
use super::scenario::{Agent, AgentKind, Scenario, Task};
use super::world::{World, wait_for_late_effects};
use super::world_tools::read_tool;
use serde_json::Value;
use std::io;

/// The tries of an agent that does not look.
const TRIES: usize = 4;
/// Arguments that say how, not what: a look leaves them out.
const WORDING: [&str; 3] = ["memo", "body", "note"];

/// Opens a way to the world.
pub type OpenPort<'a> = dyn Fn() -> io::Result<Box<dyn Port>> + 'a;

/// Works on the scenario's task and says what the agent believes in the end.
pub fn work(
    scenario: &Scenario,
    world: &World,
    open: &OpenPort<'_>,
    model: Option<&dyn ChatModel>,
) -> io::Result<Heard> {
    let port = open()?;
    let hand = Hand { port: port.as_ref(), is_delivered_twice: scenario.is_delivered_twice };
    match (&scenario.agent, model) {
        (Agent::Scripted(kind, task), _) => Ok(follow_script(*kind, task, &hand, world, open)),
        (Agent::Pair { calls, is_same }, _) => Ok(make_calls(calls, *is_same, port, open)),
        (Agent::Model, Some(model)) => model::work(scenario, &hand, model),
        (Agent::Model, None) => Err(io::Error::other("no model was named")),
    }
}

fn follow_script(kind: AgentKind, task: &Task, hand: &Hand<'_>, world: &World, open: &OpenPort<'_>) -> Heard {
    let do_it =
        |args: &Value, step: &str| hand.call(&AgentCall { tool: &task.tool, args, step, again: None }).0;
    let until_done = |tries: usize| {
        let mut heard = do_it(&task.args, "one");
        for _ in 1..tries {
            if heard == Heard::Done {
                break;
            }
            heard = do_it(&task.args, "one");
        }
        heard
    };
    match kind {
        AgentKind::Careful => do_it(&task.args, "one"),
        AgentKind::Naive => until_done(TRIES),
        AgentKind::Storm => until_done(9),
        AgentKind::VerifyFirst => {
            let first = do_it(&task.args, "one");
            if first == Heard::Done || hand.finds(task, "look-1") {
                return Heard::Done;
            }
            let second = do_it(&task.args, "one");
            if second == Heard::Done || hand.finds(task, "look-2") { Heard::Done } else { second }
        }
        AgentKind::Amnesiac => {
            do_it(&task.args, "one");
            do_it(&task.args, "one")
        }
        AgentKind::Parallel => std::thread::scope(|scope| {
            let first = scope.spawn(|| do_it(&task.args, "one"));
            let second = do_it(&task.args, "one");
            either(first.join().unwrap_or(Heard::Unknown("panicked".to_owned())), second)
        }),
        AgentKind::Rewording => {
            let first = do_it(&task.args, "one");
            either(first, do_it(task.reworded.as_ref().unwrap_or(&task.args), "one"))
        }
        AgentKind::TwoWorkers => {
            let first = do_it(&task.args, "one");
            // A guard that takes one worker alone has kept the other from doing it.
            let Ok(port) = open() else { return first };
            let colleague = Hand { port: port.as_ref(), ..*hand };
            let call = AgentCall { tool: &task.tool, args: &task.args, step: "one", again: None };
            either(colleague.call(&call).0, first)
        }
        AgentKind::Stopped => {
            let call = AgentCall { tool: &task.tool, args: &task.args, step: "one", again: None };
            let has_happened = || world.effects().is_ok_and(|effects| !effects.is_empty());
            hand.port.call_and_stop(&call, &has_happened);
            until_done(TRIES)
        }
        AgentKind::Deliberate => {
            let first = do_it(&task.args, "one");
            let again = Some("the user asked for a second one");
            let call = AgentCall { tool: &task.tool, args: &task.args, step: "two", again };
            match hand.call(&call).0 {
                Heard::Done => first,
                second => second,
            }
        }
        AgentKind::BackAndForth => {
            let other = task.other.as_ref().unwrap_or(&task.args);
            let steps = [(&task.args, "one"), (other, "two"), (&task.args, "three")];
            let heard = steps.map(|(args, step)| do_it(args, step));
            heard.into_iter().find(|heard| *heard != Heard::Done).unwrap_or(Heard::Done)
        }
    }
}

/// Done if one of them is; a refusal of one does not settle what became of the other.
fn either(first: Heard, second: Heard) -> Heard {
    match (&first, &second) {
        (Heard::Done, _) | (Heard::Unknown(_), Heard::Failed(_)) => first,
        _ => second,
    }
}

/// Makes the calls of a pair. Two that are the same are done if one of them is.
fn make_calls(calls: &[PairCall], is_same: bool, mut port: Box<dyn Port>, open: &OpenPort<'_>) -> Heard {
    let mut heard = Vec::new();
    for (number, call) in calls.iter().enumerate() {
        if call.restart {
            drop(port);
            match open() {
                Ok(opened) => port = opened,
                Err(error) => return Heard::Failed(error.to_string()),
            }
        }
        let step = format!("step-{number}");
        let again = call.again.as_deref();
        heard.push(port.call(&AgentCall { tool: &call.tool, args: &call.args, step: &step, again }).0);
    }
    let last = heard.pop().unwrap_or(Heard::Failed("there is no call".to_owned()));
    if is_same { either(heard.swap_remove(0), last) } else { last }
}

/// The agent's hand on its port.
#[derive(Debug, Clone, Copy)]
pub struct Hand<'a> {
    pub port: &'a dyn Port,
    is_delivered_twice: bool,
}

impl Hand<'_> {
    pub fn call(&self, call: &AgentCall<'_>) -> (Heard, Option<Value>) {
        if !self.is_delivered_twice {
            return self.port.call(call);
        }
        // Something between agent and guard sends it twice; the agent hears one answer.
        std::thread::scope(|scope| {
            let copy = scope.spawn(|| self.port.call(call));
            let answer = self.port.call(call);
            match copy.join() {
                Ok(other) if answer.0 != Heard::Done => other,
                _ => answer,
            }
        })
    }

    /// Looks whether it is there, once nothing is late any more.
    fn finds(&self, task: &Task, step: &str) -> bool {
        wait_for_late_effects();
        let mut args = task.args.clone();
        if let Some(members) = args.as_object_mut() {
            members.retain(|name, _| !WORDING.contains(&name.as_str()));
        }
        let call = AgentCall { tool: read_tool(&task.tool), args: &args, step, again: None };
        let (_, answer) = self.port.call(&call);
        answer.is_some_and(|answer| answer["items"].as_array().is_some_and(|items| !items.is_empty()))
    }
}
