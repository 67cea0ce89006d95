//! `semel audit`, `semel eval` and `semel check`, as people run them.

use crate::home::{Home, Ran};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

/// A session of Claude Code in which one charge was made twice and one mail was tried again blindly.
fn session() -> String {
    let call = |n: u32, tool: &str, input: &str, answer: &str, is_error: bool| {
        let time = format!("2026-03-01T09:00:{n:02}Z");
        format!(
            "{{\"type\":\"assistant\",\"sessionId\":\"s1\",\"timestamp\":\"{time}\",\"message\":{{\"id\":\"m{n}\",\"content\":[{{\"type\":\"tool_use\",\"id\":\"t{n}\",\"name\":\"{tool}\",\"input\":{input}}}]}}}}\n\
             {{\"type\":\"user\",\"sessionId\":\"s1\",\"timestamp\":\"{time}\",\"message\":{{\"content\":[{{\"type\":\"tool_result\",\"tool_use_id\":\"t{n}\",\"is_error\":{is_error},\"content\":\"{answer}\"}}]}}}}\n"
        )
    };
    let charge = r#"{"customer":"cus_7","amount":4200,"api_key":"sk_live_0123456789abcdefghij"}"#;
    let mail = r#"{"to":"ann@example.com","subject":"Offer","body":"Dear Ann"}"#;
    [
        call(1, "mcp__billing__create_charge", charge, "charged ch_1a", false),
        call(5, "mcp__billing__create_charge", charge, "charged ch_2b", false),
        call(9, "mcp__mail__send_email", mail, "request timed out", true),
        call(14, "mcp__mail__send_email", mail, "sent", false),
        call(20, "mcp__mail__list_emails", "{}", "[]", false),
    ]
    .concat()
}

#[test]
fn the_audit_says_on_one_screen_what_ran_twice() {
    let home = Home::new();
    home.file("session.jsonl", &session());
    let ran = home.semel(["audit", "session.jsonl"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    insta::assert_snapshot!("audit", ran.stdout);
    assert!(!ran.stdout.contains("sk_live"), "{}", ran.stdout);
}

#[test]
fn without_a_path_the_audit_reads_the_sessions_of_agents() {
    let home = Home::new();
    let none = home.semel(["audit"]);
    assert_eq!(none.code, Some(2));
    assert!(
        none.stderr.contains("no sessions of Claude Code, Codex or Gemini CLI were found"),
        "{}",
        none.stderr
    );
    let place = home.path().join(".claude/projects/p");
    std::fs::create_dir_all(&place).expect("a directory");
    std::fs::write(place.join("s1.jsonl"), session()).expect("writable");
    let report = home.json(["audit", "--since", "3650d"]);
    assert_eq!((report["sessions"].as_u64(), report["tool_calls"].as_u64()), (Some(1), Some(5)));
    assert_eq!(report["counts"], serde_json::json!({"likely": 1, "proven": 1}));
}

#[test]
fn the_audit_fails_a_build_at_its_level_and_writes_every_form() {
    let home = Home::new();
    home.file("session.jsonl", &session());
    // The mail alone is only likely to have gone out twice.
    home.file("mail.jsonl", session().lines().skip(4).collect::<Vec<_>>().join("\n").as_str());
    for (level, of_mail) in [("proven", 0), ("likely", 1), ("possible", 1)] {
        assert_eq!(home.semel(["audit", "session.jsonl", "--fail-on", level]).code, Some(1), "{level}");
        assert_eq!(home.semel(["audit", "mail.jsonl", "--fail-on", level]).code, Some(of_mail), "{level}");
    }
    home.file("quiet.jsonl", session().lines().take(2).collect::<Vec<_>>().join("\n").as_str());
    assert_eq!(home.semel(["audit", "quiet.jsonl", "--fail-on", "possible"]).code, Some(0));
    home.file("odd.json", "{}");
    let odd = home.semel(["audit", "odd.json", "--fail-on", "possible"]);
    assert_eq!(odd.code, Some(2), "what could not be read is not clean: {}", odd.stdout);
    let form = |form: &str| home.semel(["audit", "session.jsonl", "--as", form]).stdout;
    let sarif: Value = serde_json::from_str(&form("sarif")).expect("SARIF is JSON");
    let results = sarif["runs"][0]["results"].as_array().expect("results");
    assert_eq!((sarif["version"].as_str(), results.len()), (Some("2.1.0"), 2));
    assert_eq!(results[0]["locations"][0]["physicalLocation"]["region"]["startLine"], 3);
    let junit = form("junit");
    assert!(junit.contains("tests=\"2\" failures=\"2\""), "{junit}");
    let html = form("html");
    assert!(
        html.starts_with("<!doctype html>") && html.contains("<svg") && !html.contains("http://"),
        "{html}"
    );
    home.file("script.jsonl", &session().replace("cus_7", "<script>alert(1)</script>"));
    let html = home.semel(["audit", "script.jsonl", "--as", "html"]).stdout;
    assert!(html.contains("&lt;script&gt;alert(1)") && !html.contains("<script"), "{html}");
    let ran = home.semel(["audit", "session.jsonl", "--as", "html", "--output", "audit.html"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""));
    assert!(ran.stderr.contains("1 effect ran twice, 1 looks like it."), "{}", ran.stderr);
}

#[test]
fn a_record_that_cannot_be_judged_is_not_clean() {
    let home = Home::new();
    home.file("calls.jsonl", "{\"op\":\"create_charge\",\"in\":{\"customer\":\"c\"}}\n".repeat(2).as_str());
    for (mapping, why) in [
        ("tool=opp,args=in", "no line has the tool that --map names"),
        ("tool=op,args=inn", "the records have no arguments"),
    ] {
        let ran = home.semel(["audit", "calls.jsonl", "--map", mapping]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(why), "{ran:?}");
    }
    for args in [&["audit", "--follow", "nowhere"][..], &["audit", "/dev/zero"]] {
        assert_eq!(home.semel(args).code, Some(2), "{args:?}");
    }
    let secret = "{\"type\":\"user\",\"sessionId\":\"s\",\"message\":\"sk_live_0123456789\"}\n";
    home.file("broken.jsonl", &(session() + secret));
    let ran = home.semel(["audit", "broken.jsonl"]);
    assert!(
        ran.stdout.contains("1 line and 0 files could not be read") && !ran.stdout.contains("sk_live"),
        "{ran:?}"
    );
}

#[test]
fn a_pipe_is_read_like_a_file() {
    let home = Home::new();
    let mut command = home.command(["audit", "--json", "/dev/stdin"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("semel starts");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(session().as_bytes()).expect("semel reads");
    drop(input);
    let output = child.wait_with_output().expect("semel ends").stdout;
    let report: Value = serde_json::from_slice(&output).expect("JSON");
    assert_eq!(report["counts"], serde_json::json!({"likely": 1, "proven": 1}));
}

#[test]
fn a_duplicate_is_told_while_the_session_goes_on() {
    let home = Home::new();
    let whole = session();
    let (first, rest) = whole.split_at(whole.match_indices('\n').nth(1).expect("two lines").0 + 1);
    let path = home.file("live.jsonl", first);
    let mut command = home.command(["audit", "--follow", "--json", "live.jsonl"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("semel starts");
    let mut said = String::new();
    BufReader::new(child.stderr.take().expect("a pipe"))
        .read_line(&mut said)
        .expect("it says that it watches");
    assert!(said.contains("watching"), "{said}");
    let mut file = std::fs::OpenOptions::new().append(true).open(path).expect("writable");
    file.write_all(rest.as_bytes()).expect("writable");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut levels = Vec::new();
    while levels.len() < 2 {
        let line = lines.next().expect("a line").expect("text");
        let finding: Value = serde_json::from_str(&line).expect("JSON");
        levels.push(finding["level"].as_str().expect("a level").to_owned());
    }
    levels.sort();
    assert_eq!(levels, ["likely", "proven"]);
    drop(lines);
    assert_eq!(child.wait().expect("semel ends").code(), Some(0));
}

#[test]
fn a_mapping_reads_lines_of_another_program() {
    let home = Home::new();
    let line = |n: u32, out: &str| {
        format!(
            "{{\"ts\":{n},\"name\":\"create_charge\",\"in\":{{\"customer\":\"c\",\"amount\":1}},\"out\":\"{out}\"}}\n"
        )
    };
    home.file("calls.jsonl", &(line(1, "made ch_1a") + &line(2, "made ch_2b")));
    let report = home.json(["audit", "calls.jsonl", "--map", "tool=name,args=in,result=out,time=ts"]);
    assert_eq!(report["counts"], serde_json::json!({"proven": 1}));
    let bad = home.semel(["audit", "calls.jsonl", "--map", "tool"]);
    assert_eq!(bad.code, Some(2));
    assert!(bad.stderr.contains("not of the form name=path"), "{}", bad.stderr);
}

#[test]
fn an_eval_finds_duplicates_without_a_guard_and_none_with_semel() {
    let home = Home::new();
    let eval = |more: &[&str]| {
        let args = [&["eval", "--json", "--only", "lost answer/charge"], more].concat();
        let ran = home.semel(args);
        serde_json::from_str::<Value>(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stderr))
    };
    for door in ["command", "mcp", "http"] {
        let numbers = |report: Value| report["doors"][0]["numbers"].clone();
        let bare = numbers(eval(&["--door", door, "--unguarded"]));
        assert_eq!(
            (bare["ran_twice"].as_u64(), bare["scenarios"].as_u64()),
            (Some(2), Some(8)),
            "{door}: {bare}"
        );
        let guarded = numbers(eval(&["--door", door]));
        assert_eq!(
            (guarded["ran_twice"].as_u64(), guarded["honestly_reported"].as_u64()),
            (Some(0), Some(8)),
            "{door}: {guarded}"
        );
    }
}

/// A tool with two commands, and a sandbox that counts its effects. `once`: it knows keys.
fn tool(home: &Home, once: bool) -> (String, String) {
    let options = if once { "  --idempotency-key KEY\n  --dry-run" } else { "  --amount N" };
    let charge = if once {
        r#"case " $* " in *" --dry-run "*) echo '{"effect":"would_create"}'; exit 0;; esac
           key=; while [ $# -gt 0 ]; do [ "$1" = --idempotency-key ] && key=$2; shift; done
           if [ -n "$key" ] && [ -e "box/$key" ]; then echo '{"effect":"noop"}'; exit 0; fi
           [ -n "$key" ] && : > "box/$key"
           echo x >> box/effects; echo '{"effect":"created"}'"#
    } else {
        "echo x >> box/effects; echo charged"
    };
    let tool = home.file(
        "pay.sh",
        &format!(
            "case \" $* \" in\n*\" charge --help \"*) printf 'Charges.\\n\\nOptions:\\n{options}\\n'; exit;;\n*\" list --help \"*) echo Lists.; exit;;\n\
             *\" --help \"*) printf 'Pays.\\n\\nCommands:\\n  charge  Charge\\n  list    List\\n\\nOptions:\\n  --help\\n'; exit;;\nesac\n[ \"$1\" = charge ] && {{\n{charge}\n}}\n"
        ),
    );
    let sandbox = home.file(
        "sandbox.sh",
        "case $1 in setup) mkdir -p box; : > box/effects;; examples) echo 'charge --amount 5';; count) wc -l < box/effects;; teardown) rm -r box;; esac\n",
    );
    (tool.display().to_string(), format!("sh {}", sandbox.display()))
}

#[test]
fn a_tool_is_scored_by_its_help_and_by_what_it_does() {
    let home = Home::new();
    let (tool, sandbox) = tool(&home, false);
    let report = home.json(["check", "--sandbox", &sandbox, "--", "sh", &tool]);
    assert_eq!((report["score"].as_u64(), report["proven"].as_bool()), (Some(0), Some(true)), "{report}");
    assert_eq!(report["commands"][0]["tried"]["effects"], 2);
    let text = home.semel(["check", "--", "sh", &tool]);
    assert!(text.stdout.starts_with("Score 0 of 3, at most, as its help says"), "{}", text.stdout);
    assert!(!home.work().join("box").exists(), "nothing was run, and the sandbox is gone");
    let reads = |name: &str| home.semel(["check", "--reads", name, "--", "sh", &tool]);
    assert!(reads("charge").stdout.starts_with("Score 3 of 3"), "nothing is left that changes something");
    assert_eq!(reads("refund").code, Some(2), "there is no such command");

    let home = Home::new();
    let (tool, sandbox) = self::tool(&home, true);
    let report = home.json(["check", "--sandbox", &sandbox, "--", "sh", &tool]);
    assert_eq!(
        (report["score"].as_u64(), report["advice"].as_array().map(Vec::len)),
        (Some(3), Some(0)),
        "{report}"
    );
}

#[test]
fn an_api_is_checked_by_its_openapi_document() {
    let home = Home::new();
    let document = serde_json::json!({"openapi": "3.1.0", "servers": [{"url": "https://bank.example/v1"}], "paths": {
        "/charges": {
            "get": {}, "post": {"parameters": [{"name": "Idempotency-Key", "in": "header"}]}
        },
        "/payouts": {"post": {}}
    }});
    home.file("openapi.json", &document.to_string());
    let report = home.json(["check", "http", "--openapi", "openapi.json"]);
    let items = report["items"].as_array().expect("items");
    let of = |action: &str| items.iter().find(|item| item["action"] == action).expect("an operation");
    assert_eq!(of("http:GET bank.example/v1/charges")["class"], "read");
    assert_eq!(of("http:POST bank.example/v1/charges")["key"], "Idempotency-Key");
    assert_eq!(of("http:POST bank.example/v1/payouts")["class"], "consequential");
    home.file("bad.json", "paths:");
    assert_eq!(home.semel(["check", "http", "--openapi", "bad.json"]).code, Some(2));
}

#[test]
fn an_mcp_server_is_checked_by_its_listing() {
    let home = Home::new();
    let semel = env!("CARGO_BIN_EXE_semel");
    let report = home.json(["check", "mcp", "--name", "world", "--", semel, "eval-world", "."]);
    let items = report["items"].as_array().expect("items");
    let class = |tool: &str| {
        let action = format!("mcp:world/{tool}");
        items.iter().find(|item| item["action"] == action.as_str()).map(|item| item["class"].clone())
    };
    assert_eq!(class("create_charge"), Some("consequential".into()));
    assert_eq!(class("list_charges"), Some("read".into()));
}

/// An MCP server with two pages of tools and a request of its own; it writes down the tokens that it sees.
const SERVER: &str = r#"
env | grep -E 'SEMEL_(OPERATOR_|SERVE_|)TOKEN' > tokens
say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$1" "$2"; }
read -r hello; say 1 '"result":{"capabilities":{}}'
read -r initialized; read -r list
[ "$1" = refuse ] && say 2 '"error":{"code":-32603,"message":"no database"}' && exit
say 2 '"method":"ping"'
say 2 '"result":{"tools":[{"name":"list_charges"}],"nextCursor":"two"}'
read -r list; say 3 '"result":{"tools":[{"name":"create_charge"}]}'
read -r end
"#;

#[test]
fn a_listing_of_tools_is_read_whole_and_its_server_gets_no_token_of_semels() {
    let home = Home::new();
    home.file("server.sh", SERVER);
    let check = |more: &[&str]| {
        let mut command = home.command([&["--json", "check", "mcp", "--", "sh", "server.sh"], more].concat());
        command.env("SEMEL_OPERATOR_TOKEN", "op").env("SEMEL_SERVE_TOKEN", "sv");
        command.env("SEMEL_TOKEN", "cl").env("SEMEL_TOKEN_FILE", "token");
        Ran::of(command.output().expect("semel starts"))
    };
    let ran = check(&[]);
    assert_eq!(ran.json()["items"].as_array().map(Vec::len), Some(2), "{ran:?}");
    assert_eq!(std::fs::read_to_string(home.work().join("tokens")).expect("it ran"), "");
    let refused = check(&["refuse"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("no database"), "{refused:?}");
}

/// A script that charges whatever it is called with.
#[test]
fn a_tool_that_is_not_known_to_have_help_charges_only_where_somebody_says_so() {
    let home = Home::new();
    let script = home.file("charge.sh", "#!/bin/sh\necho charged >> world\necho Charges. With care.\n");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("it is executable");
    let charges = || std::fs::read_to_string(home.work().join("world")).unwrap_or_default().lines().count();
    for tool in [&["./charge.sh"][..], &["sh", "./charge.sh"], &["sh", "-c", "./charge.sh"]] {
        let ran = home.semel([&["check", "--"], tool].concat());
        assert_eq!((ran.code, charges()), (Some(2), 0), "{ran:?}");
        assert!(ran.stderr.contains("it was not run") && ran.stderr.contains("--run-help"), "{ran:?}");
    }
    let told = home.semel(["check", "--run-help", "--", "./charge.sh"]);
    assert_eq!((told.code, charges()), (Some(0), 1), "{told:?}");
    assert!(told.stderr.starts_with("semel: runs `./charge.sh --help`"), "{told:?}");
}

#[test]
fn a_subcommand_that_may_not_know_help_is_not_run() {
    let home = Home::new();
    let ops = "env | grep -c SEMEL_OPERATOR_TOKEN > tokens\n[ \"$1\" = deploy ] && : > deployed\nprintf 'Usage: ops\\n\\nCommands:\\n  deploy  Deploy\\n  status  Status\\n'\n";
    let ops = home.file("ops.sh", ops).display().to_string();
    let mut command = home.command(["--json", "check", "--run-help", "--", "sh", &ops]);
    let ran = Ran::of(command.env("SEMEL_OPERATOR_TOKEN", "op").output().expect("semel starts"));
    let commands = ran.json()["commands"].as_array().map(Vec::len);
    assert_eq!((commands, home.work().join("deployed").exists()), (Some(2), false), "{ran:?}");
    assert!(ran.json()["notes"][0].as_str().is_some_and(|note| note.contains("were not run")), "{ran:?}");
    assert_eq!(std::fs::read_to_string(home.work().join("tokens")).expect("it ran"), "0\n");
    let plain = home.file("plain.sh", "echo 'Set the status. --help'\n").display().to_string();
    let ran = home.json(["check", "--", "sh", &plain]);
    assert_eq!(ran["notes"], serde_json::json!(["no list of subcommands was found in the help"]));
}

#[test]
fn two_callers_at_once_are_counted() {
    let home = Home::new();
    let (_, sandbox) = tool(&home, false);
    let ran =
        home.semel(["check", "concurrent", "--sandbox", &sandbox, "--", "sh", "-c", "echo x >> box/effects"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("2 of 2 callers succeeded, 2 effects"), "{}", ran.stdout);
    for (script, key, why) in [
        ("echo x >> box/effects", Some("--idempotency-key=k"), "one key, and it happened twice"),
        ("exit 1", None, "nothing was tried"),
    ] {
        let words = ["check", "concurrent", "--sandbox", &sandbox, "--", "sh", "-c", script, "sh"];
        let ran = home.semel(words.into_iter().chain(key));
        assert!(ran.code == Some(1) && ran.stdout.contains(why), "{ran:?}");
    }
    // Each reads what the other has not written yet.
    let lost = "n=$(wc -l < box/effects); sleep 0.2; seq $((n + 1)) > box/effects";
    let ran = home.semel(["check", "concurrent", "--sandbox", &sandbox, "--", "sh", "-c", lost]);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert!(ran.stdout.contains("an update was lost"), "{}", ran.stdout);
}
