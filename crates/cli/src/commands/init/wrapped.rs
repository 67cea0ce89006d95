//! An entry that starts semel already, and what stands behind it.

use super::entry::{Header, HeaderFrom};
use serde_json::{Map, Value};

/// An entry that starts `semel mcp`.
#[derive(Debug)]
pub struct Guarded {
    pub semel: String,
    /// What stands between `mcp` and `--name`.
    pub flags: Vec<String>,
    /// None: not in the form that `semel init` writes, so nobody knows how to take semel out.
    pub behind: Option<Behind>,
    pub env: Map<String, Value>,
    /// What `type` says.
    pub kind: Option<String>,
}

/// What stands behind semel.
#[derive(Debug)]
pub enum Behind {
    Command {
        command: String,
        args: Vec<String>,
        /// How many words of `args` are semel's, the command among them.
        words: usize,
    },
    Url {
        url: String,
        headers: Vec<Header>,
        /// Which of the entry's variables holds which header.
        variables: Vec<(String, String)>,
    },
}

/// `semel mcp`, however semel itself is started (`npx semel mcp`, `/opt/semel mcp`).
pub fn starts_semel(command: &str, args: &[String]) -> bool {
    let is_semel = |word: &str| {
        let name = word.rsplit(['/', '\\']).next().unwrap_or_default();
        name == "semel" || name == "semel.exe"
    };
    let words = || std::iter::once(command).chain(args.iter().map(String::as_str));
    words().zip(words().skip(1)).any(|(word, next)| is_semel(word) && next == "mcp")
}

/// What `semel init` was given for all servers.
pub fn flags(args: &[String]) -> Vec<String> {
    let after = args.strip_prefix(&["mcp".to_owned()]).unwrap_or_default();
    let own = after.iter().position(|word| word == "--name").unwrap_or_default();
    after[..own].to_vec()
}

impl Behind {
    /// From `mcp [--name N] [--run R] -- command args…` or `mcp [--name N] --url URL [--header-env NAME=VARIABLE]…`.
    pub fn read(args: &[String], env: &Map<String, Value>, members: &Map<String, Value>) -> Option<Behind> {
        let forwarded = |variable: &str| {
            let names = members.get("env_vars").and_then(Value::as_array);
            names.is_some_and(|names| names.iter().any(|name| name.as_str() == Some(variable)))
        };
        let mut words = args.iter().enumerate();
        words.next().filter(|(_, word)| *word == "mcp")?;
        let (mut url, mut headers, mut variables) = (None, Vec::new(), Vec::new());
        while let Some((_, word)) = words.next() {
            if word == "--" {
                let (at, command) = words.next()?;
                let args = args[at + 1..].to_vec();
                return url.is_none().then(|| Behind::Command {
                    command: command.clone(),
                    args,
                    words: at + 1,
                });
            }
            let (flag, value) = match word.split_once('=') {
                Some((flag, value)) => (flag, value),
                None => (word.as_str(), words.next()?.1.as_str()),
            };
            match flag {
                "--name" | "--run" | "--policy" | "--ledger" => {}
                "--url" => url = Some(value.to_owned()),
                "--header" => {
                    let (name, text) = value.split_once(':')?;
                    headers.push(Header {
                        name: name.to_owned(),
                        from: HeaderFrom::Text(text.trim().to_owned()),
                    });
                }
                "--header-env" => {
                    let (name, variable) = value.split_once('=')?;
                    // A variable that neither the entry sets nor the client hands on came from elsewhere.
                    let from = match env.get(variable).and_then(Value::as_str) {
                        Some(text) => {
                            variables.push((variable.to_owned(), name.to_owned()));
                            HeaderFrom::Text(text.to_owned())
                        }
                        None if forwarded(variable) => HeaderFrom::Variable(variable.to_owned()),
                        None => return None,
                    };
                    headers.push(Header { name: name.to_owned(), from });
                }
                _ => return None,
            }
        }
        url.map(|url| Behind::Url { url, headers, variables })
    }
}
