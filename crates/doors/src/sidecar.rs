//! The API for a program that has started semel beside itself, as lines of JSON both ways: `spec/sidecar.md`.

use crate::api::{self, ApiServer, Problem};
use crate::http::server::Credential;
use crate::http::server::on_sent::OnSent;
use crate::local_tasks;
use crate::mcp::frame::Frame;
use crate::mcp::frame_writer::{FrameWriter, Pipe, QueuedFrame, WriteResult};
use crate::mcp::input_line::InputLine;
use crate::mcp::line_reader::LineHandler;
use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::BodyExt as _;
use semel_ledger::tokens::AccessScope;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tower_service::Service as _;

/// Of lines and their answers. The first line that a sidecar writes names it.
pub const PROTOCOL: u32 = 1;

/// How long calls that are under way may take once the program has gone. One that waits for a twin has claimed nothing.
const LAST_CALLS_MAX: Duration = Duration::from_secs(3);

/// Both directions of one program.
#[derive(Debug)]
pub struct Sidecar {
    api: Arc<ApiServer>,
    router: Router,
    to_program: FrameWriter,
    runtime: Handle,
    /// Claims that the program has taken and not settled.
    open: Mutex<HashSet<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    id: u64,
    method: &'a str,
    path: &'a str,
    #[serde(borrow)]
    body: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct Claimed<'a> {
    claim: Option<&'a str>,
}

impl Sidecar {
    pub fn new(api: Arc<ApiServer>, output: impl Pipe, runtime: Handle) -> std::io::Result<Arc<Sidecar>> {
        let to_program = FrameWriter::start(output, "to-program")?;
        let router = api::router(Arc::clone(&api));
        Ok(Arc::new(Sidecar { api, router, to_program, runtime, open: Mutex::default() }))
    }

    /// The first line: the program may ask from now on.
    pub fn say_ready(&self) {
        let version = env!("CARGO_PKG_VERSION");
        self.push(format!("{{\"semel\":\"{version}\",\"protocol\":{PROTOCOL}}}"), |_| {});
    }

    /// The program has ended, or wants nothing more. Claims that it has not settled become doubts. `has_died` looks whether
    /// it can send nothing more.
    pub async fn close(&self, has_died: impl Future<Output = bool>) {
        let services = &self.api.services;
        let _some_wait_for_twins = tokio::time::timeout(LAST_CALLS_MAX, services.in_flight.idle()).await;
        let open: Vec<String> = self.open().drain().collect();
        let sender_gone = !open.is_empty() && has_died.await;
        for claim in open {
            api::abandon(&self.api, &claim, sender_gone).await;
        }
        self.to_program.drain();
    }

    fn take(self: &Arc<Self>, line: InputLine) {
        let sidecar = Arc::clone(self);
        let in_flight = self.api.services.in_flight.begin();
        let answering = async move {
            sidecar.answer(line).await;
            drop(in_flight);
        };
        local_tasks::spawn(answering, &self.runtime);
    }

    async fn answer(self: &Arc<Self>, line: InputLine) {
        let refused = |detail: &str| Problem::bad(detail).into_response();
        let (mut id, mut settles) = (None, None);
        let response = match &line {
            InputLine::TooLong(_) => refused("the line is too long; it was not read"),
            InputLine::Cut(_) => refused("the line breaks off"),
            InputLine::Text(bytes) => match serde_json::from_slice::<Line<'_>>(bytes) {
                Err(error) => refused(&format!("the line is no request: {error}")),
                Ok(request) => {
                    id = Some(request.id);
                    settles = request.body.filter(|_| request.path == "/settle").and_then(claim_in);
                    self.call(&request).await
                }
            },
        };
        let (parts, body) = response.into_parts();
        // The API's answers are whole before they leave.
        let body = body.collect().await.map_or_else(|_| Bytes::new(), |body| body.to_bytes());
        if let Some(claim) = settles.filter(|_| !parts.status.is_server_error()) {
            self.open().remove(claim);
        }
        if let Some(claim) = claim_given(&body) {
            self.open().insert(claim.to_owned());
        }
        let kind = parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let on_sent = parts.extensions.get::<OnSent>().cloned();
        let runtime = self.runtime.clone();
        self.push(line_of(id, parts.status, kind, &body), move |written| {
            if let (WriteResult::Written, Some(on_sent)) = (written, on_sent) {
                let _within = runtime.enter();
                on_sent.run();
            }
        });
    }

    async fn call(&self, line: &Line<'_>) -> Response {
        let place = format!("{}{}", api::BASE, line.path).parse::<Uri>();
        let (Ok(method), Ok(uri)) = (Method::from_bytes(line.method.as_bytes()), place) else {
            return Problem::bad("the line names no method and no path").into_response();
        };
        let body = line.body.map_or_else(Body::empty, |body| Body::from(body.get().to_owned()));
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        // A program that can start semel on a ledger may do with it what the ledger's operator may.
        request.extensions_mut().insert(AccessScope::Operator);
        request.extensions_mut().insert(Credential::None);
        self.router.clone().call(request).await.unwrap_or_else(|never| match never {})
    }

    fn push(&self, line: String, then: impl FnOnce(WriteResult) + Send + 'static) {
        self.to_program.push(QueuedFrame::of(Frame::from(line)).then(then));
    }

    fn open(&self) -> MutexGuard<'_, HashSet<String>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lines of the program.
#[derive(Debug)]
pub struct ProgramInput {
    pub sidecar: Arc<Sidecar>,
    /// Dropped at the end of its lines.
    pub ended: oneshot::Sender<()>,
}

impl LineHandler for ProgramInput {
    fn line(&mut self, line: InputLine) {
        self.sidecar.take(line);
    }

    /// Each line is answered, so a program cannot have more calls under way than it waits for.
    fn has_room(&self) -> bool {
        true
    }
}

fn claim_in(body: &RawValue) -> Option<&str> {
    serde_json::from_str::<Claimed<'_>>(body.get()).ok()?.claim
}

/// The claim in an answer to `begin`.
fn claim_given(body: &[u8]) -> Option<&str> {
    if !body.starts_with(b"{\"outcome\":\"run\"") {
        return None;
    }
    serde_json::from_slice::<Claimed<'_>>(body).ok()?.claim
}

fn line_of(id: Option<u64>, status: StatusCode, kind: &str, body: &[u8]) -> String {
    let id = id.map_or_else(|| "null".to_owned(), |id| id.to_string());
    let text = String::from_utf8_lossy(body);
    let body = match kind.ends_with("json") {
        true => text,
        false => serde_json::Value::from(text).to_string().into(),
    };
    format!("{{\"id\":{id},\"status\":{},\"body\":{body}}}", status.as_u16())
}
