//! Writes the steps of a case in each format, as the programs write it.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use std::fmt::Write as _;

#[derive(Deserialize, Debug, Clone)]
#[serde(deny_unknown_fields)]
pub struct Step {
    user: Option<String>,
    text: Option<String>,
    #[serde(default)]
    stop: bool,
    #[serde(default)]
    compact: bool,
    call: Option<String>,
    /// A line for the agent's shell, instead of a call.
    pub shell: Option<String>,
    args: Option<Value>,
    answer: Option<String>,
    #[serde(default)]
    error: bool,
    after: Option<String>,
    #[serde(default)]
    together: bool,
    session: Option<String>,
    /// The model's id of the call; counted up unless given.
    id: Option<String>,
}

pub struct Rendered {
    pub files: Vec<(String, String)>,
    pub mapping: Option<&'static str>,
}

/// Formats of programs with a shell tool of their own.
const SHELLS: [&str; 3] = ["claude_code", "codex", "gemini"];

pub const FORMATS: [&str; 14] = [
    "claude_code",
    "codex",
    "gemini",
    "openai_chat",
    "openai_responses",
    "anthropic",
    "openai_chat_log",
    "anthropic_log",
    "otlp",
    "langsmith",
    "langfuse",
    "mcp_log",
    "journal",
    "mapped",
];

/// A step with what the formats ask for beside it.
struct Moment<'s> {
    step: &'s Step,
    at: Timestamp,
    session: &'s str,
    /// The call's number, and that of its message.
    number: usize,
    turn: usize,
}

impl Moment<'_> {
    fn time(&self) -> String {
        format!("{:.3}", self.at)
    }

    fn server_and_tool(&self) -> (&str, &str) {
        self.step.call.as_deref().expect("a call").split_once('/').expect("server/tool")
    }

    /// As agents name it.
    fn tool(&self) -> String {
        let (server, tool) = self.server_and_tool();
        format!("mcp__{server}__{tool}")
    }

    fn args(&self) -> Value {
        self.step.args.clone().unwrap_or_else(|| json!({}))
    }

    fn id(&self) -> String {
        self.step.id.clone().unwrap_or_else(|| format!("call_{}", self.number))
    }
}

/// `None`: the format has no words for a step.
pub fn render(format: &str, steps: &[Step]) -> Option<Rendered> {
    let mut at: Timestamp = "2026-03-01T09:00:00Z".parse().expect("a time");
    let (mut number, mut turn) = (0, 0);
    let mut moments = Vec::new();
    for step in steps {
        let span: jiff::Span = step.after.as_deref().unwrap_or("5s").parse().expect("a span");
        at = at.checked_add(span).expect("a time");
        number += usize::from(step.call.is_some() || step.shell.is_some());
        turn += usize::from(!step.together);
        let session = step.session.as_deref().unwrap_or("one");
        moments.push(Moment { step, at, session, number, turn });
    }
    let is_told = |step: &Step| step.stop || step.compact || step.text.is_some();
    let only_calls = ["otlp", "langsmith", "langfuse", "mcp_log", "journal", "mapped"].contains(&format);
    let has_shell = steps.iter().any(|step| step.shell.is_some());
    if only_calls && steps.iter().any(is_told) || has_shell && !SHELLS.contains(&format) {
        return None;
    }
    let lines = |of: fn(&Moment<'_>) -> Vec<Value>| {
        let mut text = String::new();
        for line in moments.iter().flat_map(of) {
            writeln!(text, "{line}").expect("a string takes all");
        }
        text
    };
    let one = |name: &str, text: String| Rendered { files: vec![(name.to_owned(), text)], mapping: None };
    let messages =
        |of: fn(&Moment<'_>) -> Vec<Value>| -> Vec<Value> { moments.iter().flat_map(of).collect() };
    Some(match format {
        "claude_code" => one("session.jsonl", lines(claude_code)),
        "codex" => Rendered { files: codex(&moments), mapping: None },
        "gemini" => one("session-1.json", gemini(&moments)),
        "openai_chat" => {
            one("chat.json", json!({"model": "m", "messages": messages(openai_chat)}).to_string())
        }
        "openai_responses" => {
            one("responses.json", json!({"model": "m", "input": messages(openai_responses)}).to_string())
        }
        "anthropic" => {
            one("messages.json", json!({"model": "m", "messages": messages(anthropic)}).to_string())
        }
        "openai_chat_log" => one("requests.jsonl", requests(messages(openai_chat))),
        "anthropic_log" => one("requests.jsonl", requests(messages(anthropic))),
        "otlp" => one("traces.json", otlp(&moments)),
        "langsmith" => one("runs.jsonl", lines(langsmith)),
        "langfuse" => one("observations.json", Value::Array(messages(langfuse)).to_string()),
        "mcp_log" => one("mcp.log", mcp_log(&moments)),
        "journal" => one("journal.jsonl", lines(journal)),
        "mapped" => Rendered {
            files: vec![("calls.jsonl".to_owned(), lines(mapped))],
            mapping: Some("tool=what.tool,args=what.input,result=out,error=failed,id=n,session=who,time=ts"),
        },
        _ => panic!("no format {format}"),
    })
}

/// A log of requests: before each message of the model, all that was said so far.
fn requests(messages: Vec<Value>) -> String {
    let mut text = String::new();
    for (at, message) in messages.iter().enumerate() {
        if message["role"] == "assistant" || at + 1 == messages.len() {
            let said = if message["role"] == "assistant" { &messages[..at] } else { &messages[..] };
            writeln!(text, "{}", json!({"model": "m", "messages": said})).expect("a string takes all");
        }
    }
    writeln!(text, "{}", json!({"model": "m", "messages": messages})).expect("a string takes all");
    text
}

fn claude_code(moment: &Moment<'_>) -> Vec<Value> {
    let step = moment.step;
    let line = |kind: &str, message: Value| {
        json!({"type": kind, "uuid": format!("u{}", moment.number), "parentUuid": null, "isSidechain": false,
               "sessionId": moment.session, "timestamp": moment.time(), "message": message})
    };
    let user = |content: Value| line("user", json!({"role": "user", "content": content}));
    let called = match &step.shell {
        Some(line) => Some(("Bash".to_owned(), json!({"command": line, "description": "Run it"}))),
        None => step.call.as_ref().map(|_| (moment.tool(), moment.args())),
    };
    if let Some((tool, input)) = called {
        let message = json!({"id": format!("msg_{}", moment.turn), "role": "assistant", "content": [
            {"type": "tool_use", "id": moment.id(), "name": tool, "input": input}]});
        let answer = step.answer.as_ref().map(|answer| {
            user(json!([{"type": "tool_result", "tool_use_id": moment.id(), "is_error": step.error,
                         "content": [{"type": "text", "text": answer}]}]))
        });
        return [line("assistant", message)].into_iter().chain(answer).collect();
    }
    vec![match (&step.user, &step.text) {
        (Some(text), _) => user(json!(text)),
        (_, Some(text)) => {
            line("assistant", json!({"role": "assistant", "content": [{"type": "text", "text": text}]}))
        }
        _ if step.stop => user(json!([{"type": "text", "text": "[Request interrupted by user]"}])),
        _ => {
            json!({"type": "system", "subtype": "compact_boundary", "sessionId": moment.session, "timestamp": moment.time()})
        }
    }]
}

fn codex(moments: &[Moment<'_>]) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = Vec::new();
    for moment in moments {
        let step = moment.step;
        let name = format!("rollout-{}.jsonl", moment.session);
        if !files.iter().any(|(known, _)| *known == name) {
            let meta = json!({"timestamp": moment.time(), "type": "session_meta", "payload": {"id": moment.session}});
            files.push((name.clone(), format!("{meta}\n")));
        }
        let (_, text) = files.iter_mut().find(|(known, _)| *known == name).expect("it was pushed");
        let mut line = |kind: &str, payload: Value| {
            let line = json!({"timestamp": moment.time(), "type": kind, "payload": payload});
            writeln!(text, "{line}").expect("a string takes all");
        };
        if let Some(command) = &step.shell {
            let arguments = json!({"cmd": command, "yield_time_ms": 1000}).to_string();
            line(
                "response_item",
                json!({"type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": moment.id()}),
            );
            if let Some(answer) = &step.answer {
                let code = i32::from(step.error);
                let output = format!(
                    "Chunk ID: 1f2e3d\nWall time: 0.5 seconds\nProcess exited with code {code}\nOutput:\n{answer}"
                );
                line(
                    "response_item",
                    json!({"type": "function_call_output", "call_id": moment.id(), "output": output}),
                );
            }
        } else if step.call.is_some() {
            let (server, tool) = moment.server_and_tool();
            line(
                "response_item",
                json!({"type": "function_call", "name": tool, "namespace": format!("mcp__{server}"),
                "arguments": moment.args().to_string(), "call_id": moment.id()}),
            );
            if let Some(answer) = &step.answer {
                // Codex writes no mark; its own text says that a call failed.
                let output = if step.error { format!("Error: {answer}") } else { answer.clone() };
                line(
                    "response_item",
                    json!({"type": "function_call_output", "call_id": moment.id(), "output": output}),
                );
            }
        } else if step.user.is_some() {
            line("event_msg", json!({"type": "user_message", "message": step.user}));
        } else if let Some(said) = &step.text {
            line(
                "response_item",
                json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": said}]}),
            );
        } else if step.stop {
            line("event_msg", json!({"type": "turn_aborted", "reason": "interrupted"}));
        } else {
            line("compacted", json!({"message": "summary"}));
        }
    }
    files
}

fn gemini(moments: &[Moment<'_>]) -> String {
    let messages = moments.iter().map(|moment| {
        let step = moment.step;
        if let Some(command) = &step.shell {
            let mut call = json!({"id": moment.id(), "name": "run_shell_command", "args": {"command": command},
                                  "timestamp": moment.time()});
            if let Some(answer) = &step.answer {
                let code = i32::from(step.error);
                let output = format!("Command: {command}\nDirectory: (root)\nOutput: {answer}\nError: (none)\nExit Code: {code}\nSignal: (none)\nProcess Group PGID: 4711");
                call["status"] = json!("success");
                call["result"] = json!([{"functionResponse": {"id": moment.id(), "name": "run_shell_command", "response": {"output": output}}}]);
            }
            return json!({"id": format!("t{}", moment.turn), "timestamp": moment.time(), "type": "gemini", "content": "",
                          "toolCalls": [call]});
        }
        let Some(_) = &step.call else {
            let kind = if step.user.is_some() { "user" } else { "gemini" };
            return json!({"id": "m", "timestamp": moment.time(), "type": kind,
                          "content": step.user.as_ref().or(step.text.as_ref())});
        };
        let (server, tool) = moment.server_and_tool();
        let member = if step.error { "error" } else { "output" };
        let mut call = json!({"id": moment.id(), "name": format!("{server}__{tool}"), "args": moment.args(),
                              "timestamp": moment.time()});
        if let Some(answer) = &step.answer {
            call["status"] = json!(if step.error { "error" } else { "success" });
            call["result"] = json!([{"functionResponse": {"id": moment.id(), "name": tool, "response": {member: answer}}}]);
        }
        json!({"id": format!("t{}", moment.turn), "timestamp": moment.time(), "type": "gemini", "content": "",
               "toolCalls": [call]})
    });
    let messages: Vec<Value> = messages.collect();
    let whole = json!({"sessionId": "one", "projectHash": "p", "startTime": "2026-03-01T09:00:00Z", "messages": messages});
    serde_json::to_string_pretty(&whole).expect("plain data")
}

/// An error in a format without a mark for it.
fn unmarked(step: &Step) -> Option<String> {
    let answer = step.answer.as_ref()?;
    Some(if step.error { format!("Error: {answer}") } else { answer.clone() })
}

fn openai_chat(moment: &Moment<'_>) -> Vec<Value> {
    let step = moment.step;
    if step.call.is_none() {
        let (role, text) =
            step.user.as_ref().map_or(("assistant", step.text.as_ref()), |text| ("user", Some(text)));
        return vec![json!({"role": role, "content": text})];
    }
    let call = json!({"role": "assistant", "content": null, "tool_calls": [{"id": moment.id(), "type": "function",
        "function": {"name": moment.tool(), "arguments": moment.args().to_string()}}]});
    let answer =
        unmarked(step).map(|text| json!({"role": "tool", "tool_call_id": moment.id(), "content": text}));
    [call].into_iter().chain(answer).collect()
}

fn openai_responses(moment: &Moment<'_>) -> Vec<Value> {
    let step = moment.step;
    if step.call.is_none() {
        let (role, text) =
            step.user.as_ref().map_or(("assistant", step.text.as_ref()), |text| ("user", Some(text)));
        return vec![json!({"type": "message", "role": role, "content": text})];
    }
    let call = json!({"type": "function_call", "id": "fc", "call_id": moment.id(), "name": moment.tool(),
                      "arguments": moment.args().to_string()});
    let answer = unmarked(step)
        .map(|text| json!({"type": "function_call_output", "call_id": moment.id(), "output": text}));
    [call].into_iter().chain(answer).collect()
}

fn anthropic(moment: &Moment<'_>) -> Vec<Value> {
    let step = moment.step;
    if step.call.is_none() {
        let (role, text) =
            step.user.as_ref().map_or(("assistant", step.text.as_ref()), |text| ("user", Some(text)));
        return vec![json!({"role": role, "content": text})];
    }
    let call = json!({"role": "assistant", "content": [
        {"type": "tool_use", "id": moment.id(), "name": moment.tool(), "input": moment.args()}]});
    let answer = step.answer.as_ref().map(|text| {
        json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": moment.id(), "content": text, "is_error": step.error}]})
    });
    [call].into_iter().chain(answer).collect()
}

fn otlp(moments: &[Moment<'_>]) -> String {
    let spans = moments.iter().filter(|moment| moment.step.call.is_some()).map(|moment| {
        let (server, tool) = moment.server_and_tool();
        let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
        let mut attributes = vec![
            text("gen_ai.operation.name", "execute_tool"),
            text("gen_ai.tool.name", tool),
            text("gen_ai.tool.call.id", &format!("{}", moment.turn)),
            text("gen_ai.conversation.id", moment.session),
            text("gen_ai.tool.call.arguments", &moment.args().to_string()),
            text("server.address", server),
        ];
        let mut status = json!({});
        match &moment.step.answer {
            Some(answer) if moment.step.error => {
                attributes.push(text("error.type", "tool_error"));
                status = json!({"code": 2, "message": answer});
            }
            Some(answer) => attributes.push(text("gen_ai.tool.call.result", answer)),
            None => {
                attributes.push(text("error.type", "timeout"));
                status = json!({"code": 2, "message": ""});
            }
        }
        json!({"traceId": format!("trace-{}", moment.session), "spanId": format!("span-{}", moment.number), "parentSpanId": "",
               "name": format!("execute_tool {tool}"), "kind": 1,
               "startTimeUnixNano": moment.at.as_nanosecond().to_string(), "attributes": attributes, "status": status})
    });
    let spans: Vec<Value> = spans.collect();
    json!({"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": spans}]}]}).to_string()
}

fn langsmith(moment: &Moment<'_>) -> Vec<Value> {
    let step = moment.step;
    if step.call.is_none() {
        return vec![
            json!({"id": format!("chain-{}", moment.turn), "run_type": "chain", "name": "agent", "inputs": {}}),
        ];
    }
    let time = moment.time().trim_end_matches('Z').to_owned();
    let mut run = json!({"id": format!("{}-{}", moment.session, moment.id()), "run_type": "tool", "name": moment.tool(), "inputs": moment.args(),
        "outputs": null, "error": null, "start_time": time, "end_time": time, "trace_id": moment.session,
        "parent_run_id": format!("turn-{}", moment.turn)});
    match &step.answer {
        // An exception without a text still has its type.
        Some(answer) if step.error => run["error"] = json!(format!("ToolException({answer:?})")),
        Some(answer) => run["outputs"] = json!({"output": answer}),
        None => {}
    }
    vec![run]
}

fn langfuse(moment: &Moment<'_>) -> Vec<Value> {
    let step = moment.step;
    if step.call.is_none() {
        return vec![
            json!({"id": format!("g{}", moment.turn), "traceId": moment.session, "type": "GENERATION", "name": "llm"}),
        ];
    }
    let mut observation = json!({"id": format!("{}-{}", moment.session, moment.id()), "traceId": moment.session, "type": "TOOL", "name": moment.tool(),
        "startTime": moment.time(), "input": moment.args(), "output": null, "level": "DEFAULT",
        "parentObservationId": format!("turn-{}", moment.turn)});
    match &step.answer {
        Some(answer) if step.error => {
            observation["level"] = json!("ERROR");
            observation["statusMessage"] = json!(answer);
        }
        Some(answer) => observation["output"] = json!(answer),
        None => {}
    }
    vec![observation]
}

fn mcp_log(moments: &[Moment<'_>]) -> String {
    let mut text = String::new();
    let mut line = |at: &str, message: Value| {
        let line = json!({"timestamp": at, "message": message});
        writeln!(text, "{line}").expect("a string takes all");
    };
    let server = moments
        .iter()
        .find(|moment| moment.step.call.is_some())
        .map_or("s", |moment| moment.server_and_tool().0);
    let first = moments[0].time();
    line(
        &first,
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}),
    );
    line(
        &first,
        json!({"jsonrpc": "2.0", "id": 0, "result": {"serverInfo": {"name": server, "version": "1"}, "capabilities": {}}}),
    );
    for moment in moments.iter().filter(|moment| moment.step.call.is_some()) {
        let (_, tool) = moment.server_and_tool();
        let id = moment.number;
        line(
            &moment.time(),
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": moment.args()}}),
        );
        if let Some(answer) = &moment.step.answer {
            line(
                &moment.time(),
                json!({"jsonrpc": "2.0", "id": id, "result": {"isError": moment.step.error, "content": [{"type": "text", "text": answer}]}}),
            );
        }
    }
    text
}

fn journal(moment: &Moment<'_>) -> Vec<Value> {
    let step = moment.step;
    if step.call.is_none() {
        return Vec::new();
    }
    let (server, tool) = moment.server_and_tool();
    let effect = format!("ef_{}", moment.number);
    let claimed = json!({"at": moment.time(), "kind": "claimed", "effect_id": effect, "data": {
        "action": format!("mcp:{server}/{tool}"), "subject": moment.args().to_string(), "attempt": 1, "occurrence": 1, "state": "in_flight"}});
    let state = match (&step.answer, step.error) {
        (None, _) => "in_doubt",
        (_, true) => "not_applied",
        (_, false) => "applied",
    };
    let settled = json!({"at": moment.time(), "kind": format!("settled_{state}"), "effect_id": effect, "data": {"attempt": 1, "state": state}});
    vec![claimed, settled]
}

fn mapped(moment: &Moment<'_>) -> Vec<Value> {
    let step = moment.step;
    if step.call.is_none() {
        return Vec::new();
    }
    let mut record = json!({"ts": moment.time(), "who": moment.session, "n": moment.id(),
        "what": {"tool": moment.tool(), "input": moment.args()}, "failed": step.error});
    if let Some(answer) = &step.answer {
        record["out"] = json!(answer);
    }
    vec![record]
}
