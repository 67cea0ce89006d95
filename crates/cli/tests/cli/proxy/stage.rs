//! `semel serve` before an API of our own.

use crate::home::Home;
use crate::serve::served::{Served, TOKEN};
use semel_testkit::http::{RawClient, Response, ScriptedApi};

pub use semel_testkit::http::became;

#[derive(Debug)]
pub struct Stage {
    pub home: Home,
    pub api: ScriptedApi,
    pub served: Served,
    policy: String,
}

pub const JSON: &str = "Content-Type: application/json\r\n";

impl Stage {
    /// An API called `api`, whose actions are called `bank`, under these further settings and rules.
    pub fn with(settings: &str) -> Stage {
        let (home, api) = (Home::new(), ScriptedApi::start());
        let policy = format!("[upstream.api]\nurl = \"{}\"\nservice = \"bank\"\n{settings}\n", api.url());
        let served = Served::start(&home, &policy);
        Stage { home, api, served, policy }
    }

    pub fn plain() -> Stage {
        Stage::with("")
    }

    /// Ends semel and starts it again on the same ledger.
    pub fn restart(&mut self) {
        assert!(self.served.stop().success());
        self.restart_after_stop();
    }

    /// Starts it again on the same ledger.
    pub fn restart_after_stop(&mut self) {
        self.served = Served::start(&self.home, &self.policy);
    }

    /// Kills semel and starts it again.
    pub fn crash(&mut self) {
        self.served.kill();
        self.restart_after_stop();
    }

    /// Ends semel and starts it again, to fail where it is told to.
    pub fn restart_failing(&mut self, failpoints: &str) {
        assert!(self.served.stop().success());
        self.served = Served::start_with(&self.home, &self.policy, &[("SEMEL_FAILPOINTS", failpoints)]);
    }

    pub fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> RawClient {
        let headers = format!("Semel-Token: {TOKEN}\r\n{headers}");
        self.served.ask_raw(&format!("{method} /p/api{path} HTTP/1.1"), &headers, body)
    }

    pub fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Response {
        self.ask(method, path, headers, body).answer()
    }

    /// A JSON body under a key.
    pub fn charge(&self, key: &str, body: &str) -> Response {
        self.send("POST", "/charges", &format!("{JSON}Idempotency-Key: {key}\r\n"), body)
    }
}
