//! The treatment of each server, with its reason.

use super::clients::McpClient;
use super::edit::EntryPath;
use super::entry::{Entry, Header, HeaderFrom, RemoteEntry};
use super::guard::{self, FrontWords};
use super::names::{Names, ServerCommand};
use super::places::Candidate;
use super::resolve::{self, Program};
use semel_core::json::Json;
use semel_core::redact::redact;
use semel_core::subject::quoted_for_a_shell;
use serde_json::{Map, Value};
use std::ffi::OsStr;
use std::net::IpAddr;
use std::path::Path;

#[derive(Debug)]
pub enum GuardDecision {
    /// Semel goes in front of it.
    Guard {
        after: Map<String, Value>,
        note: Option<String>,
    },
    /// Semel is in front of it.
    Guarded {
        note: Option<String>,
    },
    LeftAlone {
        why: String,
    },
}

/// The facts behind the decisions, besides the entries.
#[derive(Debug)]
pub struct Surroundings<'a> {
    /// The path of this semel.
    pub semel: String,
    /// `--policy` and `--ledger` with what was given, by whole paths.
    pub flags: Vec<(&'static str, String)>,
    pub words: WordsChoice,
    pub search: &'a OsStr,
    /// Somebody asked for these very servers, and knows better than what is only presumed of them.
    pub named: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WordsChoice {
    /// Portable where others may share the file.
    ByFile,
    Portable,
    Absolute,
}

impl Surroundings<'_> {
    pub fn is_portable(&self, candidate: &Candidate) -> bool {
        match self.words {
            WordsChoice::ByFile => candidate.project.is_some(),
            WordsChoice::Portable => true,
            WordsChoice::Absolute => false,
        }
    }

    /// A client starts the servers of a project in it, and the others from wherever it is.
    fn front(&self, candidate: &Candidate) -> FrontWords {
        let portable = self.is_portable(candidate);
        let near = |path: &str| {
            let project = candidate.project.as_ref().filter(|_| portable);
            let inside = project.and_then(|project| Path::new(path).strip_prefix(project).ok());
            inside.map_or_else(|| path.to_owned(), |inside| inside.display().to_string())
        };
        let flags = self.flags.iter().flat_map(|(flag, path)| [(*flag).to_owned(), near(path)]).collect();
        FrontWords { semel: if portable { "semel".to_owned() } else { self.semel.clone() }, flags }
    }
}

pub fn guard(
    place: &EntryPath,
    (entry, before): (&Entry, &Map<String, Value>),
    candidate: &Candidate,
    around: &Surroundings<'_>,
    names: &mut Names,
) -> GuardDecision {
    let left = |why: &str| GuardDecision::LeftAlone { why: why.to_owned() };
    if place.server.is_empty() || place.server.starts_with('-') {
        return left("its name cannot stand on a command line");
    }
    let front = around.front(candidate);
    match entry {
        Entry::Odd(why) => left(why),
        Entry::Guarded { semel, .. } => guarded_already(semel, around),
        Entry::Local(server) => {
            let resolved = resolve::program(&server.command, server.own_path, around.search);
            let (command, note) = match resolved {
                Program::Absolute(_) if around.is_portable(candidate) => (server.command.clone(), None),
                Program::Absolute(path) => (path, None),
                Program::AsItIs(why) => (server.command.clone(), why.map(str::to_owned)),
                Program::StatsLine => {
                    return left("its command is a line for a shell; put its words into args");
                }
            };
            let words: Vec<String> = std::iter::once(&command).chain(&server.args).cloned().collect();
            let directory = candidate.directory(place);
            let of_person = directory.is_none();
            let name = names.choose(&place.server, ServerCommand { words: words.clone(), directory });
            GuardDecision::Guard {
                after: guard::local(&name, &front, before.clone(), words, of_person),
                note: note.or_else(|| other_name(place, &name)),
            }
        }
        Entry::Remote(server) if is_served(&server.url) => {
            GuardDecision::Guarded { note: Some("by semel serve, it seems".to_owned()) }
        }
        Entry::Remote(server) => match why_not_remote(place, server, candidate.client, around.named) {
            Some(why) => GuardDecision::LeftAlone { why },
            None => {
                let command = ServerCommand { words: vec![server.url.clone()], directory: None };
                let name = names.choose(&place.server, command);
                GuardDecision::Guard {
                    after: guard::remote(&name, &front, before.clone(), server, candidate.client),
                    note: other_name(place, &name),
                }
            }
        },
    }
}

fn guarded_already(by: &str, around: &Surroundings<'_>) -> GuardDecision {
    let gone = Path::new(by).is_absolute() && !Path::new(by).is_file();
    let note = match () {
        () if gone => Some(format!("by {by}, which is gone: undo, then init again")),
        () if by != around.semel && by != "semel" => Some(format!("by {by}")),
        () => None,
    };
    GuardDecision::Guarded { note }
}

/// Rules must say it as semel does.
fn other_name(place: &EntryPath, name: &str) -> Option<String> {
    (name != place.server).then(|| format!("as {name:?} in rules and records"))
}

/// `http://127.0.0.1:7777/mcp/NAME` on this very machine: two guards in a row would be two records of one effect.
fn is_served(url: &str) -> bool {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")).unwrap_or_default();
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let here = ["127.0.0.1", "localhost", "[::1]"];
    let name = path.strip_prefix("mcp/").filter(|name| !name.is_empty() && !name.contains('/'));
    name.is_some() && here.iter().any(|own| host.strip_prefix(own).is_some_and(|port| port.starts_with(':')))
}

/// Whether it runs on this very machine, where servers seldom sign anybody in.
fn is_here(url: &str) -> bool {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    let number = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || number.is_ok_and(|address| address.is_loopback())
}

/// Why semel cannot stand in front of a remote server by starting as a process.
fn why_not_remote(
    place: &EntryPath,
    server: &RemoteEntry,
    client: &McpClient,
    named: bool,
) -> Option<String> {
    let serve = "use semel serve";
    match server.signs_in {
        Some("bearer_token_env_var") => {
            return Some(
                "its variable holds a token rather than a header; with env_http_headers it can be guarded"
                    .to_owned(),
            );
        }
        Some(member) => return Some(format!("the client gets its credentials ({member}); {serve}")),
        None => {}
    }
    if let Some(why) = why_not_spoken(server, client) {
        return Some(why);
    }
    let needs_none = named || is_here(&server.url);
    if !needs_none && !server.headers.iter().any(is_credential) {
        let anyway = format!("or --server {} if it does not", quoted_for_a_shell(&place.server));
        return Some(format!(
            "it signs in by OAuth, most likely, which a process cannot do for it; {serve}, {anyway}"
        ));
    }
    let url = Json::str(&server.url);
    if redact(&url, &[]) != url {
        return Some(format!("its address holds a secret, which every process could read; {serve}"));
    }
    server.headers.iter().find_map(|header| why_not_handed_on(header, server)).or_else(|| {
        let member = server.in_the_way?;
        Some(format!("it has both an address and {member}, which would be lost"))
    })
}

/// How the clients and those who write for them call Streamable HTTP.
const STREAMABLE_HTTP: [&str; 4] = ["http", "streamable-http", "streamableHttp", "streamable_http"];

/// Why semel does not speak what the client speaks there.
fn why_not_spoken(server: &RemoteEntry, client: &McpClient) -> Option<String> {
    match server.kind.as_deref() {
        Some("sse") => Some("it speaks the older transport, SSE, which semel does not".to_owned()),
        Some(kind) if STREAMABLE_HTTP.contains(&kind) => None,
        Some(kind) => Some(format!("its type is {kind:?}, which semel does not speak")),
        None if client.sse_url == Some(server.url_member) => {
            let (member, other, title) = (server.url_member, client.urls[0], client.title);
            Some(format!(
                "{title} may speak SSE at its {member}, which semel does not; with {other} it can be guarded"
            ))
        }
        // Such clients try both, and nothing but the address tells which one they end with.
        None if client.sse_url.is_none() && ends_in_sse(&server.url) => {
            Some("by its address it speaks the older transport, SSE, which semel does not".to_owned())
        }
        None => None,
    }
}

/// `https://mcp.example/v1/sse`: by custom, the path of a server of the older transport.
fn ends_in_sse(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    path.split_once("://").is_some_and(|(_, rest)| rest.ends_with("/sse"))
}

/// Why a header cannot travel in a variable.
fn why_not_handed_on(header: &Header, server: &RemoteEntry) -> Option<String> {
    let name = &header.name;
    match &header.from {
        HeaderFrom::Text(text) if text.is_empty() => {
            Some(format!("its header {name} is empty, and an empty variable counts as none"))
        }
        HeaderFrom::Text(text) if text.bytes().any(|b| !matches!(b, b'\t' | b' '..=b'~')) => {
            Some(format!("its header {name} holds a character that semel does not send"))
        }
        HeaderFrom::Variable(variable) if variable.is_empty() || variable.contains(['=', '\0']) => {
            Some(format!("its header {name} comes from a variable that cannot be"))
        }
        HeaderFrom::Variable(variable) if server.env.contains_key(variable) => {
            Some(format!("its env sets {variable}, which its header {name} takes from elsewhere"))
        }
        HeaderFrom::Text(_) | HeaderFrom::Variable(_) => None,
    }
}

fn is_credential(header: &Header) -> bool {
    let name = header.name.to_ascii_lowercase();
    let held = match &header.from {
        HeaderFrom::Text(text) => !text.is_empty(),
        HeaderFrom::Variable(_) => true,
    };
    held && ["authorization", "token", "key", "secret", "auth", "cookie"]
        .iter()
        .any(|word| name.contains(word))
}
