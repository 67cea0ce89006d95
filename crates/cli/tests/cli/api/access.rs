use super::client::{ApiClient, charge, token};
use crate::home::Home;
use crate::serve::served::{Served, TOKEN};
use serde_json::json;

#[test]
fn an_agent_sees_what_it_did_itself_and_an_operator_all_of_the_tenant() {
    let home = Home::new();
    let served = Served::start(&home, "");
    let client =
        |scope: &str, name: &str| ApiClient::new(&served.address, &token(&home, scope, "acme", name));
    let (ann, bob, operator) = (client("agent", "ann"), client("agent", "bob"), client("operator", "op"));
    let claim = ann.claim(charge("ann"));
    let id = claim["effect_id"].as_str().expect("an id");
    assert_eq!(ann.get(&format!("/effects/{id}")).status, 200);
    assert_eq!(operator.get(&format!("/effects/{id}")).status, 200);
    assert_eq!(bob.get(&format!("/effects/{id}")).status, 404);
    assert_eq!(bob.settle(&claim, "applied", json!(1)).status, 404);
    assert_eq!(
        operator.settle(&claim, "applied", json!(1)).status,
        404,
        "an operator rules, and does not settle"
    );
    assert_eq!(bob.get("/effects").json()["items"], json!([]));
    assert_eq!(operator.get("/effects").json()["items"].as_array().map(Vec::len), Some(1));
    // The command line's own effects belong to this machine's tenant.
    home.semel(["run", "--", "true"]);
    assert_eq!(operator.get("/effects").json()["items"].as_array().map(Vec::len), Some(1));
    let admin = ApiClient::new(&served.address, TOKEN);
    assert_eq!(admin.get("/effects").json()["items"][0]["action"], json!("cli:true"));
}
