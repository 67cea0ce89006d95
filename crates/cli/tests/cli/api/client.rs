//! A client of the API of a server.

use crate::home::Home;

pub use semel_testkit::http::{ApiClient, charge};

/// Makes a token on the command line.
pub fn token(home: &Home, scope: &str, tenant: &str, name: &str) -> String {
    let made = home.json(["token", "create", "--scope", scope, "--tenant", tenant, "--name", name]);
    made["token"].as_str().expect("a token").to_owned()
}
