//! Models, in the shapes of OpenAI's and Anthropic's APIs. What they say is the number of the request, so that two
//! answers can always be told apart.

pub mod chat;
pub mod messages;
pub mod responses;

use serde_json::{Value, json};

pub const PROMPT_TOKENS: u64 = 9;
pub const ANSWER_TOKENS: u64 = 5;

/// The pieces in which an answer comes.
pub fn words(number: u64) -> Vec<String> {
    let number = format!("{number:012}");
    ["once", " and", " only", " once:", " answer", " "]
        .into_iter()
        .map(str::to_owned)
        .chain([number])
        .collect()
}

/// A call of the first tool that the request offers.
#[derive(Debug)]
pub struct ToolUse {
    pub tool: String,
    pub arguments: Value,
}

impl ToolUse {
    /// None if there is no tool, or if the conversation already has a tool's answer.
    pub fn wanted(body: &Value, conversation: &Value) -> Option<ToolUse> {
        let first = &body["tools"][0];
        let tool = first["function"]["name"].as_str().or_else(|| first["name"].as_str())?;
        let answered = ["\"role\":\"tool\"", "tool_result", "function_call_output"];
        let said = conversation.to_string();
        if answered.iter().any(|mark| said.contains(mark)) {
            return None;
        }
        Some(ToolUse { tool: tool.to_owned(), arguments: json!({"amount": 4200, "customer": "cus_1"}) })
    }

    /// The arguments as text, in two pieces.
    pub fn pieces(&self) -> [String; 2] {
        let text = self.arguments.to_string();
        let (first, second) = text.split_at(text.len() / 2);
        [first.to_owned(), second.to_owned()]
    }
}

/// One event of a stream, with or without a name.
pub fn event(name: Option<&str>, data: &Value) -> String {
    match name {
        Some(name) => format!("event: {name}\ndata: {data}\n\n"),
        None => format!("data: {data}\n\n"),
    }
}
