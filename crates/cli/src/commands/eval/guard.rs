//! The guard under trial, and how it is put before the world.

use crate::args::{EVAL_WORLD, EvalArgs};
use anyhow::{Context as _, anyhow};
use semel_detect::eval::http_world;
use semel_detect::eval::run::EvalSubject;
use semel_detect::eval::scenario::EvalDoor;
use serde_json::Value;
use std::fmt;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// semel, none, or one that was given.
#[derive(Debug, Clone)]
pub enum Guard {
    Semel,
    None,
    Words(String),
    At(String),
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Guard::Semel => "semel",
            Guard::None => "no guard",
            Guard::Words(text) | Guard::At(text) => text,
        })
    }
}

/// The doors to try, each with its guard.
pub fn chosen(args: &EvalArgs) -> Vec<(EvalDoor, Guard)> {
    let given: Vec<(EvalDoor, Guard)> = [
        (EvalDoor::Command, args.command.clone().map(Guard::Words)),
        (EvalDoor::Mcp, args.mcp.clone().map(Guard::Words)),
        (EvalDoor::Http, args.http.clone().map(Guard::At)),
    ]
    .into_iter()
    .filter_map(|(door, guard)| Some((door, guard?)))
    .collect();
    if !given.is_empty() {
        return given;
    }
    let guard = if args.unguarded { Guard::None } else { Guard::Semel };
    let is_wanted = |door: &EvalDoor| args.door.is_empty() || args.door.contains(door);
    EvalDoor::ALL.into_iter().filter(is_wanted).map(|door| (door, guard.clone())).collect()
}

impl Guard {
    /// The options of `semel eval` that choose this guard at this door.
    pub fn options(&self, door: EvalDoor, args: &EvalArgs) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let mut options = match self {
            Guard::Semel => words(&["--door", door.word()]),
            Guard::None => words(&["--unguarded", "--door", door.word()]),
            Guard::Words(text) => vec![format!("--{}", door.word()), text.clone()],
            Guard::At(url) => words(&["--http", url]),
        };
        let world = args.world.filter(|_| matches!(self, Guard::At(_))).map(|world| world.to_string());
        let others = [
            ("--world", &world),
            ("--header", &args.header),
            ("--model", &args.model),
            ("--endpoint", &args.endpoint),
            ("--key-env", &args.key_env),
        ];
        for (name, value) in others {
            options.extend(value.iter().flat_map(|value| [name.to_owned(), value.clone()]));
        }
        options
    }

    /// The way to the world through this guard, and the server that must live meanwhile.
    pub fn stand_at(
        &self,
        door: EvalDoor,
        args: &EvalArgs,
        directory: &Path,
    ) -> anyhow::Result<(EvalSubject, Option<Served>)> {
        let semel = std::env::current_exe()?.to_string_lossy().into_owned();
        let tool = vec![semel.clone(), EVAL_WORLD.to_owned(), "{world}".to_owned()];
        let words = |own: &[&str]| -> anyhow::Result<Vec<String>> {
            Ok(match self {
                Guard::Semel => [semel.as_str()].iter().chain(own).map(|word| (*word).to_owned()).collect(),
                Guard::Words(text) => shlex::split(text)
                    .ok_or_else(|| anyhow!("the words of the guard end within a quotation: {text}"))?,
                _ => Vec::new(),
            })
        };
        match door {
            EvalDoor::Command => {
                let guard = words(&["run", "--key", "{step}", "--"])?;
                Ok((EvalSubject::Command { guard, tool }, None))
            }
            EvalDoor::Mcp => {
                let guard = words(&["mcp", "--name", "world", "--"])?;
                Ok((EvalSubject::Mcp { guard, server: tool }, None))
            }
            EvalDoor::Http => {
                let address = args.world.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)));
                let listener = TcpListener::bind(address)
                    .with_context(|| format!("the world cannot listen at {address}"))?;
                let world = listener.local_addr()?;
                http_world::serve(listener, directory.to_owned());
                let (address, host, base, served) = match self {
                    Guard::Semel => {
                        let (served, address) = serve(&semel, directory, world)?;
                        (address, address.to_string(), "/p/world".to_owned(), Some(served))
                    }
                    Guard::At(url) => at(url)?,
                    _ => (world, world.to_string(), String::new(), None),
                };
                let header = args.header.as_deref().map(header).transpose()?;
                Ok((EvalSubject::Http { address, host, base, header }, served))
            }
        }
    }
}

/// A server that ends with its owner.
#[derive(Debug)]
pub struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// `semel serve` in front of the world.
fn serve(semel: &str, directory: &Path, world: SocketAddr) -> anyhow::Result<(Served, SocketAddr)> {
    let policy = directory.join("semel.toml");
    std::fs::write(
        &policy,
        format!(
            "version = 1\n\n[serve]\nrequire_token = false\n\n[upstream.world]\nurl = \"http://{world}\"\n"
        ),
    )?;
    let mut child = Command::new(semel)
        .args(["serve", "--json", "--listen", "127.0.0.1:0", "--policy"])
        .arg(&policy)
        .env("SEMEL_STATE_DIR", directory.join("serve-state"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let output = child.stdout.take().expect("it was asked for");
    let served = Served(child);
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    let told: Value = serde_json::from_str(&line).with_context(|| format!("semel serve said {line:?}"))?;
    let address = told["listen"].as_str().unwrap_or_default();
    Ok((served, address.parse().with_context(|| format!("semel serve said {line:?}"))?))
}

/// A guard that somebody else started: its address, host and path.
fn at(url: &str) -> anyhow::Result<(SocketAddr, String, String, Option<Served>)> {
    let rest = url
        .strip_prefix("http://")
        .ok_or_else(|| anyhow!("--http takes an address that begins with http://"))?;
    let (host, base) = rest.split_once('/').unwrap_or((rest, ""));
    let address = host.to_socket_addrs()?.next().ok_or_else(|| anyhow!("{host} has no address"))?;
    let base = if base.is_empty() { String::new() } else { format!("/{}", base.trim_end_matches('/')) };
    Ok((address, host.to_owned(), base, None))
}

fn header(text: &str) -> anyhow::Result<(String, String)> {
    let (name, value) = text.split_once(':').ok_or_else(|| anyhow!("--header takes NAME: VALUE"))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}
