//! A configuration as it may be shown: of its texts only what says which server is meant, and that without secrets.

use super::clients::{Client, Containers};
use super::edit::{Scalar, Unreadable};
use super::secret_patterns::{self, is_placeholder};
use semel_core::identity::{REDACTED, redact};
use semel_core::json::Json;

pub const MASK: &str = "***";

/// Beginnings by which well-known secrets give themselves away, wherever they stand.
const BEGINNINGS: [&str; 24] = [
    "sk-",
    "sk_",
    "rk_",
    "pk_",
    "whsec_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xapp-",
    "AIza",
    "AKIA",
    "ntn_",
    "secret_",
    "lin_api_",
    "re_",
    "hf_",
    "eyJ",
];

/// Shorter words with such a beginning are words.
const SECRET_BYTES_MIN: usize = 16;

/// The document with every text masked but commands, arguments and addresses of servers, placeholders, and what is
/// known to be harmless.
pub fn masked(text: &str, client: &Client, containers: Containers) -> Result<String, Unreadable> {
    let scalars = client.format.scalars(text)?;
    let mut shown = String::with_capacity(text.len());
    let mut end = 0;
    for (index, scalar) in scalars.iter().enumerate() {
        shown.push_str(&comment(&text[end..scalar.range.start]));
        let source = &text[scalar.range.clone()];
        match scalar.text.as_deref() {
            None => shown.push_str(source),
            Some(value) => match visible(value, scalar, &scalars[..index], client, containers) {
                // As it is written, escapes and all.
                plain if plain == value => shown.push_str(source),
                plain => shown.push_str(&Json::str(&plain).canonical()),
            },
        }
        end = scalar.range.end;
    }
    shown.push_str(&comment(&text[end..]));
    Ok(shown)
}

fn visible(
    value: &str,
    scalar: &Scalar,
    before: &[Scalar],
    client: &Client,
    containers: Containers,
) -> String {
    match member(&scalar.path, containers).as_deref() {
        Some(["args", _]) => argument(value, scalar, before),
        Some(
            ["command" | "type" | "cwd" | "envFile" | "transport"]
            | ["env_vars", _]
            | ["env_http_headers", _],
        ) => text(value),
        Some([name]) if client.urls.contains(name) => text(value),
        None if says_nothing_secret(&scalar.path) => text(value),
        _ if is_placeholder(value) || value.is_empty() => value.to_owned(),
        _ => MASK.to_owned(),
    }
}

/// What stands around servers in the files of clients, and has a fixed meaning there: which input to ask a person for,
/// which folders a workspace has, the model and the theme. Of everything else nobody knows what it may hold.
fn says_nothing_secret(path: &[String]) -> bool {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    matches!(
        path[..],
        [.., "inputs", _, "type" | "id" | "description"]
            | ["folders", _, "path" | "name"]
            | ["model" | "theme"]
    )
}

/// The path inside a server's entry, if it is in one.
fn member(path: &[String], containers: Containers) -> Option<Vec<&str>> {
    let fits = |container: &&&[&str]| {
        path.len() > container.len() + 1
            && container.iter().zip(path).all(|(step, name)| *step == "*" || step == name)
    };
    let container = containers.iter().find(fits)?;
    Some(path[container.len() + 1..].iter().map(String::as_str).collect())
}

/// An argument, in the light of those before it: `--token` makes a secret of the next word.
fn argument(value: &str, scalar: &Scalar, before: &[Scalar]) -> String {
    let list = &scalar.path[..scalar.path.len() - 1];
    let same_list = before.iter().rev().take_while(|earlier| earlier.path.starts_with(list));
    let mut words: Vec<&str> = same_list.filter_map(|earlier| earlier.text.as_deref()).collect();
    words.reverse();
    if words.last() == Some(&"--header-env") {
        // The name of a variable, whatever the header is called.
        return value.to_owned();
    }
    if let Some(shown) = secret_patterns::argument(words.last().copied(), value) {
        return plain(&shown);
    }
    words.push(value);
    let line = Json::Array(words.into_iter().map(Json::str).collect());
    let shown = redact(&line, &[]);
    let last = shown.as_array().and_then(|words| words.last()).and_then(Json::as_str).unwrap_or(REDACTED);
    let last = last.replace(REDACTED, MASK);
    // A single pair is one of a connection string, too; in a longer text it may be anything.
    let is_pair = !last.contains(char::is_whitespace);
    plain(&if is_pair { secret_patterns::without_pairs(&last) } else { last })
}

fn text(value: &str) -> String {
    let shown = redact(&Json::str(value), &[]);
    plain(&shown.as_str().unwrap_or(REDACTED).replace(REDACTED, MASK))
}

fn plain(text: &str) -> String {
    without_known_secrets(&secret_patterns::without_passwords(text))
}

/// What stands between names and values: punctuation, and comments.
fn comment(between: &str) -> String {
    // The net for whole texts knows only lines of a shell, so nothing is lost for punctuation.
    text(between)
}

fn without_known_secrets(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let mut shown = String::with_capacity(text.len());
    for piece in text.split_inclusive(|c| !is_part(c)) {
        let word = piece.trim_end_matches(|c| !is_part(c));
        let secret = word.len() >= SECRET_BYTES_MIN && BEGINNINGS.iter().any(|known| word.starts_with(known));
        shown.push_str(if secret { MASK } else { word });
        shown.push_str(&piece[word.len()..]);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::init::clients::{CLIENTS, Format};

    #[test]
    fn secrets_are_masked_wherever_they_stand_and_the_rest_is_readable() {
        let text = r#"{
  // the old one was "GITHUB_TOKEN": "ghp_0123456789abcdef"
  "apiKey": "topsecret",
  "mcpServers": {
    "a": {
      "command": "npx", // ghp_0123456789abcdef0123
      "args": ["-y", "x@1.2", "--api-key", "hunter2", "postgres://u:hunter2@db/x", "sk-0123456789abcdef",
        "--auth", "u:hunter2", "--key=hunter2", "Pwd=hunter2", "Server=x;Pwd=hunter2", "--header", "X-Team: hunter2"],
      "env": {"LEVEL": "hunter2", "TOKEN": "${TOKEN}", "OTHER": "${OTHER:-hunter2}"},
      "timeout": 12345678901234567890
    }
  }
}"#;
        let expected = r#"{
  // the old one was "GITHUB_TOKEN": ***"
  "apiKey": "***",
  "mcpServers": {
    "a": {
      "command": "npx", // ***
      "args": ["-y", "x@1.2", "--api-key", "***", "postgres://u:***@db/x", "***",
        "--auth", "***", "--key=***", "Pwd=***", "Server=x;Pwd=***", "--header", "X-Team: ***"],
      "env": {"LEVEL": "***", "TOKEN": "${TOKEN}", "OTHER": "***"},
      "timeout": 12345678901234567890
    }
  }
}"#;
        assert_eq!(masked(text, &CLIENTS[0], CLIENTS[0].containers).expect("readable"), expected);
    }

    #[test]
    fn what_is_known_to_be_harmless_is_shown_and_what_may_hold_anything_is_not() {
        let text = r#"{
  "inputs": [{"type": "promptString", "id": "key", "description": "Key of x", "default": "hunter2"}],
  "folders": [{"path": ".", "name": "all", "uri": "vscode-remote://hunter2"}],
  "theme": "Dracula", "type": "hunter2", "path": "hunter2", "other": {"theme": "hunter2"},
  "servers": {"a": {"type": "stdio", "command": "npx", "envFile": "${workspaceFolder}/.env", "note": "hunter2",
    "env": {"type": "hunter2", "inputs": "hunter2"}, "headers": {"path": "hunter2"},
    "x": {"inputs": [{"type": "hunter2"}]}}}
}"#;
        let vscode = CLIENTS.iter().find(|client| client.name == "vscode").expect("VS Code");
        let shown = masked(text, vscode, vscode.containers).expect("readable");
        assert_eq!(shown, text.replace("vscode-remote://hunter2", "***").replace("hunter2", "***"));
        let text = r#"{"inputs": [{"description": "such as ghp_0123456789abcdef0123"}]}"#;
        let shown = masked(text, vscode, vscode.containers).expect("readable");
        assert_eq!(shown, r#"{"inputs": [{"description": "such as ***"}]}"#);
    }

    #[test]
    fn toml_is_masked_alike() {
        let codex = CLIENTS.iter().find(|client| client.format == Format::Toml).expect("Codex");
        let text = "model = \"o\" # sk-0123456789abcdef\n[mcp_servers.a]\ncommand = \"npx\"\nenv = { K = \"hunter2\" }\n";
        let expected = "model = \"o\" # ***\n[mcp_servers.a]\ncommand = \"npx\"\nenv = { K = \"***\" }\n";
        assert_eq!(masked(text, codex, codex.containers).expect("readable"), expected);
    }
}
