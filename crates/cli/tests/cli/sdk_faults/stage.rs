//! The world, semel before it, and a ledger of their own.

use super::line::request;
use super::world::World;
use crate::home::Home;
use crate::serve::served::{Served, TOKEN};
use semel_testkit::http::{RawClient, Response};
use serde_json::json;

/// Tells the requests of one case from all others.
pub const CASE: &str = "X-Case";

/// Where the world's plain resources are behind semel.
pub const PLAIN: &str = "/p/plain";

#[derive(Debug)]
pub struct Stage {
    pub home: Home,
    pub world: World,
    pub semel: Served,
}

impl Stage {
    /// What never answers is given up after some seconds.
    pub fn new() -> Stage {
        Stage::with("4s", "")
    }

    /// What never answers is waited for longer than any test lasts.
    pub fn patient() -> Stage {
        Stage::with("2m", "")
    }

    /// With more than the usual in its policy, where `WORLD` is the world's address.
    pub fn with(timeout: &str, more: &str) -> Stage {
        let home = Home::new();
        let world = World::start(&home);
        let policy = usual(&world.url(), timeout) + &more.replace("WORLD", &world.url());
        let semel = Served::start(&home, &policy);
        Stage { home, world, semel }
    }

    /// Another process on the same ledger.
    pub fn second(&self) -> Served {
        Served::again(&self.home)
    }

    pub fn line(&self) -> RawClient {
        RawClient::connect(&self.semel.address)
    }

    /// One request on a connection of its own.
    pub fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Response {
        asked(&self.semel.address, method, path, headers, body)
    }

    /// An effect on the API that gives no help, named by the client's key.
    pub fn post(&self, case: &str, body: &str) -> Response {
        self.ask("POST", &format!("{PLAIN}/rest"), &[(CASE, case), ("Idempotency-Key", case), JSON], body)
    }
}

pub const JSON: (&str, &str) = ("Content-Type", "application/json");

pub fn asked(address: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Response {
    let mut line = RawClient::connect(address);
    request(&mut line, method, path, &[&[("Semel-Token", TOKEN)], headers].concat(), body);
    line.next_answer()
}

/// What SDKs are given besides their base URL.
pub fn token() -> serde_json::Value {
    json!({"headers": {"Semel-Token": TOKEN}})
}

/// One world under four names: as the services that the packs know, and as something that nobody knows. Whoever waits
/// for another's answer waits longer than what never answers takes.
fn usual(world: &str, timeout: &str) -> String {
    format!(
        r#"version = 1

[defaults]
timeout = "{timeout}"
wait = "10s"

[upstream.stripe]
url = "{world}"
preset = "stripe"

[upstream.openai]
url = "{world}"
preset = "openai"

[upstream.anthropic]
url = "{world}"
preset = "anthropic"

[upstream.plain]
url = "{world}"

[upstream.lying]
url = "{world}"
service = "lying.example"

[upstream.below]
url = "{world}/below"
"#
    )
}
