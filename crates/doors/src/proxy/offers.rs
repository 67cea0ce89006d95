//! The APIs that are offered, by name.

use super::intake::Intake;
use super::offer::Offer;
use crate::services::Services;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Debug)]
pub struct Offers {
    pub services: Arc<Services>,
    pub by_name: BTreeMap<String, Arc<Offer>>,
    pub intake: Intake,
}

impl Offers {
    pub fn new(services: Arc<Services>, by_name: BTreeMap<String, Arc<Offer>>) -> Offers {
        Offers { services, by_name, intake: Intake::default() }
    }
}

/// All paths that lead to an API begin with this.
pub const PATH: &str = "/p/";

/// Where nothing is, the names of the APIs are told: to whoever shows a token, and on a local server to all, since
/// whoever reaches that is a program of this machine. Their addresses and settings are not.
pub fn nothing_here<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let names: Vec<&str> = names.map(String::as_str).collect();
    let known = match names.is_empty() {
        true => "of which semel.toml has none".to_owned(),
        false => names.join(", "),
    };
    format!(
        "nothing was sent: there is nothing at this path. APIs are at /p/NAME/ and http://NAME.localhost:PORT/: \
         {known}. MCP servers are at /mcp/NAME, and semel's own API is at /api/v1."
    )
}
