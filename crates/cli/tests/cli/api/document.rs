use super::client::ApiClient;
use crate::home::{Home, Ran};
use crate::mcp::peers;
use crate::serve::served::{Served, TOKEN};

/// A failure is found again.
const SEED: u32 = 1;

#[test]
fn whatever_is_asked_is_answered_as_the_document_says() {
    let home = Home::new();
    let served = Served::start(&home, "[defaults]\nwait = \"0s\"\n");
    // Something to find.
    let admin = ApiClient::new(&served.address, TOKEN);
    let claim = admin.claim(super::client::charge("ann"));
    admin.settle(&claim, "applied", serde_json::json!({"id": 1}));
    home.doubt("k");
    home.json(["run", "--run", "r", "--", "true"]);
    let words = [
        peers::installed("openapi").join("python/bin/schemathesis").to_string_lossy().into_owned(),
        "--config-file".to_owned(),
        peers::script("schemathesis.toml"),
        "run".to_owned(),
        format!("http://{}/api/v1/openapi.json", served.address),
    ];
    let mut command = home.program(&words);
    command.args(["--header", &format!("Authorization: Bearer {TOKEN}"), "--max-examples", "10"]);
    command.args(["--seed", &SEED.to_string(), "--suppress-health-check", "all", "--warnings", "off"]);
    // A wish may wait a minute for its twin.
    command.args(["--request-timeout", "90"]);
    let ran = Ran::of(command.output().expect("schemathesis starts"));
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("Stateful"), "{}", ran.stdout);
}
