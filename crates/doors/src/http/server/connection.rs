//! A client's connection: one request after the other, each of which is answered before the next is read.

use super::departure::Departure;
use super::incoming::Incoming;
use super::line::{Ahead, Line};
use super::problem::problem;
use crate::http::outgoing::{Outgoing, Unwritten};
use crate::http::wire::{Answer, Asked, Asker, Extent, Malformed};
use crate::runtime::RuntimeClock;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{Request, StatusCode, Version};
use http_body::Body as _;
use semel_core::time::At;
use semel_gate::clock::Clock;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, Sleep};

/// A client sends its headers at once, or it is not a client; an idle connection is kept as long.
const HEADER_TIME_MAX: Duration = Duration::from_secs(30);

/// A client that takes nothing of its answer for this long takes nothing more. Some do other work between two reads.
const TAKES_NOTHING_MAX: Duration = Duration::from_secs(120);

/// What the kernel takes of an answer before it has sent it. It tells of room only once a part of all it holds has left,
/// which can be megabytes: a client that takes an answer slowly would look like one that takes nothing.
#[cfg(target_os = "linux")]
const UNSENT_BYTES_MAX: u32 = 128 * 1024;

/// How long the rest of a request may take that was answered before it was read.
const REST_TIME_MAX: Duration = Duration::from_secs(30);

/// How long a client may still send what nobody reads. Hung up on in the middle, it would not hear its answer.
const LINGER_TIME_MAX: Duration = Duration::from_secs(2);

/// How often a client is looked at that has sent too much ahead to be heard.
const LOOKS_EVERY: Duration = Duration::from_secs(1);

/// An answer, and what is held until all of it was written.
#[derive(Debug)]
pub struct Answered<H> {
    pub response: Response,
    pub held: H,
}

/// Answers what comes until the client goes away, or until told to stop and nothing is under way.
pub async fn talk<H, F: Future<Output = Answered<H>>>(
    stream: TcpStream,
    answer: impl Fn(Request<Body>) -> F,
    stopped: watch::Receiver<bool>,
) {
    set_up(&stream);
    let line = Line::new(stream);
    answer_all(&line, answer, stopped).await;
    // Whoever still reads a body must not keep the connection.
    line.cuts_off();
}

/// What works without it works less well.
fn set_up(stream: &TcpStream) {
    // Events are small and wanted at once.
    let _slower = stream.set_nodelay(true);
    #[cfg(target_os = "linux")]
    let _coarser = socket2::SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES_MAX);
}

async fn answer_all<H, F: Future<Output = Answered<H>>>(
    line: &Line,
    answer: impl Fn(Request<Body>) -> F,
    stopped: watch::Receiver<bool>,
) {
    let (clock, mut patience) = (RuntimeClock::start(), Patience::new());
    let mut stopping = stopped.clone();
    let mut stop = pin!(async { drop(stopping.wait_for(|stopped| *stopped).await) });
    let mut was_told = false;
    loop {
        let asked = tokio::select! {
            biased;
            asked = patience.with(poll_fn(|context| line.poll_question(context))) => asked,
            () = &mut stop, if !was_told => {
                was_told = true;
                if line.is_idle() {
                    return;
                }
                continue;
            }
        };
        let Asked { parts, framing, asker, waits_for_word } = match asked {
            Some(Ok(Some(asked))) => asked,
            Some(Err(malformed)) => {
                let why = malformed.to_string();
                return refuse(line, &mut patience, status_for(&malformed), &why, clock.now()).await;
            }
            None if !line.is_idle() => {
                let why = "its headers did not come in time";
                return refuse(line, &mut patience, StatusCode::REQUEST_TIMEOUT, why, clock.now()).await;
            }
            Some(Ok(None)) | None => return,
        };
        let request = Request::from_parts(parts, Incoming::body(line, framing, waits_for_word));
        let answered = tokio::select! {
            biased;
            // Boxed, so that a connection without a request is small.
            answered = Box::pin(answer(request)) => answered,
            () = goes(line) => return,
        };
        let Answered { response, held } = answered;
        let stays = asker.stays && !*stopped.borrow() && line.can_go_on();
        let asker = Asker { stays, ..asker };
        let Ok(stays) = write(line, &mut patience, response, asker, clock.now()).await else { return };
        drop(held);
        if !(is_read(line).await && stays) {
            return hang_up(line).await;
        }
    }
}

/// How long a client is waited for.
struct Patience {
    /// Set anew only when it is over: most of what is waited for comes long before.
    sleep: Pin<Box<Sleep>>,
    until: Instant,
}

impl Patience {
    fn new() -> Patience {
        let until = crate::runtime::moment() + HEADER_TIME_MAX;
        Patience { sleep: Box::pin(tokio::time::sleep_until(until)), until }
    }

    fn begins(&mut self, span: Duration) {
        self.until = crate::runtime::moment() + span;
        if self.until < self.sleep.deadline() {
            self.sleep.as_mut().reset(self.until);
        }
    }

    fn poll_over(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.sleep.as_mut().poll(context));
            if self.until <= crate::runtime::moment() {
                return Poll::Ready(());
            }
            self.sleep.as_mut().reset(self.until);
        }
    }

    /// `None`: it took too long.
    async fn with<T>(&mut self, waited_for: impl Future<Output = T>) -> Option<T> {
        self.begins(HEADER_TIME_MAX);
        let mut waited_for = pin!(waited_for);
        poll_fn(|context| match waited_for.as_mut().poll(context) {
            Poll::Ready(came) => Poll::Ready(Some(came)),
            Poll::Pending => self.poll_over(context).map(|()| None),
        })
        .await
    }
}

/// Writes an answer to its end. Whether another request may follow.
async fn write(
    line: &Line,
    patience: &mut Patience,
    response: Response,
    asker: Asker,
    now: At,
) -> Result<bool, Unwritten> {
    let (mut parts, body) = response.into_parts();
    let mut departure = parts.extensions.remove::<Departure>();
    let Answer { head, extent, stays } = Answer::of(&parts, body.size_hint(), asker, now);
    drop(parts);
    let mut outgoing = match extent {
        Some(extent) => Outgoing::new(head, extent, body),
        None => Outgoing::whole(head, Bytes::new()),
    };
    let mut to = line.clone();
    let mut goes = pin!(goes(line));
    let mut is_taken = true;
    let written = poll_fn(|context| {
        loop {
            let taken = outgoing.poll_take(context)?;
            if outgoing.has_something() {
                let with_this_part = departure.as_ref().is_some_and(Departure::is_with_this_part);
                if outgoing.is_all_taken() || with_this_part {
                    // Before its end is written: nobody reads it who has hung up. A look afterwards would take a client
                    // that is quick to close for one that has gone.
                    departure.take_if(|_| line.has_hung_up());
                }
                if let Poll::Ready(written) = outgoing.poll_write_some(Pin::new(&mut to), context) {
                    written?;
                    is_taken = true;
                    if with_this_part && !outgoing.has_data() {
                        departure.take().iter().for_each(Departure::happens);
                    }
                    continue;
                }
                if std::mem::take(&mut is_taken) {
                    patience.begins(TAKES_NOTHING_MAX);
                }
                ready!(patience.poll_over(context));
                // Hung up on in peace, it would take what it has for all.
                line.resets();
                return Poll::Ready(Err(Unwritten::NotTaken(io::ErrorKind::TimedOut.into())));
            } else if outgoing.is_all_taken() {
                return Poll::Ready(Ok(()));
            } else if taken.is_pending() {
                ready!(goes.as_mut().poll(context));
                return Poll::Ready(Err(Unwritten::NotTaken(io::ErrorKind::BrokenPipe.into())));
            }
        }
    })
    .await;
    if matches!(written, Err(Unwritten::BrokeOff(_))) && extent == Some(Extent::UntilClosed) {
        line.resets();
    }
    written?;
    if let Some(departure) = departure {
        departure.happens();
    }
    Ok(stays)
}

/// Returns when the client has gone.
async fn goes(line: &Line) {
    if poll_fn(|context| line.poll_ahead(context)).await == Ahead::TooMuch {
        while !line.has_hung_up() {
            tokio::time::sleep(LOOKS_EVERY).await;
        }
    }
}

/// Whether the whole request was read. Its answer may have come before its end, and somebody still reads it then.
async fn is_read(line: &Line) -> bool {
    let reading = poll_fn(|context| line.poll_body_read(context));
    tokio::time::timeout(REST_TIME_MAX, reading).await.unwrap_or(false)
}

async fn hang_up(line: &Line) {
    line.cuts_off();
    if line.may_be_sent_more() && line.clone().shutdown().await.is_ok() {
        let drained = poll_fn(|context| line.poll_drain(context));
        let _long_enough = tokio::time::timeout(LINGER_TIME_MAX, drained).await;
    }
}

/// What came is no request, and where the next one begins is not known.
async fn refuse(line: &Line, patience: &mut Patience, status: StatusCode, why: &str, now: At) {
    let asker = Asker { wants_body: true, version: Version::HTTP_11, stays: false };
    if write(line, patience, problem(status, why), asker, now).await.is_ok() {
        hang_up(line).await;
    }
}

fn status_for(malformed: &Malformed) -> StatusCode {
    match malformed {
        Malformed::HeadersTooLong | Malformed::NotHttp(httparse::Error::TooManyHeaders) => {
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
        }
        Malformed::NotHttp(httparse::Error::Version) => StatusCode::HTTP_VERSION_NOT_SUPPORTED,
        _ => StatusCode::BAD_REQUEST,
    }
}

#[cfg(test)]
mod tests;
