//! Whole responses, as a client gets them.

use super::*;
use semel_core::answer::{EffectWord, Trouble};
use semel_core::class::Tier;
use semel_core::effect::Evidence;
use semel_core::policy::rule::Again;
use semel_core::policy::{ActionFacts, Policy};
use std::sync::Arc;

fn message(text: &str) -> Message {
    Message::parse(Bytes::copy_from_slice(text.as_bytes())).expect("a message")
}

fn call(params: &str) -> ToolCall {
    let message = message(&format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}"#));
    ToolCall::read(message.request_id().expect("a request"), &message, |_| None).expect("a call")
}

fn answer(outcome: OutcomeWord, trouble: Option<Trouble>, reason: Option<&str>) -> Answer {
    Answer {
        ok: trouble.is_none(),
        effect: EffectWord::Noop,
        outcome,
        effect_id: None,
        attempt: None,
        tier: Tier::Opaque,
        evidence: Some(Evidence::Reported),
        reason: reason.map(str::to_owned),
        trouble,
        dry_run: None,
        undone_by: None,
        possible_repeat: false,
        best_effort: false,
        data: Value::Null,
    }
}

fn in_doubt() -> Trouble {
    Trouble {
        code: Code::InDoubt,
        what_happened: "It may have happened.".into(),
        is_it_safe_to_retry: Retry::No,
        next_step: "Check with a read-only tool whether it happened.".into(),
        human_next_step: "semel ledger".into(),
        differing: Vec::new(),
    }
}

/// The response as JSON.
fn given(passed: &Passed, live: Option<&Message>, params: &str, output: &OutputSchema) -> Value {
    let call = call(params);
    let around = RenderContext {
        call: &call,
        output,
        look_with: LookWith::Probe("list_charges"),
        may_report: false,
        repeats: RepeatAdvice::NotByItself(Again::Person),
        ledger_elsewhere: false,
        server_has_ended: false,
    };
    let frame = response(passed, live, &around);
    serde_json::from_slice(&frame.to_bytes()).expect("a response is JSON")
}

fn passed(answer: Answer, reply: GivenReply) -> Passed {
    Passed { answer, reply, delivery: None }
}

const CHARGE: &str = r#"{"name":"charge"}"#;

#[test]
fn a_live_result_keeps_its_bytes_and_gains_a_receipt() {
    let live =
        r#"{"trace": 1.0, "id":"semel-1","result":{"content":[ ],"n":1.0,"big":18446744073709551616}}"#;
    let live = message(live);
    let passed = passed(answer(OutcomeWord::Ran, None, None), GivenReply::Live);
    let call = call(CHARGE);
    let around = RenderContext {
        call: &call,
        output: &OutputSchema::Free,
        look_with: LookWith::NotKnown,
        may_report: false,
        repeats: RepeatAdvice::NotByItself(Again::Person),
        ledger_elsewhere: false,
        server_has_ended: false,
    };
    let bytes = response(&passed, Some(&live), &around).to_bytes();
    let text = std::str::from_utf8(&bytes).unwrap();
    assert!(
        text.starts_with(r#"{"trace": 1.0, "id":7,"result":{"_meta":{"dev.semel/receipt":{"ok":true"#),
        "{text}"
    );
    assert!(text.ends_with(r#","content":[ ],"n":1.0,"big":18446744073709551616}}"#), "{text}");
}

#[test]
fn a_live_error_is_the_servers_own() {
    let live = message(r#"{"jsonrpc":"2.0","id":"semel-1","error":{"code":-32602,"message":"no"}}"#);
    let refused = passed(answer(OutcomeWord::Ran, Some(in_doubt()), None), GivenReply::Live);
    let response = given(&refused, Some(&live), CHARGE, &OutputSchema::Free);
    assert_eq!(response, json!({"jsonrpc": "2.0", "id": 7, "error": {"code": -32602, "message": "no"}}));
}

#[test]
fn a_replay_is_the_record_with_a_notice_after_it() {
    let recorded = br#"{"result":{"content":[{"type":"text","text":"ch_1"}],"_meta":{"own":1}}}"#.to_vec();
    let replay = answer(OutcomeWord::Replayed, None, Some("done 3 s ago; it was not run again"));
    let response = given(&passed(replay, GivenReply::Recorded(recorded)), None, CHARGE, &OutputSchema::Free);
    let texts: Vec<&str> = response["result"]["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|b| b["text"].as_str().unwrap())
        .collect();
    let notice = "[semel] Done 3 s ago; it was not run again. A person may allow a repeat (semel ledger).";
    assert_eq!(texts, ["ch_1", notice]);
    assert_eq!(response["result"]["_meta"]["own"], 1);
    assert_eq!(response["result"]["_meta"]["dev.semel/receipt"]["outcome"], "replayed");
}

/// `_meta` alone does not reach every model.
#[test]
fn a_possible_repeat_is_said_in_words() {
    let live = message(r#"{"id":"semel-1","result":{"content":[{"type":"text","text":"ch_2"}]}}"#);
    let repeat = Answer { possible_repeat: true, ..answer(OutcomeWord::Ran, None, None) };
    let response = given(&passed(repeat, GivenReply::Live), Some(&live), CHARGE, &OutputSchema::Free);
    let said = &response["result"]["content"][1]["text"];
    assert_eq!(said, "[semel] possible_repeat: the same call was done before, and this one ran too.");
}

const MODERN: &str = r#"{"name":"charge","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;

#[test]
fn what_was_recorded_for_the_other_era_is_said_to_be_whole() {
    let replay = |recorded: &str, params: &str| {
        let replayed = answer(OutcomeWord::Replayed, None, None);
        let reply = GivenReply::Recorded(recorded.as_bytes().to_vec());
        given(&passed(replayed, reply), None, params, &OutputSchema::Free)
    };
    let found = crate::reply::tool::encode(&json::parse(r#"{"id":"ch_1"}"#).unwrap(), &Secrets::default());
    for recorded in [r#"{"result":{"content":[]}}"#, std::str::from_utf8(&found).unwrap()] {
        assert_eq!(replay(recorded, MODERN)["result"]["resultType"], "complete", "{recorded}");
        assert_eq!(replay(recorded, CHARGE)["result"].get("resultType"), None, "{recorded}");
    }
    let own = r#"{"result":{"resultType":"input_required","inputRequests":{}}}"#;
    assert_eq!(replay(own, MODERN)["result"]["resultType"], "input_required");
    assert_eq!(replay(r#"{"error":{"code":1,"message":"no"}}"#, MODERN)["error"]["message"], "no");
}

#[test]
fn an_error_that_a_probe_made_clear_is_told_in_the_tools_own_words() {
    let refused =
        || answer(OutcomeWord::Ran, Some(Trouble { code: Code::UpstreamRefused, ..in_doubt() }), None);
    let passed = passed(refused(), GivenReply::None);
    for live in [
        r#"{"id":1,"result":{"isError":true,"content":[{"type":"text","text":"card timed out"}]}}"#,
        r#"{"id":1,"error":{"code":-32000,"message":"card timed out"}}"#,
    ] {
        let response = given(&passed, Some(&message(live)), CHARGE, &OutputSchema::Free);
        let blocks = response["result"]["content"].as_array().unwrap();
        assert_eq!(blocks[1]["text"], "The tool itself said: card timed out");
        assert_eq!(blocks.len(), 2);
    }
    let silent = given(&passed, None, CHARGE, &OutputSchema::Free);
    assert_eq!(silent["result"]["content"].as_array().unwrap().len(), 1);
}

#[test]
fn a_hold_is_a_tool_error_that_names_what_to_look_with() {
    let held = passed(answer(OutcomeWord::Held, Some(in_doubt()), None), GivenReply::None);
    let response = given(&held, None, CHARGE, &OutputSchema::Free);
    let result = &response["result"];
    assert_eq!(result["isError"], true);
    assert_eq!(
        result["content"][0]["text"],
        "[semel] in_doubt: It may have happened. Safe to retry: no. Check with `list_charges` whether it happened."
    );
    // Said once in words, and once as an object.
    assert_eq!(result["content"].as_array().map(Vec::len), Some(1));
    assert_eq!(result["_meta"]["dev.semel/receipt"]["code"], "in_doubt");
    assert_eq!(result.get("resultType"), None);
    assert_eq!(given(&held, None, MODERN, &OutputSchema::Free)["result"]["resultType"], "complete");
}

#[test]
fn a_result_that_its_schema_would_not_allow_is_told_as_an_error() {
    let done = || answer(OutcomeWord::Replayed, None, Some("ruled to be done 3 s ago"));
    let output = OutputSchema::Structured { types: Vec::new(), required: vec!["id".into()] };
    let unknown = given(&passed(done(), GivenReply::None), None, CHARGE, &output);
    assert_eq!(unknown["result"]["isError"], true);
    assert_eq!(
        given(&passed(done(), GivenReply::None), None, CHARGE, &OutputSchema::Free)["result"]["isError"],
        false
    );
    let kept =
        |id: &str| format!(r#"{{"result":{{"content":[],"structuredContent":{{"{id}":1}}}}}}"#).into_bytes();
    let fitting = given(&passed(done(), GivenReply::Recorded(kept("id"))), None, CHARGE, &output);
    assert_eq!(fitting["result"]["structuredContent"]["id"], 1);
    let unfit = given(&passed(done(), GivenReply::Recorded(kept("other"))), None, CHARGE, &output);
    assert_eq!(unfit["result"]["isError"], true);
}

#[test]
fn a_key_of_the_proposal_gets_the_proposals_errors() {
    let keyed = r#"{"name":"charge","idempotencyKey":"k"}"#;
    for (code, number, kind) in
        [(Code::InFlight, 409, "idempotency_key_in_progress"), (Code::Drift, 422, "idempotency_key_conflict")]
    {
        let trouble = Trouble { code, ..in_doubt() };
        let refused = passed(answer(OutcomeWord::Refused, Some(trouble), None), GivenReply::None);
        let response = given(&refused, None, keyed, &OutputSchema::Free);
        assert_eq!(
            (&response["error"]["code"], &response["error"]["data"]["type"]),
            (&number.into(), &kind.into())
        );
        assert_eq!(response["error"]["data"]["idempotencyKey"], "k");
        assert_eq!(given(&refused, None, CHARGE, &OutputSchema::Free)["result"]["isError"], true);
    }
}

#[test]
fn secrets_of_arguments_and_results_are_not_kept() {
    let call = call(r#"{"name":"login","arguments":{"password":"correct horse battery"}}"#);
    let rule = Policy::default().rule_for(&ActionFacts::new("mcp:s/login", &call.arguments));
    let secrets = Secrets::of(&call.arguments, &rule);
    let said = message(
        r#"{"id":1,"result":{"content":[{"type":"text","text":"hello correct horse battery"}],"structuredContent":{"access_token":"abc","n":1}}}"#,
    );
    let kept = String::from_utf8(recorded(&said, &secrets).unwrap()).unwrap();
    assert!(!kept.contains("horse") && !kept.contains("abc") && kept.contains("hello"), "{kept}");
    let plain = message(r#"{"id":1,"result":{"content":[ ],"n":1.0}}"#);
    assert_eq!(recorded(&plain, &secrets).unwrap(), br#"{"result":{"content":[ ],"n":1.0}}"#);
}

#[test]
fn a_result_is_kept_up_to_the_limit_with_what_stands_around_it() {
    let around = r#"{"result":{"text":""}}"#.len();
    let result = |bytes: usize| {
        let text = format!(r#"{{"id":1,"result":{{"text":"{}"}}}}"#, "x".repeat(bytes - around));
        recorded(&message(&text), &Secrets::default())
    };
    assert_eq!(result(REPLY_BYTES_MAX).map(|kept| kept.len()), Some(REPLY_BYTES_MAX));
    assert_eq!(result(REPLY_BYTES_MAX + 1), None);
}

/// A secret among them would be written as it is.
#[test]
fn a_result_of_more_values_than_are_read_is_not_kept() {
    let values = vec!["1"; json::VALUES_MAX].join(",");
    let many = format!(r#"{{"id":1,"result":{{"content":[{values}],"access_token":"abc"}}}}"#);
    assert_eq!(recorded(&message(&many), &Secrets::default()), None);
    let call = call(r#"{"name":"issue","arguments":{}}"#);
    let mut rule = Policy::default().rule_for(&ActionFacts::new("mcp:s/issue", &call.arguments));
    Arc::make_mut(&mut rule).sorting.secret = vec![json::Path::parse("reply.pin").unwrap()];
    let within =
        format!(r#"{{"id":1,"result":{{"content":[{{"text":"{{\"pin\":\"abc\",\"all\":[{values}]}}"}}]}}}}"#);
    assert_eq!(recorded(&message(&within), &Secrets::of(&call.arguments, &rule)), None);
}

/// Half a character, a member twice: other programs read such a result, and would find the secret in it.
#[test]
fn a_result_that_cannot_be_read_is_kept_only_if_it_shows_no_secret() {
    let call = call(r#"{"name":"issue","arguments":{}}"#);
    let mut rule = Policy::default().rule_for(&ActionFacts::new("mcp:s/issue", &call.arguments));
    Arc::make_mut(&mut rule).sorting.secret = vec![json::Path::parse("reply.pin").unwrap()];
    let marked = Secrets::of(&call.arguments, &rule);
    let deep = format!("{}{}", "[".repeat(150), "]".repeat(150));
    for beside in [r#""\ud83d""#, r#"{"a":1,"a":2}"#, &deep, "1e99999999"] {
        let said = |member: &str| {
            message(&format!(
                r#"{{"id":1,"result":{{"content":[],"structuredContent":{{{member},"x":{beside}}}}}}}"#
            ))
        };
        assert_eq!(recorded(&said(r#""pin":"abc""#), &marked), None, "{beside}");
        assert!(recorded(&said(r#""pin":"abc""#), &Secrets::default()).is_some(), "no rule asks: {beside}");
        let shaped = concat!(r#""k":"sk_li"#, r#"ve_51H8abcdefGHIJKLmnopqrstuvwx""#);
        for shown in [r#""access_token":"abc-def""#, shaped] {
            assert_eq!(recorded(&said(shown), &Secrets::default()), None, "{shown} {beside}");
        }
    }
}

#[test]
fn what_a_rule_calls_secret_of_a_reply_is_not_kept() {
    let call = call(r#"{"name":"issue","arguments":{}}"#);
    let mut rule = Policy::default().rule_for(&ActionFacts::new("mcp:s/issue", &call.arguments));
    Arc::make_mut(&mut rule).sorting.secret = vec![json::Path::parse("reply.card.number").unwrap()];
    let secrets = Secrets::of(&call.arguments, &rule);
    let said = message(
        r#"{"id":1,"result":{"content":[{"type":"text","text":"{\"card\":{\"number\":\"n-1\",\"of\":\"ann\"}}"},{"type":"text","text":"n is 1"}],"structuredContent":{"card":{"number":"n-1","of":"ann"}}}}"#,
    );
    let kept = String::from_utf8(recorded(&said, &secrets).unwrap()).unwrap();
    assert!(!kept.contains("n-1") && kept.matches("ann").count() == 2 && kept.contains("n is 1"), "{kept}");
    let found = json::parse(r#"{"card":{"number":"n-1","of":"ann"}}"#).unwrap();
    let kept = String::from_utf8(crate::reply::tool::encode(&found, &secrets)).unwrap();
    assert!(!kept.contains("n-1") && kept.contains("ann"), "{kept}");
}

/// A server or a gateway before it that answers with a page.
#[test]
fn of_a_page_that_may_hold_what_a_rule_calls_secret_only_the_status_is_told() {
    let call = call(r#"{"name":"issue","arguments":{}}"#);
    let mut rule = Policy::default().rule_for(&ActionFacts::new("mcp:s/issue", &call.arguments));
    let told = |rule: &_, line: &str| Secrets::of(&call.arguments, rule).out_of_page(line.to_owned());
    let page = r#"HTTP 502 {"pin":"4711"}"#;
    assert_eq!(told(&rule, page), page, "no rule asks");
    Arc::make_mut(&mut rule).sorting.secret = vec![json::Path::parse("reply.pin").unwrap()];
    assert_eq!(told(&rule, page), "HTTP 502");
    assert_eq!(told(&rule, "HTTP 502 Bad Gateway"), "HTTP 502 Bad Gateway");
    assert!(!told(&rule, "task 1 was cancelled. pin=4711").contains("4711"));
}

#[test]
fn a_model_is_told_of_the_ways_that_are_open_to_it() {
    let call = call(CHARGE);
    let around = |open: bool| RenderContext {
        call: &call,
        output: &OutputSchema::Free,
        look_with: LookWith::NotKnown,
        may_report: open,
        repeats: if open { RepeatAdvice::WithReason } else { RepeatAdvice::NotByItself(Again::Person) },
        ledger_elsewhere: false,
        server_has_ended: false,
    };
    let says = |passed: &Passed, open: bool| {
        String::from_utf8(response(passed, None, &around(open)).to_bytes().to_vec()).expect("text")
    };
    let held = passed(answer(OutcomeWord::Held, Some(in_doubt()), None), GivenReply::None);
    assert!(
        says(&held, true).contains("record the result with `semel_report`")
            && !says(&held, false).contains("semel_report")
    );
    let recorded = br#"{"result":{"content":[]}}"#.to_vec();
    let replay = answer(OutcomeWord::Replayed, None, Some("done 3 s ago"));
    let replayed = passed(replay, GivenReply::Recorded(recorded));
    assert!(
        says(&replayed, true).contains("say why in semel_again")
            && !says(&replayed, false).contains("semel_again")
    );
}

/// What a model reads, where it may repeat in this way.
fn told(passed: &Passed, repeats: RepeatAdvice, server_has_ended: bool) -> Value {
    told_about(CHARGE, passed, repeats, server_has_ended)
}

fn told_about(params: &str, passed: &Passed, repeats: RepeatAdvice, server_has_ended: bool) -> Value {
    let call = call(params);
    let around = RenderContext {
        call: &call,
        output: &OutputSchema::Free,
        look_with: LookWith::Probe("list_charges"),
        may_report: true,
        repeats,
        ledger_elsewhere: false,
        server_has_ended,
    };
    serde_json::from_slice(&response(passed, None, &around).to_bytes()).expect("a response is JSON")
}

#[test]
fn a_replay_says_how_this_tool_is_repeated() {
    let says = |params: &str, repeats| {
        let reason = "done 3 s ago";
        let recorded = br#"{"result":{"content":[]}}"#.to_vec();
        let replayed =
            passed(answer(OutcomeWord::Replayed, None, Some(reason)), GivenReply::Recorded(recorded));
        let told = told_about(params, &replayed, repeats, false);
        told["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(says(CHARGE, RepeatAdvice::Plainly), "[semel] Done 3 s ago. To repeat it, call it again.");
    let again =
        says(r#"{"name":"charge","arguments":{"semel_again":"they asked"}}"#, RepeatAdvice::WithReason);
    assert!(again.ends_with(" Another repeat needs a new reason in semel_again."), "{again}");
    let by_person = "[semel] Done 3 s ago. A person may allow a repeat (semel ledger).";
    assert_eq!(says(CHARGE, RepeatAdvice::NotByItself(Again::Person)), by_person);
    let joined = passed(
        answer(OutcomeWord::Joined, None, Some("done 1 s ago")),
        GivenReply::Recorded(br#"{"result":{"content":[]}}"#.to_vec()),
    );
    let told = told(&joined, RepeatAdvice::Plainly, false);
    let both_meant = "[semel] Done 1 s ago. To repeat it, call it again.";
    assert_eq!(told["result"]["content"][0]["text"], both_meant);
}

#[test]
fn drift_names_the_way_to_mean_both() {
    let next = |says: &str, repeats| {
        let trouble = Trouble { code: Code::Drift, next_step: says.into(), ..in_doubt() };
        let refused = passed(answer(OutcomeWord::Refused, Some(trouble), None), GivenReply::None);
        let response = told(&refused, repeats, false);
        response["result"]["_meta"][META_RECEIPT]["next_step"].as_str().unwrap().to_owned()
    };
    let over = format!("If you meant the earlier call, use its result. {}", wording::OR_TELL);
    assert!(
        next(&over, RepeatAdvice::WithReason).ends_with("make the same call and say why in `semel_again`.")
    );
    assert_eq!(next(&over, RepeatAdvice::NotByItself(Again::Person)), over);
    assert_eq!(next("It is still open.", RepeatAdvice::WithReason), "It is still open.");
}

#[test]
fn nobody_is_sent_to_a_tool_of_a_server_that_has_ended() {
    for (code, says) in
        [(Code::InDoubt, "once it is back, check with `list_charges`"), (Code::NotStarted, "Tell")]
    {
        let held =
            passed(answer(OutcomeWord::Held, Some(Trouble { code, ..in_doubt() }), None), GivenReply::None);
        let receipt = told(&held, RepeatAdvice::WithReason, true)["result"]["_meta"][META_RECEIPT].clone();
        let next = receipt["next_step"].as_str().unwrap();
        assert!(next.contains("once semel is restarted. ") && next.contains(says), "{next}");
        assert!(!next.contains("semel_report"), "{next}");
        assert!(receipt["human_next_step"].as_str().unwrap().starts_with("Start semel again"));
    }
}

#[test]
fn a_structure_of_any_kind_comes_back_and_the_notice_stands_beside_it() {
    let of = |kind: &str| OutputSchema::Structured { types: vec![kind.to_owned()], required: Vec::new() };
    let replay = || answer(OutcomeWord::Replayed, None, Some("done 3 s ago"));
    for (kind, structure) in [("array", "[1,2.0]"), ("string", r#""x""#), ("number", "7.0"), ("null", "null")]
    {
        let kept = format!(r#"{{"result":{{"content":[],"structuredContent":{structure}}}}}"#).into_bytes();
        let recorded = passed(replay(), GivenReply::Recorded(kept));
        let given = given(&recorded, None, MODERN, &of(kind));
        let result = &given["result"];
        assert_eq!(result["structuredContent"].to_string(), structure);
        assert_eq!(result.get("isError"), None);
        let notice = result["content"][0]["text"].as_str().unwrap();
        assert!(notice.starts_with("[semel] Done 3 s ago."), "{notice}");
    }
    let held = passed(answer(OutcomeWord::Held, Some(in_doubt()), None), GivenReply::None);
    for output in [of("array"), OutputSchema::Any] {
        let result = &given(&held, None, MODERN, &output)["result"];
        assert!(result["isError"] == true && result.get("structuredContent").is_none(), "{result}");
    }
}

#[test]
fn where_any_structure_will_do_an_answer_of_semels_own_is_one() {
    let done = passed(answer(OutcomeWord::Replayed, None, Some("ruled to be done")), GivenReply::None);
    let result = &given(&done, None, MODERN, &OutputSchema::Any)["result"];
    assert_eq!(
        (&result["isError"], &result["structuredContent"]["outcome"]),
        (&json!(false), &json!("replayed"))
    );
}

#[test]
fn what_there_is_to_look_with_is_named_and_that_there_is_nothing_is_said() {
    for (with, expected) in [
        (LookWith::Probe("list_charges"), "Check with `list_charges` whether it happened."),
        (
            LookWith::Reads(vec!["get_card", "list_charges"]),
            "Check with a read-only tool (`get_card`, `list_charges`) whether it happened.",
        ),
        (
            LookWith::Reads(Vec::new()),
            "No read-only tool of this server is known to show it: check in another way whether it happened.",
        ),
        (LookWith::NotKnown, "Check with a read-only tool whether it happened."),
    ] {
        let mut trouble = in_doubt();
        look_with(&mut trouble, &with);
        assert_eq!(trouble.next_step, expected);
    }
}
