use super::stage::{JSON, Stage, became};
use semel_testkit::http::ApiAct;
use serde_json::json;

#[test]
fn no_credential_of_a_request_or_an_answer_is_written() {
    let stage = Stage::with(
        "[[rule]]\nmatch = \"http:POST bank/charges\"\nclass = \"consequential\"\nsecret = [\"body.pin\", \"reply.card\"]\n",
    );
    let answer = r#"{ "id": "ch_1", "echo": "pin-secret-1 user-secret-2 key-secret-3", "access_token": "tok-secret-4", "card": "card-secret-5", "note": "harmless-6" }"#;
    stage.api.next(ApiAct::Answer(
        201,
        "Set-Cookie: cookie-secret-7\r\nLocation: /x?token=loc-secret-8\r\n",
        answer.into(),
    ));
    let headers = format!(
        "{JSON}Authorization: Bearer user-secret-2\r\nX-Api-Key: key-secret-3\r\nCookie: session=cook-secret-9\r\nIdempotency-Key: k\r\n"
    );
    let body = r#"{"pin":"pin-secret-1","password":"word-secret-10","to":"harmless-11"}"#;
    let first = stage.send("POST", "/charges", &headers, body);
    assert_eq!((first.status, first.body.as_str()), (201, answer), "whoever asked gets all of it");
    assert_eq!(stage.api.last().header("authorization"), Some("Bearer user-secret-2"));
    let again = stage.send("POST", "/charges", &headers, body);
    assert_eq!(became(&again).1, "replayed");
    assert!(again.body.contains("harmless-6") && again.body.contains("[redacted]"), "{again:?}");
    stage.api.next(ApiAct::Refuse(400, "", r#"{"error":{"message":"bad key user-secret-2"}}"#));
    stage.send("POST", "/charges", &headers.replace("Key: k", "Key: l"), body);
    for secret in [
        "pin-secret-1",
        "user-secret-2",
        "key-secret-3",
        "tok-secret-4",
        "card-secret-5",
        "cookie-secret-7",
        "loc-secret-8",
        "cook-secret-9",
        "word-secret-10",
    ] {
        assert!(!stage.home.holds(secret), "{secret}");
        assert!(!again.body.contains(secret) && !again.head.contains(secret), "{secret}");
    }
    assert!(stage.home.holds("harmless-6"), "what is no secret is kept");
}

#[test]
fn forms_texts_and_echoes_of_any_secret_header_are_not_written_either() {
    let stage = Stage::plain();
    let headers = format!(
        "{JSON}X-Auth-Token: auth-secret-1\r\nPrivate-Token: priv-secret-2\r\nIdempotency-Key: harmless-0\r\n"
    );
    let answers = [
        "access_token=form-secret-3&scope=harmless-4",
        "bad api_key=text-secret-5; you sent auth-secret-1 and priv-secret-2, harmless-4",
        r#"{"message":"api_key=json-secret-6 is wrong","n": 1.0,"id":"harmless-4"}"#,
    ];
    for (n, answer) in answers.into_iter().enumerate() {
        stage.api.next(ApiAct::Answer(201, "", answer.into()));
        let headers = headers.replace("harmless-0", &format!("harmless-0{n}"));
        let body = r#"{"note":"card 4242 4242 4242 4242","pan":4242424242424242}"#;
        assert_eq!(stage.send("POST", "/charges", &headers, body).body, answer, "who asked gets all of it");
        let again = stage.send("POST", "/charges", &headers, body);
        assert_eq!(became(&again).1, "replayed");
        assert!(again.body.contains("harmless-4") && !again.body.contains("-secret-"), "{again:?}");
    }
    for secret in ["auth-secret", "priv-secret", "form-secret", "text-secret", "json-secret", "4242"] {
        assert!(!stage.home.holds(secret), "{secret}");
    }
}

/// Other programs read it well, and find the secret in it.
#[test]
fn an_answer_that_cannot_be_read_for_what_a_rule_calls_secret_is_given_on_and_not_kept() {
    let stage = Stage::with(
        "[[rule]]\nmatch = \"http:POST bank/charges\"\nclass = \"consequential\"\nsecret = [\"reply.blurb\"]\n",
    );
    let deep = format!("{}{}", "[".repeat(150), "]".repeat(150));
    for (n, beside) in [r#""\ud83d""#, r#"{"a":1,"a":2}"#, &deep, "1e99999999", "NaN"].into_iter().enumerate()
    {
        let answer = format!(r#"{{"blurb":"blurb-secret-1","beside":{beside}}}"#);
        stage.api.next(ApiAct::Answer(201, "", answer.clone()));
        let body = format!(r#"{{"n":{n}}}"#);
        assert_eq!(stage.charge(&format!("k{n}"), &body).body, answer, "who asked gets all of it");
        let again = stage.charge(&format!("k{n}"), &body);
        assert_eq!(became(&again).1, "replayed", "{beside}");
        assert!(again.body.contains("was not kept") && !again.body.contains("blurb-secret"), "{again:?}");
        assert_eq!(stage.api.effects(), n + 1, "{beside}");
    }
    assert!(!stage.home.holds("blurb-secret-1"));
}

#[test]
fn thousands_of_secrets_in_a_request_cost_its_reply_and_not_the_time_of_others() {
    let stage = Stage::plain();
    let fields: Vec<String> =
        (0..50_000).map(|n| format!("\"token{n}_token\":\"aaaaaaaaaaaa{n}\"")).collect();
    let body = format!("{{{}}}", fields.join(","));
    let answer = "a".repeat(1_000_000);
    stage.api.next(ApiAct::Answer(201, "", answer.clone()));
    assert_eq!(stage.charge("k", &body).body, answer);
    let again = stage.charge("k", &body);
    assert_eq!(became(&again).1, "replayed");
    assert!(again.body.contains("was not kept") && !again.body.contains("aaaa"), "{again:?}");
    assert_eq!(stage.api.effects(), 1);
}

#[test]
fn a_reply_can_be_read_from_the_ledger_as_it_came() {
    let stage = Stage::plain();
    let first = stage.charge("k", "{}");
    let id = first.header("semel-effect-id").expect("an effect").to_owned();
    let told = stage.house.operate("GET", &format!("/effects/{id}/reply"), None).json();
    assert_eq!((&told["data"]["status"], &told["data"]["body"]["id"]), (&201.into(), &"ch_1".into()));
}

#[test]
fn a_compressed_answer_is_given_on_and_not_kept() {
    let stage = Stage::plain();
    stage.api.next(ApiAct::Answer(200, "Content-Encoding: gzip\r\n", "not really gzip".into()));
    let first = stage.charge("k", "{}");
    assert_eq!(first.body, "not really gzip");
    assert_eq!(stage.api.last().header("accept-encoding"), Some("identity"));
    let again = stage.charge("k", "{}");
    assert!(again.body.contains("its reply of 15 bytes was not kept"), "{again:?}");
    assert_eq!(stage.api.effects(), 1);
}

/// Some APIs take their credential in the path.
#[test]
fn a_token_in_the_path_is_not_written_and_tells_two_apart() {
    let stage = Stage::with(
        "[[rule]]\nmatch = \"http:POST bank/bot*\"\nclass = \"consequential\"\nagain = \"never\"\n",
    );
    let [one, other] = ["AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw", "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsbx"];
    let send = |token: &str| {
        became(&stage.send("POST", &format!("/bot1234567:{token}/sendMessage"), JSON, r#"{"to":"ann"}"#)).1
    };
    assert_eq!([send(one), send(one), send(other)], ["ran", "replayed", "ran"]);
    assert!(!stage.home.holds(one) && !stage.home.holds(other));
    let listed = stage.house.effects("").remove(0);
    assert_eq!(listed["action"], "http:POST bank/[redacted]/sendMessage");
    let id = listed["effect_id"].as_str().expect("an id");
    let again = stage.house.rule(&format!("/effects/{id}/again"), &json!({"reason": "once more"}));
    assert!(again.body.contains("never"), "its rule is known all the same: {again:?}");
}

/// A refusal and a doubt are told in words, to whoever reads the ledger and to whoever asks again.
#[test]
fn what_a_rule_calls_secret_of_an_answer_is_in_no_line_about_it() {
    const PIN: &str = "pin-secret-9";
    let stage = Stage::with(
        "[[rule]]\nmatch = \"http:POST bank/charges\"\nclass = \"consequential\"\n\
         secret = [\"reply.pin\", \"reply.message\", \"reply.errors\"]\n",
    );
    let two_types = "Content-Type: text/plain\r\nContent-Type: application/json\r\n";
    let odd_type = "Content-Type: application/json; x=\u{e9}\r\n";
    let forms = [
        ("", r#"{"pin":"PIN"}"#),
        ("", r#"{"message":"PIN"}"#),
        ("", r#"{"errors":[{"a":"PIN"}]}"#),
        ("", r#"{"pin":"PIN","b":NaN}"#),
        ("", r#"{"pin":"PIN","a":1,"a":2}"#),
        ("", r#"{"pin":"PIN","e":"\ud83d"}"#),
        ("", "{\"pin\":\"PIN\"}\n{\"pin\":\"PIN\"}"),
        ("", r#"{"pin":"PIN""#),
        ("", r#""{\"pin\":\"PIN\"}""#),
        ("", r#"[1] {"pin":"PIN"}"#),
        ("", "the pin PIN is taken"),
        (two_types, ")]}'\n{\"pin\":\"PIN\"}"),
        (odd_type, ")]}'\n{\"pin\":\"PIN\"}"),
    ];
    let mut effects = 0;
    for (n, status) in [200, 301, 400, 401, 409, 500].into_iter().enumerate() {
        for (m, (headers, body)) in forms.into_iter().enumerate() {
            let (key, said) = (format!("k{n}-{m}"), body.replace("PIN", PIN));
            stage.api.next(ApiAct::Answer(status, headers, said.clone()));
            let asked = format!(r#"{{"n":{n},"m":{m}}}"#);
            let first = stage.charge(&key, &asked);
            assert!(first.body.contains(PIN), "{status} {body}: who asked is given it: {first:?}");
            let id = first.header("semel-effect-id").expect("an effect").to_owned();
            let shown = stage.house.effect(&id).to_string();
            assert!(!shown.contains(PIN), "{status} {body}: {shown}");
            effects += 1;
            // A 401 speaks of the moment, so its repeat is sent.
            if status != 401 {
                let again = stage.charge(&key, &asked);
                assert!(!again.body.contains(PIN) && !again.head.contains(PIN), "{status} {body}: {again:?}");
            }
            assert_eq!(stage.api.effects(), effects, "{status} {body}");
        }
    }
    assert!(!stage.home.holds(PIN));
    stage.api.next(ApiAct::Answer(400, "", r#"{"detail":"no such account"}"#.into()));
    stage.charge("told", "{}");
    assert!(stage.home.holds("no such account"), "what is no secret is told");
}
