use super::stage::{Stage, ask, request, streamed, wait};
use semel_testkit::http::FakeModelApi;
use serde_json::json;

#[test]
fn an_answer_passes_as_it_came() {
    let stage = Stage::new();
    for (index, api) in FakeModelApi::ALL.into_iter().enumerate() {
        let number = 2 * index + 1;
        let document = stage.answer(api, &request("m"));
        assert_eq!(document.status, 200, "{document:?}");
        assert_eq!(document.body, api.document(number, &format!("answer {number}")).to_string());
        let head = &document.head;
        assert!(head.contains("semel-outcome: ran") && head.contains("x-request-id: req_1"), "{head}");
        let number = number + 1;
        let stream = stage.answer(api, &streamed("m"));
        assert_eq!(stream.body, api.events(number, &format!("answer {number}")).concat());
        assert!(stream.head.contains("content-type: text/event-stream"), "{stream:?}");
    }
    let heard = &stage.model.requests()[0];
    assert_eq!(
        (heard.head.path.as_str(), heard.header("authorization")),
        ("/v1/chat/completions", Some("Bearer sk-test"))
    );
    assert_eq!(heard.json(), request("m"));
}

#[test]
fn what_a_model_says_behind_its_end_holds_nothing_back() {
    for api in FakeModelApi::ALL {
        let stage = Stage::new();
        let answer = stage.answer(api, &streamed("lingers"));
        let comments = answer.body.strip_prefix(&api.events(1, "answer 1").concat()).expect("all of it");
        assert_eq!(comments.replace(": still here\n\n", ""), "");
        assert_eq!((stage.model.asked(), stage.count("applied")), (1, 1));
    }
}

#[test]
fn a_last_event_without_its_blank_line_ends_the_answer_only_where_the_stream_ends() {
    let step = "Semel-Step: one\r\n";
    for api in FakeModelApi::ALL {
        let stage = Stage::new();
        let first = stage.answer_with(api, step, &streamed("bare"));
        assert_eq!(first.body, api.events(1, "answer 1").concat().trim_end());
        assert_eq!(stage.answer_with(api, step, &streamed("bare")).body, first.body);
        let document = stage.answer_with(api, step, &request("bare"));
        assert!(document.json().to_string().contains("answer 1"), "{document:?}");
        assert_eq!(stage.model.asked(), 1);
    }
    for api in FakeModelApi::ALL {
        let stage = Stage::new();
        {
            let mut cut = stage.ask(api, &streamed("bare-torn-once"));
            cut.head();
            cut.broken_chunks()
        };
        wait(|| stage.count("in_doubt") == 1);
    }
}

/// Names that say nothing, and an error that says nothing.
#[test]
fn events_are_read_by_their_type_where_their_name_is_none() {
    for api in FakeModelApi::ALL {
        let stage = Stage::new();
        let answer = stage.answer(api, &streamed("nameless"));
        assert!(answer.body.contains("answ") && answer.body.contains("er 1"), "{answer:?}");
        assert_eq!((stage.model.asked(), stage.count("applied")), (1, 1));
    }
}

#[test]
fn a_twin_joins_the_stream_from_its_first_byte_while_it_comes() {
    for api in FakeModelApi::ALL {
        let stage = Stage::new();
        let mut first = stage.ask(api, &streamed("waits"));
        first.head();
        let begun = first.chunk();
        let mut twin = stage.ask(api, &streamed("waits"));
        let head = twin.head().to_ascii_lowercase();
        assert!(head.contains("semel-outcome: joined") && head.contains("semel-effect-id: ef_"), "{head}");
        assert_eq!(twin.chunk(), begun);
        stage.model.release();
        let whole = api.events(1, "answer 1").concat();
        assert_eq!(begun.clone() + &first.chunks(), whole);
        assert_eq!(begun + &twin.chunks(), whole);
        assert_eq!(stage.model.asked(), 1);
    }
}

/// The step makes no difference to who joins; it lets a twin that comes late get the same answer all the same.
const STEP: &str = "Semel-Step: one\r\n";

#[test]
fn a_twin_that_asks_in_another_form_gets_the_same_answer_in_its_own() {
    for api in FakeModelApi::ALL {
        let stage = Stage::new();
        let mut first = ask(&stage.house, api, STEP, &streamed("waits"));
        first.head();
        first.chunk();
        let twin = ask(&stage.house, api, STEP, &request("waits"));
        stage.model.release();
        first.chunks();
        let twin = twin.answer();
        assert_eq!(twin.status, 200, "{twin:?}");
        let said = twin.json().to_string();
        assert!(
            said.contains("answer 1") && twin.head.contains("content-type: application/json"),
            "{twin:?}"
        );
        assert_eq!(stage.model.asked(), 1);
    }
}

#[test]
fn a_twin_that_did_not_ask_what_it_costs_gets_no_chunk_without_a_choice() {
    let stage = Stage::new();
    let mut wanting = streamed("waits");
    wanting["stream_options"] = json!({"include_usage": true});
    let mut first = stage.ask(FakeModelApi::Chat, &wanting);
    first.head();
    first.chunk();
    let mut twin = stage.ask(FakeModelApi::Chat, &streamed("waits"));
    assert!(twin.head().to_ascii_lowercase().contains("semel-outcome: joined"));
    stage.model.release();
    let (first, twin) = (first.chunks(), twin.chunks());
    assert!(first.contains("prompt_tokens") && !twin.contains("prompt_tokens"), "{first} {twin}");
    assert!(twin.contains("[DONE]"), "{twin}");
    assert_eq!(stage.model.asked(), 1);
}

#[test]
fn a_twin_that_wants_a_stream_of_what_comes_as_a_document_gets_a_stream() {
    for api in FakeModelApi::ALL {
        let stage = Stage::new();
        let first = ask(&stage.house, api, STEP, &request("waits"));
        wait(|| stage.model.asked() == 1);
        let twin = ask(&stage.house, api, STEP, &streamed("waits"));
        stage.model.release();
        assert_eq!(first.answer().body, api.document(1, "answer 1").to_string());
        let twin = twin.answer();
        assert!(twin.head.contains("content-type: text/event-stream"), "{twin:?}");
        assert!(twin.body.contains("answer 1") && stage.model.asked() == 1, "{twin:?}");
    }
}

#[test]
fn what_changes_from_try_to_try_does_not_make_another_request() {
    let stage = Stage::new();
    let mut first = ask(&stage.house, FakeModelApi::Messages, STEP, &streamed("waits"));
    first.head();
    first.chunk();
    let mut retry = request("waits");
    retry["stream"] = json!(false);
    retry["max_tokens"] = json!(50);
    retry["metadata"] = json!({"user_id": "another"});
    let retry = ask(&stage.house, FakeModelApi::Messages, STEP, &retry);
    let other = stage.answer(FakeModelApi::Messages, &request("m"));
    assert!(other.body.contains("answer 2"), "another model is another request: {other:?}");
    stage.model.release();
    assert!(retry.answer().body.contains("answer 1"));
    let said = "anthropic-beta: something-new\r\n";
    let other = stage.answer_with(FakeModelApi::Messages, said, &request("m"));
    assert!(
        other.body.contains("answer 3"),
        "a header that changes the answer is another request: {other:?}"
    );
}

#[test]
fn another_account_of_one_credential_never_joins() {
    let stage = Stage::new();
    let mut all = Vec::new();
    for (account, outcome) in [("a", "ran"), ("b", "ran"), ("b", "joined")] {
        let header = format!("ChatGPT-Account-Id: {account}\r\n");
        let mut asked = ask(&stage.house, FakeModelApi::Responses, &header, &streamed("waits"));
        assert!(
            asked.head().to_ascii_lowercase().contains(&format!("semel-outcome: {outcome}")),
            "{account}"
        );
        all.push(asked);
    }
    stage.model.release();
}

#[test]
fn another_credential_never_joins() {
    let stage = Stage::new();
    let mut first = stage.ask(FakeModelApi::Messages, &streamed("waits"));
    first.head();
    first.chunk();
    for credential in ["x-api-key: sk-one\r\n", "x-api-key: sk-two\r\n", "Authorization: Bearer sk-two\r\n"] {
        let path = FakeModelApi::Messages.path();
        let mut other =
            stage.house.ask(&format!("POST {path} HTTP/1.1"), credential, &streamed("waits").to_string());
        let head = other.head().to_ascii_lowercase();
        assert!(head.contains("semel-outcome: ran"), "{credential} {head}");
    }
    assert_eq!(stage.model.asked(), 4);
    let mut twin = stage.house.ask(
        &format!("POST {} HTTP/1.1", FakeModelApi::Messages.path()),
        "x-api-key: sk-one\r\n",
        &streamed("waits").to_string(),
    );
    assert!(twin.head().to_ascii_lowercase().contains("semel-outcome: joined"));
    stage.model.release();
}

/// Each attempt is given up before the next one is made, as timeouts do.
#[test]
fn nine_attempts_of_a_stack_of_three_by_three_become_one_call() {
    // Of a document nobody sees that it was joined; the step makes it the same for one that comes late.
    for (body, step) in [(request("waits"), STEP), (streamed("waits"), "")] {
        let stage = Stage::new();
        for attempt in 0..8 {
            let headers = format!("{step}x-stainless-retry-count: {}\r\n", attempt % 3);
            let mut given_up = ask(&stage.house, FakeModelApi::Chat, &headers, &body);
            wait(|| stage.model.asked() == 1);
            if step.is_empty() {
                given_up.head();
            }
        }
        let headers = format!("{step}x-stainless-retry-count: 2\r\n");
        let last = ask(&stage.house, FakeModelApi::Chat, &headers, &body);
        stage.model.release();
        let last = last.answer();
        assert!(last.status == 200 && last.body.contains("chatcmpl-1"), "{last:?}");
        assert_eq!(stage.model.asked(), 1);
    }
}

#[test]
fn a_rule_can_let_every_sample_through() {
    let stage = Stage::with("[[rule]]\nmatch = \"llm:openai/*\"\nclass = \"read\"\n");
    let mut samples: Vec<_> = (0..3).map(|_| stage.ask(FakeModelApi::Chat, &streamed("waits"))).collect();
    wait(|| stage.model.asked() == 3);
    stage.model.release();
    let mut ids: Vec<String> = samples
        .iter_mut()
        .map(|sample| {
            sample.head();
            sample.chunks()
        })
        .collect();
    ids.dedup();
    assert_eq!(ids.len(), 3);
    assert!(stage.house.effects("").is_empty());
}

#[test]
fn a_delivered_answer_is_not_reused() {
    let stage = Stage::new();
    for api in FakeModelApi::ALL {
        let before = stage.model.asked();
        for body in [request("m"), streamed("m"), request("m"), streamed("m")] {
            assert_eq!(stage.answer(api, &body).status, 200);
        }
        assert_eq!(stage.model.asked(), before + 4);
    }
}

#[test]
fn parts_of_a_stream_come_at_once_to_whoever_joined_late() {
    let stage = Stage::new();
    let mut first = stage.ask(FakeModelApi::Chat, &streamed("waits"));
    first.head();
    first.chunks_until("answ");
    let mut twins: Vec<_> = (0..20).map(|_| stage.ask(FakeModelApi::Chat, &streamed("waits"))).collect();
    for twin in &mut twins {
        twin.head();
        twin.chunks_until("answ");
    }
    // One of them reads no more, and holds nobody up.
    let _slow = twins.pop();
    stage.model.release();
    for twin in &mut twins {
        assert!(twin.chunks().ends_with("data: [DONE]\n\n"));
    }
    assert_eq!(stage.model.asked(), 1);
}
