//! The cost of an answer, in tokens, as far as its API says so.

use super::api::ModelApi;
use super::form::events::{contains, data_events};
use super::live_answer::AnswerForm;
use crate::http::sse::Parser;
use bytes::Bytes;
pub use semel_core::policy::prices::TokenUsage;
use serde_json::Value;

/// Counts stand in the first or in one of the last events of a stream.
const FIRST: usize = 2;
const LAST: usize = 8;

/// What a whole answer cost. A stream of a chat says so only if its client has asked, and is else counted by its
/// events. `None`: nothing is known.
pub fn of(api: ModelApi, form: AnswerForm, pieces: &[Bytes]) -> Option<TokenUsage> {
    said(api, form, pieces).or_else(|| Some(so_far(api, form, pieces)).filter(|tokens| tokens.output > 0))
}

fn said(api: ModelApi, form: AnswerForm, pieces: &[Bytes]) -> Option<TokenUsage> {
    let mut tokens = None;
    let mut add = |data: &[u8]| {
        let Ok(said) = serde_json::from_slice::<Value>(data) else { return };
        // Where each API puts it: at the top, in the response that an event carries, in the message that begins.
        for usage in [&said["usage"], &said["response"]["usage"], &said["message"]["usage"]] {
            if usage.is_object() {
                counted(api, usage, tokens.get_or_insert_default());
            }
        }
    };
    match form {
        AnswerForm::Document => add(&super::classify::joined(pieces)),
        AnswerForm::Events => {
            let events = || pieces.iter().filter(|piece| !is_comment(piece));
            let mut last: Vec<_> = events().rev().take(LAST).collect();
            last.reverse();
            // One that is among both is counted twice, and later counts take the place of earlier ones.
            for piece in events().take(FIRST).chain(last).filter(|piece| contains(piece, b"\"usage\"")) {
                data_events(piece).for_each(|data| add(&data));
            }
        }
    }
    tokens
}

/// The same of an answer in one piece.
pub fn of_whole(api: ModelApi, form: AnswerForm, body: &Bytes) -> Option<TokenUsage> {
    match form {
        AnswerForm::Document => of(api, form, std::slice::from_ref(body)),
        AnswerForm::Events => {
            let mut parser = Parser::default();
            parser.push(body);
            let pieces =
                std::iter::from_fn(|| Some(parser.next_piece().ok()?.or_else(|| parser.last_piece())?.raw));
            of(api, form, &pieces.collect::<Vec<_>>())
        }
    }
}

/// The cost of a generation that was ended, until then: the API's own count, and about a token for each event. What
/// was sent is not guessed.
pub fn so_far(api: ModelApi, form: AnswerForm, pieces: &[Bytes]) -> TokenUsage {
    let said = said(api, form, pieces).unwrap_or_default();
    let events = match form {
        AnswerForm::Document => 0,
        AnswerForm::Events => pieces.iter().filter(|piece| contains(piece, b"delta")).count() as u64,
    };
    TokenUsage { output: said.output.max(events), ..said }
}

/// Later counts are totals, and take the place of earlier ones.
fn counted(api: ModelApi, usage: &Value, tokens: &mut TokenUsage) {
    let count = |name: &str| usage[name].as_u64();
    let ([input, output], details) = match api {
        ModelApi::Chat => (["prompt_tokens", "completion_tokens"], &usage["prompt_tokens_details"]),
        ModelApi::Responses => (["input_tokens", "output_tokens"], &usage["input_tokens_details"]),
        ModelApi::Messages => (["input_tokens", "output_tokens"], usage),
    };
    let [read, written] = match api {
        ModelApi::Chat | ModelApi::Responses => ["cached_tokens", "cache_write_tokens"],
        ModelApi::Messages => ["cache_read_input_tokens", "cache_creation_input_tokens"],
    };
    tokens.cache_read = details[read].as_u64().unwrap_or(tokens.cache_read);
    tokens.cache_write = details[written].as_u64().unwrap_or(tokens.cache_write);
    if let Some(input) = count(input) {
        tokens.input = Some(match api {
            ModelApi::Chat | ModelApi::Responses => input,
            // TokenUsage read from or written to the cache are counted apart, and is input all the same.
            ModelApi::Messages => input.saturating_add(tokens.cache_read).saturating_add(tokens.cache_write),
        });
    }
    tokens.output = count(output).unwrap_or(tokens.output);
}

/// Whether a piece says nothing: proxies keep a line open with these.
fn is_comment(piece: &Bytes) -> bool {
    matches!(piece.first(), None | Some(b':' | b'\n' | b'\r'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(texts: &[&str]) -> Vec<Bytes> {
        texts.iter().map(|text| Bytes::from(format!("data: {text}\n\n"))).collect()
    }

    fn took(input: u64, output: u64) -> TokenUsage {
        TokenUsage { input: Some(input), output, ..TokenUsage::default() }
    }

    #[test]
    fn tokens_are_found_where_each_api_says_them() {
        let chat = pieces(&[
            r#"{"choices":[],"usage":null}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":5}}"#,
            "[DONE]",
        ]);
        assert_eq!(of(ModelApi::Chat, AnswerForm::Events, &chat), Some(took(9, 5)));
        assert_eq!(of(ModelApi::Chat, AnswerForm::Events, &chat[..1]), None);
        let silent = pieces(&[
            r#"{"choices":[{"delta":{"content":"a"}}]}"#,
            r#"{"choices":[{"delta":{"content":"b"}}]}"#,
            "[DONE]",
        ]);
        assert_eq!(
            of(ModelApi::Chat, AnswerForm::Events, &silent),
            Some(TokenUsage { input: None, ..took(0, 2) })
        );
        let comment = Bytes::from_static(b": still here\n\n");
        let kept_open =
            [vec![comment.clone(); 3], chat[..2].to_vec(), vec![comment; 9], chat[2..].to_vec()].concat();
        assert_eq!(of(ModelApi::Chat, AnswerForm::Events, &kept_open), Some(took(9, 5)));
        let document = [
            Bytes::from_static(br#"{"usage":{"#),
            Bytes::from_static(br#""prompt_tokens":1,"completion_tokens":2}}"#),
        ];
        assert_eq!(of(ModelApi::Chat, AnswerForm::Document, &document), Some(took(1, 2)));
        let responses = pieces(&[
            r#"{"type":"response.completed","response":{"usage":{"input_tokens":9,"output_tokens":5}}}"#,
        ]);
        assert_eq!(of(ModelApi::Responses, AnswerForm::Events, &responses), Some(took(9, 5)));
        let cached = |output| TokenUsage { cache_read: 100, ..took(109, output) };
        let mut messages = pieces(&[
            r#"{"message":{"usage":{"input_tokens":9,"cache_read_input_tokens":100,"output_tokens":1}}}"#,
        ]);
        messages.extend(vec![Bytes::from_static(b"data: {\"delta\":{}}\n\n"); 40]);
        assert_eq!(so_far(ModelApi::Messages, AnswerForm::Events, &messages), cached(40));
        messages.extend(pieces(&[r#"{"type":"message_delta","usage":{"output_tokens":20}}"#, "{}"]));
        assert_eq!(of(ModelApi::Messages, AnswerForm::Events, &messages), Some(cached(20)));
    }

    #[test]
    fn what_a_cache_took_part_in_is_input_and_counted_apart() {
        let used = TokenUsage { input: Some(1_030), cache_read: 1_000, cache_write: 20, output: 5 };
        let said = [
            (
                ModelApi::Chat,
                r#"{"usage":{"prompt_tokens":1030,"completion_tokens":5,
                    "prompt_tokens_details":{"cached_tokens":1000,"cache_write_tokens":20}}}"#,
            ),
            (
                ModelApi::Responses,
                r#"{"usage":{"input_tokens":1030,"output_tokens":5,
                    "input_tokens_details":{"cached_tokens":1000,"cache_write_tokens":20}}}"#,
            ),
            (
                ModelApi::Messages,
                r#"{"usage":{"input_tokens":10,"output_tokens":5,
                    "cache_read_input_tokens":1000,"cache_creation_input_tokens":20}}"#,
            ),
        ];
        for (api, document) in said {
            assert_eq!(of(api, AnswerForm::Document, &[Bytes::from_static(document.as_bytes())]), Some(used));
        }
        // The last event of a stream repeats some of it, or none.
        let stream = pieces(
            &[
                r#"{"message":{"usage":{"input_tokens":10,"cache_read_input_tokens":1000,
                "cache_creation_input_tokens":20,"output_tokens":1}}}"#,
                r#"{"type":"message_delta","usage":{"input_tokens":10,"output_tokens":5}}"#,
            ]
            .map(|text| text.replace('\n', ""))
            .each_ref()
            .map(String::as_str),
        );
        assert_eq!(of(ModelApi::Messages, AnswerForm::Events, &stream), Some(used));
    }
}
