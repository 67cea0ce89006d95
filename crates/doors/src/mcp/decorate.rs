//! Additions to a listing of tools: a sentence for guarded tools, and arguments for repeats on purpose and dry runs.

use super::call::{AGAIN, DRY_RUN};
use super::tools::page;
use crate::wire::members::{Members, quoted};
use serde_json::json;

/// The additions to one guarded tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoration {
    /// A repeat of a finished call is answered from the record.
    pub replays: bool,
    /// The model itself may repeat on purpose.
    pub again: bool,
    pub dry_run: bool,
}

const GUARDED: &str = "[semel: this tool has side effects. If its outcome is unclear, look first with a read-only \
                       tool; never retry it blindly.]";
const REPLAYED: &str = "[semel: this tool has side effects, and a repeated call is answered from the record. If its \
                        outcome is unclear, look first with a read-only tool; never retry it blindly.]";

/// The listing's result, with decorations, and with semel's own tools on its last page.
///
/// `None` if there is nothing to change, or nothing that can be changed safely.
pub fn listing(
    result: &str,
    decoration: impl Fn(&str) -> Option<Decoration>,
    own_tools: &[String],
) -> Option<String> {
    let mut members = Members::parse(result)?;
    let mut changed = false;
    let mut tools = Vec::new();
    for tool in page(&members) {
        let other = Members::parse(tool.get()).and_then(|members| {
            let decoration = decoration(&members.text("name")?)?;
            Some(decorated(members, decoration))
        });
        changed |= other.is_some();
        tools.push(other.unwrap_or_else(|| tool.get().to_owned()));
    }
    let last_page = members.get("nextCursor").is_none_or(|cursor| cursor == "null");
    if last_page && !own_tools.is_empty() && members.get("tools").is_some() {
        tools.extend(own_tools.iter().cloned());
        changed = true;
    }
    if !changed {
        return None;
    }
    members.set("tools", format!("[{}]", tools.join(",")));
    Some(members.to_string())
}

fn decorated(mut members: Members<'_>, decoration: Decoration) -> String {
    let sentence = if decoration.replays { REPLAYED } else { GUARDED };
    let description = match members.text("description") {
        Some(own) if !own.is_empty() => format!("{own}\n\n{sentence}"),
        _ => sentence.to_owned(),
    };
    let input = with_arguments(&members, decoration);
    members.set("description", quoted(&description));
    if let Some(schema) = input {
        members.set("inputSchema", schema);
    }
    members.to_string()
}

fn with_arguments(tool: &Members<'_>, decoration: Decoration) -> Option<String> {
    let mut schema = tool.get("inputSchema").and_then(Members::parse)?;
    let mut properties = match schema.get("properties") {
        Some(properties) => Members::parse(properties)?,
        None => Members::default(),
    };
    let mut offered = false;
    let mut offer = |name: &str, schema: serde_json::Value| {
        // A tool that has an argument of that name keeps it.
        if properties.get(name).is_none() {
            properties.set(name, schema.to_string());
            offered = true;
        }
    };
    if decoration.replays && decoration.again {
        offer(
            AGAIN,
            json!({"type": "string", "description":
                "Only to repeat a finished call on purpose: the reason. Leave it out otherwise."}),
        );
    }
    if decoration.dry_run {
        offer(
            DRY_RUN,
            json!({"type": "boolean", "description": "true: say what would happen; send nothing."}),
        );
    }
    let properties = offered.then(|| properties.to_string())?;
    schema.set("properties", properties);
    Some(schema.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Decoration = Decoration { replays: true, again: true, dry_run: false };

    fn decorate(result: &str, own: &[String]) -> Option<String> {
        listing(result, |name| name.starts_with("charge").then_some(ALL), own)
    }

    #[test]
    fn only_guarded_tools_change_and_all_else_stays_as_written() {
        let result = r#"{"tools":[{"name":"get","x":1.0},{"name":"charge","inputSchema":{"properties":{"a":{"const":1e2}},"additionalProperties":false},"y": [ ]}],"_meta":{"z" :1}}"#;
        let decorated = decorate(result, &[]).unwrap();
        assert!(decorated.starts_with(r#"{"tools":[{"name":"get","x":1.0},{"name":"charge","inputSchema":{"properties":{"a":{"const":1e2},"semel_again":{"#));
        assert!(
            decorated.contains(r#""additionalProperties":false},"y":[ ],"description":"[semel: "#),
            "{decorated}"
        );
        assert!(decorated.ends_with(r#"],"_meta":{"z" :1}}"#));
    }

    #[test]
    fn a_listing_without_guarded_tools_is_not_touched() {
        assert_eq!(decorate(r#"{"tools":[{"name":"get"}]}"#, &[]), None);
        assert_eq!(decorate(r#"{"tools":7}"#, &[]), None);
        assert_eq!(decorate("[]", &["{}".into()]), None);
    }

    #[test]
    fn own_tools_stand_on_the_last_page() {
        let own = [r#"{"name":"semel_ledger"}"#.to_owned()];
        assert_eq!(decorate(r#"{"tools":[{"name":"get"}],"nextCursor":"n"}"#, &own), None);
        let last = decorate(r#"{"tools":[{"name":"get"}]}"#, &own).unwrap();
        assert_eq!(last, r#"{"tools":[{"name":"get"},{"name":"semel_ledger"}]}"#);
    }

    #[test]
    fn a_tool_keeps_its_own_argument_of_that_name() {
        let result = r#"{"tools":[{"name":"charge","inputSchema":{"properties":{"semel_again":{"type":"integer"}}}}]}"#;
        assert!(decorate(result, &[]).unwrap().contains(r#"{"semel_again":{"type":"integer"}}"#));
    }
}
