//! Judges the operations of an MCP server or an HTTP API: if an agent does this twice, what breaks?

use semel_core::class::Class;
use semel_core::json::Json;
use semel_core::judgement::recognise::Annotations;
use semel_core::policy::{ActionFacts, Policy};
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

/// Names under which operations take a key.
const KEY_NAMES: [&str; 5] =
    ["idempotency_key", "idempotencyKey", "idempotency-key", "client_token", "client_request_token"];

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
        let key = properties.into_iter().flatten().map(|(name, _)| name).find(|name| is_key(name));
        Some(OperationCheck {
            class: rule.class,
            because: rule.class_because.to_string(),
            key: key.cloned(),
            probe: read_of(name, &names, policy, server).map(str::to_owned),
            action,
        })
    });
    checked.collect()
}

/// The operations of an OpenAPI document. `host` stands before its paths.
pub fn of_openapi(document: &Value, policy: &Policy) -> Vec<OperationCheck> {
    const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];
    let server = document["servers"][0]["url"].as_str().unwrap_or("api.example.com");
    let host = server.split_once("://").map_or(server, |(_, rest)| rest).trim_end_matches('/');
    let paths = document["paths"].as_object();
    let mut found = Vec::new();
    for (path, operations) in paths.into_iter().flatten() {
        for method in METHODS.iter().filter(|method| operations[**method].is_object()) {
            let operation = &operations[*method];
            let action = format!("http:{} {host}{path}", method.to_uppercase());
            let rule = policy.rule_for(&ActionFacts::new(&action, &Json::Null));
            let parameters = [&operation["parameters"], &operations["parameters"]];
            let parameters = parameters.into_iter().filter_map(Value::as_array).flatten();
            let key = parameters.filter_map(|parameter| parameter["name"].as_str()).find(|name| is_key(name));
            let is_read = |path: &str| {
                paths.is_some_and(|paths| paths.get(path).is_some_and(|at| at["get"].is_object()))
            };
            let probe = is_read(path).then(|| format!("http:GET {host}{path}"));
            found.push(OperationCheck {
                class: rule.class,
                because: rule.class_because.to_string(),
                key: key.map(str::to_owned),
                probe,
                action,
            });
        }
    }
    found
}

fn is_key(name: &str) -> bool {
    KEY_NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
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

/// The rules to write for the operations that would happen twice.
pub fn policy_text(operations: &[OperationCheck]) -> String {
    let mut text = "version = 1\n".to_owned();
    for operation in operations.iter().filter(|operation| operation.class == Class::Consequential) {
        let pattern = without_parameters(&operation.action);
        let _ = write!(text, "\n[[rule]]\nmatch = {pattern:?}\nclass = \"consequential\"\n");
        let _ = writeln!(text, "# key = [\"args.…\"]        # the arguments that identify it");
        if let Some(key) = &operation.key {
            let into = if operation.action.starts_with("http:") { "header" } else { "arg" };
            let _ = writeln!(
                text,
                "# inject = {{ {into} = {key:?}, valid_for = \"24h\" }}   # if the server deduplicates by it"
            );
        }
        if let Some(probe) = operation.probe.as_ref().filter(|probe| !probe.starts_with("http:")) {
            let _ = writeln!(text, "# [rule.probe]\n# mcp = \"./{probe}\"\n# found = \"…\"");
        }
    }
    text
}

/// `/charges/{id}/refunds` as a rule writes it: `/charges/*/refunds`.
fn without_parameters(action: &str) -> String {
    let segments = action.split('/').map(|segment| if segment.starts_with('{') { "*" } else { segment });
    segments.collect::<Vec<_>>().join("/")
}
