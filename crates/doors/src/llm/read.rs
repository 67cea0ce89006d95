//! Reads an upstream's answer into the place where its readers wait for it.

use super::api::{DONE, ModelApi, StreamStep};
use super::live_answer::{AnswerForm, AnswerHead, LiveAnswer};
use crate::http::client::Incoming;
use crate::http::headers::unshare;
use crate::http::sse::{Parser, TooLarge};
use crate::proxy::Offer;
use crate::proxy::headers::{downward, is_read_as_it_is};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response};
use http_body_util::BodyExt;
use serde::de::IgnoredAny;
use std::time::Duration;

/// An upstream that says nothing for this long says nothing more: as long as the SDKs of these APIs wait.
pub const SILENCE_MAX: Duration = Duration::from_secs(600);

/// After its end a stream closes at once. One that stays open is not waited for, whatever it still says.
const CLOSING_TAKES_MAX: Duration = Duration::from_millis(20);

/// The largest event: an image in one piece fits.
const EVENT_BYTES_MAX: usize = 32 << 20;

/// Tells proxies in between not to hold events back.
const UNBUFFERED: HeaderName = HeaderName::from_static("x-accel-buffering");

/// How the answer came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reception {
    /// All of it: a document to its last byte, a stream with its terminal event.
    Whole,
    /// An error in the middle of a stream, which is closed behind it or was left open.
    Failed { closed: bool },
    /// It broke off.
    Broken(String),
}

/// How a response begins, made ready for the next connection.
pub fn head(response: &Response<Incoming>, offer: &Offer) -> AnswerHead {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let events = kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream");
    let mut headers = downward(response.headers().clone(), response.status(), offer);
    let form = match events && response.status().is_success() && is_read_as_it_is(&headers) {
        true => AnswerForm::Events,
        false => AnswerForm::Document,
    };
    if form == AnswerForm::Events {
        headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache, no-transform"));
        headers.entry(UNBUFFERED).or_insert(HeaderValue::from_static("no"));
    }
    unshare(&mut headers);
    AnswerHead { status: response.status(), headers, form }
}

pub async fn document(live: &LiveAnswer, mut body: Incoming) -> Reception {
    let has_end = body.has_end();
    loop {
        match next(live, &mut body, SILENCE_MAX).await {
            Ok(Some(data)) => live.push(data, false),
            Ok(None) if has_end || is_json(live) => return Reception::Whole,
            Ok(None) => return Reception::Broken("the connection ended before the answer did".into()),
            Err(why) => return Reception::Broken(why),
        }
    }
}

/// Events are given on one by one. The one that ends the answer is held back until it is settled, and whatever comes
/// behind it.
pub async fn events(api: ModelApi, live: &LiveAnswer, mut body: Incoming) -> Reception {
    let mut parser = Parser::with_limit(EVENT_BYTES_MAX);
    let failed = loop {
        match next(live, &mut body, SILENCE_MAX).await {
            Ok(Some(data)) => parser.push(&data),
            Ok(None) => return left_over(api, live, &mut parser),
            Err(why) => return Reception::Broken(why),
        }
        match give_on(api, live, &mut parser) {
            Ok(StreamStep::On) => {}
            Ok(StreamStep::Whole) => break false,
            Ok(StreamStep::Failed) => break true,
            Err(error) => return Reception::Broken(error.to_string()),
        }
    };
    let closed = tokio::select! {
        biased;
        () = tokio::time::sleep(CLOSING_TAKES_MAX) => false,
        closed = closes(live, &mut body, &mut parser) => closed,
    };
    if failed { Reception::Failed { closed } } else { Reception::Whole }
}

/// Gives on the events that are complete.
fn give_on(api: ModelApi, live: &LiveAnswer, parser: &mut Parser) -> Result<StreamStep, TooLarge> {
    let mut turn = StreamStep::On;
    loop {
        match parser.next_piece() {
            Ok(Some(piece)) => {
                if turn == StreamStep::On {
                    turn = api.turn(&piece.fields);
                }
                live.push(piece.raw, turn == StreamStep::On);
            }
            Err(error) if turn == StreamStep::On => return Err(error),
            Ok(None) | Err(_) => return Ok(turn),
        }
    }
}

/// Reads what comes behind the end. Whether the body ended by itself, so that its connection can be used again.
async fn closes(live: &LiveAnswer, body: &mut Incoming, parser: &mut Parser) -> bool {
    loop {
        match next(live, body, SILENCE_MAX).await {
            Ok(Some(data)) => parser.push(&data),
            ended => return ended.is_ok(),
        }
        while let Ok(Some(piece)) = parser.next_piece() {
            live.push(piece.raw, false);
        }
    }
}

/// The body ended by itself. What is left over then is an event for the SDKs too. Where nobody said how long the body
/// is, it may have been cut all the same: its name alone does not make it whole.
fn left_over(api: ModelApi, live: &LiveAnswer, parser: &mut Parser) -> Reception {
    let ended_early = Reception::Broken("the stream ended before the answer did".into());
    let Some(piece) = parser.last_piece() else { return ended_early };
    let is_whole = |data: &Bytes| {
        data.trim_ascii() == DONE.as_bytes() || serde_json::from_slice::<IgnoredAny>(data).is_ok()
    };
    let turn = match piece.fields.data.as_ref().is_some_and(is_whole) {
        true => api.turn(&piece.fields),
        false => StreamStep::On,
    };
    live.push(piece.raw, turn == StreamStep::On);
    match turn {
        StreamStep::On => ended_early,
        StreamStep::Whole => Reception::Whole,
        StreamStep::Failed => Reception::Failed { closed: true },
    }
}

fn is_json(live: &LiveAnswer) -> bool {
    let whole = |pieces: Vec<Bytes>| serde_json::from_slice::<IgnoredAny>(&pieces.concat()).is_ok();
    // One that is too long to be kept is not looked at.
    live.whole().map_or(true, whole)
}

/// The next bytes; `None` at the end.
async fn next(live: &LiveAnswer, body: &mut Incoming, patience: Duration) -> Result<Option<Bytes>, String> {
    live.room().await;
    loop {
        // One read may bring thousands of tiny pieces, and others have to be served in between.
        tokio::task::coop::consume_budget().await;
        let frame = tokio::time::timeout(patience, body.frame()).await;
        match frame {
            Err(_) => return Err(format!("nothing came for {} seconds", patience.as_secs())),
            Ok(None) => return Ok(None),
            Ok(Some(Err(error))) => return Err(format!("the connection broke off: {error}")),
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) => return Ok(Some(data)),
                Err(_trailers) => {}
            },
        }
    }
}
