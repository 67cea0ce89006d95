//! `SEMEL_SERVER`: laptops without a ledger, before a real server, judged by the one world that all of them change.

mod api;
mod lost;
mod mcp;
mod run;
mod settings;

use crate::api::client::token;
use crate::home::{Home, Ran};
use crate::serve::served::Served;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A server with its ledger, and the world.
pub struct Office {
    pub home: Home,
    pub served: Served,
}

impl Office {
    pub fn open(policy: &str) -> Office {
        let home = Home::new();
        let served = Served::start(&home, policy);
        Office { home, served }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.served.address)
    }

    pub fn token(&self, name: &str) -> String {
        token(&self.home, "agent", "local", name)
    }

    /// A machine of this principal's, which asks at this address.
    pub fn laptop_at(&self, name: &str, url: &str) -> Laptop {
        let (url, token) = (url.to_owned(), self.token(name));
        Laptop { home: Home::new(), url, token, world: self.home.work().join("world") }
    }

    pub fn laptop(&self, name: &str) -> Laptop {
        self.laptop_at(name, &self.url())
    }

    /// How often the world was changed.
    pub fn effects(&self) -> usize {
        self.home.effects()
    }

    /// The effects on record, newest first.
    pub fn recorded(&self) -> Vec<Value> {
        let listed = self.home.json(["ledger", "list"]);
        listed["items"].as_array().expect("items").clone()
    }
}

/// A state directory of its own, and no ledger.
pub struct Laptop {
    pub home: Home,
    pub url: String,
    pub token: String,
    pub world: PathBuf,
}

impl Laptop {
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.home.command(args);
        command.env("SEMEL_SERVER", &self.url).env("SEMEL_TOKEN", &self.token).env("WORLD", &self.world);
        command
    }

    pub fn semel(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args).output().expect("semel starts"))
    }

    /// `semel run` around a shell script, which knows the world as `$WORLD`.
    pub fn run(&self, flags: &[&str], script: &str) -> Ran {
        self.semel(&[&["run"], flags, &["--", "sh", "-c", script]].concat())
    }

    pub fn has_a_ledger(&self) -> bool {
        self.home.state().join("ledger.db").exists()
    }
}

/// A command that changes the world once for each time it runs, and says so.
pub const TOUCH: &str = "echo x >> \"$WORLD\"; echo touched";

/// A line to the server that loses answers.
pub struct Cutter {
    pub address: String,
    state: Arc<Mutex<CutterState>>,
}

#[derive(Debug, Default)]
struct CutterState {
    target: String,
    /// Of requests with this in their first line, so many answers are lost.
    cut: Option<(&'static str, usize)>,
    /// Requests with this in their first line are late by so much.
    slow: Option<(&'static str, Duration)>,
    lost: usize,
}

impl Cutter {
    pub fn before(target: &str) -> Cutter {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let state = Arc::new(Mutex::new(CutterState { target: target.to_owned(), ..CutterState::default() }));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let state = Arc::clone(&shared);
                std::thread::spawn(move || pass(client, &state));
            }
        });
        Cutter { address, state }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn lead_to(&self, target: &str) {
        self.state.lock().expect("nobody panicked").target = target.to_owned();
    }

    pub fn cut(&self, path: &'static str, answers: usize) {
        self.state.lock().expect("nobody panicked").cut = Some((path, answers));
    }

    pub fn slow(&self, path: &'static str, by: Duration) {
        self.state.lock().expect("nobody panicked").slow = Some((path, by));
    }

    pub fn lost(&self) -> usize {
        self.state.lock().expect("nobody panicked").lost
    }
}

#[allow(clippy::disallowed_methods, reason = "a slow network is slow by the wall clock")]
fn pass(mut client: TcpStream, state: &Mutex<CutterState>) -> Option<()> {
    let mut head = vec![0; 64 * 1024];
    let read = client.read(&mut head).ok()?;
    head.truncate(read);
    let line = String::from_utf8_lossy(&head).lines().next().unwrap_or_default().to_owned();
    let (target, is_cut, late) = {
        let mut state = state.lock().expect("nobody panicked");
        let is_cut = match &mut state.cut {
            Some((path, left)) if line.contains(*path) && *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        };
        state.lost += usize::from(is_cut);
        let late = state.slow.filter(|(path, _)| line.contains(path)).map(|(_, by)| by);
        (state.target.clone(), is_cut, late)
    };
    late.into_iter().for_each(std::thread::sleep);
    let mut server = TcpStream::connect(target).ok()?;
    server.write_all(&head).ok()?;
    let (mut from_client, mut to_server) = (client.try_clone().ok()?, server.try_clone().ok()?);
    std::thread::spawn(move || {
        let _ended = std::io::copy(&mut from_client, &mut to_server);
        let _gone = to_server.shutdown(Shutdown::Write);
    });
    if is_cut {
        // It has answered, so it has done what it was asked to.
        let _answer = server.read(&mut [0; 1]).ok()?;
    } else {
        let _ended = std::io::copy(&mut server, &mut client);
    }
    let _gone = client.shutdown(Shutdown::Both);
    Some(())
}
