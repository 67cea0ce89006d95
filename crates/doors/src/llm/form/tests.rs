//! Every shape that the APIs have, in both directions.

use super::events::{data_events, event};
use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

fn events(list: &[Value]) -> String {
    list.iter().map(|data| event(data["type"].as_str().expect("a type"), data.clone())).collect()
}

fn chunks(list: &[Value]) -> String {
    let said: String = list.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    said + "data: [DONE]\n\n"
}

fn document(api: ModelApi, stream: &str) -> Value {
    let bytes = converted(api, AnswerForm::Document, stream.as_bytes(), false).expect("a whole stream");
    serde_json::from_slice(&bytes).expect("a document")
}

/// A document becomes a stream, and that stream becomes the document again.
fn there_and_back(api: ModelApi, whole: &Value) -> Value {
    let stream = converted(api, AnswerForm::Events, whole.to_string().as_bytes(), true).expect("a document");
    document(api, std::str::from_utf8(&stream).expect("text"))
}

fn chunk(choices: Value) -> Value {
    json!({"id": "c1", "object": "chat.completion.chunk", "created": 7, "model": "m", "choices": choices,
           "system_fingerprint": "fp", "service_tier": "default", "obfuscation": "xxxx"})
}

#[test]
fn chunks_of_chat_add_up_to_text_refusal_and_tool_calls() {
    let call = |index: u64, call: Value| {
        let mut call = call;
        call["index"] = json!(index);
        chunk(json!([{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": null}]))
    };
    let stream = chunks(&[
        chunk(
            json!([{"index": 0, "delta": {"role": "assistant", "content": "", "refusal": null}, "finish_reason": null}]),
        ),
        chunk(json!([{"index": 0, "delta": {"content": "Hel"}}])),
        chunk(json!([{"index": 0, "delta": {"content": "lo", "role": "assistant"}}])),
        call(1, json!({"id": "call_2", "type": "function", "function": {"name": "pay", "arguments": ""}})),
        call(
            0,
            json!({"id": "call_1", "type": "function", "function": {"name": "charge", "arguments": "{\"a\""}}),
        ),
        call(0, json!({"id": "", "type": "", "function": {"name": "", "arguments": ":9007199254740993}"}})),
        call(1, json!({"id": "call_2", "function": {"name": "pay", "arguments": "{}"}})),
        chunk(json!([{"index": 0, "delta": {"reasoning_content": "because"}}])),
        chunk(json!([{"index": 0, "delta": {}, "finish_reason": "tool_calls"}])),
        json!({"id": "c1", "object": "chat.completion.chunk", "created": 7, "model": "m", "choices": [],
               "usage": {"prompt_tokens": 9, "completion_tokens": 5}}),
    ]);
    assert_eq!(
        document(ModelApi::Chat, &stream),
        json!({
            "id": "c1", "object": "chat.completion", "created": 7, "model": "m", "system_fingerprint": "fp",
            "service_tier": "default", "usage": {"prompt_tokens": 9, "completion_tokens": 5},
            "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
                "role": "assistant", "content": "Hello", "refusal": null, "reasoning_content": "because",
                "tool_calls": [
                    {"id": "call_1", "type": "function",
                     "function": {"name": "charge", "arguments": "{\"a\":9007199254740993}"}},
                    {"id": "call_2", "type": "function", "function": {"name": "pay", "arguments": "{}"}},
                ],
            }}],
        })
    );
}

#[test]
fn numbers_are_as_they_were_said() {
    let logprobs = "-0.9200864349327219";
    let stream = format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"logprobs\":{{\"content\":[{{\"logprob\":{logprobs}}}]}}}}]}}\n\n\
         data: [DONE]\n\n"
    );
    let bytes =
        converted(ModelApi::Chat, AnswerForm::Document, stream.as_bytes(), false).expect("a whole stream");
    assert!(String::from_utf8_lossy(&bytes).contains(logprobs), "{bytes:?}");
}

#[test]
fn no_digit_of_a_number_is_lost_in_any_direction() {
    let numbers =
        "[123456789012345678901234567890,-0,1.50,1E+2,0.30000000000000000001,1e999,9007199254740993]";
    let chat = format!("{{\"choices\":[{{\"index\":0,\"message\":{{\"x\":{numbers}}}}}],\"x\":{numbers}}}");
    let message = format!(
        "{{\"content\":[{{\"type\":\"tool_use\",\"input\":{{\"x\":{numbers}}},\"x\":{numbers}}}],\"x\":{numbers}}}"
    );
    let response = format!("{{\"id\":\"r\",\"output\":[{{\"x\":{numbers}}}],\"x\":{numbers}}}");
    for (api, whole) in
        [(ModelApi::Chat, chat), (ModelApi::Messages, message), (ModelApi::Responses, response)]
    {
        let stream = converted(api, AnswerForm::Events, whole.as_bytes(), true).expect("a document");
        let said = String::from_utf8_lossy(&stream);
        assert!(said.matches(numbers).count() >= whole.matches(numbers).count(), "{said}");
        let again = converted(api, AnswerForm::Document, &stream, true).expect("a stream");
        let again = String::from_utf8_lossy(&again);
        assert_eq!(again.matches(numbers).count(), whole.matches(numbers).count(), "{again}");
    }
    // Of a number that is said twice the last holds, and it never becomes a text.
    let x = |x: &str| format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"x\":{x}}}}}]}}\n\n");
    let last = |first: &str, second: &str| {
        let stream = format!("{}{}data: [DONE]\n\n", x(first), x(second));
        converted(ModelApi::Chat, AnswerForm::Document, stream.as_bytes(), false)
    };
    let twice = last("1e2", "1e3").expect("a whole stream");
    assert!(String::from_utf8_lossy(&twice).contains("\"x\":1e3}"), "{twice:?}");
    assert_eq!(last("1e2", "\"text\""), None);
    for bad in ["01", "1-2", "-", "1.", "\"\u{fdd0}1\u{fdd0}\"", "\"\\uFDD01\\ufdd0\""] {
        assert_eq!(last("1e2", bad), None, "{bad}");
    }
}

#[test]
fn a_chunk_that_says_only_what_it_cost_is_told_from_others() {
    let says = |data: &str| says_only_usage(format!("data: {data}\n\n").as_bytes());
    assert!(says(r#"{"choices": [], "usage": {"prompt_tokens": 9}}"#));
    for other in [
        r#"{"choices":[{"delta":{"content":"\"usage\":{}"}}],"usage":null}"#,
        r#"{"choices":[{"delta":{}}],"usage":{"prompt_tokens":9}}"#,
        r#"{"choices":[],"usage":null}"#,
        "[DONE]",
    ] {
        assert!(!says(other), "{other}");
    }
    assert!(!says_only_usage(b": usage\n\n"));
}

#[test]
fn calls_that_share_a_number_are_not_made_one() {
    let call = |id: &str, name: &str| {
        let call =
            json!({"index": 0, "id": id, "type": "function", "function": {"name": name, "arguments": "{}"}});
        chunk(json!([{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": null}]))
    };
    let stream = chunks(&[call("call_1", "f"), call("call_2", "g")]);
    assert_eq!(converted(ModelApi::Chat, AnswerForm::Document, stream.as_bytes(), false), None);
}

/// The calls of the document, if there is one.
fn calls(deltas: &[Value]) -> Option<Value> {
    let delta = |calls: &Value| chunk(json!([{"index": 0, "delta": {"tool_calls": calls}}]));
    let stream = chunks(&deltas.iter().map(delta).collect::<Vec<_>>());
    let bytes = converted(ModelApi::Chat, AnswerForm::Document, stream.as_bytes(), false)?;
    let whole: Value = serde_json::from_slice(&bytes).expect("a document");
    Some(whole["choices"][0]["message"]["tool_calls"].clone())
}

#[test]
fn parts_of_calls_belong_to_the_call_of_their_number_or_to_none() {
    let begins = |id: &str, name: &str| json!({"id": id, "function": {"name": name, "arguments": "{"}});
    let numbered = |index: Value, mut call: Value| {
        call["index"] = index;
        call
    };
    let goes_on = json!({"function": {"arguments": "}"}});
    let (f, g) = (begins("call_1", "f"), begins("call_2", "g"));
    let whole = |id: &str, name: &str| json!({"id": id, "function": {"name": name, "arguments": "{}"}});
    let both = json!([whole("call_1", "f"), whole("call_2", "g")]);
    let (zero, one) = (json!(0), json!(1));
    let at_once = json!([
        numbered(zero.clone(), f.clone()),
        numbered(zero.clone(), goes_on.clone()),
        numbered(one.clone(), g.clone()),
        numbered(one.clone(), goes_on.clone()),
    ]);
    assert_eq!(calls(&[at_once]), Some(both.clone()));
    let whole_without_numbers = [json!([both[0]]), json!([both[1]])];
    assert_eq!(calls(&whole_without_numbers), Some(both.clone()));
    assert_eq!(calls(std::slice::from_ref(&both)), Some(both));
    let nameless = |name: &str| numbered(zero.clone(), json!({"function": {"name": name}}));
    for unclear in [
        vec![json!([numbered(zero.clone(), f.clone()), numbered(zero.clone(), g.clone())])],
        vec![json!([nameless("f"), nameless("g")])],
        vec![json!([f]), json!([goes_on])],
        vec![json!([f]), json!([f])],
        vec![json!([f]), json!([numbered(zero.clone(), goes_on.clone())])],
        vec![json!([numbered(zero.clone(), f.clone())]), json!([g])],
        vec![json!([numbered(json!("0"), f.clone())])],
    ] {
        assert_eq!(calls(&unclear), None, "{unclear:?}");
    }
}

#[test]
fn content_of_parts_is_given_whole_or_not_at_all() {
    let content = |contents: &[Value]| {
        let delta = |content: &Value| chunk(json!([{"index": 0, "delta": {"content": content}}]));
        let stream = chunks(&contents.iter().map(delta).collect::<Vec<_>>());
        let bytes = converted(ModelApi::Chat, AnswerForm::Document, stream.as_bytes(), false)?;
        let whole: Value = serde_json::from_slice(&bytes).expect("a document");
        Some(whole["choices"][0]["message"]["content"].clone())
    };
    let thinks = json!([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]);
    assert_eq!(content(&[json!(""), thinks.clone(), json!("")]), Some(thinks.clone()));
    for mixed in [
        vec![json!(""), thinks.clone(), json!("text")],
        vec![json!("text"), thinks.clone()],
        vec![thinks.clone(), thinks],
    ] {
        assert_eq!(content(&mixed), None, "{mixed:?}");
    }
}

#[test]
fn choices_without_numbers_are_not_made_one() {
    let said = |text: &str| json!({"delta": {"content": text}});
    let one = chunks(&[chunk(json!([said("a")])), chunk(json!([said("b")]))]);
    assert_eq!(document(ModelApi::Chat, &one)["choices"][0]["message"]["content"], "ab");
    let two = chunks(&[chunk(json!([said("a"), said("b")]))]);
    assert_eq!(converted(ModelApi::Chat, AnswerForm::Document, two.as_bytes(), false), None);
}

#[test]
fn what_details_are_written_in_is_said_once() {
    let detail = |text: &str| {
        let detail = json!({"type": "reasoning.text", "format": "f-v1", "index": 0, "text": text});
        chunk(json!([{"index": 0, "delta": {"reasoning_details": [detail]}}]))
    };
    let whole = document(ModelApi::Chat, &chunks(&[detail("a"), detail("b")]));
    assert_eq!(
        whole["choices"][0]["message"]["reasoning_details"],
        json!([{"type": "reasoning.text", "format": "f-v1", "index": 0, "text": "ab"}])
    );
}

#[test]
fn what_comes_behind_the_end_is_no_part_of_it() {
    let chat = chunks(&[chunk(json!([{"index": 0, "delta": {"content": "a"}}]))]);
    assert_eq!(document(ModelApi::Chat, &(chat.clone() + "data: more\n\n")), document(ModelApi::Chat, &chat));
    let said =
        events(&[json!({"type": "message_start", "message": {"id": "m"}}), json!({"type": "message_stop"})]);
    assert_eq!(
        document(ModelApi::Messages, &(said.clone() + "data: [DONE]\n\n")),
        document(ModelApi::Messages, &said)
    );
}

#[test]
fn the_last_event_needs_no_blank_line() {
    for (api, whole) in
        [(ModelApi::Chat, completion()), (ModelApi::Messages, message()), (ModelApi::Responses, response())]
    {
        let stream =
            converted(api, AnswerForm::Events, whole.to_string().as_bytes(), true).expect("a document");
        let stream = std::str::from_utf8(&stream).expect("text");
        assert_eq!(document(api, stream.trim_end()), whole);
    }
}

#[test]
fn a_stream_without_what_it_cost_is_else_the_same() {
    let said = ": hello\n\ndata: {\"choices\":[{}],\"usage\":null}\r\n\r\n";
    let cost = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9}}\r\n\r\n";
    let stream = Bytes::from(format!("{said}{cost}data: [DONE]\n"));
    assert_eq!(without_usage(stream), format!("{said}data: [DONE]\n"));
}

#[test]
fn choices_of_chat_are_kept_apart_with_their_logprobs_and_what_nobody_knows_yet() {
    let stream = chunks(&[
        chunk(
            json!([{"index": 1, "delta": {"role": "assistant", "content": "b"}, "logprobs": {"content": [{"token": "b", "logprob": -0.25}], "refusal": null}}]),
        ),
        chunk(
            json!([{"index": 0, "delta": {"role": "assistant", "content": "a"}, "logprobs": null, "later": {"x": 1}}]),
        ),
        chunk(
            json!([{"index": 1, "delta": {"content": "c"}, "logprobs": {"content": [{"token": "c", "logprob": -1e-7}]}}]),
        ),
        chunk(
            json!([{"index": 0, "delta": {"refusal": "no"}, "finish_reason": "content_filter"}, {"index": 1, "delta": {}, "finish_reason": "length"}]),
        ),
    ]);
    let whole = document(ModelApi::Chat, &stream);
    assert_eq!(
        whole["choices"],
        json!([
            {"index": 0, "finish_reason": "content_filter", "later": {"x": 1}, "logprobs": null,
             "message": {"role": "assistant", "content": "a", "refusal": "no"}},
            {"index": 1, "finish_reason": "length",
             "logprobs": {"content": [{"token": "b", "logprob": -0.25}, {"token": "c", "logprob": -1e-7}], "refusal": null},
             "message": {"role": "assistant", "content": "bc"}},
        ])
    );
    assert_eq!(whole.get("usage"), None);
}

fn completion() -> Value {
    json!({
        "id": "c1", "object": "chat.completion", "created": 7, "model": "m", "system_fingerprint": null,
        "usage": {"total_tokens": 14},
        "choices": [
            {"index": 0, "finish_reason": "tool_calls", "logprobs": null, "message": {
                "role": "assistant", "content": null, "refusal": null, "annotations": [{"type": "url_citation"}],
                "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                               {"id": "call_2", "type": "function", "function": {"name": "f", "arguments": "{\"b\":1}"}}]}},
            {"index": 1, "finish_reason": "stop", "logprobs": {"content": [{"token": "x"}]}, "content_filter_results": {},
             "message": {"role": "assistant", "content": "text", "reasoning_content": "why"}},
        ],
    })
}

#[test]
fn a_document_of_chat_survives_the_way_there_and_back() {
    let whole = completion();
    assert_eq!(there_and_back(ModelApi::Chat, &whole), whole);
    let unasked = converted(ModelApi::Chat, AnswerForm::Events, whole.to_string().as_bytes(), false)
        .expect("a document");
    assert!(!String::from_utf8_lossy(&unasked).contains("usage"));
}

#[test]
fn what_a_form_cannot_say_is_not_converted() {
    for stream in [
        // No end.
        "data: {\"choices\":[]}\n\n",
        "data: {\"choices\":[\n\ndata: [DONE]\n\n",
        "data: [1]\n\ndata: [DONE]\n\n",
        "",
    ] {
        assert_eq!(
            converted(ModelApi::Chat, AnswerForm::Document, stream.as_bytes(), false),
            None,
            "{stream}"
        );
    }
    let sound = chunks(&[chunk(json!([{"index": 0, "delta": {"audio": {"data": "AAA="}}}]))]);
    assert_eq!(converted(ModelApi::Chat, AnswerForm::Document, sound.as_bytes(), false), None);
    for whole in ["", "[]", "{}", "{\"choices\":[1]}", "{\"content\":[1]}", "{\"content\":[{}]}"] {
        for api in [ModelApi::Chat, ModelApi::Messages] {
            assert_eq!(converted(api, AnswerForm::Events, whole.as_bytes(), false), None, "{whole}");
        }
    }
    let queued = json!({"id": "r", "status": "queued", "output": []}).to_string();
    assert_eq!(converted(ModelApi::Responses, AnswerForm::Events, queued.as_bytes(), false), None);
}

fn message() -> Value {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use",
        "stop_sequence": null, "container": {"id": "ctr"},
        "content": [
            {"type": "thinking", "thinking": "let me see", "signature": "sig=="},
            {"type": "redacted_thinking", "data": "opaque"},
            {"type": "text", "text": "Hello", "citations": [{"type": "char_location", "cited_text": "x"}, {"type": "char_location", "cited_text": "y"}]},
            {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "q"}},
            {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [{"type": "web_search_result", "url": "u"}]},
            {"type": "tool_use", "id": "toolu_1", "name": "charge", "input": {}},
            {"type": "of_tomorrow", "parts": [1, 2.5]},
        ],
        "usage": {"input_tokens": 9, "output_tokens": 20, "cache_read_input_tokens": 0, "server_tool_use": {"web_search_requests": 1}},
    })
}

#[test]
fn a_message_survives_the_way_there_and_back() {
    assert_eq!(there_and_back(ModelApi::Messages, &message()), message());
}

#[test]
fn blocks_of_a_message_grow_by_what_each_kind_grows_by() {
    let delta =
        |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let start = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let stream = events(&[
        json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "content": [],
               "model": "m", "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 9, "cache_read_input_tokens": 3, "output_tokens": 1}}}),
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        json!({"type": "ping"}),
        delta(0, json!({"type": "thinking_delta", "thinking": "let "})),
        delta(0, json!({"type": "thinking_delta", "thinking": "me"})),
        delta(0, json!({"type": "signature_delta", "signature": "sig"})),
        json!({"type": "content_block_stop", "index": 0}),
        start(1, json!({"type": "text", "text": ""})),
        delta(1, json!({"type": "citations_delta", "citation": {"cited_text": "a"}})),
        delta(1, json!({"type": "text_delta", "text": "Hé"})),
        delta(1, json!({"type": "citations_delta", "citation": {"cited_text": "b"}})),
        delta(1, json!({"type": "text_delta", "text": "llo"})),
        start(2, json!({"type": "tool_use", "id": "t", "name": "charge", "input": {}})),
        delta(2, json!({"type": "input_json_delta", "partial_json": ""})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "{\"amount\": 900719925474"})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "0993.10, \"b\":[1e2]}"})),
        start(3, json!({"type": "of_tomorrow", "words": "a", "list": null})),
        delta(3, json!({"type": "of_tomorrow_delta", "words": "b", "list": [1]})),
        delta(3, json!({"type": "of_tomorrow_delta", "list": [2]})),
        json!({"type": "of_tomorrow_event"}),
        json!({"type": "message_delta", "delta": {"stop_reason": "stop_sequence", "stop_sequence": "END"},
               "usage": {"output_tokens": 20, "cache_read_input_tokens": null}, "context_management": {"applied_edits": []}}),
        json!({"type": "message_stop"}),
    ]);
    let bytes = converted(ModelApi::Messages, AnswerForm::Document, stream.as_bytes(), false)
        .expect("a whole stream");
    let text = std::str::from_utf8(&bytes).expect("text");
    assert!(
        text.contains(r#""input":{"amount": 9007199254740993.10, "b":[1e2]}"#),
        "to the last digit: {text}"
    );
    let whole: Value = serde_json::from_slice(&bytes).expect("a document");
    assert_eq!(
        whole["content"],
        json!([
            {"type": "thinking", "thinking": "let me", "signature": "sig"},
            {"type": "text", "text": "Héllo", "citations": [{"cited_text": "a"}, {"cited_text": "b"}]},
            {"type": "tool_use", "id": "t", "name": "charge", "input": whole["content"][2]["input"]},
            {"type": "of_tomorrow", "words": "ab", "list": [1, 2]},
        ])
    );
    assert_eq!(whole["usage"], json!({"input_tokens": 9, "cache_read_input_tokens": 3, "output_tokens": 20}));
    assert_eq!((&whole["stop_reason"], &whole["stop_sequence"]), (&json!("stop_sequence"), &json!("END")));
    assert_eq!(whole["context_management"], json!({"applied_edits": []}));
}

#[test]
fn what_a_message_began_with_is_not_taken_back_by_null() {
    let block = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let fallback = json!({"type": "fallback", "from": {"model": "big"}, "to": {"model": "small"}});
    let whole = document(
        ModelApi::Messages,
        &events(&[
            json!({"type": "message_start", "message": {"id": "m", "model": "big", "content": [], "container": {"id": "c"},
                   "input_transformations": [1], "stop_reason": "x", "usage": {"input_tokens": 9, "output_tokens": 1}}}),
            block(0, fallback.clone()),
            block(1, json!({"type": "thinking", "thinking": "", "signature": "early"})),
            json!({"type": "content_block_delta", "index": 1, "delta": {"type": "signature_delta", "signature": "late"}}),
            json!({"type": "message_delta", "delta": {"stop_reason": null, "container": null, "model": "other"},
                   "input_transformations": null, "context_management": null, "usage": {"output_tokens": 7, "input_tokens": null}}),
            json!({"type": "message_stop"}),
        ]),
    );
    assert_eq!(
        whole,
        json!({
            "id": "m", "model": "small", "container": {"id": "c"}, "input_transformations": [1], "stop_reason": null,
            "context_management": null, "usage": {"input_tokens": 9, "output_tokens": 7},
            "content": [fallback, {"type": "thinking", "thinking": "", "signature": "late"}],
        })
    );
}

#[test]
fn blocks_that_cannot_be_told_apart_make_no_message() {
    let start = json!({"type": "message_start", "message": {"id": "m", "content": []}});
    let block =
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "a"}});
    let stop = json!({"type": "message_stop"});
    let mut unnumbered = block.clone();
    unnumbered["index"] = Value::Null;
    let begun =
        json!({"type": "message_start", "message": {"id": "m", "content": [{"type": "text", "text": "a"}]}});
    let astray =
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "b"}});
    for said in [
        [&start, &block, &block],
        [&start, &unnumbered, &block],
        [&start, &block, &astray],
        [&block, &start, &stop],
        [&begun, &block, &stop],
    ] {
        let stream = events(&said.map(Clone::clone)) + &events(std::slice::from_ref(&stop));
        assert_eq!(
            converted(ModelApi::Messages, AnswerForm::Document, stream.as_bytes(), false),
            None,
            "{stream}"
        );
    }
}

#[test]
fn a_tool_input_that_broke_off_is_not_completed() {
    let stream = |input: &str| {
        events(&[
            json!({"type": "message_start", "message": {"id": "m", "content": []}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "pay", "input": {}}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": input}}),
            json!({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 1}}),
            json!({"type": "message_stop"}),
        ])
    };
    assert_eq!(
        converted(ModelApi::Messages, AnswerForm::Document, stream("{\"amount\": 42").as_bytes(), false),
        None
    );
    assert!(
        converted(ModelApi::Messages, AnswerForm::Document, stream("{\"amount\": 42}").as_bytes(), false)
            .is_some()
    );
    let unended = stream("{}").replace("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", "");
    assert_eq!(converted(ModelApi::Messages, AnswerForm::Document, unended.as_bytes(), false), None);
}

fn response() -> Value {
    json!({
        "id": "resp_1", "object": "response", "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"},
        "error": null, "usage": {"input_tokens": 9, "output_tokens": 5}, "metadata": {},
        "output": [
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "why"}], "encrypted_content": "xx"},
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [
                {"type": "output_text", "text": "Hello", "annotations": [{"type": "url_citation"}], "logprobs": []},
                {"type": "refusal", "refusal": "no"}, {"type": "of_tomorrow", "x": 1}]},
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": "{\"a\":1}", "status": "completed"},
            {"type": "custom_tool_call", "id": "ct_1", "call_id": "call_2", "name": "g", "input": "text"},
            {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "aGk="},
        ],
    })
}

#[test]
fn a_response_survives_the_way_there_and_back_and_its_events_are_numbered() {
    assert_eq!(there_and_back(ModelApi::Responses, &response()), response());
    let stream = converted(ModelApi::Responses, AnswerForm::Events, response().to_string().as_bytes(), false)
        .expect("a document");
    let said: Vec<Value> =
        data_events(&stream).map(|data| serde_json::from_slice(&data).expect("an event")).collect();
    for (number, event) in said.iter().enumerate() {
        assert_eq!(event["sequence_number"], json!(number));
    }
    let kinds: Vec<&str> = said.iter().filter_map(|event| event["type"].as_str()).collect();
    assert_eq!((kinds[0], kinds[kinds.len() - 1]), ("response.created", "response.incomplete"));
    assert_eq!(said[0]["response"]["output"], json!([]));
    assert!(kinds.contains(&"response.function_call_arguments.done"));
}

#[test]
fn the_terminal_event_of_a_response_is_taken_as_it_stands() {
    let stream = "event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"output_index\":1,\"item\":{\"id\":\"b\"}}\n\n\
                  data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"id\":\"a\",\"n\":1.50}}\n\n\
                  event: response.completed\ndata: {\"type\":\"response.completed\",\"response\": { \"id\":\"r\", \"output\":[{\"id\":\"own\"}], \"n\":1.0 }}\n\n";
    let whole =
        converted(ModelApi::Responses, AnswerForm::Document, stream.as_bytes(), false).expect("it is whole");
    assert_eq!(whole, r#"{ "id":"r", "output":[{"id":"own"}], "n":1.0 }"#);
    let bare = stream.replace(r#"[{"id":"own"}]"#, "[]");
    let whole =
        converted(ModelApi::Responses, AnswerForm::Document, bare.as_bytes(), false).expect("it is whole");
    assert_eq!(whole, r#"{"id":"r","n":1.0,"output":[{"id":"a","n":1.50},{"id":"b"}]}"#);
    let begun = "data: {\"type\":\"response.output_item.added\",\"output_index\":2,\"item\":{}}\n\n";
    for unclear in [
        bare.replace("\"output_index\":1,", ""),
        bare.replace("\"output_index\":1,", "\"output_index\":null,"),
        bare.replace("\"output_index\":1,", "\"output_index\":0,"),
        bare.replace("\"output_index\":1,", "\"output_index\":2,"),
        format!("{begun}{bare}"),
        format!("{begun}{bare}").replace("\"output_index\":2,", ""),
    ] {
        assert_eq!(
            converted(ModelApi::Responses, AnswerForm::Document, unclear.as_bytes(), false),
            None,
            "{unclear}"
        );
    }
    let failed = format!("{begun}{}", bare.replace("response.completed", "response.failed"));
    for failed in [failed.replace("\"output_index\":2,", ""), failed] {
        assert_eq!(
            converted(ModelApi::Responses, AnswerForm::Document, failed.as_bytes(), false),
            Some(whole.clone())
        );
    }
    let unended = stream.replace("response.completed", "response.in_progress");
    assert_eq!(converted(ModelApi::Responses, AnswerForm::Document, unended.as_bytes(), false), None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_text_cut_anywhere_adds_up_to_itself(text in "\\PC{0,40}", cuts in prop::collection::vec(0usize..40, 0..6)) {
        let characters: Vec<char> = text.chars().collect();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(characters.len())).collect();
        cuts.extend([0, characters.len()]);
        cuts.sort_unstable();
        let parts: Vec<String> = cuts.windows(2).map(|pair| characters[pair[0]..pair[1]].iter().collect()).collect();
        let chat: Vec<Value> = parts.iter().map(|part| chunk(json!([{"index": 0, "delta": {"content": part}}]))).collect();
        prop_assert_eq!(&document(ModelApi::Chat, &chunks(&chat))["choices"][0]["message"]["content"], &json!(text));
        let mut said = vec![
            json!({"type": "message_start", "message": {}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        ];
        said.extend(parts.iter().map(|part| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": part}})));
        said.push(json!({"type": "message_stop"}));
        prop_assert_eq!(&document(ModelApi::Messages, &events(&said))["content"][0]["text"], &json!(text));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), words in "[\\[\\]{},:\"a-z0-9 \\n]{0,80}") {
        for api in [ModelApi::Chat, ModelApi::Responses, ModelApi::Messages] {
            for form in [AnswerForm::Document, AnswerForm::Events] {
                for body in [&bytes[..], words.as_bytes(), format!("data: {words}\n\ndata: [DONE]\n\n").as_bytes()] {
                    let _ = converted(api, form, body, true);
                }
            }
        }
    }
}
