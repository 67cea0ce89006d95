//! The edits that put semel in front of a server.

use super::clients::{McpClient, TypeMember};
use super::edit::{EntryPath, MemberEdit};
use super::entry::{Header, HeaderFrom, RemoteEntry};
use super::format::Format;
use crate::commands::mcp::name;
use serde_json::{Map, Value};

/// The words in front of every server.
#[derive(Debug, Clone, Copy)]
pub struct FrontWords<'a> {
    pub semel: &'a str,
    /// `--policy` and `--ledger`, where they were given.
    pub flags: &'a [String],
}

impl FrontWords<'_> {
    /// `mcp --name NAME`, with the flags of every server.
    fn words(&self, place: &EntryPath) -> Vec<String> {
        let mut words = vec!["mcp".to_owned()];
        words.extend_from_slice(self.flags);
        words.extend(["--name".to_owned(), name::fitting(&place.server)]);
        words
    }

    /// All words that it may write into a file, so that they can be shown.
    pub fn all_words(&self, place: &EntryPath) -> Vec<String> {
        let mut words = self.words(place);
        words.extend(["--any-directory", "--", "--url", "--header-env", "stdio", "http"].map(str::to_owned));
        words.push(self.semel.to_owned());
        words
    }
}

/// `semel mcp --name NAME -- command args…`; everything but command and args stays. A person's own configuration starts
/// its servers from whatever directory the client is in.
pub fn local(place: &EntryPath, front: FrontWords<'_>, command: &str, of_person: bool) -> Vec<MemberEdit> {
    let mut words = front.words(place);
    words.extend(of_person.then(|| "--any-directory".to_owned()));
    words.extend(["--".to_owned(), command.to_owned()]);
    vec![MemberEdit::set("command", front.semel, "command"), MemberEdit::Prepend(words)]
}

/// `semel mcp --name NAME --url URL --header-env NAME=VARIABLE…`. The values of headers go into the environment,
/// because every process of the machine may read a command line.
///
/// Returns the edits, and each `NAME=VARIABLE`.
pub fn remote(
    place: &EntryPath,
    remote: &RemoteEntry,
    client: &McpClient,
    front: FrontWords<'_>,
) -> (Vec<MemberEdit>, Vec<String>) {
    let mut args = front.words(place);
    args.extend(["--url".to_owned(), remote.url.clone()]);
    let mut env = remote.env.clone();
    let (mut forwarded, mut variables) = (Vec::new(), Vec::new());
    for Header { name, from } in &remote.headers {
        let variable = match from {
            HeaderFrom::Text(text) => {
                let variable = free_variable(&env);
                env.insert(variable.clone(), Value::String(text.clone()));
                variable
            }
            HeaderFrom::Variable(variable) => {
                forwarded.push(Value::String(variable.clone()));
                variable.clone()
            }
        };
        variables.push(format!("{name}={variable}"));
        args.extend(["--header-env".to_owned(), format!("{name}={variable}")]);
    }
    let put = |from, to, value: Value, after| MemberEdit::Put { from, to, value, after };
    let mut edits = vec![
        put(remote.url_member, "command", front.semel.into(), ""),
        MemberEdit::set("args", args, "command"),
    ];
    match (env == remote.env, remote.env.is_empty()) {
        (true, _) => edits.push(MemberEdit::Remove(client.headers)),
        // Headers become the environment, in their place.
        (false, true) => {
            edits.extend([MemberEdit::Remove("env"), put(client.headers, "env", env.into(), "args")]);
        }
        (false, false) => {
            edits.extend([MemberEdit::Remove(client.headers), MemberEdit::set("env", env, "args")])
        }
    }
    if client.format == Format::Toml {
        // Codex hands no variable on that is not named.
        edits.push(match forwarded.is_empty() {
            true => MemberEdit::Remove("env_http_headers"),
            false => put("env_http_headers", "env_vars", forwarded.into(), "args"),
        });
    }
    edits.extend(remote.kind.is_some().then(|| match client.kind {
        TypeMember::Named => MemberEdit::set("type", "stdio", ""),
        TypeMember::Dropped => MemberEdit::Remove("type"),
    }));
    (edits, variables)
}

fn free_variable(env: &Map<String, Value>) -> String {
    let names = (1..).map(|number| format!("SEMEL_HEADER_{number}"));
    let mut free = names.filter(|name| !env.contains_key(name));
    free.next().expect("there are more numbers than variables")
}
