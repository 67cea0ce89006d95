use super::{TOUCH, answer};
use crate::home::Home;
use serde_json::json;

/// A rule that names a script's first argument as identity, and its second as content.
const CHARGE: &str = r#"
version = 1
[[rule]]
match = "cli:sh *"
class = "consequential"
key = ["argv[3]"]
content = ["argv[4]"]
"#;

#[test]
fn a_rule_names_identity_and_lets_content_be_reworded() {
    let home = Home::new();
    home.file("semel.toml", CHARGE);
    let charge =
        |order: &str, memo: &str| home.semel(["run", "--json", "--", "sh", "-c", TOUCH, order, memo]);
    assert_eq!(answer(&charge("1001", "thank you"))["outcome"], "ran");
    assert_eq!(answer(&charge("1001", "many thanks, dear customer"))["outcome"], "replayed");
    assert_eq!(answer(&charge("1002", "thank you"))["outcome"], "ran");
    assert_eq!(home.effects(), 2);
}

#[test]
fn a_key_that_only_joins_adds_sameness_and_never_difference() {
    let home = Home::new();
    home.file("semel.toml", &format!("{CHARGE}caller_key = \"joins\"\n"));
    let charge = |key: &str| home.semel(["run", "--key", key, "--", "sh", "-c", TOUCH, "1001", "memo"]);
    for key in ["sdk-1", "sdk-2", "sdk-3"] {
        assert_eq!(charge(key).code, Some(0));
    }
    assert_eq!(home.effects(), 1);
    let other = home.semel(["run", "--key", "sdk-1", "--", "sh", "-c", TOUCH, "1002", "memo"]);
    assert_eq!(other.code, Some(123), "the key has come with another order: {other:?}");
}

#[test]
fn one_key_brought_to_two_orders_at_once_stands_for_one() {
    let home = Home::new();
    home.file("semel.toml", &format!("{CHARGE}caller_key = \"joins\"\n"));
    let script = "echo x >> world; sleep 0.2";
    let call = |order: &str| {
        let mut command = home.command(["run", "--key", "sdk-1", "--", "sh", "-c", script, order, "memo"]);
        command.stderr(std::process::Stdio::null()).spawn().expect("semel starts")
    };
    let calls = [call("1001"), call("1002")];
    let mut codes = calls.map(|mut call| call.wait().expect("semel ends").code());
    codes.sort();
    assert_eq!((codes, home.effects()), ([Some(0), Some(123)], 1));
}

#[test]
fn without_the_fields_that_a_rule_requires_nothing_is_sent() {
    let home = Home::new();
    home.file("semel.toml", &format!("{CHARGE}key_required = true\n"));
    let ran = home.run(&["--json"], TOUCH);
    assert_eq!((ran.code, ran.json()["code"].as_str()), (Some(120), Some("key_required")));
    assert_eq!(home.effects(), 0);
    assert_eq!(home.run(&["--key", "k"], TOUCH).code, Some(0));
}

#[test]
fn a_rule_may_leave_repeats_to_a_person() {
    let home = Home::new();
    home.file(
        "semel.toml",
        "version = 1\n[[rule]]\nmatch = \"cli:sh\"\nclass = \"consequential\"\nagain = \"person\"\n",
    );
    home.run(&[], TOUCH);
    let again = home.run(&["--again", "because", "--json"], TOUCH);
    assert_eq!((again.code, again.json()["code"].as_str()), (Some(120), Some("held_for_person")));
    assert_eq!(home.effects(), 1);
}

#[test]
fn a_probe_before_the_first_attempt_skips_what_is_there() {
    let home = Home::new();
    let rule = "version = 1\n[[rule]]\nmatch = \"cli:sh\"\n[rule.probe]\ncmd = [\"test\", \"-e\", \"there\"]\nbefore = true\n";
    home.file("semel.toml", rule);
    assert_eq!(home.run(&[], TOUCH).code, Some(0));
    home.file("there", "");
    let skipped = home.run(&["--json"], TOUCH);
    assert_eq!((skipped.code, answer(&skipped)["effect"].as_str()), (Some(0), Some("noop")));
    assert_eq!(home.effects(), 1);
}

#[test]
fn the_key_for_the_tool_is_one_per_effect_and_a_keyed_tool_may_be_sent_again() {
    let home = Home::new();
    let rule = "version = 1\n[[rule]]\nmatch = \"cli:sh\"\nclass = \"consequential\"\ninject = { env = \"PAY_KEY\" }\nbudget = 2\n";
    home.file("semel.toml", rule);
    // Loses its answer twice, then tells it. The tool itself knows the key and acts once.
    let script = "echo $PAY_KEY >> keys; grep -qs $PAY_KEY world || echo $PAY_KEY >> world; \
                  test $(wc -l < keys) -ge 3 || { echo timed out >&2; exit 1; }";
    let ran = home.run(&["--json", "--key", "k"], script);
    assert_eq!((ran.code, answer(&ran)["attempt"].as_u64()), (Some(0), Some(3)), "{ran:?}");
    assert_eq!((home.lines("keys"), home.effects()), (3, 1));
    let gives_up =
        home.run(&["--json", "--key", "other"], "echo $PAY_KEY >> tries; echo timed out >&2; exit 1");
    assert_eq!(gives_up.code, Some(121), "{gives_up:?}");
    assert_eq!(home.lines("tries"), 3);
    let again = home.run(&["--json", "--key", "other"], "echo $PAY_KEY >> tries; echo timed out >&2; exit 1");
    assert_eq!((again.code, answer(&again)["code"].as_str()), (Some(120), Some("budget_spent")));
}

#[test]
fn observing_blocks_nothing_and_claims_nothing() {
    let home = Home::new();
    home.file("semel.toml", "version = 1\nmode = \"observe\"\n");
    for _ in 0..2 {
        assert_eq!(home.run(&["--key", "k"], TOUCH).code, Some(0));
    }
    assert_eq!(home.effects(), 2);
    assert_eq!(home.json(["ledger", "list"])["items"].as_array().map(Vec::len), Some(0));
    let lines = home.semel(["--json", "ledger", "tail", "--no-follow"]).stdout;
    let seen: Vec<_> = lines.lines().filter(|line| line.contains("\"observed\"")).collect();
    assert_eq!(seen.len(), 2, "{lines}");
    assert!(seen[0].contains("\"would\":\"run\"") && !seen[0].contains("repeats"), "{lines}");
    // Each command is a process of its own.
    assert!(seen[1].contains("\"would\":\"replay\"") && seen[1].contains("\"seen\":1"), "{lines}");
}

#[test]
fn in_strict_mode_every_action_is_consequential() {
    let home = Home::new();
    home.file("semel.toml", "version = 1\nmode = \"strict\"\n");
    for _ in 0..2 {
        home.run(&[], TOUCH);
    }
    assert_eq!(home.effects(), 1);
}

#[test]
fn a_tools_own_dry_run_is_asked_where_the_rule_maps_one() {
    let home = Home::new();
    home.file(
        "semel.toml",
        "version = 1\n[[rule]]\nmatch = \"cli:echo *\"\ndry_run = { flag = \"--pretend\" }\n",
    );
    let ran = home.semel(["run", "--json", "--dry-run", "--", "echo", "deploy"]);
    assert_eq!(answer(&ran)["changes"][0]["stdout"], "deploy --pretend\n");
}

/// Its own account is structure: the word, the changes and the reason are where semel's own would be.
#[test]
fn a_tools_own_dry_run_arrives_as_structure() {
    let home = Home::new();
    let rule = "version = 1\n[[rule]]\nmatch = \"cli:sh *\"\ndry_run = { flag = \"--pretend\" }\n";
    home.file("semel.toml", rule);
    let account =
        r#"{"effect": "would_delete", "changes": [{"path": "a"}, {"path": "b"}], "reason": "both are old"}"#;
    home.file("clean.sh", &format!("test \"$1\" = --pretend && echo '{account}' && exit; echo x >> world\n"));
    let dry = |more: &[&str]| {
        answer(&home.semel([&["run", "--json", "--dry-run"], more, &["--", "sh", "clean.sh"]].concat()))
    };
    let told = dry(&[]);
    assert_eq!((&told["effect"], &told["reason"]), (&json!("would_delete"), &json!("both are old")));
    assert_eq!(told["changes"], json!([{"path": "a"}, {"path": "b"}]));
    assert_eq!(dry(&["--effect", "updated"])["effect"], "would_update", "as the run will say");
    let read = home.semel(["run", "--dry-run", "--", "sh", "clean.sh"]).stdout;
    assert!(read.starts_with("would_delete\n  both are old\n"), "{read}");
    assert_eq!(home.effects(), 0);
}

#[test]
fn a_bad_policy_stops_every_call_before_it_is_sent() {
    let home = Home::new();
    // Each is named with its line and column.
    for (policy, place) in
        [("version = ", ":1:"), ("version = 1\nmodus = \"guard\"\n", ":2:1"), ("version = 9\n", ":1:11")]
    {
        home.file("semel.toml", policy);
        let ran = home.run(&[], TOUCH);
        assert_eq!(ran.code, Some(125), "{ran:?}");
        assert!(ran.stderr.contains(&format!("semel.toml{place}")), "{place}: {ran:?}");
    }
    home.file("semel.toml", "version = 1\n");
    let path = home.work().join("semel.toml");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o666)).expect("mode");
    assert_eq!(home.run(&[], TOUCH).code, Some(125));
    assert_eq!(home.effects(), 0);
}
