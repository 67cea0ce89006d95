//! A language model as the agent: it gets the task and the tools, and its calls are made until it says how it ended.

use super::agent::Hand;
use super::port::{AgentCall, Heard};
use super::scenario::Scenario;
use super::world_tools::own_tools;
use serde_json::{Value, json};
use std::fmt;
use std::io;

/// A model that has not ended by then is stopped.
const TURNS_MAX: usize = 12;
/// Calls of one turn that are made.
const CALLS_PER_TURN_MAX: usize = 8;
/// A tool's answer reaches the model up to this length.
const ANSWER_CHARS_MAX: usize = 4_000;

const INSTRUCTIONS: &str = "You are an agent. Carry out the user's task with the tools. Tools may fail, time out or \
    answer late. When you have ended, answer with one word alone: DONE if each effect happened as often as it was \
    wanted, FAILED if you know that one did not happen, UNKNOWN if you cannot tell.";

/// An endpoint that speaks the chat completions of OpenAI.
pub trait ChatModel: fmt::Debug + Sync {
    /// Answers a request of `model`, `messages` and `tools`; the model's name is the endpoint's to add.
    fn complete(&self, request: Value) -> io::Result<Value>;
}

/// Works on the scenario's task and says what the model says in the end.
pub fn work(scenario: &Scenario, hand: &Hand<'_>, model: &dyn ChatModel) -> io::Result<Heard> {
    let tools: Vec<Value> = hand.port.tools().unwrap_or_else(own_tools).iter().map(function).collect();
    let mut messages = vec![
        json!({"role": "system", "content": INSTRUCTIONS}),
        json!({"role": "user", "content": task(scenario)}),
    ];
    for turn in 1..=TURNS_MAX {
        let reply = model.complete(json!({"messages": messages, "tools": tools}))?;
        let message = &reply["choices"][0]["message"];
        if !message.is_object() {
            return Err(io::Error::other("the model's answer has no choices[0].message"));
        }
        messages.push(message.clone());
        let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        if calls.is_empty() {
            return Ok(verdict(message["content"].as_str().unwrap_or_default()));
        }
        for (number, call) in calls.iter().enumerate() {
            let words = match number < CALLS_PER_TURN_MAX {
                true => make_call(hand, &call["function"], &format!("{turn}-{number}")),
                false => "not called: too many calls at once".to_owned(),
            };
            messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": words}));
        }
    }
    Ok(Heard::Unknown(format!("no end after {TURNS_MAX} turns")))
}

fn task(scenario: &Scenario) -> String {
    let effects = scenario.wanted.iter().filter_map(|effect| {
        let (tool, args) = effect.calls.first()?;
        Some(format!("\n- {tool} with {args}: {} in total", times(effect.times)))
    });
    format!("Bring these effects about, each exactly as often as it says:{}", effects.collect::<String>())
}

fn times(count: usize) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// A tool of MCP as a function of the chat.
fn function(tool: &Value) -> Value {
    let function = json!({
        "name": tool["name"],
        "description": tool["description"].as_str().unwrap_or_default(),
        "parameters": tool["inputSchema"],
    });
    json!({"type": "function", "function": function})
}

/// Makes a call and gives the words that the model hears.
fn make_call(hand: &Hand<'_>, function: &Value, step: &str) -> String {
    let args = serde_json::from_str::<Value>(function["arguments"].as_str().unwrap_or("{}"));
    let Ok(args) = args else { return "not called: the arguments are no JSON".to_owned() };
    let tool = function["name"].as_str().unwrap_or_default();
    let words = match hand.call(&AgentCall { tool, args: &args, step, again: None }) {
        (Heard::Done, answer) => answer.map_or_else(|| "done".to_owned(), |answer| answer.to_string()),
        (Heard::Failed(words) | Heard::Unknown(words), _) => format!("error: {words}"),
    };
    words.chars().take(ANSWER_CHARS_MAX).collect()
}

/// The word that comes last in the model's last answer. Without one, nobody knows.
fn verdict(text: &str) -> Heard {
    match ["DONE", "FAILED", "UNKNOWN"].into_iter().max_by_key(|word| text.rfind(word)) {
        Some("DONE") => Heard::Done,
        Some("FAILED") => Heard::Failed(text.to_owned()),
        _ => Heard::Unknown(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_of_a_model_counts() {
        assert_eq!(verdict("DONE"), Heard::Done);
        assert_eq!(verdict("It is UNKNOWN at first, but now DONE."), Heard::Done);
        assert!(matches!(verdict("not DONE but FAILED"), Heard::Failed(_)));
        assert!(matches!(verdict("DONE? UNKNOWN"), Heard::Unknown(_)));
        assert!(matches!(verdict("I have charged the customer."), Heard::Unknown(_)));
    }
}
