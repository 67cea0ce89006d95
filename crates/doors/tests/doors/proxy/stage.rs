//! The HTTP door before an API of our own.

use crate::house::{Home, House, TOKEN};
use semel_testkit::http::{RawClient, Response, ScriptedApi};
use std::time::Duration;

pub use semel_testkit::http::became;

pub struct Stage {
    pub home: Home,
    pub api: ScriptedApi,
    pub house: House,
    policy: String,
}

pub const JSON: &str = "Content-Type: application/json\r\n";
pub const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";

impl Stage {
    /// An API called `api`, whose actions are called `bank`, under these further settings and rules.
    pub fn with(settings: &str) -> Stage {
        Stage::in_mode("guard", settings)
    }

    pub fn in_mode(mode: &str, settings: &str) -> Stage {
        let api = ScriptedApi::start();
        let (own, rules) = settings
            .split_once("[[rule]]")
            .map_or((settings, String::new()), |(own, rules)| (own, format!("[[rule]]{rules}")));
        let rules = rules.replace("{API}", &api.url());
        let policy = format!(
            "mode = \"{mode}\"\n[upstream.api]\nurl = \"{}\"\nservice = \"bank\"\n{own}\n{rules}",
            api.url()
        );
        Stage::of(api, policy)
    }

    /// An API that a preset knows.
    pub fn known(preset: &str) -> Stage {
        Stage::known_below(preset, &[("api", "")])
    }

    /// The same, under each of these names below another path.
    pub fn known_below(preset: &str, names: &[(&str, &str)]) -> Stage {
        let api = ScriptedApi::start();
        let upstream = |(name, path): &(&str, &str)| {
            format!("[upstream.{name}]\nurl = \"{}{path}\"\npreset = \"{preset}\"\n", api.url())
        };
        let policy = names.iter().map(upstream).collect();
        Stage::of(api, policy)
    }

    pub fn plain() -> Stage {
        Stage::with("")
    }

    fn of(api: ScriptedApi, policy: String) -> Stage {
        let home = Home::new();
        let house = House::start(&home, &policy);
        Stage { home, api, house, policy }
    }

    /// The same, and semel bears so much silence of the API.
    pub fn bearing(mut self, silence_max: Duration) -> Stage {
        self.house.stop();
        self.house = House::bearing(&self.home, &self.policy, silence_max);
        self
    }

    /// Ends semel and starts it again on the same ledger.
    pub fn restart(&mut self) {
        self.house.stop();
        self.house = self.second();
    }

    /// A second server on the same ledger.
    pub fn second(&self) -> House {
        House::start(&self.home, &self.policy)
    }

    pub fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> RawClient {
        ask(&self.house, method, path, headers, body)
    }

    pub fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Response {
        self.ask(method, path, headers, body).answer()
    }

    pub fn get(&self, path: &str) -> Response {
        self.send("GET", path, "", "")
    }

    /// A JSON body under a key.
    pub fn charge(&self, key: &str, body: &str) -> Response {
        self.send("POST", "/charges", &format!("{JSON}Idempotency-Key: {key}\r\n"), body)
    }

    /// A connection that is kept.
    pub fn connect(&self) -> RawClient {
        RawClient::connect(&self.house.address)
    }
}

/// A further request on a connection that is kept.
pub fn post(client: &mut RawClient, path: &str, headers: &str, body: &str) {
    let headers = format!("Semel-Token: {TOKEN}\r\nContent-Length: {}\r\n{headers}", body.len());
    client.send(&format!("POST /p/api{path} HTTP/1.1"), &headers, body);
}

pub fn ask(house: &House, method: &str, path: &str, headers: &str, body: &str) -> RawClient {
    ask_of(house, "api", (method, path), headers, body)
}

/// Of the upstream of that name.
pub fn ask_of(
    house: &House,
    name: &str,
    (method, path): (&str, &str),
    headers: &str,
    body: &str,
) -> RawClient {
    let bare = body.is_empty() && method == "POST" && !headers.contains("Content-Length");
    let length = if bare { "Content-Length: 0\r\n" } else { "" };
    let headers = format!("Semel-Token: {TOKEN}\r\n{length}{headers}");
    house.ask(&format!("{method} /p/{name}{path} HTTP/1.1"), &headers, body)
}
