//! A server's entry, read once: what it starts or where it goes, and whether semel already stands in front of it.

use super::clients::McpClient;
use super::edit::EntryPath;
use serde_json::{Map, Value};

#[derive(Debug)]
pub enum Entry {
    Local(LocalEntry),
    Remote(RemoteEntry),
    /// It starts `semel mcp` already.
    Guarded {
        semel: String,
        args: Vec<String>,
    },
    /// Nothing that semel can stand in front of, and why.
    Odd(&'static str),
}

/// A server that the client starts.
#[derive(Debug)]
pub struct LocalEntry {
    pub command: String,
    pub args: Vec<String>,
    /// It brings a search path of its own, so ours says nothing about its command.
    pub own_path: bool,
}

/// A server at an address.
#[derive(Debug)]
pub struct RemoteEntry {
    /// The member that holds the address.
    pub url_member: &'static str,
    pub url: String,
    /// By name.
    pub headers: Vec<Header>,
    /// The value of `type`.
    pub kind: Option<String>,
    /// Members that no client reads there.
    pub env: Map<String, Value>,
    /// A member that says that the client itself signs in, or makes headers as it goes.
    pub signs_in: Option<&'static str>,
    /// A member that the entry of a local server needs for something else.
    pub in_the_way: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub name: String,
    pub from: HeaderFrom,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderFrom {
    Text(String),
    /// The name of an environment variable that holds it.
    Variable(String),
}

/// Members by which a client says that it gets the credentials itself.
const SIGNS_IN: [&str; 7] = [
    "oauth",
    "auth",
    "authProviderType",
    "headersHelper",
    "oauth_resource",
    "bearer_token_env_var",
    "bearer_token",
];

/// All entries of a document, in order of their places.
pub fn entries(document: &Value, client: &McpClient) -> Vec<(EntryPath, Entry)> {
    let mut found = Vec::new();
    for path in client.containers {
        walk(document, path, &mut Vec::new(), &mut |container, servers| {
            for (server, entry) in servers {
                let place = EntryPath { container: container.to_vec(), server: server.clone() };
                found.push((place, Entry::read(entry, client)));
            }
        });
    }
    found
}

fn walk(
    value: &Value,
    path: &[&str],
    walked: &mut Vec<String>,
    visit: &mut impl FnMut(&[String], &Map<String, Value>),
) {
    let Value::Object(object) = value else { return };
    let Some((step, rest)) = path.split_first() else { return visit(walked, object) };
    for (name, inner) in object.iter().filter(|(name, _)| *step == "*" || name == step) {
        walked.push(name.clone());
        walk(inner, rest, walked, visit);
        walked.pop();
    }
}

/// `semel mcp`, however semel itself is started (`npx semel mcp`, `/opt/semel mcp`).
fn starts_semel(command: &str, args: &[String]) -> bool {
    let is_semel = |word: &str| {
        let name = word.rsplit(['/', '\\']).next().unwrap_or_default();
        name == "semel" || name == "semel.exe"
    };
    let words = || std::iter::once(command).chain(args.iter().map(String::as_str));
    words().zip(words().skip(1)).any(|(word, next)| is_semel(word) && next == "mcp")
}

impl Entry {
    /// The name under which semel guards it already, and the words behind semel's own, or the address.
    pub fn guarded(&self) -> Option<(String, Vec<String>)> {
        let Entry::Guarded { args, .. } = self else { return None };
        let own = args.iter().position(|word| word == "--").unwrap_or(args.len());
        let value = |flag: &str| {
            let at = args[..own].iter().position(|word| word == flag)?;
            args.get(at + 1).cloned()
        };
        let words = match args.get(own + 1..) {
            Some(words) if !words.is_empty() => words.to_owned(),
            _ => vec![value("--url")?],
        };
        Some((value("--name")?, words))
    }

    /// The words that tell which server it is, also those within a shell's line.
    pub fn words(&self) -> Vec<String> {
        let between = |c: char| c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(' | ')' | '\'' | '"');
        let (first, args) = match self {
            Entry::Local(LocalEntry { command, args, .. }) | Entry::Guarded { semel: command, args } => {
                (command, &args[..])
            }
            Entry::Remote(RemoteEntry { url, .. }) => (url, &[][..]),
            Entry::Odd(_) => return Vec::new(),
        };
        let parts = args.iter().flat_map(|arg| arg.split(between)).filter(|word| !word.is_empty());
        std::iter::once(first.as_str()).chain(parts).map(str::to_owned).collect()
    }

    pub fn read(entry: &Value, client: &McpClient) -> Entry {
        let Value::Object(members) = entry else { return Entry::Odd("it is not an object") };
        let mut urls = client.urls.iter().filter_map(|member| Some((*member, members.get(*member)?)));
        let url = urls.next();
        if urls.next().is_some() {
            return Entry::Odd("it has two addresses");
        }
        match (members.get("command"), url) {
            (Some(_), Some(_)) => Entry::Odd("it has both a command and an address"),
            (Some(Value::String(command)), None) => local(command, members),
            (None, Some((member, Value::String(url)))) => remote(member, url, members, client),
            (Some(_), None) => Entry::Odd("its command is not a text"),
            (None, Some(_)) => Entry::Odd("its address is not a text"),
            (None, None) => Entry::Odd("it has neither a command nor an address"),
        }
    }
}

fn local(command: &str, members: &Map<String, Value>) -> Entry {
    let args = match members.get("args") {
        None => Some(Vec::new()),
        Some(Value::Array(args)) => args.iter().map(|arg| arg.as_str().map(str::to_owned)).collect(),
        Some(_) => None,
    };
    let Some(args) = args else { return Entry::Odd("its args are not a list of texts") };
    let env = object(members, "env");
    if starts_semel(command, &args) {
        return Entry::Guarded { semel: command.to_owned(), args };
    }
    let own_path = env.keys().any(|name| name.eq_ignore_ascii_case("PATH"));
    Entry::Local(LocalEntry { command: command.to_owned(), args, own_path })
}

fn remote(member: &'static str, url: &str, members: &Map<String, Value>, client: &McpClient) -> Entry {
    let texts = |member: &str| -> Option<Vec<(String, String)>> {
        match members.get(member) {
            None => Some(Vec::new()),
            Some(Value::Object(object)) => {
                object.iter().map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned()))).collect()
            }
            Some(_) => None,
        }
    };
    let (Some(literal), Some(named)) = (texts(client.headers), texts("env_http_headers")) else {
        return Entry::Odd("its headers are not texts");
    };
    let literal = literal.into_iter().map(|(name, text)| Header { name, from: HeaderFrom::Text(text) });
    let named =
        named.into_iter().map(|(name, variable)| Header { name, from: HeaderFrom::Variable(variable) });
    let mut headers: Vec<Header> = literal.chain(named).collect();
    headers.sort_by(|a, b| a.name.cmp(&b.name));
    if headers.iter().any(|header| !is_header_name(&header.name)) {
        return Entry::Odd("one of its headers has a name that no header can have");
    }
    let in_the_way = in_the_way(members, &headers);
    Entry::Remote(RemoteEntry {
        url_member: member,
        url: url.to_owned(),
        headers,
        kind: kind(members),
        env: object(members, "env"),
        signs_in: SIGNS_IN.into_iter().find(|member| members.contains_key(*member)),
        in_the_way,
    })
}

/// Members that a client passes over in the entry of a remote server, and that semel would have to overwrite.
fn in_the_way(members: &Map<String, Value>, headers: &[Header]) -> Option<&'static str> {
    let named = headers.iter().any(|header| matches!(header.from, HeaderFrom::Variable(_)));
    let args = members.get("args").is_some_and(|args| args.as_array().is_none_or(|args| !args.is_empty()));
    let env = members.get("env").is_some_and(|env| !env.is_object());
    let env_vars = named && members.contains_key("env_vars");
    let of_those = [("args", args), ("env", env), ("env_vars", env_vars)];
    of_those.into_iter().find_map(|(member, is)| is.then_some(member))
}

/// A token of RFC 9110, so that `NAME=VARIABLE` has one reading.
fn is_header_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

fn object(members: &Map<String, Value>, member: &str) -> Map<String, Value> {
    members.get(member).and_then(Value::as_object).cloned().unwrap_or_default()
}

fn kind(members: &Map<String, Value>) -> Option<String> {
    members.get("type").and_then(Value::as_str).map(str::to_owned)
}
