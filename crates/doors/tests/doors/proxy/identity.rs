//! What makes two requests the same, whatever form they come in; and where a key goes.

use super::stage::{FORM, JSON, Stage, became};
use crate::house::Home;
use crate::house::{House, TOKEN};
use semel_testkit::http::{ApiAct, ScriptedApi};

const ALL: &str = "[[rule]]\nmatch = \"http:{POST,PATCH} bank/*\"\nclass = \"consequential\"\n";

fn multipart(boundary: &str, file: &str) -> (String, String) {
    let body = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"to\"\r\n\r\nann\r\n--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\n{file}\r\n--{boundary}--\r\n"
    );
    (format!("Content-Type: multipart/form-data; boundary={boundary}\r\n"), body)
}

#[test]
fn a_form_in_parts_is_the_same_under_another_boundary() {
    let stage = Stage::with(ALL);
    let send = |boundary: &str, file: &str| {
        let (headers, body) = multipart(boundary, file);
        became(&stage.send("POST", "/files", &headers, &body)).1
    };
    assert_eq!(send("x1", "hello"), "ran");
    assert_eq!(send("another-boundary", "hello"), "replayed");
    assert_eq!(send("x1", "other"), "ran");
    assert_eq!(stage.api.effects(), 2);
    let (headers, body) = multipart("x1", "hello");
    let broken = stage.send("POST", "/files", &headers, &body[..body.len() - 10]);
    assert_eq!(broken.status, 400, "{broken:?}");
    assert_eq!(stage.api.requests().len(), 2);
}

#[test]
fn spelling_does_not_make_another_request() {
    let stage = Stage::with(ALL);
    let send = |path: &str, headers: &str, body: &str| became(&stage.send("POST", path, headers, body)).1;
    assert_eq!(send("/a?x=1&y=2", JSON, r#"{"n":1.0,"m":[]}"#), "ran");
    assert_eq!(send("/a?y=2&x=1", JSON, "{\n \"m\": [], \"n\": 1 }"), "replayed");
    assert_eq!(send("/%61?x=%31&y=2", JSON, r#"{"n":1,"m":[]}"#), "replayed");
    assert_eq!(send("/a?x=1&y=3", JSON, r#"{"n":1,"m":[]}"#), "ran");
    assert_eq!(send("/a?x=1&y=2", JSON, r#"{"n":9007199254740993,"m":[]}"#), "ran");
    assert_eq!(send("/a?x=1&y=2", JSON, r#"{"n":9007199254740992,"m":[]}"#), "ran");
    assert_eq!(send("/a", FORM, "a=1&b=%20"), "ran");
    assert_eq!(send("/a", FORM, "b=+&a=1"), "replayed");
    assert_eq!(send("/a", "Content-Type: text/csv\r\n", "a,b"), "ran");
    assert_eq!(send("/a", "Content-Type: text/csv\r\n", "a,b"), "replayed");
    assert_eq!(send("/a", "Content-Type: text/csv\r\n", "a,c"), "ran");
    assert_eq!(stage.api.effects(), 7);
}

#[test]
fn what_cannot_be_read_in_one_way_reaches_no_upstream() {
    let stage = Stage::with(ALL);
    for (headers, body) in [
        (JSON, r#"{"amount":1,"amount":1000}"#),
        (JSON, r#"{"amount":1,"\u0061mount":1000}"#),
        (JSON, "{"),
        (JSON, &"[".repeat(500)),
        ("Content-Type: application/json; charset=utf-16\r\n", "{}"),
        ("Content-Type: application/json\r\nContent-Type: text/plain\r\n", "{}"),
        // For semel, or for nobody?
        ("Connection: Semel-Dry-Run\r\nSemel-Dry-Run: true\r\n", "{}"),
    ] {
        let answer = stage.send("POST", "/a", headers, body);
        assert_eq!(answer.status, 400, "{headers} {body}: {answer:?}");
    }
    assert_eq!(stage.api.requests().len(), 0);
}

#[test]
fn an_account_that_a_header_names_is_another_account() {
    let stage = Stage::with(ALL);
    let send = |account: &str| {
        let headers = format!("{JSON}Stripe-Account: {account}\r\nIdempotency-Key: k\r\n");
        became(&stage.send("POST", "/a", &headers, "{}")).1
    };
    assert_eq!(
        (send("acct_1").as_str(), send("acct_2").as_str(), send("acct_1").as_str()),
        ("ran", "ran", "replayed")
    );
    let precondition = |tag: &str| {
        let headers = format!("{JSON}If-Match: {tag}\r\n");
        became(&stage.send("PATCH", "/b", &headers, r#"{"a":1}"#)).1
    };
    assert_eq!((precondition("1").as_str(), precondition("2").as_str()), ("ran", "ran"));
    assert_eq!(stage.api.effects(), 4);
}

#[test]
fn one_token_with_two_credentials_for_the_upstream_is_two_callers_there() {
    let stage = Stage::with(ALL);
    for name in ["Authorization", "X-Api-Key", "Private-Token"] {
        let send = |credential: &str, key: &str| {
            let headers = format!("{JSON}{name}: {credential}\r\n{key}");
            became(&stage.send("POST", &format!("/{name}"), &headers, "{}")).1
        };
        for key in ["", "Idempotency-Key: k\r\n"] {
            assert_eq!((send("Bearer ann", key).as_str(), send("Bearer bob", key).as_str()), ("ran", "ran"));
            assert_eq!(
                (send("Bearer ann", key), send("Bearer bob", key)),
                ("replayed".into(), "replayed".into())
            );
        }
    }
    assert_eq!(stage.api.effects(), 12);
    let injected = Stage::with(&format!("headers = {{ Authorization = \"Bearer own\" }}\n{ALL}"));
    for (credential, outcome) in [("Bearer ann", "ran"), ("Bearer bob", "replayed")] {
        let headers = format!("{JSON}Authorization: {credential}\r\n");
        assert_eq!(became(&injected.send("POST", "/a", &headers, "{}")).1, outcome, "it is not sent on");
    }
    assert_eq!(injected.api.effects(), 1);
}

#[test]
fn without_its_key_fields_a_request_is_all_that_it_says() {
    let rule = "[[rule]]\nmatch = \"http:POST bank/*\"\nclass = \"consequential\"\nkey = [\"body.invoice\"]\ncontent = [\"body.memo\"]\n";
    let stage = Stage::with(rule);
    let send = |body: &str| became(&stage.send("POST", "/a", JSON, body)).1;
    assert_eq!(
        (send(r#"{"invoice":"1","memo":"x"}"#), send(r#"{"invoice":"1","memo":"y"}"#)),
        ("ran".into(), "replayed".into())
    );
    for (body, outcome) in [
        (r#"{"memo":"x"}"#, "ran"),
        (r#"{"memo":"y"}"#, "ran"),
        (r#"{"memo":"x"}"#, "replayed"),
        (r#"{"invoice":"","memo":"x"}"#, "ran"),
        (r#"{"invoice":"","memo":"y"}"#, "ran"),
        (r#"{"invoice":"","memo":"y"}"#, "replayed"),
    ] {
        assert_eq!(send(body), outcome, "{body}");
    }
    assert_eq!(stage.api.effects(), 5);
}

#[test]
fn the_type_of_a_part_belongs_to_it() {
    let stage = Stage::with(ALL);
    let send = |kind: &str| {
        let body = format!("--b\r\nContent-Disposition: form-data; name=\"to\"\r\n{kind}\r\n[]\r\n--b--\r\n");
        became(&stage.send("POST", "/files", "Content-Type: multipart/form-data; boundary=b\r\n", &body)).1
    };
    assert_eq!(send(""), "ran");
    assert_eq!(send("Content-Type: text/plain\r\n"), "replayed");
    assert_eq!(send("Content-Type: application/json\r\n"), "ran");
    assert_eq!(send("Content-Type: application/json\r\n"), "replayed");
    assert_eq!(stage.api.effects(), 2);
}

/// One invoice is one charge, whatever else is said.
const BY_INVOICE: &str = "[[rule]]\nmatch = \"http:POST bank/*\"\nclass = \"consequential\"\n\
                          key = [\"body.invoice\"]\ncontent = [\"body.memo\"]\nscope = \"global\"\n";

fn part(name: &str, value: &str) -> String {
    format!("--B\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
}

#[test]
fn parts_that_another_reader_would_divide_otherwise_reach_no_upstream() {
    let stage = Stage::with(BY_INVOICE);
    let in_b = "multipart/form-data; boundary=B";
    for attempt in ["1", "2"] {
        let own = part("invoice", attempt);
        let hidden = part("invoice", "1001");
        let within_a = format!(
            "--A\r\nContent-Disposition: form-data; name=\"invoice\"\r\n\r\n{attempt}\r\n{hidden}--B--\r\n\r\n--A--"
        );
        for (what, kind, body) in [
            ("two boundaries", "multipart/form-data; boundary=A; boundary=B", within_a),
            (
                "lines that end in LF",
                in_b,
                format!("{}{own}--B--", part("memo", &format!("hi\n{}q", hidden.replace('\r', "")))),
            ),
            ("lines that end in CR", in_b, format!("{}{own}--B--", part("memo", "hi\r--B\rx"))),
            ("two names", in_b, format!("{}{own}--B--", part("memo\"; name*=\"utf-8''invoice", "1003"))),
            ("a close that is none", in_b, format!("{own}--B--x\r\n{hidden}--B--\r\n")),
            ("parts behind the end", in_b, format!("{own}--B--\r\n{hidden}--B--\r\n")),
            (
                "an encoded text",
                in_b,
                part("invoice", "MTAwNQ==").replacen(
                    "\r\n\r\n",
                    "\r\nContent-Transfer-Encoding: base64\r\n\r\n",
                    1,
                ) + "--B--",
            ),
        ] {
            let answer = stage.send("POST", "/charges", &format!("Content-Type: {kind}\r\n"), &body);
            assert_eq!(answer.status, 400, "{what}: {answer:?}");
        }
    }
    assert_eq!(stage.api.requests().len(), 0);
    let plain = part("invoice", "1001") + "--B--\r\n";
    let send = || became(&stage.send("POST", "/charges", &format!("Content-Type: {in_b}\r\n"), &plain)).1;
    assert_eq!((send(), send()), ("ran".into(), "replayed".into()));
    assert_eq!(stage.api.effects(), 1);
}

#[test]
fn bytes_that_are_no_text_are_not_the_text_that_spells_them() {
    let stage = Stage::with(BY_INVOICE);
    let send = |body: &str| became(&stage.send("POST", "/charges", FORM, body)).1;
    for body in ["invoice=%E9", "invoice=%25E9", "invoice=%25%E9", "invoice=%C3%A9"] {
        assert_eq!(send(body), "ran", "{body}");
        assert_eq!(send(body), "replayed", "{body}");
    }
    assert_eq!(stage.api.effects(), 4);
}

#[test]
fn a_form_in_another_encoding_is_read_only_where_that_makes_no_difference() {
    let stage = Stage::with(BY_INVOICE);
    let send = |charset: &str, body: &str| {
        let kind = format!("Content-Type: application/x-www-form-urlencoded; charset={charset}\r\n");
        stage.send("POST", "/charges", &kind, body)
    };
    assert_eq!(send("iso-8859-1", "invoice=%C3%A8").status, 400);
    assert_eq!(send("utf-16", "invoice=1").status, 400);
    assert_eq!(stage.api.requests().len(), 0);
    for (charset, outcome) in [("UTF-8", "ran"), ("ISO-8859-1", "replayed"), ("\"utf-8\"", "replayed")] {
        assert_eq!(became(&send(charset, "invoice=1")).1, outcome, "{charset}");
    }
    assert_eq!(stage.api.effects(), 1);
}

#[test]
fn a_question_in_graphql_passes_and_a_mutation_does_not() {
    let stage = Stage::plain();
    let send = |body: &str| stage.send("POST", "/graphql", JSON, body);
    let asked = send(r#"{"query":"query { me { id } }"}"#);
    assert_eq!((asked.status, asked.header("semel-outcome")), (201, None));
    let changed = send(r#"{"query":"mutation { issueCreate(input: {}) { id } }"}"#);
    assert_eq!(changed.header("semel-outcome"), Some("ran"));
    for hidden in [
        r##"{"query":"query Q { me } # \n mutation M { pay }"}"##,
        r#"{"query":"query Q { me } mutation M { pay }","operationName":"M"}"#,
        r#"{"query":"query { me }","amount":1}"#,
        r#"[{"query":"query { me }"},{"query":"mutation { pay }"}]"#,
    ] {
        assert_eq!(send(hidden).header("semel-outcome"), Some("ran"), "{hidden}");
    }
    for (kind, asks, changes) in [
        ("Content-Type: application/graphql\r\n", "{ me }", "mutation { pay }"),
        (FORM, "query=%7Bme%7D", "query=mutation%7Bpay%7D"),
    ] {
        assert_eq!(stage.send("POST", "/graphql", kind, asks).header("semel-outcome"), None);
        assert_eq!(stage.send("POST", "/graphql", kind, changes).header("semel-outcome"), Some("ran"));
    }
    let elsewhere = stage.send("POST", "/charges", JSON, r#"{"query":"query { me }"}"#);
    assert_eq!(elsewhere.header("semel-outcome"), Some("ran"));
    assert_eq!(stage.get("/graphql?query=mutation%7Bpay%7D").header("semel-outcome"), Some("ran"));
    assert_eq!(stage.get("/graphql?query=%7Bme%7D").header("semel-outcome"), None);
}

/// It comes with status 200 whatever became of it.
#[test]
fn the_answer_to_a_mutation_is_read_though_no_rule_says_how() {
    let refused = r#"{"errors":[{"message":"no such team","path":["pay"]}],"data":{"pay":null}}"#;
    let unclear = r#"{"errors":[{"message":"no","path":["pay","receipt"]}],"data":{"pay":null}}"#;
    let done = r#"{"data":{"pay":{"id":1}}}"#;
    let stage = Stage::with("[[rule]]\nmatch = \"http:POST bank/graphql\"\nclass = \"consequential\"\n");
    let pay = |n: u8| {
        let sent = stage.send(
            "POST",
            "/graphql",
            JSON,
            &format!(r#"{{"query":"mutation {{ pay(n: {n}) {{ id }} }}"}}"#),
        );
        (sent.status, became(&sent).1)
    };
    stage.api.next(ApiAct::Refuse(200, JSON, refused));
    assert_eq!((pay(1), stage.api.effects()), ((200, "ran".into()), 0));
    stage.api.next(ApiAct::Answer(200, JSON, done.into()));
    assert_eq!((pay(1), stage.api.effects()), ((200, "ran".into()), 1), "nothing had happened");
    assert_eq!((pay(1).1, stage.api.effects()), ("replayed".into(), 1));
    stage.api.next(ApiAct::Answer(200, JSON, unclear.into()));
    assert_eq!([pay(2).0, pay(2).0], [423, 423]);
    assert_eq!(stage.api.effects(), 2);
}

#[test]
fn rules_see_what_a_mutation_does_and_its_key_goes_into_a_directive() {
    let rule = r#"
[[rule]]
match = "http:POST bank/graphql"
when = "has(body.fields) && body.fields.exists(f, f == 'refundCreate')"
class = "consequential"
key = ["body.variables.order"]
caller_key = "joins"
inject = { directive = "idempotent", form = "uuid", valid_for = "24h" }
"#;
    let stage = Stage::with(rule);
    let send = |key: &str| {
        let body = format!(
            r#"{{"query":"mutation($order: ID!) {{ refundCreate(order: $order) @idempotent(key: \"{key}\") {{ id }} }}","variables":{{"order":"1"}}}}"#
        );
        became(&stage.send("POST", "/graphql", JSON, &body)).1
    };
    assert_eq!((send("made-up-1").as_str(), send("made-up-2").as_str()), ("ran", "replayed"));
    let sent = stage.api.last().text();
    let (_, after) = sent.split_once(r#"@idempotent(key: \""#).expect("the directive");
    let key = after.split('\\').next().expect("a key");
    assert_eq!(key.len(), 36, "{sent}");
    assert!(sent.contains(r#""variables":{"order":"1"}"#), "{sent}");
}

#[test]
fn a_rule_for_a_mutation_holds_however_its_document_is_written() {
    let rule = r#"
[[rule]]
match = "http:POST bank/graphql"
when = "has(body.fields) && body.fields.exists(f, f == 'refundCreate')"
class = "consequential"
key = ["path"]
"#;
    let stage = Stage::with(rule);
    let send = |kind: &str, body: &str| stage.send("POST", "/graphql", kind, body);
    assert_eq!(became(&send(JSON, r#"{"query":"mutation { refundCreate }"}"#)).1, "ran");
    for (kind, body) in [
        (JSON, r#"{"query":"mutation { refundCreate }","id":1}"#),
        (JSON, r#"{"query":"mutation { ...F } fragment F on M { r: refundCreate }"}"#),
        (FORM, "query=mutation%20%7B%20refundCreate%20%7D"),
        ("Content-Type: application/graphql\r\n", "mutation { refundCreate }"),
    ] {
        assert_ne!(became(&send(kind, body)).1, "ran", "{body}");
    }
    let hidden = format!("mutation {{ {} refundCreate {} }}", "... {".repeat(40), "}".repeat(40));
    for (kind, body) in
        [(JSON, format!(r#"{{"query":"{hidden}"}}"#)), ("Content-Type: application/graphql\r\n", hidden)]
    {
        let refused = send(kind, &body);
        assert_eq!(refused.status, 400, "{refused:?}");
        assert!(refused.body.contains("GraphQL document cannot be read"), "{refused:?}");
    }
    assert_eq!(stage.api.effects(), 1);
}

#[test]
fn a_key_in_the_body_is_the_clients_key() {
    let rule = r#"
[[rule]]
match = "http:POST bank/decides"
class = "consequential"
inject = { body = "idempotency_key", valid_for = "1h" }
[[rule]]
match = "http:POST bank/joins"
class = "consequential"
key = ["body.order"]
caller_key = "joins"
inject = { body = "idempotency_key", valid_for = "1h" }
"#;
    let stage = Stage::with(rule);
    let send = |path: &str, body: &str| became(&stage.send("POST", path, JSON, body));
    let own = r#"{"idempotency_key": "mine", "amount": 1.0}"#;
    assert_eq!(send("/decides", own).1, "ran");
    assert_eq!(stage.api.last().text(), own);
    assert_eq!(send("/decides", r#"{"amount":1,"idempotency_key":"mine"}"#).1, "replayed");
    assert_eq!(send("/decides", r#"{"amount":2,"idempotency_key":"mine"}"#).2, "drift");
    assert_eq!(send("/joins", r#"{"idempotency_key":"a","order":7,"n":1.0}"#).1, "ran");
    let sent = stage.api.last().text();
    assert!(
        sent.starts_with(r#"{"idempotency_key":"semel_"#) && sent.ends_with(r#"","order":7,"n":1.0}"#),
        "{sent}"
    );
    assert_eq!(send("/joins", r#"{"idempotency_key":"b","order":7,"n":1}"#).1, "replayed");
    assert_eq!(send("/joins", r#"{"order":8}"#).1, "ran");
    assert!(stage.api.last().text().contains(r#""idempotency_key":"semel_"#));
    assert_eq!(stage.api.effects(), 3);
}

#[test]
fn a_deliberate_repeat_has_a_key_of_its_own_for_the_upstream() {
    let consequential = "[[rule]]\nmatch = \"http:POST bank/*\"\nclass = \"consequential\"\n";
    let inject = "inject = { header = \"Idempotency-Key\", valid_for = \"24h\" }\n";
    // An API that honours the key would answer the repeat with what it did before, whether or not a rule says so.
    for (rule, own, begins) in [
        ([consequential, inject].concat(), "mine", "semel_"),
        (consequential.to_owned(), "mine", "semel_"),
        (consequential.to_owned(), "\"mine\"", "\"semel_"),
        ([consequential, "caller_key = \"joins\"\nkey = [\"path\"]\n"].concat(), "mine", "semel_"),
    ] {
        let stage = Stage::with(&rule);
        let send = |again: &str| {
            let headers = format!("{JSON}Idempotency-Key: {own}\r\n{again}");
            let outcome = became(&stage.send("POST", "/a", &headers, "{}")).1;
            (outcome, stage.api.last().header("idempotency-key").expect("a key").to_owned())
        };
        assert_eq!(send(""), ("ran".to_owned(), own.to_owned()));
        let (outcome, key) = send("Semel-Again: a second box\r\n");
        assert_eq!(outcome, "ran");
        assert!(key.starts_with(begins), "{key}");
        assert_eq!(send("Semel-Again: a second box\r\n").0, "replayed");
        assert_eq!(stage.api.effects(), 2);
    }
}

/// Two accounts of one API, each with the operator's credential for it.
#[test]
fn an_upstream_stays_who_it_is_when_another_account_of_its_api_is_added() {
    let (home, api) = (Home::new(), ScriptedApi::start());
    let upstream = |name: &str, key: &str, more: &str| {
        let headers = format!("headers = {{ Authorization = \"{key}\" }}\n");
        format!("[upstream.{name}]\nurl = \"{}\"\nservice = \"bank\"\n{more}{headers}", api.url())
    };
    let send = |house: &House, name: &str| {
        let headers = format!("Semel-Token: {TOKEN}\r\n{JSON}");
        let first = format!("POST /p/{name}/charges HTTP/1.1");
        became(&house.ask(&first, &headers, r#"{"invoice":1}"#).answer()).1
    };
    let mut alone = House::start(&home, &[upstream("us", "k-us", "").as_str(), ALL].concat());
    assert_eq!([send(&alone, "us"), send(&alone, "us")], ["ran", "replayed"]);
    alone.stop();
    // The operator's credential may be renewed meanwhile.
    let eu = upstream("eu", "k-eu", "account = \"eu\"\n");
    let both = House::start(&home, &[eu.as_str(), &upstream("us", "k-us-2", ""), ALL].concat());
    let sent = ["eu", "us", "eu", "us"].map(|name| send(&both, name));
    assert_eq!(sent, ["ran", "replayed", "replayed", "replayed"]);
    assert_eq!(api.effects(), 2);
}

/// The address may change, and two ways to one account are one.
#[test]
fn an_account_stands_for_its_address() {
    let (home, api) = (Home::new(), ScriptedApi::start());
    let upstream = |name: &str, url: &str| {
        format!("[upstream.{name}]\nurl = \"{url}\"\nservice = \"bank\"\naccount = \"main\"\n")
    };
    let local = api.url().replace("127.0.0.1", "localhost");
    let policy = [upstream("a", &api.url()).as_str(), &upstream("b", &local), ALL].concat();
    let house = House::start(&home, &policy);
    let sent = ["a", "b"].map(|name| {
        let headers = format!("Semel-Token: {TOKEN}\r\n{JSON}");
        became(&house.ask(&format!("POST /p/{name}/charges HTTP/1.1"), &headers, "{}").answer()).1
    });
    assert_eq!((sent, api.effects()), (["ran".to_owned(), "replayed".to_owned()], 1));
}

/// What a rule leaves out may be all that a query has.
#[test]
fn a_query_that_says_nothing_is_none() {
    let stage = Stage::with(
        "[[rule]]\nmatch = \"http:POST bank/*\"\nclass = \"consequential\"\nvolatile = [\"query.ts\"]\n",
    );
    for (path, outcome) in [
        ("/a?ts=1", "ran"),
        ("/a", "replayed"),
        ("/a?", "replayed"),
        ("/a?ts=2", "replayed"),
        ("/a?x=1", "ran"),
    ] {
        assert_eq!(became(&stage.send("POST", path, JSON, "{}")).1, outcome, "{path}");
    }
}

#[test]
fn a_patch_of_another_kind_is_another() {
    let stage = Stage::with("[[rule]]\nmatch = \"http:PATCH bank/*\"\nclass = \"consequential\"\n");
    let patch = |kind: &str| became(&stage.send("PATCH", "/a", &format!("Content-Type: {kind}\r\n"), "{}")).1;
    assert_eq!(patch("application/merge-patch+json"), "ran");
    assert_eq!(patch("application/strategic-merge-patch+json"), "ran");
    assert_eq!(patch("application/merge-patch+json; charset=utf-8"), "replayed");
}

#[test]
fn a_number_where_a_key_stands_is_one() {
    let stage = Stage::with(
        "[[rule]]\nmatch = \"http:POST bank/*\"\nclass = \"consequential\"\n\
         inject = { body = \"idempotency_key\", valid_for = \"1h\" }\n",
    );
    for (body, outcome) in [
        (r#"{"a":1,"idempotency_key":1}"#, "ran"),
        (r#"{"a":1,"idempotency_key":2}"#, "ran"),
        (r#"{"a":1,"idempotency_key":1}"#, "replayed"),
    ] {
        assert_eq!(became(&stage.send("POST", "/a", JSON, body)).1, outcome, "{body}");
    }
    assert_eq!(stage.api.effects(), 2);
}
