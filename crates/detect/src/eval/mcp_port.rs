//! Calls over MCP, to a server behind a guard or without one.

use super::port::{AgentCall, Heard, PATIENCE, Port, failure};
use super::world::wait_until;
use crate::mcp_server_process::McpServerProcess;
use serde_json::{Value, json};

/// The argument that says why a call is repeated, where a guard offers it.
const REASON: &str = "semel_again";

fn params(server: &McpServerProcess, call: &AgentCall<'_>) -> Value {
    let mut args = call.args.clone();
    let tool = server.tools.iter().find(|tool| tool["name"].as_str() == Some(call.tool));
    let takes_reason = tool.is_some_and(|tool| !tool["inputSchema"]["properties"][REASON].is_null());
    if let (Some(reason), Some(members), true) = (call.again, args.as_object_mut(), takes_reason) {
        members.insert(REASON.to_owned(), json!(reason));
    }
    json!({"name": call.tool, "arguments": args})
}

impl Port for McpServerProcess {
    fn call(&self, call: &AgentCall<'_>) -> (Heard, Option<Value>) {
        let Some(answer) = self.request("tools/call", &params(self, call), PATIENCE) else {
            return (Heard::Unknown("timed out".to_owned()), None);
        };
        if let Some(error) = answer["error"]["message"].as_str() {
            return (failure(error.to_owned()), None);
        }
        if answer["result"]["isError"].as_bool().unwrap_or(false) {
            return (failure(answer["result"].to_string()), None);
        }
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
        (Heard::Done, serde_json::from_str(text).ok())
    }

    fn call_and_stop(&self, call: &AgentCall<'_>, is_time: &dyn Fn() -> bool) {
        let Ok((id, _unheard)) = self.begin("tools/call", &params(self, call)) else { return };
        wait_until(is_time);
        let cancelled = json!({"requestId": id, "reason": "the user stopped it"});
        let _ended = self.notify("notifications/cancelled", &cancelled);
    }

    fn tools(&self) -> Option<Vec<Value>> {
        Some(self.tools.clone())
    }
}
