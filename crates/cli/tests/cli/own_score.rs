//! `semel check` on semel itself: every command that changes something does it once under one key.

use crate::home::{Home, Ran};
use serde_json::Value;

/// Makes one thing of each kind that a command can change, in the home that the test has made.
const SANDBOX: &str = r#"
semel() { SEMEL_OPERATOR_TOKEN=$TRIAL_TOKEN "$SEMEL" "$@"; }
id() { semel ledger show --key "$1" --json | sed -n 's/.*"effect_id": "\(.*\)".*/\1/p' | head -n 1; }
case $1 in
setup)
    : > world; rm -f journal pruned
    for key in done repeat taken-back; do semel run --quiet --key $key -- sh -c "echo $key" >/dev/null; done
    for key in doubt ruled; do semel run --quiet --key $key -- sh -c "exit 3" 2>/dev/null; done
    semel run --quiet --class consequential --action listed -- sh -c "exit 3" INV-1 2>/dev/null
    semel ledger resolve "$(id ruled)" --applied --reason seen >/dev/null 2>&1
    semel token create --scope agent --json | sed -n 's/.*"id": "\(.*\)".*/\1/p' > token
    semel mcp --name shop -- cat </dev/null >/dev/null 2>&1
    semel mcp --name shop -- tac </dev/null >/dev/null 2>&1
    rm -f kept.db kept.secret && semel ledger backup kept.db >/dev/null
    printf 'invoice\nINV-1\n' > rows.csv
    echo '{"openapi": "3.0.0", "servers": [{"url": "https://bank.example"}], "paths": {"/charges": {"post": {}}}}' > openapi.json
    echo '{"mcpServers": {"shop": {"command": "cat", "args": ["-u"]}}}' > .mcp.json
    true;;
examples)
    cat <<END
run --json -- sh -c 'echo x >> world'
ledger resolve $(id doubt) --applied --reason seen --json
ledger reopen $(id ruled) --reason wrong --json
ledger allow-repeat $(id repeat) --reason wanted --json
ledger undo $(id taken-back) --reason wrong --json
ledger prune --replies 1ms --json
ledger same-server shop --json
token create --scope agent --name ci --expires 30d --json
token revoke $(cat token) --json
cancel nightly --json
reconcile --outside rows.csv --action listed --on argv[3]=invoice --apply --reason export --json
init --write --json
man pages --json
policy init http --openapi openapi.json --output bank.toml --json
policy init mcp --output world.toml --json -- $SEMEL eval-world .
ledger mark-restored --reason "a backup" --json
ledger copy "$SEMEL_STATE_DIR/ledger.db" moved.db --json
ledger backup saved.db --json
ledger restore kept.db --replace --json
ledger end-quarantine --json
ledger rotate-secret --replace --reason leak --json
END
    ;;
count)
    # Lines of the journal, changes that it does not tell, and lines of the world. A restored ledger has fewer.
    semel ledger tail --no-follow -n 100000 --json >> journal
    sort -u -o journal journal
    lines=$(grep -cE '"kind": ?"(ruled_applied|reopened|released|token_created|token_revoked|run_cancelled|server_accepted|epoch_bumped|epoch_accepted|secret_renewed)"' journal)
    semel ledger list --limit 100 --json | grep -q '"reply": "pruned"' && : > pruned
    echo $((lines + $(cat world undone 2>/dev/null | wc -l) + $(grep -c '"mcp"' .mcp.json) + $(ls . pages 2>/dev/null | grep -cE '^(pruned|semel.1|bank.toml|world.toml|moved.db|saved.db)$')));;
teardown) rm -rf world undone pages bank.toml world.toml moved.* saved.*;;
esac
"#;

#[test]
fn semel_itself_scores_three() {
    let home = Home::new();
    home.file(
        "semel.toml",
        "version = 1\n\n[[rule]]\nmatch = \"cli:sh\"\n[rule.undo]\ncmd = [\"sh\", \"-c\", \"echo y >> undone\"]\n",
    );
    let sandbox = home.file("sandbox.sh", SANDBOX);
    // A check does not hand its own token on.
    let operator = "SEMEL_OPERATOR_TOKEN=$TRIAL_TOKEN exec \"$SEMEL\" \"$@\"\n";
    let operator = home.file("operator.sh", operator).display().to_string();
    let semel = env!("CARGO_BIN_EXE_semel");
    let mut command = home.command(["check", "--json", "--sandbox", &format!("sh {}", sandbox.display())]);
    command.args(["--", "sh", &operator]).env("SEMEL", semel).env("TRIAL_TOKEN", home.operator_token());
    let ran = Ran::of(command.output().expect("semel starts"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let report = ran.json();
    let failed: Vec<_> = report["commands"]
        .as_array()
        .expect("commands")
        .iter()
        .filter(|check| {
            let tried = &check["tried"];
            check["changes_something"] == true
                && (tried["effects"] != 1
                    || tried["second_effect_word"] != "noop"
                    || tried["dry_run_effects"] != 0)
        })
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!((&report["score"], &report["proven"]), (&3.into(), &true.into()), "{:#}", report["advice"]);
}

#[test]
fn a_key_with_other_arguments_is_refused_and_a_repeat_shows_no_secret() {
    let home = Home::new();
    fn create(name: &str) -> [&str; 8] {
        ["token", "create", "--scope", "agent", "--idempotency-key", "k", "--name", name]
    }
    let made = home.json(create("ci"));
    let again = home.json(create("ci"));
    assert_eq!(
        (&again["effect"], &again["id"], &again["token"]),
        (&"noop".into(), &made["id"], &Value::Null)
    );
    let restored = ["ledger", "mark-restored", "--idempotency-key", "k", "--reason"];
    home.json(restored.iter().chain(&["a backup"]));
    for other in [create("other").to_vec(), [&restored[..], &["another backup"]].concat()] {
        let refused = home.semel(&other);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains("came under this key with other arguments"), "{refused:?}");
    }
    assert_eq!(home.json(["token", "list"])["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(home.json(["ledger", "quarantine"])["number"], 2);
}

#[test]
fn a_token_that_never_was_is_not_called_revoked() {
    let home = Home::new();
    let id = home.json(["token", "create", "--scope", "agent"])["id"].as_str().expect("an id").to_owned();
    assert_eq!(home.json(["token", "revoke", &id])["effect"], "deleted");
    assert_eq!(home.json(["token", "revoke", &id])["effect"], "noop");
    let mistyped = home.semel(["token", "revoke", "0123456789ab"]);
    assert_eq!(mistyped.code, Some(2), "{mistyped:?}");
}

#[test]
fn a_permission_that_is_spent_is_not_given_again_by_a_retry() {
    let home = Home::new();
    let run = || home.json(["run", "--key", "k", "--", "sh", "-c", "echo x >> world"]);
    let done = run()["effect_id"].as_str().expect("an id").to_owned();
    let allow = ["ledger", "allow-repeat", &done, "--reason", "wanted", "--idempotency-key", "a"];
    assert_eq!(home.json(allow)["effect"], "updated");
    assert_eq!(run()["outcome"], "ran");
    assert_eq!(home.json(allow)["effect"], "noop");
    assert_eq!(run()["outcome"], "replayed");
    let by_key = ["ledger", "allow-repeat", "--key", "k", "--reason", "wanted", "--idempotency-key", "a"];
    assert_eq!(home.semel(by_key).code, Some(2), "a key leads to the newest effect");
}
