//! `SEMEL_SERVER`: laptops without a ledger, before a real server, judged by the one world that all of them change.

mod api;
mod lost;
mod mcp;
mod run;
mod settings;

use crate::api::client::token;
use crate::home::{Home, Ran};
use crate::serve::served::Served;
use semel_testkit::proxy::{Moment, Proxy, Target};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

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

    /// One whose requests pass through this proxy.
    pub fn laptop_behind(&self, name: &str, proxy: &Proxy) -> Laptop {
        self.laptop_at(name, &format!("http://127.0.0.1:{}", proxy.port()))
    }

    /// Where the server listens now.
    pub fn target(&self) -> Target {
        let (_, port) = self.served.address.rsplit_once(':').expect("an address");
        Target::Port(port.parse().expect("a port"))
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

/// Cuts the next connection that asks for this path once the server has answered, before its client sees the answer.
pub fn lose_answer(proxy: &Proxy, path: &'static str) {
    proxy.cut(Moment::Behind(path.as_bytes(), b""), 1);
}
