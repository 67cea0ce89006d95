//! The packs over HTTP: requests as the SDKs and documents of each API write them.

mod classes;
mod hosts;
mod keys;
mod prefixes;
mod probes;
mod refusals;
mod sameness;

use semel_core::ids::IdempotencyKey;
use semel_core::intent::{Ask, Intent};
use semel_core::json::{Json, parse};
use semel_core::policy::rule::Rule;
use semel_core::policy::{ActionFacts, Policy, PolicyFile};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

const REQUESTS: &str = include_str!("../../fixtures/preset-requests.txt");

/// An API behind semel, known by its address alone.
pub struct Api {
    pub url: &'static str,
    pub policy: Policy,
}

impl Api {
    pub fn at(url: &'static str) -> Api {
        let text = format!("[upstream.it]\nurl = \"{url}\"\n");
        let policy = Policy::load(vec![PolicyFile { path: "semel.toml".into(), text }])
            .unwrap_or_else(|found| panic!("{found}"));
        Api { url, policy }
    }

    pub fn preset(&self) -> Option<&'static str> {
        self.policy.upstreams["it"].preset
    }

    /// `POST /v1/charges?expand=x`, with a body as it stands in the fixture, and a header.
    pub fn request(&self, line: &str, body: &str, header: &str) -> Request {
        let (method, target) = line.split_once(' ').expect(line);
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut parts = vec![("path", Json::str(path))];
        let body = match body.as_bytes().first() {
            None => None,
            Some(b'{' | b'[') => Some(parse(body).unwrap_or_else(|error| panic!("{body}: {error}"))),
            Some(_) => Some(form(body)),
        };
        // The door leaves out what a request does not have.
        parts.extend(body.map(|body| ("body", described(path, body))));
        parts.extend((!query.is_empty()).then(|| ("query", form(query))));
        let header = header.split_once(": ");
        parts.extend(header.map(|(name, value)| ("headers", Json::object([(name, Json::str(value))]))));
        Request {
            action: format!("http:{method} {}{path}", self.policy.upstreams["it"].service),
            arguments: Json::Object(parts.into_iter().map(|(name, part)| (name.to_owned(), part)).collect()),
        }
    }

    pub fn rule(&self, request: &Request) -> Rule {
        let facts = ActionFacts::new(&request.action, &request.arguments);
        Arc::unwrap_or_clone(self.policy.rule_for(&facts))
    }

    pub fn intent(&self, request: &Request, key: Option<&str>) -> Intent {
        let ask = Ask {
            authority: self.url,
            key: key.map(|key| IdempotencyKey::parse(key).expect(key)),
            ..Ask::of(("t", "p"), &request.action, &request.arguments)
        };
        Intent::of(&ask, &self.rule(request), &crate::scene::secret())
            .expect("the request has its key fields")
    }
}

pub struct Request {
    pub action: String,
    pub arguments: Json,
}

/// Names stay as they are written, brackets and all.
fn form(text: &str) -> Json {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    Json::Object(
        pairs
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                (name.to_owned(), Json::str(&value.replace('+', " ")))
            })
            .collect(),
    )
}

/// The door tells rules what a GraphQL document does: its operation, and the fields that it begins with. The documents
/// of these tests have one.
fn described(path: &str, mut body: Json) -> Json {
    let document = body.get("query").and_then(Json::as_str).unwrap_or_default().to_owned();
    if let (true, Json::Object(members)) = (path.contains("/graphql"), &mut body) {
        let operation = if document.starts_with("mutation") { "mutation" } else { "query" };
        let inside = document.split_once('{').map_or("", |(_, inside)| inside).trim_start();
        let field: String = inside.chars().take_while(char::is_ascii_alphanumeric).collect();
        members.insert("operation", Json::str(operation));
        members.insert("fields", Json::Array(vec![Json::String(field)]));
    }
    body
}

/// The APIs of the fixture, by the name of their preset.
pub fn api(preset: &str) -> &'static Api {
    static APIS: LazyLock<BTreeMap<&'static str, Api>> =
        LazyLock::new(|| sections().map(|(preset, url)| (preset, Api::at(url))).collect());
    APIS.get(preset).unwrap_or_else(|| panic!("no requests of {preset}"))
}

/// `[stripe] https://api.stripe.com`
fn sections() -> impl Iterator<Item = (&'static str, &'static str)> {
    REQUESTS.lines().filter_map(|line| line.strip_prefix('[')?.split_once("] "))
}

pub struct Line {
    pub preset: &'static str,
    pub class: &'static str,
    pub written: &'static str,
    pub request: Request,
}

/// All requests of the fixture.
pub fn lines() -> Vec<Line> {
    let mut lines = Vec::new();
    let mut preset = "";
    for written in REQUESTS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some((name, _)) = written.strip_prefix('[').and_then(|line| line.split_once("] ")) {
            preset = name;
            continue;
        }
        let mut columns = written.split(" | ");
        let mut column = || columns.next().unwrap_or_default();
        let (class, request, body, header) = (column(), column(), column(), column());
        let request = api(preset).request(request, body, header);
        lines.push(Line { preset, class, written, request });
    }
    lines
}
