//! What an answer cost, in tokens, as far as its API says so.

use super::api::Api;
use super::form::data_events;
use super::live::Form;
use crate::http::sse::Parser;
use bytes::Bytes;
pub use semel_core::policy::prices::Tokens;
use serde_json::Value;

/// Counts stand in the first or in one of the last events of a stream.
const FIRST: usize = 2;
const LAST: usize = 8;

/// What a whole answer cost. A stream of a chat says so only if its client has asked, and is else counted by its events.
/// `None`: nothing is known.
pub fn of(api: Api, form: Form, pieces: &[Bytes]) -> Option<Tokens> {
    said(api, form, pieces).or_else(|| Some(so_far(api, form, pieces)).filter(|tokens| tokens.output > 0))
}

fn said(api: Api, form: Form, pieces: &[Bytes]) -> Option<Tokens> {
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
        Form::Document => add(&super::classify::joined(pieces)),
        Form::Events => {
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
pub fn of_whole(api: Api, form: Form, body: &Bytes) -> Option<Tokens> {
    match form {
        Form::Document => of(api, form, std::slice::from_ref(body)),
        Form::Events => {
            let mut parser = Parser::default();
            parser.push(body);
            let pieces =
                std::iter::from_fn(|| Some(parser.next_piece().ok()?.or_else(|| parser.last_piece())?.raw));
            of(api, form, &pieces.collect::<Vec<_>>())
        }
    }
}

/// What a generation that was ended had cost until then: what the API has said, and about a token for each event.
pub fn so_far(api: Api, form: Form, pieces: &[Bytes]) -> Tokens {
    let said = said(api, form, pieces).unwrap_or_default();
    let events = match form {
        Form::Document => 0,
        Form::Events => pieces.iter().filter(|piece| contains(piece, b"delta")).count() as u64,
    };
    Tokens { output: said.output.max(events), ..said }
}

/// Later counts are totals, and take the place of earlier ones.
fn counted(api: Api, usage: &Value, tokens: &mut Tokens) {
    let count = |name: &str| usage[name].as_u64();
    let (input, output) = match api {
        Api::Chat => (count("prompt_tokens"), count("completion_tokens")),
        Api::Responses => (count("input_tokens"), count("output_tokens")),
        Api::Messages => {
            // What is read from or written to the cache is counted apart, and is input all the same.
            let cached = ["cache_creation_input_tokens", "cache_read_input_tokens"];
            let cached: u64 = cached.iter().filter_map(|name| count(name)).sum();
            (count("input_tokens").map(|input| input + cached), count("output_tokens"))
        }
    };
    tokens.input = input.unwrap_or(tokens.input);
    tokens.output = output.unwrap_or(tokens.output);
}

/// Whether a piece says nothing: proxies keep a line open with these.
fn is_comment(piece: &Bytes) -> bool {
    matches!(piece.first(), None | Some(b':' | b'\n' | b'\r'))
}

pub(super) fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(texts: &[&str]) -> Vec<Bytes> {
        texts.iter().map(|text| Bytes::from(format!("data: {text}\n\n"))).collect()
    }

    #[test]
    fn tokens_are_found_where_each_api_says_them() {
        let chat = pieces(&[
            r#"{"choices":[],"usage":null}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":5}}"#,
            "[DONE]",
        ]);
        assert_eq!(of(Api::Chat, Form::Events, &chat), Some(Tokens { input: 9, output: 5 }));
        assert_eq!(of(Api::Chat, Form::Events, &chat[..1]), None);
        let silent = pieces(&[
            r#"{"choices":[{"delta":{"content":"a"}}]}"#,
            r#"{"choices":[{"delta":{"content":"b"}}]}"#,
            "[DONE]",
        ]);
        assert_eq!(of(Api::Chat, Form::Events, &silent), Some(Tokens { input: 0, output: 2 }));
        let comment = Bytes::from_static(b": still here\n\n");
        let kept_open =
            [vec![comment.clone(); 3], chat[..2].to_vec(), vec![comment; 9], chat[2..].to_vec()].concat();
        assert_eq!(of(Api::Chat, Form::Events, &kept_open), Some(Tokens { input: 9, output: 5 }));
        let document = [
            Bytes::from_static(br#"{"usage":{"#),
            Bytes::from_static(br#""prompt_tokens":1,"completion_tokens":2}}"#),
        ];
        assert_eq!(of(Api::Chat, Form::Document, &document), Some(Tokens { input: 1, output: 2 }));
        let responses = pieces(&[
            r#"{"type":"response.completed","response":{"usage":{"input_tokens":9,"output_tokens":5}}}"#,
        ]);
        assert_eq!(of(Api::Responses, Form::Events, &responses), Some(Tokens { input: 9, output: 5 }));
        let mut messages = pieces(&[
            r#"{"message":{"usage":{"input_tokens":9,"cache_read_input_tokens":100,"output_tokens":1}}}"#,
        ]);
        messages.extend(vec![Bytes::from_static(b"data: {\"delta\":{}}\n\n"); 40]);
        assert_eq!(so_far(Api::Messages, Form::Events, &messages), Tokens { input: 109, output: 40 });
        messages.extend(pieces(&[r#"{"type":"message_delta","usage":{"output_tokens":20}}"#, "{}"]));
        assert_eq!(of(Api::Messages, Form::Events, &messages), Some(Tokens { input: 109, output: 20 }));
    }
}
