//! A server's tools, as it lists them.

use super::own_key;
use crate::wire::members::Members;
use semel_core::policy::Annotations;
use semel_core::policy::rule::Inject;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// More tools than this no model can choose from; the rest is passed on, and known by name only.
pub const TOOLS_MAX: usize = 10_000;

/// One tool, as far as semel looks at it.
#[derive(Debug, Clone)]
pub struct Definition {
    pub name: String,
    pub annotations: Annotations,
    pub output: OutputSchema,
    /// The names of its arguments.
    pub arguments: Vec<String>,
    /// The one that keys are for.
    pub own_key: Option<Inject>,
    /// Arguments that the stateless era mirrors into headers: header name, and the way to the argument.
    pub headers: Vec<(String, Vec<String>)>,
    /// Whether it is a read whatever it is called with, once that was asked. Most calls of most agents are reads.
    pub only_reads: OnceLock<bool>,
}

/// The form of a result that a client takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputSchema {
    Free,
    /// `structuredContent`, whatever it is.
    Any,
    Structured {
        /// JSON Schema's names for what it may be; none: anything.
        types: Vec<String>,
        /// The members that it has, if it is an object.
        required: Vec<String>,
    },
}

impl OutputSchema {
    fn read(schema: &str) -> OutputSchema {
        let schema = match (schema, Members::parse(schema)) {
            ("true", _) => return OutputSchema::Any,
            (_, None) => return OutputSchema::Free,
            (_, Some(schema)) if schema.is_empty() => return OutputSchema::Any,
            (_, Some(schema)) => schema,
        };
        let list = |name: &str| schema.get(name).and_then(|list| serde_json::from_str(list).ok());
        let alone = schema.text("type").map(|kind| vec![kind.into_owned()]);
        OutputSchema::Structured {
            types: alone.or_else(|| list("type")).unwrap_or_default(),
            required: list("required").unwrap_or_default(),
        }
    }

    /// Whether a structure is what the schema promises, as far as can be seen at a glance.
    pub fn may_be(&self, structure: &str) -> bool {
        let OutputSchema::Structured { types, required } = self else { return true };
        let kinds: &[&str] = match structure.as_bytes().first() {
            Some(b'{') => &["object"],
            Some(b'[') => &["array"],
            Some(b'"') => &["string"],
            Some(b't' | b'f') => &["boolean"],
            Some(b'n') => &["null"],
            _ => &["number", "integer"],
        };
        let is_of_a_type = types.is_empty() || types.iter().any(|kind| kinds.contains(&kind.as_str()));
        let has_all = || {
            let members = Members::parse(structure);
            members.is_some_and(|members| required.iter().all(|name| members.get(name).is_some()))
        };
        is_of_a_type && (kinds != ["object"] || has_all())
    }
}

impl Definition {
    pub fn has_argument(&self, name: &str) -> bool {
        self.arguments.iter().any(|argument| argument == name)
    }

    /// `None` if it has no name.
    pub fn read(tool: &str) -> Option<Definition> {
        let members = Members::parse(tool)?;
        let name = members.text("name")?.into_owned();
        let hints = members.object("annotations");
        let hint = |name: &str| match hints.get(name) {
            Some("true") => Some(true),
            Some("false") => Some(false),
            _ => None,
        };
        let annotations = Annotations {
            read_only: hint("readOnlyHint"),
            idempotent: hint("idempotentHint"),
            destructive: hint("destructiveHint"),
        };
        let output = members.get("outputSchema").map_or(OutputSchema::Free, OutputSchema::read);
        let schema = members.object("inputSchema");
        let properties = schema.object("properties");
        let arguments = properties.names().map(str::to_owned).collect();
        Some(Definition {
            headers: mirrored(&members),
            arguments,
            own_key: own_key::declared(&properties),
            name,
            annotations,
            output,
            only_reads: OnceLock::new(),
        })
    }
}

/// The mark of an argument that is mirrored.
const MIRRORED: &str = "x-mcp-header";

/// Arguments within arguments go no deeper than this, and a schema may go down without end.
const MIRRORED_DEPTH_MAX: usize = 16;

fn mirrored(members: &Members<'_>) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    // Most schemas mark nothing, and are not looked through.
    if members.get("inputSchema").is_some_and(|schema| schema.contains(MIRRORED)) {
        find_mirrored(&members.object("inputSchema"), &mut Vec::new(), &mut found);
    }
    found
}

/// Only arguments that are reached by `properties` alone count: where all others will stand is not known beforehand.
fn find_mirrored(schema: &Members<'_>, way: &mut Vec<String>, found: &mut Vec<(String, Vec<String>)>) {
    if way.len() >= MIRRORED_DEPTH_MAX {
        return;
    }
    let properties = schema.object("properties");
    for name in properties.names() {
        let property = properties.object(name);
        way.push(name.to_owned());
        if let Some(header) = property.text(MIRRORED) {
            found.push((header.into_owned(), way.clone()));
        }
        find_mirrored(&property, way, found);
        way.pop();
    }
}

/// The tools of one server, as last listed.
#[derive(Debug, Clone, Default)]
pub struct Tools {
    by_name: HashMap<String, Arc<Definition>>,
    /// In the server's order.
    order: Vec<String>,
}

impl Tools {
    pub fn get(&self, name: &str) -> Option<&Arc<Definition>> {
        self.by_name.get(name)
    }

    /// Takes over one page of a listing; returns the cursor of the next.
    pub fn add_page(&mut self, result: &str) -> Option<String> {
        let members = Members::parse(result)?;
        for tool in page(&members) {
            if let Some(definition) = Definition::read(tool.get()).filter(|_| self.order.len() < TOOLS_MAX) {
                self.add(definition);
            }
        }
        members.text("nextCursor").map(|cursor| cursor.into_owned())
    }

    /// Of a name that is listed twice the last counts.
    fn add(&mut self, definition: Definition) {
        let name = definition.name.clone();
        if self.by_name.insert(name.clone(), Arc::new(definition)).is_none() {
            self.order.push(name);
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.order.iter().filter_map(|name| self.by_name.get(name))
    }
}

/// The tools of a listing's page, as they are written.
pub fn page<'a>(result: &'a Members<'_>) -> Vec<&'a RawValue> {
    result.get("tools").and_then(|tools| serde_json::from_str(tools).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_structure_is_measured_by_its_type_and_by_the_members_of_an_object() {
        for (schema, fitting, unfit) in [
            (r#"{"type":"array"}"#, "[1,2]", r#"{"a":1}"#),
            (r#"{"type":"string"}"#, r#""x""#, "null"),
            (r#"{"type":"integer"}"#, "-7", r#""7""#),
            (r#"{"type":"boolean"}"#, "false", "0"),
            (r#"{"type":["object","null"],"required":["id"]}"#, "null", "{}"),
            (r#"{"required":["id"]}"#, r#"{"id":1}"#, r#"{"id":1,"id":2}"#),
        ] {
            let output = OutputSchema::read(schema);
            assert!(output.may_be(fitting) && !output.may_be(unfit), "{schema}");
        }
        assert_eq!(
            [OutputSchema::read("true"), OutputSchema::read("{}")],
            [OutputSchema::Any, OutputSchema::Any]
        );
        assert!(OutputSchema::Any.may_be("null"));
    }

    #[test]
    fn a_definition_is_read_for_its_output_its_hints_and_its_headers() {
        let of = |text: &str| Definition::read(text).unwrap();
        assert_eq!(of(r#"{"name":"x"}"#).output, OutputSchema::Free);
        let structured =
            of(r#"{"name":"x","outputSchema":{"required":["id"]},"annotations":{"readOnlyHint":true}}"#);
        let required = vec!["id".to_owned()];
        assert_eq!(structured.output, OutputSchema::Structured { types: Vec::new(), required });
        assert_eq!(structured.annotations.read_only, Some(true));
        let mirrored =
            of(r#"{"name":"x","inputSchema":{"properties":{"region":{"x-mcp-header":"Region"}}}}"#);
        assert_eq!(mirrored.headers, [("Region".to_owned(), vec!["region".to_owned()])]);
        let nested = json!({"where": {"properties": {"region": {"x-mcp-header": "Region"}}},
            "list": {"items": {"properties": {"zone": {"x-mcp-header": "Zone"}}}}});
        let nested = of(&json!({"name": "x", "inputSchema": {"properties": nested}}).to_string());
        assert_eq!(nested.headers, [("Region".to_owned(), vec!["where".to_owned(), "region".to_owned()])]);
    }

    #[test]
    fn listings_come_in_pages() {
        let mut tools = Tools::default();
        assert_eq!(tools.add_page(r#"{"tools":[{"name":"a"}],"nextCursor":"n"}"#).as_deref(), Some("n"));
        assert_eq!(tools.add_page(r#"{"tools":[{"name":"b"},{"title":"nameless"},7]}"#), None);
        assert_eq!(tools.iter().map(|d| d.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(tools.add_page("[]"), None);
    }
}
