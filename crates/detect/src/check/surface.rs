//! Judges the operations of an MCP server or an HTTP API: if an agent does this twice, what breaks?

use super::openapi;
use semel_core::class::Class;
use semel_core::json::{Json, Path};
use semel_core::judgement::arguments::{ArgumentKind, is_own_key, kind};
use semel_core::judgement::recognise::Annotations;
use semel_core::policy::{ActionFacts, Policy, glob};
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write as _;

#[derive(Debug, Clone, Serialize)]
pub struct OperationCheck {
    pub action: String,
    pub class: Class,
    pub because: String,
    /// The argument or header by which it takes an idempotency key.
    pub key: Option<String>,
    /// A read of the same thing, by which a doubt could be looked at.
    pub probe: Option<String>,
    /// The arguments that may tell two calls apart, as paths.
    pub arguments: Vec<String>,
}

impl OperationCheck {
    /// The result of a blind retry, for people.
    pub fn twice(&self) -> &'static str {
        match (self.class, &self.key) {
            (Class::Read, _) => "nothing changes",
            (Class::Convergent, _) => "the same state",
            (Class::Generate, _) => "another answer",
            (_, Some(_)) => "once, if the server honours its key",
            (Class::Consequential, None) => "it happens twice",
            (Class::Act, None) => "it runs twice",
        }
    }
}

/// The tools of a server, as `tools/list` gives them.
pub fn of_tools(server: &str, tools: &[Value], policy: &Policy) -> Vec<OperationCheck> {
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    let checked = tools.iter().filter_map(|tool| {
        let name = tool["name"].as_str()?;
        let hint = |hint: &str| tool["annotations"][hint].as_bool();
        let annotations = Annotations {
            read_only: hint("readOnlyHint"),
            idempotent: hint("idempotentHint"),
            destructive: hint("destructiveHint"),
        };
        let action = format!("mcp:{server}/{name}");
        let facts = ActionFacts { annotations, ..ActionFacts::new(&action, &Json::Null) };
        let rule = policy.rule_for(&facts);
        let properties = tool["inputSchema"]["properties"].as_object();
        let key = properties.into_iter().flatten().map(|(name, _)| name).find(|name| is_own_key(name));
        Some(OperationCheck {
            class: rule.class,
            because: rule.class_because.to_string(),
            key: key.cloned(),
            probe: read_of(name, &names, policy, server).map(str::to_owned),
            arguments: telling_arguments("args", &tool["inputSchema"]),
            action,
        })
    });
    checked.collect()
}

/// The operations of an OpenAPI document.
pub fn of_openapi(document: &Value, policy: &Policy) -> Vec<OperationCheck> {
    const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];
    let address = openapi::address(document).unwrap_or_else(|| "https://api.example.com".to_owned());
    let host = address.split_once("://").map_or(address.as_str(), |(_, rest)| rest);
    let paths = document["paths"].as_object();
    let mut found = Vec::new();
    for (path, operations) in paths.into_iter().flatten() {
        for method in METHODS.iter().filter(|method| operations[**method].is_object()) {
            let operation = &operations[*method];
            let action = format!("http:{} {host}{path}", method.to_uppercase());
            let rule = policy.rule_for(&ActionFacts::new(&action, &Json::Null));
            let parameters = [&operation["parameters"], &operations["parameters"]];
            let parameters = parameters.into_iter().filter_map(Value::as_array).flatten();
            let key =
                parameters.filter_map(|parameter| parameter["name"].as_str()).find(|name| is_own_key(name));
            let is_read = |path: &str| {
                paths.is_some_and(|paths| paths.get(path).is_some_and(|at| at["get"].is_object()))
            };
            let probe = is_read(path).then(|| format!("http:GET {host}{path}"));
            found.push(OperationCheck {
                class: rule.class,
                because: rule.class_because.to_string(),
                key: key.map(str::to_owned),
                probe,
                arguments: telling_arguments(
                    "body",
                    &operation["requestBody"]["content"]["application/json"]["schema"],
                ),
                action,
            });
        }
    }
    found
}

/// A read whose name shares its thing: `list_charges` for `create_charge`.
fn read_of<'n>(tool: &str, names: &[&'n str], policy: &Policy, server: &str) -> Option<&'n str> {
    let words = semel_core::words::words(tool);
    let singular = |word: &str| word.trim_end_matches('s').to_owned();
    let things: Vec<String> = words.iter().skip(1).map(|word| singular(word)).collect();
    names.iter().copied().find(|name| {
        let action = format!("mcp:{server}/{name}");
        let is_read = policy.rule_for(&ActionFacts::new(&action, &Json::Null)).class == Class::Read;
        let theirs: Vec<String> =
            semel_core::words::words(name).iter().skip(1).map(|word| singular(word)).collect();
        is_read && !things.is_empty() && things == theirs
    })
}

/// More arguments than this name no identity.
const ARGUMENTS_SHOWN_MAX: usize = 6;

/// Arguments of a schema whose names do not say that they change from one attempt to the next.
fn telling_arguments(root: &str, schema: &Value) -> Vec<String> {
    let changes = |name: &str| {
        matches!(kind(name), ArgumentKind::Volatile | ArgumentKind::Stamp | ArgumentKind::Content)
    };
    let names = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name);
    let telling = names.filter(|name| !changes(name)).take(ARGUMENTS_SHOWN_MAX);
    telling.map(|name| Path::to_member(root, name).to_string()).collect()
}

/// An API for the policy to name, besides its rules.
#[derive(Debug, Clone, Copy)]
pub struct NamedUpstream<'a> {
    pub name: &'a str,
    pub url: &'a str,
}

/// A policy with a rule for each operation that would happen twice.
pub fn policy_text(upstream: Option<NamedUpstream<'_>>, operations: &[OperationCheck]) -> String {
    let mut text = "version = 1\n".to_owned();
    if let Some(NamedUpstream { name, url }) = upstream {
        let is_bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
        let name = if is_bare { name.to_owned() } else { quoted(name) };
        let _ = write!(text, "\n[upstream.{name}]\nurl = {}\n", quoted(url));
    }
    for operation in operations.iter().filter(|operation| operation.class == Class::Consequential) {
        let pattern = quoted(&pattern(&operation.action));
        let _ = write!(text, "\n[[rule]]\nmatch = {pattern}\nclass = \"consequential\"\n");
        if !operation.arguments.is_empty() {
            let paths: Vec<String> = operation.arguments.iter().map(|path| quoted(path)).collect();
            let _ =
                writeln!(text, "# key = [{}]   # keep those that tell two of them apart", paths.join(", "));
        }
        if let Some(key) = &operation.key {
            let into = if operation.action.starts_with("http:") { "header" } else { "arg" };
            let key = quoted(key);
            let _ = writeln!(
                text,
                "# inject = {{ {into} = {key}, valid_for = \"24h\" }}   # if the server deduplicates by it"
            );
        }
        if let Some(probe) = operation.probe.as_ref().filter(|probe| !probe.starts_with("http:")) {
            let tool = quoted(&format!("./{probe}"));
            let _ = writeln!(
                text,
                "# [rule.probe]   # a read that tells whether it happened\n# mcp = {tool}\n# found = \"…\""
            );
        }
    }
    text
}

/// A text of TOML: its escapes are those of JSON.
fn quoted(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}

/// The pattern of exactly this action. A parameter of its path is anything: `/charges/{id}/refunds` is
/// `/charges/*/refunds`.
fn pattern(action: &str) -> String {
    if !action.starts_with("http:") {
        return glob::literal(action);
    }
    let mut pattern = String::new();
    let mut rest = action;
    while let Some((before, after)) = rest.split_once('{') {
        pattern.push_str(&glob::literal(before));
        pattern.push('*');
        rest = after.split_once('}').map_or("", |(_, after)| after);
    }
    pattern + &glob::literal(rest)
}
