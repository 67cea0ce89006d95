//! The tools of the world, as it lists them.

use super::world::World;
use serde_json::{Value, json};

/// Each effect, and the read that shows it.
const TOOLS: [(&str, &str); 5] = [
    ("create_charge", "list_charges"),
    ("send_email", "list_emails"),
    ("book_room", "list_bookings"),
    ("create_issue", "list_issues"),
    ("deploy", "list_deployments"),
];

pub fn read_tool(tool: &str) -> &'static str {
    TOOLS.iter().find(|(effect, _)| *effect == tool).map_or("list_effects", |(_, read)| read)
}

/// Those of its plan, or its own.
pub fn tools_of(world: &World) -> Vec<Value> {
    let planned = world.plan().map(|plan| plan.tools).unwrap_or_default();
    if planned.is_empty() { own_tools() } else { planned }
}

pub fn own_tools() -> Vec<Value> {
    let schema = json!({"type": "object", "additionalProperties": true});
    let effects = TOOLS
        .iter()
        .map(|(tool, _)| json!({"name": tool, "description": "An effect", "inputSchema": schema}));
    let reads = TOOLS.iter().map(|(_, read)| {
        json!({"name": read, "description": "Lists effects", "inputSchema": schema, "annotations": {"readOnlyHint": true}})
    });
    effects.chain(reads).collect()
}
