//! Error texts and their readings, as tables. Most of them come from real servers.

use semel_core::json::parse;
use semel_core::judgement::error_text::{ErrorReading, is_about_arguments, is_failure, lost, read};
use semel_core::judgement::failure::{FailureMeaning, weigh};

const IN_DOUBT: &str = include_str!("error_texts_in_doubt.txt");

fn is_doubt(says: &ErrorReading) -> bool {
    matches!(says, ErrorReading::Lost(_) | ErrorReading::Done(_))
}

#[test]
fn no_error_behind_which_something_may_have_happened_is_a_refusal() {
    let texts = IN_DOUBT.lines().filter(|line| !line.starts_with("# "));
    let texts = texts.map(|line| line.replace("\\n", "\n").replace("\\t", "\t").replace("\\r", "\r"));
    let refused: Vec<_> = texts.filter(|text| read(text) == ErrorReading::Refused).collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn a_plain_refusal_is_one() {
    for text in [
        "Invalid amount",
        "card_declined: card declined",
        "HTTP 404",
        "Error (422): x",
        "failed to create issue: POST https://api.example.com/issues: 401 Bad credentials []",
        "ENOENT: no such file",
        "Access denied - path outside allowed directories: /etc not in /a",
        "Rate limit is 5000 per hour",
        "title must be at most 200 characters",
        "channel_not_found",
        "Not allowed for this account",
        "Label invalid, created_at missing",
        r#"{"error":"label not found","created":false}"#,
        r#"{"error":"label not found","created":0,"issue_id":null}"#,
        r#"{"errors":[{"message":"title is required","path":["title"]}],"data":null}"#,
        r#"{"status":404,"object":"error","message":"Could not find page"}"#,
        r#"{"error":{"type":"API_ERROR","message":"no","details":{"status":401}}}"#,
        r#"Failed to x: {"statusCode":422,"name":"validation_error","message":"Invalid `from`"}"#,
    ] {
        assert_eq!(read(text), ErrorReading::Refused, "{text}");
    }
}

/// Denials are not understood: whatever has a word of something done in it is looked at by somebody.
#[test]
fn a_word_of_something_done_is_a_doubt_wherever_it_stands() {
    for text in [
        "Issue was not created: invalid title",
        "Invalid status: must be one of draft, sent or paid",
        "Daily quota exceeded. You have sent 500 emails",
        r#"{"error":"not found","issue_id":12}"#,
        r#"{"success":true,"error":"not found"}"#,
        r#"{"success":"true","error":"not found"}"#,
        r#"{"status":201,"error":"not found"}"#,
        r#"{"status":"HTTP 200","error":"invalid cc"}"#,
        r#"{"status":"complete","errors":["cc not found"]}"#,
        r#"[{"error":"invalid"},{"id":1}]"#,
    ] {
        assert!(is_doubt(&read(text)), "{text}");
    }
}

#[test]
fn a_lost_answer_a_server_that_failed_and_code_that_broke_are_doubts() {
    for text in [
        "Request timed out",
        "not found (500)",
        "status 503",
        "HTTP/1.1 502 Bad Gateway",
        "quota, 500: errors",
        "connection reset while not found",
        "KeyError: missing required field x",
        "java.lang.NullPointerException: invalid",
        "invalid literal for int() with base 10: 'T-17'",
        "Unexpected token '<', \"<html>502\"... is not valid JSON",
        "Output validation error: 'id' is a required property",
        "Invalid arguments: timeout must be a number",
    ] {
        assert!(is_doubt(&read(text)), "{text}");
    }
}

#[test]
fn an_error_that_says_nothing_of_these_is_left_to_what_is_at_stake() {
    for text in [
        "",
        "failed",
        "An unexpected error occurred",
        "Something went wrong",
        "oops",
        "7",
        "could not invalidate the cache",
    ] {
        assert_eq!(read(text), ErrorReading::Nothing, "{text}");
    }
    for text in ["Import stopped after 400 rows", "Error: 404 rows failed", "gave up (404 rows)"] {
        assert_eq!(read(text), ErrorReading::Nothing, "{text}");
    }
    assert_eq!(weigh(&ErrorReading::Nothing, true), FailureMeaning::InDoubt);
    assert_eq!(weigh(&ErrorReading::Nothing, false), FailureMeaning::Reported);
    for once in [true, false] {
        assert_eq!(weigh(&ErrorReading::Refused, once), FailureMeaning::Refused);
        assert_eq!(weigh(&ErrorReading::Lost("timeout".into()), once), FailureMeaning::InDoubt);
        assert_eq!(weigh(&ErrorReading::Done("sent".into()), once), FailureMeaning::InDoubt);
    }
}

#[test]
fn parts_of_an_error_are_a_doubt_if_one_of_them_is() {
    let begun = || ErrorReading::Done("created".into());
    for (one, other, both) in [
        (ErrorReading::Refused, begun(), begun()),
        (begun(), ErrorReading::Refused, begun()),
        (ErrorReading::Refused, ErrorReading::Nothing, ErrorReading::Refused),
        (ErrorReading::Nothing, ErrorReading::Refused, ErrorReading::Refused),
        (ErrorReading::Nothing, ErrorReading::Nothing, ErrorReading::Nothing),
    ] {
        assert_eq!(one.and(other), both);
    }
}

#[test]
fn the_output_of_a_command_is_read_for_a_lost_answer_alone() {
    assert!(lost("curl: (22) The requested URL returned error: 503").is_some());
    assert!(lost("upstream: gateway timeout").is_some());
    assert!(lost("HTTP 500").is_some());
    assert!(lost("BAD_GATEWAY").is_some());
    for text in
        ["file created", "Traceback (most recent call last)", "500 files", "not found", "main.rs:500:5"]
    {
        assert_eq!(lost(text), None, "{text}");
    }
}

#[test]
fn a_framework_that_refuses_arguments_has_not_run_the_tool() {
    for (text, is_so) in [
        ("Input validation error: 'Invoice sent' is too long", true),
        ("MCP error -32602: Input validation error: Invalid arguments for tool charge", true),
        (
            "Error executing tool charge: 1 validation error for chargeArguments\namount\n  Field required",
            true,
        ),
        (
            "2 validation errors for call[charge]\nnote\n  Input should be shorter [input_value='was sent']",
            true,
        ),
        (
            "Error executing tool charge: 1 validation error for Charge\nid\n  Input should be an integer",
            false,
        ),
        ("Error executing tool charge: 1 validation error for emailArguments\nto\n  Field required", false),
        ("receipt: 1 validation error for emailArguments\nto\n  Field required", false),
    ] {
        assert_eq!(is_about_arguments(text), is_so, "{text}");
    }
}

#[test]
fn an_object_that_only_tells_of_a_failure_is_one() {
    for text in [
        r#"{"error": "fetch failed"}"#,
        r#"{"Error": {"Message": "no"}, "requestId": "r"}"#,
        r#"{"object": "error", "status": 404, "message": "Could not find page"}"#,
        r#"{"success": false, "message": "no", "data": null}"#,
        r#"{"ok": false}"#,
        r#"{"status": "Failed"}"#,
        r#"{"errors": [{"message": "no"}], "data": null}"#,
        r#"{"message": "Issue created", "errors": ["label not found"]}"#,
    ] {
        assert!(is_failure(&parse(text).unwrap()), "{text}");
    }
    for text in [
        r#"{"id": "t1", "error": "no avatar"}"#,
        r#"{"error": null, "message": "sent"}"#,
        r#"{"errors": [{"message": "no"}], "data": {"issue": {"id": "i"}}}"#,
        r#"{"status": "ok"}"#,
        r#"{"success": true, "message": "Sent to 2 of 3", "errors": ["invalid address"]}"#,
        r#"{"message": "error"}"#,
        r#"{"status": 200, "errors": ["label not found"]}"#,
        r#"[{"error": "no"}]"#,
        "{}",
    ] {
        assert!(!is_failure(&parse(text).unwrap()), "{text}");
    }
}

/// Words come from anywhere: no cut falls into a character.
#[test]
fn any_text_can_be_read() {
    for text in ["", "/", "\u{e4}", "\u{1f600}/sent", "(4\u{0660}4)", "{", "[", "{\"a\":", "\u{130}\u{df}"] {
        let _ = (read(text), lost(text), is_about_arguments(text));
    }
}

/// The page of the defaults and the code have the same words.
#[test]
fn the_words_are_those_of_the_page() {
    const PAGE: &str = include_str!("../../../../spec/judgement.md");
    const CODE: &str = include_str!("../../src/judgement/error_text.rs");
    let rows = PAGE.split("| words of | which |\n|---|---|\n").nth(1).expect("the table");
    let rows = rows.lines().take_while(|line| line.starts_with('|'));
    let on_page: Vec<String> = rows.map(|row| row.split('|').nth(2).unwrap().trim().to_owned()).collect();
    for (name, words) in ["LOST", "BROKEN", "DONE", "REFUSED", "FAILURE_MEMBERS"].iter().zip(&on_page) {
        let table = CODE.split(&format!("const {name}: &str =")).nth(1).expect("a table");
        let table = table.split('"').nth(1).unwrap().replace("\\\n", " ");
        let in_code = table.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(&in_code, words, "{name}");
    }
    assert_eq!(on_page.len(), 5);
}
