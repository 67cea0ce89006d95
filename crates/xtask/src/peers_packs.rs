//! The MCP servers that the packs are written for, as npm has them: installed at pinned versions, asked for their
//! tools, and held against what the packs' tests know of them.
//!
//! Only facts are kept: names of tools and arguments, which of them are required, and the hints.

use crate::peers;
use crate::project::{self, Result};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Where the tests of the packs find what the servers said.
const FIXTURE: &str = "crates/core/tests/fixtures/pack-servers.txt";

/// Starting one of them takes seconds on a busy machine; one that has not answered by then will not.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server as its pack names it.
#[derive(serde::Deserialize)]
struct PackServer {
    #[serde(skip)]
    pack: String,
    package: String,
    version: String,
    program: String,
    #[serde(default)]
    arguments: Vec<String>,
    /// Credentials that open nothing: a list of tools needs none.
    #[serde(default)]
    environment: BTreeMap<String, String>,
}

/// `[[server.tested]]` of every pack, by pack.
fn servers() -> Result<Vec<PackServer>> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(project::root().join("packs"))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.sort();
    let mut servers = Vec::new();
    for file in files {
        let pack = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let document: toml::Table = std::fs::read_to_string(&file)?.parse()?;
        let tested = document.get("server").and_then(|server| server.get("tested"));
        for tested in tested.and_then(toml::Value::as_array).into_iter().flatten() {
            let server: PackServer = tested.clone().try_into()?;
            servers.push(PackServer { pack: pack.clone(), ..server });
        }
    }
    Ok(servers)
}

/// `cargo xtask packs`: says whether the fixture still holds; `--write` makes it hold.
pub fn run(arguments: &[&str]) -> Result<ExitCode> {
    let said = ask_all(&install()?)?;
    let path = project::root().join(FIXTURE);
    if arguments == ["--write"] {
        std::fs::write(&path, said)?;
        println!("{FIXTURE} holds what {} servers say", servers()?.len());
        return Ok(ExitCode::SUCCESS);
    }
    let holds = std::fs::read_to_string(&path)? == said;
    println!("{FIXTURE} {}", if holds { "holds" } else { "no longer holds: cargo xtask packs --write" });
    Ok(ExitCode::from(u8::from(!holds)))
}

/// Installs what is not there yet. No script of a package is run.
pub fn install() -> Result<PathBuf> {
    let (directory, wanted) = (directory(), wanted()?);
    if is_installed()? {
        return Ok(directory);
    }
    std::fs::create_dir_all(&directory)?;
    std::fs::write(directory.join("package.json"), "{\"private\": true}\n")?;
    peers::install_with_npm(&wanted, &directory)?;
    // Written last: a broken installation is made again.
    std::fs::write(directory.join(MARK), wanted.join("\n"))?;
    Ok(directory)
}

/// Names the packages of a whole installation.
const MARK: &str = "installed.txt";

fn directory() -> PathBuf {
    project::target().join("peers/packs")
}

fn wanted() -> Result<Vec<String>> {
    Ok(servers()?.iter().map(|server| format!("{}@{}", server.package, server.version)).collect())
}

fn is_installed() -> Result<bool> {
    let wanted = wanted()?.join("\n");
    Ok(std::fs::read_to_string(directory().join(MARK)).is_ok_and(|installed| installed == wanted))
}

fn ask_all(directory: &Path) -> Result<String> {
    let mut text = String::from(
        "# What the servers that the packs are written for say of their tools. Written by `cargo xtask packs --write`.\n\
         # tool, hints (r read-only, i idempotent, d destructive; + true, - false), arguments (* required)\n",
    );
    for server in &servers()? {
        let PackServer { pack, package, version, .. } = server;
        let mut tools = ask(directory, server).map_err(|error| format!("{package}: {error}"))?;
        tools.sort_by_key(|tool| tool["name"].as_str().unwrap_or_default().to_owned());
        writeln!(text, "\n[{pack}] {package} {version}")?;
        for tool in &tools {
            writeln!(text, "{}", facts(tool))?;
        }
    }
    Ok(text)
}

/// One line of the fixture.
fn facts(tool: &Value) -> String {
    let name = tool["name"].as_str().unwrap_or_default();
    let mut hints = String::new();
    for (letter, hint) in [('r', "readOnlyHint"), ('i', "idempotentHint"), ('d', "destructiveHint")] {
        if let Some(said) = tool["annotations"][hint].as_bool() {
            hints.extend([letter, if said { '+' } else { '-' }]);
        }
    }
    let schema = &tool["inputSchema"];
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut arguments: Vec<String> = schema["properties"]
        .as_object()
        .into_iter()
        .flat_map(|properties| properties.keys())
        .map(|name| format!("{name}{}", if required.contains(&name.as_str()) { "*" } else { "" }))
        .collect();
    arguments.sort();
    let line = format!("{name}\t{}\t{}", if hints.is_empty() { "-" } else { &hints }, arguments.join(" "));
    line.trim_end().to_owned()
}

/// Starts a server and asks for its tools, page by page.
fn ask(directory: &Path, server: &PackServer) -> Result<Vec<Value>> {
    let mut child = Command::new(directory.join("node_modules/.bin").join(&server.program))
        .args(&server.arguments)
        .envs(&server.environment)
        .env("PATH", peers::path_with_node()?)
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut input = child.stdin.take().expect("its input was asked for");
    let output = child.stdout.take().expect("its output was asked for");
    let (sender, answers) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(std::result::Result::ok) {
            // Some servers greet on stdout, although only messages belong there.
            if let Ok(message) = serde_json::from_str::<Value>(&line)
                && sender.send(message).is_err()
            {
                return;
            }
        }
    });
    let mut request = |id: u64, method: &str, params: Value| -> Result<Value> {
        writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        loop {
            let answer = answers.recv_timeout(PATIENCE).map_err(|_| format!("no answer to {method}"))?;
            if answer["id"] == json!(id) && answer.get("method").is_none() {
                return match answer.get("result") {
                    Some(result) => Ok(result.clone()),
                    None => Err(format!("{method}: {}", answer["error"]).into()),
                };
            }
        }
    };
    let mut list = || -> Result<Vec<Value>> {
        let client = json!({"name": "semel-packs", "version": env!("CARGO_PKG_VERSION")});
        request(
            1,
            "initialize",
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}),
        )?;
        let mut tools = Vec::new();
        let mut page = request(2, "tools/list", json!({}))?;
        for id in 3..100 {
            tools.extend(page["tools"].as_array().cloned().unwrap_or_default());
            match page["nextCursor"].as_str() {
                Some(cursor) => page = request(id, "tools/list", json!({"cursor": cursor}))?,
                None => return Ok(tools),
            }
        }
        Err("its list of tools does not end".into())
    };
    let listed = list();
    child.kill()?;
    child.wait()?;
    reader.join().map_err(|_| "the reader of its answers failed")?;
    match listed? {
        tools if tools.is_empty() => Err("it has no tools".into()),
        tools => Ok(tools),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_still_say_what_the_tests_of_the_packs_know_of_them() {
        assert!(is_installed().expect("the packs can be read"), "`cargo xtask packs` installs the servers");
        let said = ask_all(&directory()).expect("every server answers");
        let known = std::fs::read_to_string(project::root().join(FIXTURE)).expect("the fixture is there");
        assert!(known == said, "{FIXTURE} no longer holds: cargo xtask packs --write\n{said}");
    }

    #[test]
    fn a_tool_becomes_one_line_of_facts() {
        let tool = json!({
            "name": "send",
            "annotations": {"readOnlyHint": false, "destructiveHint": true},
            "inputSchema": {"properties": {"to": {}, "cc": {}}, "required": ["to"]},
        });
        assert_eq!(facts(&tool), "send\tr-d+\tcc to*");
        assert_eq!(facts(&json!({"name": "ping"})), "ping\t-");
    }
}
