//! Structured results of every kind, over HTTP.

use super::stateless::{ask, told};
use crate::home::Home;
use crate::mcp::door::answers::{of_all_structures, structures};
use serde_json::{Value, json};

#[test]
fn a_structure_of_any_kind_is_replayed_as_it_was() {
    let home = Home::new();
    let (served, _) = told(&home, &of_all_structures(), "");
    let mut effects = 0;
    for (tool, _, structure) in structures() {
        for how in ["same", "idempotencyKey", "callId"] {
            let mut params = json!({"name": tool, "arguments": {"how": how}});
            match how {
                "idempotencyKey" => params["idempotencyKey"] = tool.into(),
                "callId" => params["_meta"] = json!({"callId": tool}),
                _ => {}
            }
            effects += 1;
            for outcome in ["ran", "replayed", "replayed"] {
                let answer = ask(&served, 5, "tools/call", params.clone()).answer();
                assert_eq!(answer.tool_outcome(), outcome, "{answer:?}");
                assert!(answer.body.contains(&format!(r#""structuredContent":{structure}"#)), "{answer:?}");
                let result: &Value = &answer.json()["result"];
                assert_ne!(result["isError"], true, "{result}");
                assert_eq!(
                    result["content"].to_string().contains("[semel] "),
                    outcome == "replayed",
                    "{result}"
                );
            }
            let world = std::fs::read_to_string(home.work().join("world")).unwrap_or_default();
            assert_eq!(world.lines().count(), effects, "{world}");
        }
    }
}
