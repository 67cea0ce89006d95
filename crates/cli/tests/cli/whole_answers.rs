//! Whole answers of the command line, exit code and both streams, as people and models read them.
//!
//! After a deliberate change: `INSTA_UPDATE=always cargo nextest run -p semel-cli whole_answers`, and read the difference.

use crate::home::{Home, Ran};
use crate::run::TOUCH;
use insta::assert_snapshot;

const RULE: &str = "version = 1\n\n[[rule]]\nmatch = \"cli:pay\"\nclass = \"consequential\"\n\
                    key = [\"argv[3]\"]\nagain = \"person\"\n";

/// An answer without what differs between two runs of one test.
fn whole(home: &Home, ran: &Ran) -> String {
    let home = home.path().canonicalize().expect("a home").display().to_string();
    let text = format!(
        "exit {}\n--- stdout\n{}--- stderr\n{}",
        ran.code.map_or_else(|| "by a signal".to_owned(), |code| code.to_string()),
        ran.stdout,
        ran.stderr
    );
    let text = text.replace(&home, "HOME");
    let text = masked(&text, "ef_", 26, |c| c.is_ascii_uppercase() || c.is_ascii_digit(), "ef_…");
    let text = masked(&text, "20", 22, |c| c.is_ascii_digit() || "-T:.Z".contains(c), "TIME");
    let text = masked(&text, "", 64, |c| c.is_ascii_hexdigit(), "DIGEST");
    // Columns are as wide as the longest value, and ages depend on the machine.
    let lines: Vec<String> = text.lines().map(|line| without_ages(line.trim_end())).collect();
    // On a slow machine it was done some seconds ago.
    lines.join("\n").replace("done N s ago", "just done")
}

/// `12 s` as `N s`, and columns two spaces apart.
fn without_ages(line: &str) -> String {
    let start = line.len() - line.trim_start().len();
    let words: Vec<&str> = line[start..].split(' ').collect();
    let mut shown = line[..start].to_owned();
    let mut gap = 0;
    for (at, word) in words.iter().enumerate() {
        if word.is_empty() {
            gap += 1;
            continue;
        }
        shown.push_str(if at == 0 {
            ""
        } else if gap > 0 {
            "  "
        } else {
            " "
        });
        gap = 0;
        let next = words.get(at + 1).map_or("", |word| word.trim_end_matches([';', ',']));
        let digits = word.trim_start_matches('(');
        let is_age = next == "s" && !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        shown.push_str(&if is_age { word.replace(digits, "N") } else { (*word).to_owned() });
    }
    shown
}

/// The text with every piece replaced that begins so and goes on with this many such characters.
fn masked(text: &str, begin: &str, length: usize, is_part: impl Fn(char) -> bool, by: &str) -> String {
    let (mut result, mut rest) = (String::new(), text);
    while !rest.is_empty() {
        let is_piece = rest
            .strip_prefix(begin)
            .is_some_and(|after| after.chars().take(length).filter(|c| is_part(*c)).count() == length);
        let boundary = result.chars().last().is_none_or(|c| !c.is_ascii_alphanumeric());
        if is_piece && boundary {
            result.push_str(by);
            rest = &rest[begin.len() + length..];
        } else {
            let next = rest.chars().next().expect("it is not empty");
            result.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
    result
}

#[test]
fn a_first_run_and_its_replay() {
    let home = Home::new();
    let script = "echo x >> world; echo out; echo err >&2";
    assert_snapshot!("run", whole(&home, &home.run(&["--key", "k"], script)));
    assert_snapshot!("run_replayed", whole(&home, &home.run(&["--key", "k"], script)));
    assert_snapshot!("run_replayed_json", whole(&home, &home.run(&["--key", "k", "--json"], script)));
    assert_snapshot!("run_dry", whole(&home, &home.run(&["--key", "k", "--dry-run"], script)));
    let quiet = home.run(&["--quiet", "--key", "k"], script);
    assert_eq!(quiet.stderr, "err\n");
    assert_eq!(home.effects(), 1);
}

#[test]
fn failures_of_every_kind() {
    let home = Home::new();
    assert_snapshot!("run_reported", whole(&home, &home.run(&[], "exit 3")));
    let refused = home.run(&["--key", "r", "--refused-exit", "3"], "exit 3");
    assert_snapshot!("run_refused", whole(&home, &refused));
    assert_snapshot!("run_in_doubt", whole(&home, &home.run(&["--key", "d"], "exit 3")));
    assert_snapshot!("run_in_doubt_again", whole(&home, &home.run(&["--key", "d"], "exit 3")));
    assert_snapshot!("run_in_doubt_json", whole(&home, &home.run(&["--key", "d", "--json"], "exit 3")));
    assert_snapshot!("run_not_started", whole(&home, &home.semel(["run", "--", "no-such-program"])));
    assert_snapshot!("run_usage", whole(&home, &home.semel(["run", "--class", "riskful", "--", "true"])));
}

#[test]
fn drift_hold_and_cancel() {
    let home = Home::new();
    home.file("semel.toml", RULE);
    assert_eq!(home.run(&["--key", "k"], TOUCH).code, Some(0));
    assert_snapshot!("run_drift", whole(&home, &home.run(&["--key", "k"], "echo other")));
    let pay = |again: &[&str]| {
        home.semel([&["run", "--action", "pay"], again, &["--", "echo", "to", "ann", "9"]].concat())
    };
    assert_eq!(pay(&[]).code, Some(0));
    assert_snapshot!("run_held_for_person", whole(&home, &pay(&["--again", "second parcel"])));
    assert_snapshot!("cancel", whole(&home, &home.semel(["cancel", "nightly", "--reason", "enough"])));
    assert_snapshot!("run_cancelled", whole(&home, &home.run(&["--run", "nightly"], TOUCH)));
    assert_eq!(home.effects(), 1);
}

#[test]
fn the_ledger_in_words() {
    let home = Home::new();
    assert_snapshot!("ledger_none", whole(&home, &home.semel(["ledger"])));
    home.run(&["--key", "done", "--run", "nightly"], TOUCH);
    let id = home.doubt("lost");
    assert_snapshot!("ledger", whole(&home, &home.semel(["ledger"])));
    assert_snapshot!("ledger_list", whole(&home, &home.semel(["ledger", "list"])));
    assert_snapshot!("ledger_runs", whole(&home, &home.semel(["ledger", "runs"])));
    assert_snapshot!("ledger_show", whole(&home, &home.semel(["ledger", "show", &id])));
    assert_snapshot!("ledger_reply_of_a_doubt", whole(&home, &home.semel(["ledger", "reply", &id])));
    assert_snapshot!("ledger_unknown", whole(&home, &home.semel(["ledger", "show", "ZZZZZZ"])));
    let resolve = ["ledger", "resolve", "--key", "lost", "--not-applied", "--reason", "looked"];
    assert_snapshot!("ledger_resolve", whole(&home, &home.semel(resolve)));
    assert_snapshot!("ledger_quarantine", whole(&home, &home.semel(["ledger", "quarantine"])));
}

#[test]
fn a_policy_explained() {
    let home = Home::new();
    home.file("semel.toml", RULE);
    let explain = |action: &str| home.semel(["policy", "explain", action]);
    assert_snapshot!("policy_explain_default", whole(&home, &explain("mcp:github/create_issue")));
    let with_rule = home.semel(["policy", "explain", "--", "pay", "to", "ann", "9"]);
    assert_snapshot!("policy_explain_rule", whole(&home, &with_rule));
}
