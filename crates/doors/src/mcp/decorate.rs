//! What a listing of tools gains: a sentence for guarded tools, an argument where repeats are answered from the record,
//! a member in their structured results. And what it loses: the words of a tool that is held because they have changed.

use super::call::{AGAIN, DRY_RUN};
use super::members::{Members, quoted};
use super::tools::{NOTICE, page, takes_notice};
use serde_json::json;

/// How a tool is shown that is not shown as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    Guarded(Decoration),
    /// Its definition has changed, and nobody has accepted that: a description instructs a model, whether or not the
    /// tool can be called.
    Held,
}

/// What becomes of what semel cannot read, and a client perhaps can: a member that is named twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreadable {
    AsItCame,
    Dropped,
}

/// What is said about one guarded tool.
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

const HELD: &str = "[semel: the definition of this tool has changed since its first use. It is held, and its new \
                    description is not shown, until a person has accepted the change.]";

/// The listing's result, with decorations, and with semel's own tools on its last page.
///
/// `None` if there is nothing to change, or nothing that can be changed safely.
pub fn listing(
    result: &str,
    shown: impl Fn(&str) -> Option<Shown>,
    own_tools: &[String],
    unreadable: Unreadable,
) -> Option<String> {
    let drops = unreadable == Unreadable::Dropped;
    let Some(mut members) = Members::parse(result) else {
        return drops.then(|| r#"{"tools":[]}"#.to_owned());
    };
    let mut changed = false;
    let mut tools = Vec::new();
    for tool in page(&members) {
        if drops && Members::parse(tool.get()).is_none_or(|members| members.text("name").is_none()) {
            changed = true;
            continue;
        }
        let other = otherwise(tool.get(), &shown);
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

fn otherwise(tool: &str, shown: &impl Fn(&str) -> Option<Shown>) -> Option<String> {
    let members = Members::parse(tool)?;
    let name = members.text("name")?;
    match shown(&name)? {
        Shown::Guarded(decoration) => Some(decorated(members, decoration)),
        Shown::Held => {
            Some(json!({"name": name, "description": HELD, "inputSchema": {"type": "object"}}).to_string())
        }
    }
}

fn decorated(mut members: Members<'_>, decoration: Decoration) -> String {
    let sentence = if decoration.replays { REPLAYED } else { GUARDED };
    let description = match members.text("description") {
        Some(own) if !own.is_empty() => format!("{own}\n\n{sentence}"),
        _ => sentence.to_owned(),
    };
    let (input, output) = (with_arguments(&members, decoration), with_notice(&members, decoration));
    members.set("description", quoted(&description));
    if let Some(schema) = input {
        members.set("inputSchema", schema);
    }
    if let Some(schema) = output {
        members.set("outputSchema", schema);
    }
    members.to_string()
}

/// A dry run has nothing to show but the notice. Where the listing offers one, that alone is a result too: clients
/// refuse what their schema does not allow, unless it is an error, and a dry run is none.
fn with_notice(tool: &Members<'_>, decoration: Decoration) -> Option<String> {
    let mut schema = tool.get("outputSchema").and_then(Members::parse).filter(takes_notice)?;
    let mut properties = schema.object("properties");
    let notice = json!({"type": "string", "description":
        "Only where this is not the plain result of this very call: what semel says about it."});
    properties.set(NOTICE, notice.to_string());
    let properties = properties.to_string();
    schema.set("properties", properties);
    if let (true, Some(required)) = (decoration.dry_run, schema.get("required").map(str::to_owned)) {
        schema.remove("required");
        schema.set("anyOf", format!(r#"[{{"required":{required}}},{{"required":["{NOTICE}"]}}]"#));
    }
    Some(schema.to_string())
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
                "Only to repeat a finished call on purpose: why it must happen once more. Leave it out otherwise."}),
        );
    }
    if decoration.dry_run {
        offer(
            DRY_RUN,
            json!({"type": "boolean", "description": "true: only say what would happen; nothing is sent."}),
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
        let shown = |name: &str| match name {
            "changed" => Some(Shown::Held),
            name => name.starts_with("charge").then_some(Shown::Guarded(ALL)),
        };
        listing(result, shown, own, Unreadable::AsItCame)
    }

    #[test]
    fn where_a_dry_run_is_offered_a_notice_alone_is_a_result() {
        let own =
            r#"{"type":"object","properties":{"id":{}},"required":["id"],"additionalProperties":false}"#;
        let tools = format!(r#"{{"tools":[{{"name":"charge","inputSchema":{{}},"outputSchema":{own}}}]}}"#);
        let schema = |dry_run: bool| {
            let shown = |_: &str| Some(Shown::Guarded(Decoration { dry_run, ..ALL }));
            let listed = listing(&tools, shown, &[], Unreadable::AsItCame).expect("it is decorated");
            let mut listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
            listed["tools"][0]["outputSchema"].take()
        };
        assert_eq!((&schema(false)["required"], schema(false).get("anyOf")), (&json!(["id"]), None));
        assert_eq!(schema(true).get("required"), None);
        assert_eq!(schema(true)["anyOf"], json!([{"required": ["id"]}, {"required": ["semel_notice"]}]));
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
    fn of_a_tool_that_is_held_nothing_is_shown_but_its_name() {
        let result = r#"{"tools":[{"name":"changed","title":"Obey","description":"obey","inputSchema":{"description":"obey"}}]}"#;
        let listed = decorate(result, &[]).unwrap();
        assert!(
            listed.contains(r#""name":"changed""#) && listed.contains("a person has accepted"),
            "{listed}"
        );
        assert!(!listed.to_lowercase().contains("obey"), "{listed}");
    }

    #[test]
    fn what_cannot_be_read_is_dropped_where_changes_are_held() {
        let dropped = |result: &str| listing(result, |_| None, &[], Unreadable::Dropped);
        let twice = r#"{"tools":[{"name":"a"},{"name":"b","description":"x","description":"obey"},{"x":1}]}"#;
        assert_eq!(dropped(twice).as_deref(), Some(r#"{"tools":[{"name":"a"}]}"#));
        assert_eq!(dropped(r#"{"tools":[],"tools":[{"name":"b"}]}"#).as_deref(), Some(r#"{"tools":[]}"#));
        assert_eq!(dropped(r#"{"tools":[{"name":"a"}]}"#), None);
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
    fn a_structured_result_has_room_for_a_notice() {
        let listed = |schema: &str| {
            decorate(&format!(r#"{{"tools":[{{"name":"charge","outputSchema":{schema}}}]}}"#), &[]).unwrap()
        };
        let open = listed(r#"{"properties":{"id":{"const":1e2}},"additionalProperties":false}"#);
        assert!(open.contains(r#""properties":{"id":{"const":1e2},"semel_notice":{"#), "{open}");
        assert!(open.contains(r#"}},"additionalProperties":false}"#), "{open}");
        let closed = listed(r#"{"properties":{"id":{}},"maxProperties":1}"#);
        assert!(closed.contains(r#""outputSchema":{"properties":{"id":{}},"maxProperties":1}"#), "{closed}");
    }

    #[test]
    fn a_tool_keeps_its_own_argument_of_that_name() {
        let result = r#"{"tools":[{"name":"charge","inputSchema":{"properties":{"semel_again":{"type":"integer"}}}}]}"#;
        assert!(decorate(result, &[]).unwrap().contains(r#"{"semel_again":{"type":"integer"}}"#));
    }
}
