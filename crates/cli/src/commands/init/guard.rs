//! A server's entry with semel in front of it.

use super::clients::{McpClient, TypeMember};
use super::entry::{Header, HeaderFrom, RemoteEntry};
use serde_json::{Map, Value};

/// The words in front of every server of a file.
#[derive(Debug, Clone)]
pub struct FrontWords {
    pub semel: String,
    /// `--policy` and `--ledger`, where they were given.
    pub flags: Vec<String>,
}

impl FrontWords {
    /// `mcp --name NAME`, with the flags of every server.
    fn words(&self, name: &str) -> Vec<String> {
        let mut words = vec!["mcp".to_owned()];
        words.extend_from_slice(&self.flags);
        words.extend(["--name".to_owned(), name.to_owned()]);
        words
    }
}

/// `semel mcp --name NAME -- command args…`; everything but command and args stays. A person's own configuration starts
/// its servers from whatever directory the client is in.
pub fn local(
    name: &str,
    front: &FrontWords,
    mut entry: Map<String, Value>,
    words_behind: Vec<String>,
    of_person: bool,
) -> Map<String, Value> {
    let mut words = front.words(name);
    words.extend(of_person.then(|| "--any-directory".to_owned()));
    words.push("--".to_owned());
    words.extend(words_behind);
    entry.insert("command".to_owned(), front.semel.as_str().into());
    entry.insert("args".to_owned(), words.into());
    entry
}

/// `semel mcp --name NAME --url URL --header-env NAME=VARIABLE…`. The values of headers go into the environment,
/// because every process of the machine may read a command line.
pub fn remote(
    name: &str,
    front: &FrontWords,
    mut entry: Map<String, Value>,
    remote: &RemoteEntry,
    client: &McpClient,
) -> Map<String, Value> {
    let mut args = front.words(name);
    args.extend(["--url".to_owned(), remote.url.clone()]);
    let (mut env, mut forwarded) = (remote.env.clone(), Vec::new());
    for Header { name, from } in &remote.headers {
        let variable = match from {
            HeaderFrom::Text(text) => {
                let variable = free_variable(&env);
                env.insert(variable.clone(), Value::String(text.clone()));
                variable
            }
            HeaderFrom::Variable(variable) => {
                forwarded.push(variable.clone());
                variable.clone()
            }
        };
        args.extend(["--header-env".to_owned(), format!("{name}={variable}")]);
    }
    for member in [remote.url_member, client.headers, "env_http_headers", "type"] {
        entry.remove(member);
    }
    let put = [
        Some(("command", front.semel.as_str().into())),
        Some(("args", args.into())),
        (env != remote.env).then(|| ("env", env.into())),
        // Codex hands no variable on that is not named.
        (!forwarded.is_empty()).then(|| ("env_vars", forwarded.into())),
        (remote.kind.is_some() && client.kind == TypeMember::Named).then(|| ("type", "stdio".into())),
    ];
    entry.extend(put.into_iter().flatten().map(|(member, value): (&str, Value)| (member.to_owned(), value)));
    entry
}

fn free_variable(env: &Map<String, Value>) -> String {
    let names = (1..).map(|number| format!("SEMEL_HEADER_{number}"));
    let mut free = names.filter(|name| !env.contains_key(name));
    free.next().expect("there are more numbers than variables")
}
