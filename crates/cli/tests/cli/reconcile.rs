//! `semel reconcile`, as people run it.

use crate::home::{Home, Ran};
use crate::llm::stage::{Stage, request};
use crate::serve::served::{Served, TOKEN};
use semel_testkit::http::{ApiClient, FakeModelApi, RouteReply, RoutedApi};
use serde_json::{Value, json};
use std::process::Command;

fn results(ran: &Ran) -> Vec<String> {
    let report = ran.json();
    let items = report["items"].as_array().expect("items").iter();
    items.map(|item| item["result"].as_str().expect("a result").to_owned()).collect()
}

/// A ledger with an applied and a doubtful charge: `pay.sh INVOICE CODE`.
fn charges(home: &Home) {
    for (invoice, script) in
        [("INV-1", "exit 0"), ("INV-2", "exit 0"), ("INV-3", "exit 3"), ("INV-4", "exit 3")]
    {
        let words =
            ["run", "--class", "consequential", "--action", "charge", "--", "sh", "-c", script, invoice];
        home.semel(words);
    }
}

#[test]
fn the_ledger_is_compared_with_a_table_and_doubts_are_ruled_on() {
    let home = Home::new();
    charges(&home);
    home.file("bank.csv", "invoice,amount\nINV-1,5\nINV-1,5\nINV-3,7\nINV-9,1\n");
    let args = ["reconcile", "--outside", "bank.csv", "--on", "argv[3]=invoice"];
    let ran = home.semel([&args[..], &["--json"]].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert_eq!(
        results(&ran),
        ["twice_outside", "absent_outside", "now_decidable", "now_decidable", "unknown_to_ledger"]
    );
    let held = home.semel([&args[..], &["--apply", "--reason", "the bank's export"]].concat());
    assert_eq!(held.code, Some(2), "without a person nothing is ruled: {}", held.stdout);
    let apply = ["--apply", "--reason", "the bank's export", "--token", home.operator_token()];
    let ruled = home.semel([&args[..], &apply].concat());
    assert!(ruled.stderr.contains("happened."), "{ruled:?}");
    let doubts = home.json(["ledger", "list", "--state", "in_doubt"]);
    assert_eq!(doubts["items"].as_array().map(Vec::len), Some(1), "an absence is no proof: {doubts}");
    let misspelt = home.semel(["reconcile", "--outside", "bank.csv", "--on", "argv[3]=invioce"]);
    assert!(
        misspelt.stderr.contains("no row of the outside has `invioce`; the first has `amount`, `invoice`"),
        "{misspelt:?}"
    );
    let misspelt = home.semel(["reconcile", "--outside", "bank.csv", "--on", "args.invoice=invoice"]);
    assert!(misspelt.code == Some(2) && misspelt.stderr.contains("`argv[3]`"), "{misspelt:?}");
}

/// How many effects are in doubt.
fn doubts(home: &Home) -> Option<usize> {
    home.json(["ledger", "list", "--state", "in_doubt"])["items"].as_array().map(Vec::len)
}

#[test]
fn the_row_of_an_effect_that_is_not_asked_for_decides_no_other() {
    let home = Home::new();
    for (action, script) in [("transfer", "exit 0"), ("charge", "exit 3")] {
        let words =
            ["run", "--class", "consequential", "--action", action, "--", "sh", "-c", script, "INV-1"];
        home.semel(words);
    }
    home.file("bank.csv", "invoice\nINV-1\n");
    let args =
        ["--json", "reconcile", "--outside", "bank.csv", "--on", "argv[3]=invoice", "--action", "charge"];
    let apply = ["--apply", "--reason", "export", "--token", home.operator_token()];
    let ran = home.semel([&args[..], &apply].concat());
    assert_eq!((&ran.json()["items"][0]["happened"], doubts(&home)), (&json!(false), Some(1)), "{ran:?}");
}

#[test]
fn the_bank_of_one_tenant_decides_no_doubt_of_another() {
    let home = Home::new();
    let token = |tenant: &str| {
        let made = home.json(["token", "create", "--scope", "agent", "--tenant", tenant]);
        made["token"].as_str().expect("a token").to_owned()
    };
    let (acme, beta) = (token("acme"), token("beta"));
    let served = Served::start(&home, "[[rule]]\nmatch = \"fn:charge\"\nclass = \"consequential\"\n");
    for (token, outcome) in [(&acme, "applied"), (&beta, "in_doubt")] {
        let client = ApiClient::new(&served.address, token);
        let wish = json!({"action": "fn:charge", "arguments": {"invoice": "INV-1"}, "wait": "0s"});
        client.settle(&client.claim(wish), outcome, Value::Null);
    }
    drop(served);
    home.file("acme.csv", "invoice\nINV-1\n");
    let args =
        ["reconcile", "--outside", "acme.csv", "--on", "args.invoice=invoice", "--apply", "--reason", "x"];
    let args = [&args[..], &["--token", home.operator_token()]].concat();
    let ran = home.semel(&args);
    assert!(ran.code == Some(2) && ran.stderr.contains("`acme`, `beta`"), "{ran:?}");
    let ran = home.semel([&args[..], &["--tenant", "acme"]].concat());
    assert_eq!((ran.code, doubts(&home)), (Some(0), Some(1)), "{ran:?}");
    home.semel([&args[..], &["--tenant", "beta"]].concat());
    assert_eq!(doubts(&home), Some(0), "a person said whose bank it is");
}

#[test]
fn every_planned_action_is_accounted_for() {
    let home = Home::new();
    home.file("plan.csv", "invoice\nINV-1\nINV-1\n");
    let on =
        ["--json", "reconcile", "--on", "invoice=invoice", "--intended", "plan.csv", "--outside", "bank.csv"];
    for (rows, matched, left) in [("", 0, 2), ("INV-1\n", 1, 1), ("INV-1\nINV-1\n", 2, 0)] {
        home.file("bank.csv", &format!("invoice\n{rows}"));
        let ran = home.semel(on);
        assert_eq!(
            (&ran.json()["matched"], results(&ran)),
            (&json!(matched), vec!["not_done".to_owned(); left])
        );
        assert_eq!(ran.code, Some(i32::from(left > 0)), "{ran:?}");
    }
    home.file("plan.csv", "{\"invoice\": \"INV-1\"}\n{\"invioce\": \"INV-2\"}\n");
    let ran = home.semel(on);
    assert!(ran.code == Some(2) && ran.stderr.contains("line 2, row 2 has no `invoice`"), "{ran:?}");
}

#[test]
fn a_retry_hours_after_a_lost_answer_is_the_same_charge() {
    let home = Home::new();
    let line = |kind: &str, hour: u8, content: Value| {
        let at = format!("2026-03-01T{hour:02}:00:00Z");
        let message = json!({"id": format!("m{hour}"), "content": [content]});
        json!({"type": kind, "sessionId": "s", "timestamp": at, "message": message}).to_string() + "\n"
    };
    let called = |hour: u8, answer: &str, is_error: bool| {
        let id = format!("t{hour}");
        let input = json!({"customer": "c", "amount": 5});
        let call =
            json!({"type": "tool_use", "id": id, "name": "mcp__billing__create_charge", "input": input});
        let result =
            json!({"type": "tool_result", "tool_use_id": id, "content": answer, "is_error": is_error});
        line("assistant", hour, call) + &line("user", hour, result)
    };
    let session = called(9, "request timed out", true) + &called(12, "{\"id\":\"ch_2\"}", false);
    home.file("late.jsonl", &session);
    home.file("bank.csv", "customer\nc\nc\n");
    let on = ["--outside", "bank.csv", "--on", "args.customer=customer"];
    let ran = home.semel([&["--json", "reconcile", "--transcript", "late.jsonl"], &on[..]].concat());
    assert_eq!((ran.code, results(&ran)), (Some(1), vec!["twice_outside".to_owned()]), "{ran:?}");
}

#[test]
fn a_listing_that_may_not_be_whole_is_refused() {
    let home = Home::new();
    charges(&home);
    let cut =
        home.semel(["reconcile", "--command", "sh -c 'echo invoice; exit 1'", "--on", "argv[3]=invoice"]);
    assert_eq!(cut.code, Some(2));
    assert!(cut.stderr.contains("may not be whole"), "{}", cut.stderr);
    let endless = home.semel(["reconcile", "--command", "yes", "--on", "argv[3]=y"]);
    assert!(endless.code == Some(2) && endless.stderr.contains("more than 1000000 rows"), "{endless:?}");
    let whole = home.semel([
        "reconcile",
        "--command",
        "printf 'invoice\\nINV-1\\nINV-2\\n'",
        "--on",
        "argv[3]=invoice",
    ]);
    assert!(whole.stdout.starts_with("2 effects matched, 2 differences."), "{whole:?}");
    home.file("jobs.jsonl", "{\"invoice\":\"INV-1\"}\n{\"invoice\":\"INV-7\"}\n");
    home.file("bank.csv", "invoice\nINV-1\n");
    let plan = home.semel([
        "reconcile",
        "--intended",
        "jobs.jsonl",
        "--outside",
        "bank.csv",
        "--on",
        "invoice=invoice",
    ]);
    assert!(
        plan.stdout.contains("1 effect matched, 1 difference.") && plan.stdout.contains("not done"),
        "{plan:?}"
    );
}

/// `semel reconcile` of the charges with a listing at `url`.
fn with_listing(home: &Home, url: &str, more: &[&str]) -> Ran {
    let args = ["--json", "reconcile", "--on", "argv[3]=invoice", "--http", url, "--bearer-env", "BANK"];
    let mut command = home.command([&args[..], more].concat());
    Ran::of(command.env("BANK", "s3cret").output().expect("semel starts"))
}

#[test]
fn a_listing_is_read_to_its_last_page() {
    let home = Home::new();
    charges(&home);
    let api = RoutedApi::start();
    let pages = [
        r#"{"data": [{"id": "a", "invoice": "INV-1"}, {"id": "b", "invoice": "INV-2"}], "has_more": true}"#,
        r#"{"data": [{"id": "c", "invoice": "INV-3"}], "has_more": false}"#,
    ];
    api.tell("GET /charges", pages.map(|page| RouteReply::json(200, page)));
    let url = format!("{}/charges?limit=2", api.url());
    let ran = with_listing(&home, &url, &["--next", "starting_after=data[*].id"]);
    assert_eq!(ran.json()["matched"], 2, "{ran:?}");
    assert_eq!(results(&ran), ["now_decidable", "now_decidable"]);
    assert_eq!(ran.json()["items"][0]["row"], "page 2, line 1, row 1");
    let asked = api.requests();
    assert_eq!(
        asked.iter().map(|request| request.head.query.as_str()).collect::<Vec<_>>(),
        ["limit=2", "limit=2&starting_after=b"]
    );
    let is_bearer = |(name, value): &(String, String)| {
        name.eq_ignore_ascii_case("authorization") && value == "Bearer s3cret"
    };
    assert!(asked.iter().all(|request| request.head.headers.iter().any(is_bearer)));

    let linked = RouteReply::json(200, r#"[{"invoice": "INV-1"}]"#)
        .with("Content-Type: application/json\r\nLink: </charges?page=2>; rel=\"next\"\r\n");
    api.tell("GET /charges", [linked, RouteReply::json(200, r#"[{"invoice": "INV-2"}]"#)]);
    assert_eq!(with_listing(&home, &url, &[]).json()["matched"], 2);
}

#[test]
fn a_listing_with_a_page_missing_is_compared_with_nothing() {
    let home = Home::new();
    charges(&home);
    let (api, other) = (RoutedApi::start(), RoutedApi::start());
    let url = format!("{}/charges", api.url());
    let first = RouteReply::json(200, r#"{"data": [{"invoice": "INV-1"}], "next": "?page=2"}"#);
    for (next, second, why) in [
        (&["--next", "next"][..], RouteReply::json(503, "{}"), "page 2"),
        (&["--next", "next"], RouteReply::nothing(), "page 2"),
        (&["--next", "next"], RouteReply::json(200, "{\"data\": [{"), "page 2"),
        (&["--next", "next"], RouteReply::json(200, ""), "page 2"),
        (&["--next", "next"], RouteReply::json(200, "{\"error\": \"slow down\"}"), "page 2"),
        (&["--next", "next"], first.clone(), "page 3: its address was an earlier page's too"),
        (&[], first.clone(), "there are more pages (next)"),
    ] {
        api.tell("GET /charges", [first.clone(), second]);
        let ran = with_listing(&home, &url, next);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
        assert!(ran.stderr.contains(why) && ran.stderr.contains("nothing was compared"), "{ran:?}");
        assert!(!ran.stderr.contains("s3cret"), "{ran:?}");
    }
    let leads_away = format!(r#"{{"data": [], "next": "{}/charges"}}"#, other.url());
    api.tell("GET /charges", [RouteReply::json(200, &leads_away)]);
    let ran = with_listing(&home, &url, &["--next", "next"]);
    assert!(ran.stderr.contains("credentials stay where they are"), "{ran:?}");
    assert_eq!((ran.code, other.requests().len()), (Some(2), 0), "no credential leaves its origin");
}

/// Four charges through `/api/v1`: two that were reported as done, and two in doubt.
fn called(home: &Home, api: &RoutedApi) {
    let rule = format!(
        "[[rule]]\nmatch = \"fn:charge\"\nclass = \"consequential\"\n[rule.probe]\n\
         http = \"GET {}/charges?customer={{args.customer}}\"\nquiet = \"1h\"\n\
         found = \"resp.customers.exists(c, c == args.customer)\"\n",
        api.url()
    );
    let served = Served::start(home, &rule);
    let client = ApiClient::new(&served.address, TOKEN);
    for (customer, outcome) in
        [("cus_1", "applied"), ("cus_2", "applied"), ("cus_3", "in_doubt"), ("cus_4", "in_doubt")]
    {
        let wish = json!({"action": "fn:charge", "arguments": {"customer": customer}, "wait": "0s"});
        client.settle(&client.claim(wish), outcome, Value::Null);
    }
}

/// What the agent's log has of them. The third was tried twice.
fn transcript(home: &Home) {
    let line = |customer: &str, out: &str| {
        json!({"name": "charge", "in": {"customer": customer}, "out": out}).to_string() + "\n"
    };
    let lines = [
        line("cus_1", "charged"),
        line("cus_2", "charged"),
        line("cus_3", "Error: request timed out"),
        line("cus_3", "charged"),
        line("cus_4", "Error: request timed out"),
        line("cus_5", "Error: card declined"),
    ];
    home.file("calls.jsonl", &lines.concat());
}

const MAP: [&str; 4] = ["--transcript", "calls.jsonl", "--map", "tool=name,args=in,result=out"];

#[test]
fn the_probe_of_the_rule_is_the_outside() {
    let (home, api) = (Home::new(), RoutedApi::start());
    called(&home, &api);
    api.tell("GET /charges", [RouteReply::json(200, r#"{"customers": ["cus_1", "cus_3"]}"#)]);
    let bare = home.semel(["--json", "reconcile", "--probe"]);
    assert!(bare.stderr.contains("4 effects were not asked about: their probes need arguments"), "{bare:?}");
    assert!(api.requests().is_empty() && results(&bare).is_empty(), "{bare:?}");
    assert_eq!((bare.code, &bare.json()["not_compared"]), (Some(1), &json!(4)), "no all-clear: {bare:?}");

    transcript(&home);
    let probe = [&["--json", "reconcile", "--probe"][..], &MAP].concat();
    let ran = home.semel(&probe);
    assert_eq!((ran.code, &ran.json()["matched"]), (Some(1), &json!(1)), "{ran:?}");
    // The last one may yet appear: its quiet hour is not over.
    assert_eq!(results(&ran), ["absent_outside", "now_decidable", "undecided"]);

    api.tell("GET /charges", [RouteReply::json(500, "{}")]);
    let failing = home.semel(&probe);
    assert_eq!(results(&failing), ["undecided"; 4], "trouble is no answer: {failing:?}");
    let state = || home.json(["ledger", "list", "--state", "in_doubt"])["items"].as_array().map(Vec::len);
    assert_eq!(state(), Some(2));
    api.tell("GET /charges", [RouteReply::json(200, r#"{"customers": ["cus_3"]}"#)]);
    let apply = ["--apply", "--reason", "month's end"];
    let held = home.semel([&probe[..], &apply].concat());
    assert_eq!((held.code, state()), (Some(2), Some(2)), "without a person nothing is ruled: {held:?}");
    home.semel([&probe[..], &apply, &["--token", home.operator_token()]].concat());
    assert_eq!(state(), Some(1), "one is found, and the other may still come");
}

#[test]
fn an_absence_counts_once_nobody_can_send_any_more() {
    let home = Home::new();
    home.file(
        "semel.toml",
        "[[rule]]\nmatch = \"cli:sh *\"\nclass = \"consequential\"\n[rule.probe]\ncmd = [\"sh\", \"answer.sh\"]\nquiet = \"0s\"\n",
    );
    home.file("answer.sh", "exit 2\n");
    let id = home.doubt("k");
    home.file("answer.sh", "exit 1\n");
    let args =
        ["--json", "reconcile", "--probe", "--apply", "--reason", "looked", "--token", home.operator_token()];
    let ran = home.semel(args);
    assert_eq!(
        (&ran.json()["items"][0]["happened"], &ran.json()["items"][0]["id"]),
        (&json!(false), &json!(id))
    );
    let shown = home.json(["ledger", "show", &id]);
    assert_eq!(shown["state"], "not_applied", "{shown}");
    assert!(shown.to_string().contains("not found by the probe sh"), "{shown}");
}

#[test]
fn the_calls_of_a_transcript_are_compared_without_a_ledger() {
    let home = Home::new();
    transcript(&home);
    home.file("bank.csv", "customer\ncus_1\ncus_3\ncus_3\ncus_9\n");
    let on = ["--json", "reconcile", "--outside", "bank.csv", "--on", "args.customer=customer"];
    let ran = home.semel([&on[..], &MAP].concat());
    // The second was never there, the third happened twice, and of the fourth nothing is seen.
    assert_eq!(
        results(&ran),
        ["absent_outside", "twice_outside", "now_decidable", "unknown_to_ledger"],
        "{ran:?}"
    );
    assert_eq!((&ran.json()["matched"], &ran.json()["items"][0]["id"]), (&json!(1), &json!("calls.jsonl:2")));
    let apply = ["--apply", "--reason", "x", "--token", "t"];
    assert_eq!(home.semel([&on[..], &MAP, &apply].concat()).code, Some(2), "there is nothing to rule on");
    home.file("note.txt", "hello\n");
    let other = home.semel([&on[..], &["--transcript", "note.txt"]].concat());
    assert!(other.stderr.contains("no format that semel knows"), "{other:?}");
}

#[test]
fn a_postgresql_database_is_read_and_never_written() {
    let home = Home::new();
    charges(&home);
    // A server of its own, which only a password opens.
    let script = r#"
        psql -q -c 'CREATE TABLE c(invoice text, amount int)' -c "INSERT INTO c VALUES ('INV-1', 5), ('INV-2', 6)"
        export BANK="postgres://$PGUSER:$PGPASSWORD@$PGHOST:$PGPORT/$PGDATABASE"
        unset PGUSER PGPASSWORD PGHOST PGPORT PGDATABASE
        read_by() { "$SEMEL" --json reconcile --on 'argv[3]=invoice' --postgres "$1" --query "$2"; }
        read_by BANK 'SELECT * FROM c; ' > read.json
        read_by BANK 'DELETE FROM c RETURNING *' > deleted.json
        read_by BANK 'SELECT * FROM c; DELETE FROM c' > two.json
        read_by BANK "SELECT 1) TO STDOUT; COMMIT; BEGIN READ WRITE; DELETE FROM c; COMMIT; COPY (SELECT 2" > closed.json
        read_by BANK "SELECT 1) TO PROGRAM 'touch $PWD/ran'; COPY (SELECT 2" > program.json
        read_by BANK "SELECT 1; COPY (SELECT 1) TO PROGRAM 'touch $PWD/ran'" > second.json
        read_by BANK "SELECT 1 \\! touch $PWD/ran" > shell.json
        read_by "$BANK" 'SELECT * FROM c' > leaked.json
        psql -At "$BANK" -c 'SELECT count(*) FROM c' > left.txt
        "#;
    let semel = home.command(["--version"]);
    let mut server = Command::new("pg_virtualenv");
    server.args(["-t", "sh", "-c", script]).current_dir(home.work());
    server.env_clear().envs(semel.get_envs().filter_map(|(name, value)| Some((name, value?))));
    server.env("SEMEL", semel.get_program());
    let ran = Ran::of(server.output().expect("`cargo xtask test` installs PostgreSQL"));
    let file = |name: &str| std::fs::read_to_string(home.work().join(name)).expect("it was written");
    let read: Value =
        serde_json::from_str(&file("read.json")).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    assert_eq!(read["matched"], 2, "{ran:?}");
    let refused = [
        "deleted.json",
        "two.json",
        "closed.json",
        "program.json",
        "second.json",
        "shell.json",
        "leaked.json",
    ];
    for refused in refused {
        assert_eq!(file(refused), "", "{refused}: {ran:?}");
    }
    assert!(ran.stderr.contains("the password stands on the command line"), "{ran:?}");
    assert_eq!(file("left.txt"), "2\n", "{ran:?}");
    assert!(!home.work().join("ran").exists(), "{ran:?}");
}

#[test]
fn without_psql_it_is_said_what_to_do() {
    let home = Home::new();
    charges(&home);
    let args =
        ["reconcile", "--on", "argv[3]=invoice", "--postgres", "postgres://db/x", "--query", "SELECT 1"];
    let mut command = home.command(args);
    let ran = Ran::of(command.env("PATH", home.work()).output().expect("semel starts"));
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("psql was not found; nothing was compared"), "{ran:?}");
}

#[test]
fn the_policy_describes_a_comparison() {
    let home = Home::new();
    charges(&home);
    home.file("bank.csv", "invoice\nINV-1\nINV-2\n");
    home.file(
        "semel.toml",
        "[reconcile.bank]\noutside = \"bank.csv\"\non = \"argv[3]=invoice\"\n[reconcile.empty]\n",
    );
    assert_eq!(home.semel(["--json", "reconcile", "bank"]).json()["matched"], 2);
    for (name, why) in [("bnak", "the policy has no [reconcile.bnak]"), ("empty", "must have one of")] {
        let ran = home.semel(["reconcile", name]);
        assert!(ran.code == Some(2) && ran.stderr.contains(why), "{ran:?}");
    }
    let none = home.semel(["reconcile", "--on", "argv[3]=invoice"]);
    assert!(none.stderr.contains("nothing says what to compare with"), "{none:?}");
    home.file("semel.toml", "[reconcile.bank]\noutsied = \"bank.csv\"\n");
    assert_eq!(home.semel(["policy", "lint"]).code, Some(1));
}

#[test]
fn a_providers_usage_is_compared_with_the_ledgers() {
    let mut stage = Stage::new();
    for model in ["m", "m", "other"] {
        assert_eq!(stage.answer(FakeModelApi::Chat, &request(model)).status, 200);
    }
    assert!(stage.served.stop().success());
    let home = &stage.home;
    let opened = home.json(["ledger", "list"])["items"][0]["opened_at"].as_str().expect("a time").to_owned();
    let midnight = format!("{}T00:00:00Z", &opened[..10]);
    let day = semel_core::time::At::parse(&midnight).expect("a time").0 / 1_000_000;
    let tokens = home.json(["stats"])["total"]["tokens"].clone();
    let export = |requests: u64, output: u64| {
        let results = json!([
            {"model": "m-2026-01-31", "num_model_requests": requests, "input_tokens": tokens["input"], "output_tokens": 0},
            {"model": "other", "num_model_requests": 1, "input_tokens": 0, "output_tokens": output},
        ]);
        let bucket = json!({"start_time": day, "end_time": day + 86_400, "results": results});
        home.file("usage.json", &json!({"object": "page", "data": [bucket], "has_more": false}).to_string());
    };
    let output = tokens["output"].as_u64().expect("a number");
    export(2, output);
    let same = home.semel(["reconcile", "--usage", "usage.json"]);
    assert_eq!(same.code, Some(0), "{same:?}");
    assert!(same.stdout.starts_with("semel was asked 3 times and sent 3 requests, 0 of them"), "{same:?}");
    export(5, output + 7);
    let more = home.semel(["--json", "reconcile", "--usage", "usage.json"]);
    let layers: Vec<_> =
        more.json()["items"].as_array().expect("items").iter().map(|item| item["layer"].clone()).collect();
    assert_eq!(
        layers,
        [json!("outside_semel"), Value::Null, Value::Null, json!("outside_semel")],
        "{more:?}"
    );
    assert_eq!(more.code, Some(1));
    home.file("usage.json", "{\"data\": [{\"id\": 1}]}");
    let other = home.semel(["reconcile", "--usage", "usage.json"]);
    assert!(other.code == Some(2) && other.stderr.contains("no usage of OpenAI or Anthropic"), "{other:?}");
}
