//! `semel policy lint`, `test` and `init`.

use crate::home::Home;
use serde_json::json;

const CHARGE: &str = r#"version = 1

[[rule]]
match = "mcp:billing/charge_*"
class = "consequential"
key = ["args.customer", "args.invoice"]
content = ["args.memo"]

[[rule.example]]
action = "mcp:billing/charge_card"
class = "consequential"
same = [{ customer = "c1", invoice = 7, memo = "March" }, { customer = "c1", invoice = 7, memo = "again" }]
differ = [{ customer = "c1", invoice = 8 }, { customer = "c2", invoice = 7 }]
"#;

#[test]
fn a_warning_fails_the_lint_and_a_note_does_not() {
    let home = Home::new();
    home.file("semel.toml", CHARGE);
    let noted = home.semel(["policy", "lint"]);
    assert_eq!(noted.code, Some(0), "{noted:?}");
    assert!(
        noted.stdout.contains("note[unprobed]") && noted.stderr.contains("0 warnings, 1 note"),
        "{noted:?}"
    );
    home.file("semel.toml", "[[rule]]\nmatch = \"mcp:mail/send\"\nkey = [\"body.to\"]\n");
    let warned = home.semel(["policy", "lint"]);
    assert_eq!(warned.code, Some(1), "{warned:?}");
    assert!(
        warned.stdout.contains("semel.toml:3:8") && warned.stdout.contains("write `args.to`"),
        "{warned:?}"
    );
    let json = home.semel(["policy", "lint", "--json"]).json();
    assert_eq!((&json["ok"], &json["items"][0]["code"]), (&false.into(), &"unknown_root".into()));
}

#[test]
fn a_rules_examples_are_tried_and_a_wrong_one_still_loads() {
    let home = Home::new();
    home.file("semel.toml", CHARGE);
    let good = home.semel(["policy", "test"]);
    assert_eq!((good.code, good.stdout.as_str()), (Some(0), "1 example, 0 wrong.\n"), "{good:?}");
    for (from, to, at, says) in [
        ("7, memo = \"again\"", "9", 12, "another intent than the first call: args.invoice"),
        ("memo = \"again\"", "amount = 5", 12, "refused as drift"),
        ("invoice = 8 }", "invoice = 7 }", 13, "the same intent as another call"),
        ("class = \"consequential\"\nsame", "class = \"act\"\nsame", 12, "its class is consequential"),
        ("mcp:billing/charge_card", "mcp:billing/refund", 12, "another rule takes it: default"),
        ("action = \"mcp:billing/charge_card\"\n", "", 11, "`match` does not name one action"),
    ] {
        home.file("semel.toml", &CHARGE.replace(from, to));
        let wrong = home.semel(["policy", "test"]);
        assert_eq!(wrong.code, Some(1), "{to}: {wrong:?}");
        assert!(
            wrong.stdout.contains(&format!("semel.toml:{at}:")) && wrong.stdout.contains(says),
            "{wrong:?}"
        );
        let json = home.semel(["policy", "test", "--json"]).json();
        assert_eq!(json["examples"]["wrong"][0]["code"], "wrong_example", "{json}");
        assert_eq!(home.semel(["policy", "lint"]).code, Some(0), "it loads");
    }
}

#[test]
fn examples_of_commands_and_requests_are_written_as_people_call_them() {
    let home = Home::new();
    home.file(
        "semel.toml",
        r#"
[[rule]]
match = "cli:git push *"
class = "act"
key = ["argv[2]"]
example = [{ same = [["git", "push", "origin"], ["/usr/bin/git", "push", "origin"]], differ = [["git", "push", "fork"]] }]

[[rule]]
match = "http:POST bank.example/charges"
class = "consequential"
key = ["body.invoice"]
[[rule.example]]
same = [{ invoice = 1 }, { body = { invoice = 1 }, query = {} }]
differ = [{ invoice = 2 }]
"#,
    );
    let ran = home.semel(["policy", "test"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "2 examples, 0 wrong.\n"), "{ran:?}");
}

/// A conversation in which a charge was made, repeated, and made for another invoice.
fn transcript(home: &Home) {
    let call = |id: &str, invoice: u64, memo: &str| {
        json!({"role": "assistant", "tool_calls": [{"id": id, "type": "function", "function": {
            "name": "mcp__billing__charge_card",
            "arguments": json!({"customer": "c1", "invoice": invoice, "memo": memo}).to_string()
        }}]})
    };
    let answer = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": format!("charged {id}")});
    let messages = json!({"messages": [
        call("call_1", 7, "March"), answer("call_1"), call("call_2", 7, "once more"), answer("call_2"),
        call("call_3", 8, "April"), answer("call_3"),
    ]});
    home.file("chat.json", &messages.to_string());
}

#[test]
fn recorded_calls_show_what_a_change_of_the_policy_changes() {
    let home = Home::new();
    transcript(&home);
    home.file("semel.toml", CHARGE);
    let tested = home.json(["policy", "test", "chat.json"]);
    let group = &tested["recorded"]["groups"][0];
    assert_eq!(tested["recorded"]["groups"].as_array().map(Vec::len), Some(1), "{tested}");
    assert_eq!(
        (&group["let_through"], &group["collapsed"], &group["held"]),
        (&2.into(), &1.into(), &0.into()),
        "{tested}"
    );
    home.file("before.toml", "[[rule]]\nmatch = \"mcp:billing/charge_*\"\nclass = \"act\"\n");
    let changed = home.json(["policy", "test", "--against", "before.toml", "chat.json"]);
    assert_eq!(changed["recorded"]["changed"], 1, "{changed}");
    let change = &changed["recorded"]["changes"][0];
    assert_eq!(
        (&change["before"], &change["after"]),
        (&"let through".into(), &"collapsed".into()),
        "{changed}"
    );
    let text = home.semel(["policy", "test", "--against", "before.toml", "chat.json"]);
    assert_eq!(text.code, Some(0), "{text:?}");
    for part in [
        "3 recorded calls.",
        "3 -> 2",
        "0 -> 1",
        "1 call is treated differently:",
        "let through -> collapsed",
    ] {
        assert!(text.stdout.contains(part), "{part}: {}", text.stdout);
    }
    assert_eq!(home.semel(["policy", "test", "missing.jsonl"]).code, Some(2));
    home.file("notes.txt", "nothing here");
    assert!(home.semel(["policy", "test", "notes.txt"]).stdout.contains("no format that semel knows"));
}

#[test]
fn the_journal_is_a_record_of_calls_too() {
    let home = Home::new();
    for word in ["a", "b"] {
        assert_eq!(home.semel(["run", "--", "true", word]).code, Some(0));
    }
    let journal = home.semel(["ledger", "tail", "--json", "--no-follow", "-n", "100"]).stdout;
    home.file("journal.jsonl", &journal);
    home.file("semel.toml", "[[rule]]\nmatch = \"cli:true\"\nclass = \"consequential\"\n");
    let tested = home.json(["policy", "test", "journal.jsonl"]);
    let group = &tested["recorded"]["groups"][0];
    assert_eq!((&group["class"], &group["let_through"]), (&"consequential".into(), &2.into()), "{tested}");
}

#[test]
fn pairs_of_calls_are_judged_by_the_answers_that_they_write() {
    let home = Home::new();
    home.file(
        "pairs.toml",
        r#"
[[pair]]
name = "charge: the answer was lost"
theme = "payment"
door = "mcp"
call = "billing/create_charge"
args = { customer = "c1", amount = 5 }
duplicate = { variant = "in_doubt", first = { answer = "lost" }, expect = "held in_doubt" }
repeat = { variant = "again", again = "a second item" }
other = { change = { customer = "c2" } }
[[pair]]
name = "charge: under a key"
theme = "payment"
door = "mcp"
call = "billing/create_charge"
key = "k"
duplicate = { expect = "replayed" }
"#,
    );
    let played = home.json(["policy", "test", "pairs.toml"]);
    assert_eq!(
        (&played["pairs"]["tried"], &played["pairs"]["not_tried"]),
        (&3.into(), &1.into()),
        "{played}"
    );
    assert_eq!(played["ok"], true, "{played}");
    home.file("semel.toml", "[[rule]]\nmatch = \"mcp:billing/*\"\nclass = \"read\"\n");
    let unguarded = home.semel(["policy", "test", "pairs.toml"]);
    assert_eq!(unguarded.code, Some(1), "{unguarded:?}");
    assert!(unguarded.stdout.contains("duplicate: held in_doubt expected, let through"), "{unguarded:?}");
    home.file("other.toml", "a = 1\n");
    assert_eq!(home.semel(["policy", "test", "other.toml"]).code, Some(2));
}

const OPENAPI: &str = "openapi: 3.1.0\nservers:\n  - url: https://bank.example/v1\npaths:\n  /charges/{id}/refunds:\n    post:\n      parameters:\n        - {name: Idempotency-Key, in: header}\n      requestBody:\n        content:\n          application/json:\n            schema:\n              properties: {amount: {}, note: {}}\n  /charges:\n    get: {}\n";

#[test]
fn a_policy_is_written_once_and_passes_the_lint() {
    let home = Home::new();
    home.file("openapi.yaml", OPENAPI);
    let init = ["policy", "init", "http", "--name", "bank", "--openapi", "openapi.yaml"];
    let written = home.semel(init);
    assert_eq!(written.code, Some(0), "{written:?}");
    let policy = std::fs::read_to_string(home.work().join("semel.toml")).expect("a policy");
    assert_eq!(written.stdout, policy);
    assert!(policy.contains("match = \"http:POST bank.example/v1/charges/*/refunds\""), "{policy}");
    assert!(policy.contains("# key = [\"body.amount\"]") && policy.contains("[upstream.bank]"), "{policy}");
    assert_eq!(home.semel(["policy", "lint"]).code, Some(0), "{policy}");
    assert_eq!(home.json(init)["effect"], "noop");
    // Its comments are a policy too, once they are completed.
    let completed = policy.replace("\n# ", "\n");
    home.file("semel.toml", &completed);
    let other = home.semel(init);
    assert_eq!(other.code, Some(2), "{other:?}");
    assert!(other.stderr.contains("there already"), "{other:?}");
    assert_eq!(std::fs::read_to_string(home.work().join("semel.toml")).expect("a policy"), completed);
    assert_eq!(home.semel(["policy", "lint"]).code, Some(0), "{completed}");
}

#[test]
fn the_tools_of_a_server_become_rules() {
    let home = Home::new();
    let semel = env!("CARGO_BIN_EXE_semel");
    let ran = home.semel(["policy", "init", "mcp", "--name", "world", "--", semel, "eval-world", "."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("match = \"mcp:world/create_charge\""), "{}", ran.stdout);
    assert!(!ran.stdout.contains("list_charges\"\nclass"), "a read needs no rule: {}", ran.stdout);
    assert_eq!(home.semel(["policy", "lint"]).code, Some(0), "{}", ran.stdout);
}
