//! Two eras of the protocol over HTTP: what a client of either is told.

use super::stateless::{ask, serving};
use crate::home::Home;
use serde_json::json;

#[test]
fn a_server_on_pipes_is_discovered_with_what_semel_offers() {
    let home = Home::new();
    let (served, _) = serving(&home, "create_order", "");
    let found = ask(&served, 7, "server/discover", json!({})).answer().json();
    let tools = &found["result"]["capabilities"]["tools"];
    assert_eq!(*tools, json!({"listChanged": true, "idempotency": {}}), "{found}");
    assert_eq!(found["id"], 7);
}
