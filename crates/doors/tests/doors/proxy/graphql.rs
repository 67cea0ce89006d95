//! GraphQL in all the forms that clients send it in: several operations at once, documents by their digest, files,
//! subscriptions.

use super::stage::{JSON, Stage, became, post};
use semel_core::digest::Digest;
use semel_testkit::http::ApiAct;
use semel_testkit::http::Response;

const CONSEQUENTIAL: &str = "[[rule]]\nmatch = \"http:POST bank/graphql\"\nclass = \"consequential\"\n";
const PAY: &str = "mutation P($order: ID!) { pay(order: $order) { id } }";
const DONE: &str = r#"{"data":{"pay":{"id":1}}}"#;

fn send(stage: &Stage, headers: &str, body: &str) -> Response {
    stage.send("POST", "/graphql", &format!("{JSON}{headers}"), body)
}

/// As clients with automatic persisted queries send it: first without the text, then with it.
struct Persisted {
    digest: String,
    order: &'static str,
}

impl Persisted {
    fn pay(order: &'static str) -> Persisted {
        Persisted { digest: Digest::plain(PAY.as_bytes()).to_string(), order }
    }

    fn without_text(&self) -> String {
        let Persisted { digest, order } = self;
        format!(
            r#"{{"operationName":"P","variables":{{"order":"{order}"}},"extensions":{{"persistedQuery":{{"version":1,"sha256Hash":"{digest}"}}}}}}"#
        )
    }

    fn with_text(&self) -> String {
        self.without_text().replacen('{', &format!(r#"{{"query":"{PAY}","#), 1)
    }
}

#[test]
fn a_status_that_refuses_is_not_believed_where_something_was_done_in_whatever_form() {
    let one = |order: &str| format!(r#"{{"query":"{PAY}","variables":{{"order":"{order}"}}}}"#);
    let upload = format!(
        "--B\r\nContent-Disposition: form-data; name=\"operations\"\r\n\r\n{}\r\n--B\r\n\
         Content-Disposition: form-data; name=\"map\"\r\n\r\n{{}}\r\n--B--\r\n",
        one("1")
    );
    let of_one = r#"{"data":{"pay":{"id":1}},"errors":[{"message":"odd","path":["pay","name"]}]}"#;
    let of_two = r#"[{"data":{"pay":{"id":1}}},{"data":null,"errors":[{"message":"no such order"}]}]"#;
    for rule in ["", CONSEQUENTIAL] {
        let stage = Stage::with(rule);
        for (count, (kind, body, answer)) in [
            (JSON, one("1"), of_one),
            (JSON, format!("[{},{}]", one("1"), one("2")), of_two),
            (JSON, Persisted::pay("1").without_text(), of_one),
            ("Content-Type: multipart/form-data; boundary=B\r\n", upload.clone(), of_one),
        ]
        .into_iter()
        .enumerate()
        {
            stage.api.next(ApiAct::Answer(400, JSON, answer.to_owned()));
            let statuses = [(); 3].map(|()| stage.send("POST", "/graphql", kind, &body).status);
            assert_eq!(statuses, [423; 3], "{rule}{body}");
            assert_eq!(stage.api.effects(), count + 1, "{rule}{body}");
        }
    }
}

#[test]
fn several_operations_are_refused_if_each_of_them_was() {
    let stage = Stage::with(CONSEQUENTIAL);
    let batch = format!(r#"[{{"query":"{PAY}","variables":{{"order":"1"}}}},{{"query":"{{ me }}"}}]"#);
    for status in [200, 400] {
        let refused = r#"[{"errors":[{"message":"no such order"}]},{"data":{"me":{"id":1}}}]"#;
        stage.api.next(ApiAct::Refuse(status, JSON, refused));
        let answer = send(&stage, "", &batch);
        assert_eq!((answer.status, answer.header("semel-effect")), (status, Some("none")));
    }
    stage.api.next(ApiAct::Answer(200, JSON, format!("[{DONE},{DONE}]")));
    assert_eq!(became(&send(&stage, "", &batch)).1, "ran", "nothing had happened");
    assert_eq!(became(&send(&stage, "", &batch)).1, "replayed");
    assert_eq!(stage.api.effects(), 1);
}

#[test]
fn a_field_that_may_be_null_answers_so_without_a_doubt() {
    let stage = Stage::with(CONSEQUENTIAL);
    let logout = r#"{"query":"mutation { logout }"}"#;
    stage.api.next(ApiAct::Answer(200, JSON, r#"{"data":{"logout":null}}"#.to_owned()));
    assert_eq!(became(&send(&stage, "", logout)), (200, "ran".into(), String::new()));
    assert_eq!(became(&send(&stage, "", logout)), (200, "replayed".into(), String::new()));
    assert_eq!(stage.api.effects(), 1);
}

#[test]
fn what_was_refused_for_the_request_itself_is_no_doubt() {
    let stage = Stage::with(CONSEQUENTIAL);
    for (document, refusal) in [
        (
            "mutation { p: pay(a: 1) { id } p: pay(a: 1) { name } }",
            r#"{"data":{"p":null},"errors":[{"path":["p"],"message":"denied"}]}"#,
        ),
        (
            "mutation { pay(timeout: 1) { id } }",
            r#"{"errors":[{"message":"Field 'timeout' is not defined by type PayInput"}]}"#,
        ),
    ] {
        let body = format!(r#"{{"query":"{document}"}}"#);
        stage.api.next(ApiAct::Refuse(200, JSON, refusal));
        let refused = send(&stage, "", &body);
        assert_eq!((refused.status, refused.header("semel-effect")), (200, Some("none")), "{document}");
        stage.api.next(ApiAct::Answer(200, JSON, DONE.to_owned()));
        assert_eq!(became(&send(&stage, "", &body)).1, "ran", "{document}");
    }
    assert_eq!(stage.api.effects(), 2);
}

#[test]
fn a_document_that_the_server_does_not_have_is_sent_with_its_text_and_done_once() {
    let not_found = r#"{"errors":[{"message":"PersistedQueryNotFound","extensions":{"code":"PERSISTED_QUERY_NOT_FOUND"}}]}"#;
    let by_order = format!("{CONSEQUENTIAL}key = [\"body.variables.order\"]\n");
    let by_expression = format!("{CONSEQUENTIAL}refused = \"has(reply.fault)\"\n");
    for rule in ["", CONSEQUENTIAL, &by_order, &by_expression] {
        let stage = Stage::with(rule);
        for (status, key, order) in [
            (200, "", "1"),
            (400, "", "2"),
            (200, "Idempotency-Key: k3\r\n", "3"),
            (400, "Idempotency-Key: k4\r\n", "4"),
        ] {
            let pay = Persisted::pay(order);
            let before = stage.api.effects();
            for _ in 0..2 {
                stage.api.next(ApiAct::Refuse(status, JSON, not_found));
                let missed = send(&stage, key, &pay.without_text());
                assert_eq!(became(&missed), (status, "ran".into(), String::new()), "{rule}{order}");
                assert_eq!(missed.header("semel-effect"), Some("none"));
            }
            stage.api.next(ApiAct::Answer(200, JSON, DONE.to_owned()));
            let done = send(&stage, key, &pay.with_text());
            assert_eq!(became(&done), (200, "ran".into(), String::new()), "{rule}{order}");
            // Whoever lost the answer asks again in either form.
            if !(rule.is_empty() && key.is_empty()) {
                assert_eq!(became(&send(&stage, key, &pay.with_text())).1, "replayed", "{rule}{order}");
                assert_eq!(became(&send(&stage, key, &pay.without_text())).1, "replayed", "{rule}{order}");
            }
            assert_eq!(stage.api.effects() - before, 1, "{rule}{order}");
        }
    }
}

#[test]
fn a_document_whose_answer_was_lost_is_not_sent_again_by_its_digest_nor_the_other_way() {
    let stage = Stage::plain();
    let (first, second) = (Persisted::pay("1"), Persisted::pay("2"));
    for (at, [lost, again]) in
        [[first.with_text(), first.without_text()], [second.without_text(), second.with_text()]]
            .into_iter()
            .enumerate()
    {
        stage.api.next(ApiAct::Vanish);
        assert_eq!(became(&send(&stage, "", &lost)), (423, "ran".into(), "in_doubt".into()));
        assert_eq!(became(&send(&stage, "", &again)), (423, "held".into(), "in_doubt".into()));
        assert_eq!(stage.api.effects(), at + 1);
    }
}

#[test]
fn a_digest_that_is_not_the_texts_own_makes_no_two_documents_one() {
    let stage = Stage::with(CONSEQUENTIAL);
    let pay = Persisted { digest: "a".repeat(64), order: "1" };
    for body in [pay.with_text(), pay.with_text().replace("pay(", "refund("), pay.without_text()] {
        assert_eq!(became(&send(&stage, "", &body)).1, "ran", "{body}");
    }
    assert_eq!(stage.api.effects(), 3);
}

#[test]
fn a_question_beside_the_digest_of_a_mutation_is_guarded_like_the_mutation() {
    let rule = format!("{CONSEQUENTIAL}when = \"!has(body.operation) || body.operation == 'mutation'\"\n");
    let stage = Stage::with(&rule);
    let body = Persisted::pay("1").with_text().replace(PAY, "{ me }").replace("\"P\"", "null");
    // The upstream goes by the digest, and pays.
    stage.api.next(ApiAct::Answer(200, JSON, DONE.to_owned()));
    assert_eq!(became(&send(&stage, "", &body)).1, "ran");
    assert_eq!(became(&send(&stage, "", &body)).1, "replayed");
    assert_eq!(stage.api.effects(), 1);
    let beside = stage.send("POST", "/graphql?documentId=pay", JSON, r#"{"query":"{ me }"}"#);
    assert_eq!(beside.header("semel-outcome"), Some("ran"), "it does not pass unseen");
}

#[test]
fn a_field_whose_code_broke_is_not_called_again() {
    let stage = Stage::with(CONSEQUENTIAL);
    for (count, error) in [
        r#"{"message":"Unexpected Execution Error","path":["pay"]}"#,
        r#"{"message":"killed","errorType":"Lambda:Unhandled","path":["pay"]}"#,
    ]
    .into_iter()
    .enumerate()
    {
        let body = format!(r#"{{"query":"{PAY}","variables":{{"order":"{count}"}}}}"#);
        stage.api.next(ApiAct::Answer(200, JSON, format!(r#"{{"data":{{"pay":null}},"errors":[{error}]}}"#)));
        assert_eq!([(); 2].map(|()| send(&stage, "", &body).status), [423; 2], "{error}");
        assert_eq!(stage.api.effects(), count + 1, "{error}");
    }
}

#[test]
fn whoever_is_told_that_digests_are_not_taken_sends_the_text_alone_under_the_same_key() {
    let stage = Stage::plain();
    let key = "Idempotency-Key: k\r\n";
    stage.api.next(ApiAct::Refuse(200, JSON, r#"{"errors":[{"message":"PersistedQueryNotSupported"}]}"#));
    assert_eq!(send(&stage, key, &Persisted::pay("1").without_text()).status, 200);
    let text = format!(r#"{{"query":"{PAY}","operationName":"P","variables":{{"order":"1"}}}}"#);
    assert_eq!(became(&send(&stage, key, &text)).1, "ran");
    assert_eq!(became(&send(&stage, key, &text)).1, "replayed");
    assert_eq!(stage.api.effects(), 1);
}

#[test]
fn a_key_that_would_change_the_text_is_not_put_where_a_digest_names_it() {
    let stage = Stage::with(&format!("{CONSEQUENTIAL}inject = {{ directive = \"idempotent\" }}\n"));
    let body = Persisted::pay("1").with_text();
    assert_eq!(became(&send(&stage, "", &body)).1, "ran");
    assert_eq!(stage.api.last().text(), body);
}

#[test]
fn several_questions_pass_as_one_does() {
    let stage = Stage::plain();
    let questions = r#"[{"query":"{ me }"},{"query":"query Q { you }","variables":{}}]"#;
    stage.api.next(ApiAct::Refuse(500, "", "{}"));
    assert_eq!(send(&stage, "", questions).status, 500);
    let answered = send(&stage, "", questions);
    assert_eq!((answered.status, answered.header("semel-outcome")), (201, None));
    let changes = r#"[{"query":"{ me }"},{"query":"mutation { pay }"}]"#;
    assert_eq!(send(&stage, "", changes).header("semel-outcome"), Some("ran"));
}

#[test]
fn a_subscription_is_given_on_while_it_lasts_and_each_has_its_own() {
    let stage = Stage::plain();
    let body = r#"{"query":"subscription { tick }"}"#;
    let mut lines = [(); 2].map(|()| stage.connect());
    for (count, line) in lines.iter_mut().enumerate() {
        stage.api.next(ApiAct::LargeHalfHeld(8));
        post(line, "/graphql", JSON, body);
        line.head();
        assert_eq!(line.read(4), "xxxx");
        assert_eq!(stage.api.requests().len(), count + 1);
    }
    stage.api.release();
}
