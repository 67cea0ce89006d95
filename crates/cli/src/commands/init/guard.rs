//! Which edits put semel in front of a server, and which take it out again.

use super::clients::{Client, Format, Kind};
use super::edit::Edit;
use super::entry::{Header, HeaderFrom, Local, Place, Remote};
use super::wrapped::{Behind, Guarded};
use crate::commands::mcp::name;
use serde_json::{Map, Value};

/// What stands in front of every server.
#[derive(Debug, Clone, Copy)]
pub struct Front<'a> {
    pub semel: &'a str,
    /// `--policy` and `--ledger`, where they were given.
    pub flags: &'a [String],
}

/// `semel mcp --name NAME -- command args…`; everything but command and args stays.
pub fn local(place: &Place, front: Front<'_>, command: &str) -> Vec<Edit> {
    let mut words = front.words(place);
    words.extend(["--".to_owned(), command.to_owned()]);
    vec![Edit::set("command", front.semel, "command"), Edit::Front { drop: 0, add: words }]
}

/// `semel mcp --name NAME --url URL --header-env NAME=VARIABLE…`. The values of headers go into the environment,
/// because every process of the machine may read a command line.
pub fn remote(place: &Place, remote: &Remote, client: &Client, front: Front<'_>) -> Vec<Edit> {
    let mut args = front.words(place);
    args.extend(["--url".to_owned(), remote.url.clone()]);
    let mut env = remote.env.clone();
    let (mut forwarded, mut names) = (Vec::new(), Vec::new());
    for header in &remote.headers {
        let variable = match &header.from {
            HeaderFrom::Text(text) => {
                let variable = free_variable(&env);
                env.insert(variable.clone(), Value::String(text.clone()));
                names.push((header.name.clone(), variable.clone()));
                variable
            }
            HeaderFrom::Variable(variable) => {
                forwarded.push(Value::String(variable.clone()));
                variable.clone()
            }
        };
        args.extend(["--header-env".to_owned(), format!("{}={variable}", header.name)]);
    }
    let mut edits = vec![
        Edit::Put {
            from: remote.url_member.to_owned(),
            to: "command".to_owned(),
            value: front.semel.into(),
            after: "",
        },
        Edit::set("args", args, "command"),
    ];
    edits.push(match names.is_empty() {
        true => Edit::Remove(client.headers),
        false => Edit::Move { from: client.headers, to: "env", names },
    });
    if client.format == Format::Toml {
        // Codex hands no variable on that is not named.
        edits.push(match forwarded.is_empty() {
            true => Edit::Remove("env_http_headers"),
            false => put("env_http_headers", "env_vars", forwarded, "args"),
        });
    }
    edits.extend(remote.kind.is_some().then(|| match client.kind {
        Kind::Named => Edit::set("type", "stdio", ""),
        Kind::Dropped => Edit::Remove("type"),
    }));
    edits
}

impl Front<'_> {
    /// `mcp --name NAME`, with what holds for every server.
    fn words(&self, place: &Place) -> Vec<String> {
        let mut words = vec!["mcp".to_owned()];
        words.extend_from_slice(self.flags);
        words.extend(["--name".to_owned(), name::fitting(&place.server)]);
        words
    }
}

/// How a server was written before semel came, which the entry itself no longer says.
#[derive(Debug)]
pub enum Spelling {
    Command(String),
    Address {
        member: &'static str,
        /// What `type` said.
        kind: Option<String>,
    },
}

/// What the entry itself holds, taken out of semel's hands. `spelled` is how it was written, if that is known.
pub fn undo(guarded: &Guarded, behind: &Behind, client: &Client, spelled: Option<&Spelling>) -> Vec<Edit> {
    match behind {
        Behind::Command { command, words, .. } => {
            let command = match spelled {
                Some(Spelling::Command(spelled)) => spelled,
                _ => command,
            };
            vec![Edit::set("command", command.as_str(), ""), Edit::Front { drop: *words, add: Vec::new() }]
        }
        Behind::Url { url, headers, variables } => {
            let (member, kind) = match spelled {
                Some(Spelling::Address { member, kind }) => (*member, kind.as_deref()),
                _ => (client.urls[0], None),
            };
            let mut edits = vec![put("command", member, url.as_str(), ""), Edit::Remove("args")];
            edits.extend(undo_headers(guarded, headers, variables, client));
            // A word that somebody put there since stays.
            let kind = match (client.kind, guarded.kind.as_deref()) {
                (Kind::Named, Some("stdio")) => kind.or(Some("http")),
                (Kind::Dropped, None) => kind,
                _ => None,
            };
            edits.extend(kind.map(|kind| Edit::set("type", kind, member)));
            edits
        }
    }
}

fn undo_headers(
    guarded: &Guarded,
    headers: &[Header],
    variables: &[(String, String)],
    client: &Client,
) -> Vec<Edit> {
    let (mut literal, mut named) = (Map::new(), Map::new());
    for Header { name, from } in headers {
        match from {
            HeaderFrom::Text(text) => literal.insert(name.clone(), text.as_str().into()),
            HeaderFrom::Variable(variable) => named.insert(name.clone(), variable.as_str().into()),
        };
    }
    let mut env = guarded.env.clone();
    env.retain(|name, _| !variables.iter().any(|(variable, _)| variable == name));
    // Each in a variable of its own, as `semel init` writes it.
    let one_each = variables.len() == literal.len() && env.len() + literal.len() == guarded.env.len();
    let mut edits = if literal.is_empty() {
        Vec::new()
    } else if one_each {
        vec![Edit::Move { from: "env", to: client.headers, names: variables.to_vec() }]
    } else {
        vec![
            if env.is_empty() { Edit::Remove("env") } else { Edit::set("env", env, "") },
            Edit::set(client.headers, literal, ""),
        ]
    };
    if !named.is_empty() {
        edits.push(put("env_vars", "env_http_headers", named, ""));
    }
    edits
}

fn put(from: &str, to: &str, value: impl Into<Value>, after: &'static str) -> Edit {
    Edit::Put { from: from.to_owned(), to: to.to_owned(), value: value.into(), after }
}

fn free_variable(env: &Map<String, Value>) -> String {
    let names = (1..).map(|number| format!("SEMEL_HEADER_{number}"));
    let mut free = names.filter(|name| !env.contains_key(name));
    free.next().expect("there are more numbers than variables")
}

/// Whether undoing a command gives what another entry says, apart from how the command is spelled.
pub fn same_but_for_spelling(original: &Local, behind: &Behind) -> bool {
    let name = |command: &str| command.rsplit('/').next().unwrap_or_default().to_owned();
    match behind {
        Behind::Command { command, args, .. } => {
            *args == original.args && name(command) == name(&original.command)
        }
        Behind::Url { .. } => false,
    }
}
