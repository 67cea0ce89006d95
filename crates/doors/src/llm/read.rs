//! Reads an upstream's answer into the place where its readers wait for it.

use super::api::{Api, Turn};
use super::live::{Form, Head, Live};
use crate::http::client::Incoming;
use crate::http::headers::unshare;
use crate::http::sse::Parser;
use crate::proxy::Offer;
use crate::proxy::headers::{downward, is_read_as_it_is};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response};
use http_body_util::BodyExt;
use std::time::Duration;

/// An upstream that says nothing for this long says nothing more: as long as the SDKs of these APIs wait.
pub const SILENCE_MAX: Duration = Duration::from_secs(600);

/// After its end a stream closes at once. One that stays open is not waited for.
const CLOSING_TAKES_MAX: Duration = Duration::from_millis(20);

/// The largest event: an image in one piece fits.
const EVENT_BYTES_MAX: usize = 32 << 20;

/// Tells proxies in between not to hold events back.
const UNBUFFERED: HeaderName = HeaderName::from_static("x-accel-buffering");

/// How the answer came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Came {
    /// All of it: a document to its last byte, a stream with its terminal event.
    Whole,
    /// An error in the middle of a stream.
    Failed,
    /// It broke off.
    Broken(String),
}

/// How a response begins, made ready for the next connection.
pub fn head(response: &Response<Incoming>, offer: &Offer) -> Head {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let events = kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream");
    let mut headers = downward(response.headers().clone(), response.status(), offer);
    let form = match events && response.status().is_success() && is_read_as_it_is(&headers) {
        true => Form::Events,
        false => Form::Document,
    };
    if form == Form::Events {
        headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache, no-transform"));
        headers.entry(UNBUFFERED).or_insert(HeaderValue::from_static("no"));
    }
    unshare(&mut headers);
    Head { status: response.status(), headers, form }
}

pub async fn document(live: &Live, mut body: Incoming, has_end: bool) -> Came {
    loop {
        match next(live, &mut body, SILENCE_MAX).await {
            Ok(Some(data)) => live.push(data, false),
            Ok(None) if has_end || is_json(live) => return Came::Whole,
            Ok(None) => return Came::Broken("the connection ended before the answer did".into()),
            Err(why) => return Came::Broken(why),
        }
    }
}

/// Events are given on one by one. The one that ends the answer is held back until it is settled, and whatever comes
/// behind it.
pub async fn events(api: Api, live: &Live, mut body: Incoming) -> Came {
    let mut parser = Parser::with_limit(EVENT_BYTES_MAX);
    let mut came: Option<Came> = None;
    loop {
        let patience = if came.is_some() { CLOSING_TAKES_MAX } else { SILENCE_MAX };
        let data = match (next(live, &mut body, patience).await, &came) {
            (Ok(Some(data)), _) => data,
            (Ok(None) | Err(_), Some(came)) => return came.clone(),
            (Ok(None), None) => {
                live.push(parser.rest(), true);
                return Came::Broken("the stream ended before the answer did".into());
            }
            (Err(why), None) => return Came::Broken(why),
        };
        parser.push(&data);
        loop {
            match parser.next_piece() {
                Ok(None) => break,
                Err(error) => return Came::Broken(error.to_string()),
                Ok(Some(piece)) => {
                    came = came.or(match api.turn(&piece.fields) {
                        Turn::On => None,
                        Turn::Whole => Some(Came::Whole),
                        Turn::Failed => Some(Came::Failed),
                    });
                    live.push(piece.raw, came.is_none());
                }
            }
        }
    }
}

fn is_json(live: &Live) -> bool {
    let whole =
        |pieces: Vec<Bytes>| serde_json::from_slice::<serde::de::IgnoredAny>(&pieces.concat()).is_ok();
    // One that is too long to be kept is not looked at.
    live.whole().map_or(true, whole)
}

/// The next bytes; `None` at the end.
async fn next(live: &Live, body: &mut Incoming, patience: Duration) -> Result<Option<Bytes>, String> {
    live.room().await;
    loop {
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
