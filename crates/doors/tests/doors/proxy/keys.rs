use super::stage::{FORM, JSON, Stage, became};
use crate::house::{Home, House};
use semel_testkit::http::{ApiAct, ScriptedApi};
use serde_json::json;
use std::time::Duration;

#[test]
fn one_key_is_one_effect_and_its_answer_is_repeated_byte_for_byte() {
    let stage = Stage::plain();
    let body = r#"{"amount": 1000, "customer": "c"}"#;
    let first = stage.charge("order-1", body);
    assert_eq!(became(&first), (201, "ran".into(), String::new()));
    assert_eq!(first.header("set-cookie"), Some("session=s3cr3t"));
    assert_eq!(first.header("idempotent-replayed"), None);
    // Written in another way, and quoted as the standard's draft has it.
    let again = stage.charge("\"order-1\"", r#"{"customer":"c","amount":1.0e3}"#);
    assert_eq!(became(&again), (201, "replayed".into(), String::new()));
    assert_eq!(again.body, first.body);
    assert_eq!(again.header("semel-effect-id"), first.header("semel-effect-id"));
    for (name, value) in [
        ("idempotent-replayed", Some("true")),
        ("content-type", Some("application/json")),
        ("location", Some("/charges/1")),
        ("request-id", Some("req_1")),
        ("semel-effect", Some("noop")),
        ("set-cookie", None),
        ("x-own", None),
    ] {
        assert_eq!(again.header(name), value, "{name}");
    }
    assert_eq!(stage.api.effects(), 1);
    assert_eq!(stage.api.last().header("idempotency-key"), Some("order-1"));
    assert_eq!(stage.api.last().text(), body);
    assert_eq!(stage.charge("order-2", body).status, 201);
    assert_eq!(stage.api.effects(), 2);
}

#[test]
fn repeats_that_no_library_claims_are_counted_as_an_agents() {
    let mut stage = Stage::plain();
    for _ in 0..3 {
        assert_eq!(stage.charge("k", r#"{"amount":1}"#).status, 201);
    }
    for _ in 0..3 {
        assert_eq!(stage.ask("POST", "/charges", JSON, r#"{"amount":2}"#).answer().status, 201);
    }
    let effects = stage.api.effects();
    stage.restart();
    let stats = stage.house.operate("GET", "/stats", None).json();
    let http = &stats["doors"]["http"];
    assert_eq!((http["asked"].as_u64(), http["sent"].as_u64()), (Some(6), Some(effects as u64)), "{stats}");
    let by_layer = serde_json::json!({"transport": 0, "sdk": 0, "agent": 4, "process": 0});
    assert_eq!(http["repeated"], by_layer, "{stats}");
}

#[test]
fn the_same_key_for_something_else_is_refused() {
    let stage = Stage::plain();
    assert_eq!(stage.charge("k", r#"{"amount":1}"#).status, 201);
    let other = stage.charge("k", r#"{"amount":2}"#);
    assert_eq!(became(&other), (422, "refused".into(), "drift".into()));
    assert_eq!(other.header("content-type"), Some("application/problem+json"));
    assert_eq!(other.header("x-should-retry"), Some("false"));
    let document = other.json();
    assert_eq!(document["title"], "drift");
    assert_eq!(document["differing"], serde_json::json!(["body.amount"]));
    let elsewhere =
        stage.send("POST", "/refunds", &format!("{JSON}Idempotency-Key: k\r\n"), r#"{"amount":1}"#);
    assert_eq!(elsewhere.status, 422);
    assert_eq!(stage.api.effects(), 1);
}

#[test]
fn a_twin_waits_for_the_answer_and_whoever_waits_too_long_is_told_to_wait() {
    let stage = Stage::with(
        "[[rule]]\nmatch = \"http:POST bank/patient\"\n[[rule]]\nmatch = \"http:POST bank/*\"\nwait = \"100ms\"\n",
    );
    stage.api.next(ApiAct::Hold);
    let headers = format!("{JSON}Idempotency-Key: k\r\n");
    let first = stage.ask("POST", "/charges", &headers, "{}");
    stage.api.wait_for_requests(1);
    let impatient = stage.charge("k", "{}");
    assert_eq!(became(&impatient), (409, "held".into(), "in_flight".into()));
    assert_eq!(impatient.header("retry-after-ms"), Some("1000"));
    let drifted = stage.charge("k", r#"{"other":1}"#);
    assert_eq!(became(&drifted).2, "drift");
    stage.api.release();
    assert_eq!(first.answer().status, 201);
    assert_eq!(became(&stage.charge("k", "{}")).1, "replayed");
    assert_eq!(stage.api.effects(), 1);
    let patient = Stage::plain();
    patient.api.next(ApiAct::Hold);
    let asked: Vec<_> = (0..5).map(|_| patient.ask("POST", "/charges", &headers, "{}")).collect();
    patient.api.wait_for_requests(1);
    patient.api.release();
    let became: Vec<_> = asked.into_iter().map(|asked| became(&asked.answer()).1).collect();
    assert_eq!(became.iter().filter(|outcome| *outcome == "ran").count(), 1, "{became:?}");
    assert!(
        became.iter().all(|outcome| ["ran", "joined", "replayed"].contains(&outcome.as_str())),
        "{became:?}"
    );
    assert_eq!(patient.api.effects(), 1);
}

#[test]
fn a_key_that_is_none_is_refused_before_anything_is_sent() {
    let stage = Stage::with("[upstream.api.keys]\nrequired = true\npattern = \"[a-z]+-[0-9]+\"\n");
    let with = |headers: &str| stage.send("POST", "/charges", &format!("{JSON}{headers}"), "{}");
    assert_eq!(became(&with("")), (400, "refused".into(), "key_required".into()));
    for bad in ["x", "order-1 ", "ORDER-1", "order-1x"] {
        let answer = with(&format!("Idempotency-Key: {bad}\r\n"));
        assert_eq!(answer.status, if bad.trim() == "order-1" { 201 } else { 400 }, "{bad}");
    }
    assert_eq!(with("Idempotency-Key: a-1\r\nIdempotency-Key: a-2\r\n").status, 400);
    assert_eq!(with("Idempotency-Key: \r\n").status, 400);
    assert_eq!(with(&format!("Idempotency-Key: a-{}\r\n", "1".repeat(300))).status, 400);
    assert_eq!(stage.get("/charges").status, 200);
    assert_eq!(stage.api.effects(), 1);
}

#[test]
fn a_refusal_answers_its_key_unless_it_speaks_of_the_moment() {
    let stage = Stage::plain();
    stage.api.next(ApiAct::Refuse(402, "X-Own: 2\r\n", "{\"error\":{\"message\":\"declined\"}}"));
    let refused = stage.charge("k", "{}");
    assert_eq!(became(&refused), (402, "ran".into(), String::new()));
    assert_eq!((refused.header("x-own"), refused.header("semel-effect")), (Some("2"), Some("none")));
    let again = stage.charge("k", "{}");
    assert_eq!(became(&again), (402, "replayed".into(), String::new()));
    assert_eq!(again.body, refused.body);
    assert_eq!(stage.charge("k", r#"{"other":1}"#).status, 422);
    assert_eq!(stage.api.requests().len(), 1);
    for moment in [401, 403, 429] {
        let key = format!("m-{moment}");
        stage.api.next(ApiAct::Refuse(moment, "", "no"));
        assert_eq!(stage.charge(&key, "{}").status, moment);
        assert_eq!(stage.charge(&key, "{}").status, 201, "{moment}");
    }
    assert_eq!(stage.api.effects(), 3);
}

#[test]
fn where_only_successes_are_stored_a_refused_key_may_be_tried_again() {
    let stage = Stage::with("[upstream.api.keys]\nstores = \"2xx\"\ndrift_status = 400\n");
    stage.api.next(ApiAct::Refuse(402, "", "{}"));
    assert_eq!(stage.charge("k", "{}").status, 402);
    assert_eq!(stage.charge("k", r#"{"corrected":1}"#).status, 201);
    assert_eq!(stage.charge("k", "{}").status, 400);
    assert_eq!(stage.api.effects(), 1);
}

#[test]
fn a_key_whose_request_is_under_way_gets_the_status_that_the_api_would_give() {
    for (settings, status) in [("", 409), ("[upstream.api.keys]\nin_flight_status = 425\n", 425)] {
        let rule = "[[rule]]\nmatch = \"http:POST bank/*\"\nwait = \"0s\"\n";
        let stage = Stage::with(&format!("{settings}{rule}"));
        stage.api.next(ApiAct::Hold);
        let first = stage.ask("POST", "/charges", &format!("{JSON}Idempotency-Key: k\r\n"), "{}");
        stage.api.wait_for_requests(1);
        let twin = stage.charge("k", "{}");
        assert_eq!(became(&twin), (status, "held".into(), "in_flight".into()));
        assert_eq!(twin.json()["status"], status);
        assert!(twin.header("retry-after").is_some() && twin.header("retry-after-ms").is_some());
        stage.api.release();
        assert_eq!(first.answer().status, 201);
        assert_eq!(stage.api.effects(), 1);
    }
}

#[test]
fn keys_outlive_semel_and_hold_for_every_process() {
    let mut stage = Stage::plain();
    let first = stage.charge("k", "{}");
    stage.restart();
    let after = stage.charge("k", "{}");
    assert_eq!((became(&after).1.as_str(), &after.body), ("replayed", &first.body));
    let second = stage.second();
    let headers = format!("{JSON}Idempotency-Key: k\r\n");
    let elsewhere = super::stage::ask(&second, "POST", "/charges", &headers, "{}").answer();
    assert_eq!((became(&elsewhere).1.as_str(), &elsewhere.body), ("replayed", &first.body));
    assert_eq!(stage.api.effects(), 1);
}

#[test]
fn two_processes_make_one_effect_of_one_key() {
    let stage = Stage::plain();
    let second = stage.second();
    stage.api.next(ApiAct::Hold);
    let headers = format!("{JSON}Idempotency-Key: k\r\n");
    let asked: Vec<_> = (0..6)
        .map(|i| {
            super::stage::ask(if i % 2 == 0 { &stage.house } else { &second }, "POST", "/c", &headers, "{}")
        })
        .collect();
    stage.api.wait_for_requests(1);
    stage.api.release();
    for asked in asked {
        assert_eq!(asked.answer().status, 201);
    }
    assert_eq!((stage.api.effects(), stage.api.requests().len()), (1, 1));
}

#[test]
fn keys_of_two_principals_are_two_keys() {
    let (home, api) = (Home::new(), ScriptedApi::start());
    let policy = format!("[serve]\nrequire_token = false\n[upstream.api]\nurl = \"{}\"\n", api.url());
    let house = House::start(&home, &policy);
    let charge = |credential: &str| {
        let headers = format!("{JSON}Idempotency-Key: k\r\n{credential}\r\n");
        let answer = house.ask("POST /p/api/charges HTTP/1.1", &headers, "{}").answer();
        (became(&answer).1, answer.body)
    };
    let bodies: Vec<String> =
        ["Authorization: Bearer a", "Authorization: Bearer b", "X-Api-Key: c", "X-Api-Key: d"]
            .into_iter()
            .map(|credential| {
                let (outcome, body) = charge(credential);
                assert_eq!(outcome, "ran", "{credential}");
                assert_eq!(charge(credential), ("replayed".to_owned(), body.clone()));
                body
            })
            .collect();
    assert_eq!(bodies.len(), api.effects());
    assert!(
        bodies.iter().all(|body| bodies.iter().filter(|other| *other == body).count() == 1),
        "{bodies:?}"
    );
}

#[test]
fn without_a_key_equal_requests_are_one_where_the_rule_says_so() {
    let rule =
        "[[rule]]\nmatch = \"http:POST bank/charges\"\nclass = \"consequential\"\nkey = [\"body.invoice\"]\n";
    let stage = Stage::with(rule);
    let charge = |body: &str| became(&stage.send("POST", "/charges", FORM, body));
    assert_eq!(charge("invoice=1&metadata[a]=b").1, "ran");
    assert_eq!(charge("metadata[a]=b&invoice=1").1, "replayed");
    assert_eq!(charge("invoice=1&metadata[a]=c").2, "drift");
    assert_eq!(charge("invoice=2").1, "ran");
    let wanted = stage.send("POST", "/charges", &format!("{FORM}Semel-Again: a second box\r\n"), "invoice=2");
    assert_eq!(became(&wanted).1, "ran");
    assert_eq!(stage.api.effects(), 3);
}

#[test]
fn keys_that_an_sdk_makes_up_join_where_the_rule_names_what_counts() {
    let rule = "[[rule]]\nmatch = \"http:POST bank/charges\"\nclass = \"consequential\"\nkey = [\"body.invoice\"]\n\
                caller_key = \"joins\"\ninject = { header = \"Idempotency-Key\", valid_for = \"24h\" }\n";
    let stage = Stage::with(rule);
    let outcomes: Vec<String> = ["made-up-1", "made-up-2", "made-up-3"]
        .map(|key| became(&stage.charge(key, r#"{"invoice":7}"#)).1)
        .into();
    assert_eq!(outcomes, ["ran", "replayed", "replayed"]);
    let sent = stage.api.last().header("idempotency-key").expect("a key").to_owned();
    assert!(sent.starts_with("semel_"), "{sent}");
    assert_eq!(stage.api.effects(), 1);
}

/// Orders are one by their number, whatever key they come with.
fn joining(setting: &str) -> Stage {
    Stage::with(&format!(
        "[[rule]]\nmatch = \"http:POST bank/*\"\nclass = \"consequential\"\nkey = [\"body.order\"]\n\
         caller_key = \"joins\"\n{setting}\n"
    ))
}

/// A window says how long equal requests are one; the same key is the same request for ever.
#[test]
fn a_key_that_joins_is_the_same_request_after_the_window_too() {
    let stage = joining("window = \"1s\"");
    let first = stage.charge("k-1", r#"{"order":1}"#);
    assert_eq!(became(&first).1, "ran");
    let answered = stage.charge("answered", r#"{"order":1}"#);
    assert_eq!((became(&answered).1.as_str(), &answered.body), ("replayed", &first.body));
    stage.house.pass(Duration::from_secs(2));
    assert_eq!(became(&stage.charge("other", r#"{"order":1}"#)).1, "ran", "its window is over");
    assert_eq!(stage.api.effects(), 2, "another key after the window is another order");
    // The key that it was made for, and the one that it answered.
    for key in ["k-1", "answered", "k-1", "answered"] {
        let again = stage.charge(key, r#"{"order":1}"#);
        assert_eq!((became(&again).1.as_str(), &again.body), ("replayed", &first.body), "{key}");
        assert_eq!(stage.charge(key, r#"{"order":9}"#).status, 422, "{key} stands for that order");
    }
    assert_eq!(stage.api.effects(), 2);
}

/// Before the record has gone on: nothing but its own key tells that this one was answered.
#[test]
fn a_key_that_was_answered_by_the_newest_effect_does_not_make_another_after_the_window() {
    let stage = joining("window = \"1s\"");
    stage.api.next(ApiAct::Hold);
    let first = stage.ask("POST", "/charges", &format!("{JSON}Idempotency-Key: k-1\r\n"), r#"{"order":1}"#);
    stage.api.wait_for_requests(1);
    let joins = stage.ask("POST", "/charges", &format!("{JSON}Idempotency-Key: k-2\r\n"), r#"{"order":1}"#);
    stage.api.release();
    let (first, joined) = (first.answer(), joins.answer());
    assert!(["joined", "replayed"].contains(&became(&joined).1.as_str()), "{joined:?}");
    assert_eq!(joined.body, first.body);
    assert_eq!(stage.charge("k-2", r#"{"order":2}"#).status, 422, "it stands for what it joined");
    stage.house.pass(Duration::from_secs(2));
    let effects = stage.api.effects();
    let again = stage.charge("k-2", r#"{"order":1}"#);
    assert_eq!((became(&again).1.as_str(), &again.body), ("replayed", &first.body));
    assert_eq!(stage.api.effects(), effects);
}

#[test]
fn a_key_that_joins_stands_for_one_effect_whatever_came_after_it() {
    let stage = joining("again = \"agent\"");
    let send = |key: &str, again: &str, body: &str| {
        let again = if again.is_empty() { String::new() } else { format!("Semel-Again: {again}\r\n") };
        stage.send("POST", "/charges", &format!("{JSON}Idempotency-Key: {key}\r\n{again}"), body)
    };
    let order = r#"{"order":1}"#;
    let first = send("k-1", "", order);
    let second = send("k-9", "one more", order);
    assert_eq!((became(&first).1.as_str(), became(&second).1.as_str()), ("ran", "ran"));
    assert_eq!(send("k-1", "one more", order).body, second.body, "the same reason is the same repetition");
    assert_eq!(send("k-1", "", order).body, first.body, "and the key stays with what it was made for");
    // A third was refused meanwhile: who does not ask for it is answered by the one before.
    stage.api.next(ApiAct::Refuse(402, "", r#"{"error":{"message":"declined"}}"#));
    assert_eq!(send("k-5", "and another", order).status, 402);
    let answered = send("k-2", "", order);
    assert_eq!(became(&answered).1, "replayed", "{answered:?}");
    assert_eq!(send("k-2", "", r#"{"order":2}"#).status, 422, "it stands for what answered it");
    assert_eq!(stage.api.effects(), 2);
}

#[test]
fn a_leave_lets_a_key_that_was_answered_make_another_and_stand_for_that() {
    let stage = joining("again = \"person\"");
    let first = stage.charge("k-1", r#"{"order":1}"#);
    assert_eq!(stage.charge("k-2", r#"{"order":1}"#).body, first.body);
    let id = first.header("semel-effect-id").expect("an effect").to_owned();
    let leave = stage.house.rule(&format!("/effects/{id}/again"), &json!({"reason": "a second parcel"}));
    assert_eq!(leave.status, 200, "{leave:?}");
    let second = stage.charge("k-2", r#"{"order":1}"#);
    assert_eq!((became(&second).1.as_str(), stage.api.effects()), ("ran", 2), "{second:?}");
    assert_eq!(stage.charge("k-2", r#"{"order":1}"#).body, second.body);
    assert_eq!(stage.charge("k-1", r#"{"order":1}"#).body, first.body);
    assert_eq!(stage.api.effects(), 2);
}

/// Its rule puts the key into the body, and this body takes none.
#[test]
fn where_a_key_does_not_fit_into_its_place_nothing_is_sent_again() {
    let stage = Stage::with(
        "keys = { server_error = \"resend\" }\n[[rule]]\nmatch = \"http:POST bank/*\"\nclass = \"consequential\"\n\
         inject = { body = \"idempotency_key\" }\n",
    );
    stage.api.next(ApiAct::Vanish);
    let headers = "Content-Type: text/plain\r\nIdempotency-Key: k-1\r\n";
    assert_eq!(stage.send("POST", "/charges", headers, "pay").status, 423);
    assert_eq!(stage.api.effects(), 1);
}

/// The API runs a repeat of the key to its end, as its settings say.
#[test]
fn a_server_error_is_sent_again_under_the_clients_own_key_where_that_is_what_the_api_wants() {
    for (server_error, sent) in [("resend", 2), ("in_doubt", 1)] {
        let stage = Stage::with(&format!("keys = {{ server_error = \"{server_error}\" }}\n"));
        stage.api.next(ApiAct::Refuse(503, "", "{}"));
        let answer = stage.charge("k-1", r#"{"order":1}"#);
        assert_eq!(stage.api.requests().len(), sent, "{server_error}: {answer:?}");
        assert_eq!(answer.status, if sent == 2 { 201 } else { 423 }, "{answer:?}");
        for heard in stage.api.requests() {
            assert_eq!(heard.header("idempotency-key"), Some("k-1"), "byte for byte");
        }
        // Without a key nothing can be sent again.
        stage.api.next(ApiAct::Refuse(503, "", "{}"));
        assert_eq!(stage.send("POST", "/charges", JSON, r#"{"order":2}"#).status, 423);
        assert_eq!(stage.api.requests().len(), sent + 1, "{server_error}");
    }
}

#[test]
fn what_a_connection_keeps_for_itself_is_no_key() {
    let stage = Stage::with(
        "[[rule]]\nmatch = \"http:POST bank/*\"\nclass = \"consequential\"\n\
         inject = { header = \"Idempotency-Key\", valid_for = \"24h\" }\n",
    );
    let headers = format!("{JSON}Idempotency-Key: k\r\nConnection: Idempotency-Key, X-Other\r\n");
    assert_eq!(stage.send("POST", "/charges", &headers, "{}").status, 201);
    let key = stage.api.last().header("idempotency-key").map(str::to_owned);
    assert!(key.is_some_and(|key| key.starts_with("semel_")), "it got one of semel's own");
}
