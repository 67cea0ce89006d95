use super::client::{ApiClient, token};
use crate::home::Home;
use crate::serve::served::{Served, TOKEN};
use serde_json::{Value, json};

fn ids(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().expect("a list");
    items.iter().map(|effect| effect["effect_id"].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn effects_are_listed_newest_first_in_pages_and_filtered() {
    let home = Home::new();
    let served = Served::start(&home, "");
    let admin = ApiClient::new(&served.address, TOKEN);
    let mut made = Vec::new();
    for n in 0..7 {
        let ran = home.json([
            "run",
            "--run",
            if n % 2 == 0 { "even" } else { "odd" },
            "--",
            "echo",
            &n.to_string(),
        ]);
        made.insert(0, ran["effect_id"].as_str().expect("an id").to_owned());
    }
    let doubt = home.doubt("k");
    made.insert(0, doubt.clone());
    assert_eq!(ids(&admin.get("/effects").json()), made);
    let (mut paged, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = admin.get(&format!("/effects?limit=3{cursor}")).json();
        assert!(ids(&page).len() <= 3);
        paged.extend(ids(&page));
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(paged, made);
    let only = std::slice::from_ref(&doubt);
    assert_eq!(ids(&admin.get("/effects?state=in_doubt").json()), only);
    assert_eq!(
        ids(&admin.get("/effects?run=odd").json()),
        [made[2].clone(), made[4].clone(), made[6].clone()]
    );
    assert_eq!(ids(&admin.get("/effects?action=sh").json()), only);
    assert_eq!(ids(&admin.get("/effects?since=1h").json()).len(), 8);
    assert_eq!(ids(&admin.get("/effects?since=2100-01-01T00:00:00Z").json()).len(), 0);
    for bad in [
        "limit=0",
        "limit=201",
        "limit=x",
        "state=fine",
        "since=soon",
        "cursor=zz",
        "other=1",
        "limit=1&limit=2",
    ] {
        assert_eq!(admin.get(&format!("/effects?{bad}")).status, 400, "{bad}");
    }
    let one = admin.get(&format!("/effects/{}", &doubt[doubt.len() - 8..])).json();
    assert_eq!(
        one,
        home.json(["ledger", "list", "--state", "in_doubt"])["items"][0],
        "the command line says the same"
    );
    for absent in ["zz", "ef_", "..", "%00", "ef_01ARZ3NDEKTSV4RRFFQ69G5FAV"] {
        assert_eq!(admin.get(&format!("/effects/{absent}")).status, 404, "{absent}");
    }
}

#[test]
fn replies_are_given_as_they_were_recorded() {
    let home = Home::new();
    let served = Served::start(&home, "");
    let admin = ApiClient::new(&served.address, TOKEN);
    let ran = home.json(["run", "--", "echo", "hello"]);
    let path = format!("/effects/{}/reply", ran["effect_id"].as_str().expect("an id"));
    let reply = admin.get(&path).json();
    assert_eq!((&reply["reply"], &reply["data"]["stdout"]), (&json!("kept"), &json!("hello\n")));
    let doubt = admin.get(&format!("/effects/{}/reply", home.doubt("k")));
    assert_eq!((doubt.status, &doubt.json()["state"]), (404, &json!("in_doubt")));
}

#[test]
fn runs_are_listed_by_their_newest_effect_and_told_to_models_in_markdown() {
    let home = Home::new();
    let served = Served::start(&home, "");
    let operator = ApiClient::new(&served.address, &token(&home, "operator", "local", "op"));
    for (run, word) in [("a", "1"), ("b", "2"), ("a", "3"), ("c", "4"), ("b", "5")] {
        home.json(["run", "--run", run, "--", "echo", word]);
    }
    home.json(["run", "--", "echo", "of no run"]);
    let runs = operator.get("/runs").json();
    let names: Vec<&Value> =
        runs["items"].as_array().expect("a list").iter().map(|run| &run["run"]).collect();
    assert_eq!(names, ["b", "c", "a"]);
    assert_eq!(runs["items"][0]["effects"]["applied"], json!(2));
    assert_eq!(runs["next"], Value::Null);
    let run = operator.get("/runs/b").json();
    assert_eq!((ids(&run).len(), &run["cancelled"]), (2, &json!(false)));
    let markdown = operator.ask("GET", "/runs/b", "Accept: text/markdown\r\n", "");
    assert!(markdown.head.contains("content-type: text/markdown"), "{markdown:?}");
    assert_eq!(markdown.body, home.semel(["ledger", "--run", "b", "--markdown"]).stdout);
    assert_eq!(operator.get("/runs/none").status, 404);
    assert_eq!(operator.ask("GET", "/runs/none", "Accept: text/markdown\r\n", "").status, 404);
}

#[test]
fn without_a_ledger_the_api_says_so_and_nothing_is_claimed() {
    let home = Home::new();
    std::fs::create_dir(home.state()).expect("a directory");
    std::fs::write(home.state().join("ledger.db"), "this is no database, and never was one").expect("a file");
    let served = Served::start(&home, "");
    let admin = ApiClient::new(&served.address, TOKEN);
    for (method, path, body) in [
        ("GET", "/effects", ""),
        ("GET", "/runs", ""),
        ("GET", "/tokens", ""),
        ("POST", "/begin", r#"{"action":"fn:charge"}"#),
    ] {
        let answer = admin.ask(method, path, "Content-Type: application/json\r\n", body);
        assert_eq!(
            (answer.status, &answer.json()["code"]),
            (503, &json!("ledger_unavailable")),
            "{path}: {answer:?}"
        );
        assert!(answer.head.contains("retry-after: 1"), "{answer:?}");
        // It is opened at the start alone.
        assert!(answer.body.contains("start semel again"), "{answer:?}");
    }
}
