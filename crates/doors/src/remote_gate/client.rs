//! One request to the API, and the server's answer to it.

use super::access::ServerAccess;
use super::forms::{BASE, FORM_BYTES_MAX};
use crate::http::body;
use crate::http::client::{NotReached, Payload, Prepared};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, StatusCode};
use semel_ledger::error::advice_on_connection;
use serde_json::Value;
use std::time::Duration;

/// A reply of the largest size in base 64, and the words around it.
const ANSWER_BYTES_MAX: usize = FORM_BYTES_MAX;

/// Beyond the wait that was asked for.
pub(super) const ANSWER_TAKES_MAX: Duration = Duration::from_secs(15);

/// Between two tries, which come less and less often.
pub(super) const PAUSE_FIRST: Duration = Duration::from_millis(50);
pub(super) const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The server's answer.
#[derive(Debug)]
pub struct ApiReply {
    pub status: StatusCode,
    /// Null where it is no JSON.
    pub body: Value,
}

/// There is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unanswered {
    /// Certainly nothing was sent.
    NotReached(String),
    /// Nothing was sent either, and a later try ends alike: this machine does not trust the server's certificate.
    Untrusted(String),
    /// The server may have got it.
    Lost(String),
}

impl Unanswered {
    pub fn why(&self) -> &str {
        let (Unanswered::NotReached(why) | Unanswered::Untrusted(why) | Unanswered::Lost(why)) = self;
        why
    }
}

/// The libraries' words for a wrong scheme or certificate do not say what to change.
fn with_advice(why: String) -> String {
    let advice = match why.contains("invalid HTTP version") {
        true => "; it may speak TLS at this port: write https://",
        false => advice_on_connection(&why),
    };
    why + advice
}

impl From<NotReached> for Unanswered {
    fn from(error: NotReached) -> Unanswered {
        let why = error.to_string();
        match error.is_untrusted {
            true if why.contains("CaUsedAsEndEntity") => Unanswered::Untrusted(with_advice(why)),
            true => Unanswered::Untrusted(format!(
                "{why}; set SEMEL_SERVER_CA to a file with the certificate that vouches for the server"
            )),
            false => Unanswered::NotReached(with_advice(why)),
        }
    }
}

impl ApiReply {
    /// The words of a refusal.
    pub fn detail(&self) -> String {
        let said = self.body["detail"].as_str().map(|said| said.trim_start_matches("semel: "));
        said.map_or_else(|| format!("it answers {}", self.status), str::to_owned)
    }

    /// A refusal that is about no effect.
    pub fn refusal(&self, access: &ServerAccess) -> String {
        let what = match self.status {
            StatusCode::UNAUTHORIZED => {
                "it does not know the token: SEMEL_TOKEN is wrong, revoked or expired".to_owned()
            }
            StatusCode::NOT_FOUND if self.body["title"].is_null() => {
                "there is no semel serve at that address, or an older one".to_owned()
            }
            _ => self.detail(),
        };
        format!("the server {access} refuses: {what}")
    }

    /// A proxy that has no server behind it, or a server that has no room: the same again may be answered.
    pub fn is_transient(&self) -> bool {
        let codes = [StatusCode::BAD_GATEWAY, StatusCode::SERVICE_UNAVAILABLE, StatusCode::GATEWAY_TIMEOUT];
        self.body["code"].is_null() && (codes.contains(&self.status) || self.status.as_u16() == 429)
    }
}

impl ServerAccess {
    pub async fn post(&self, path: &str, body: Bytes, within: Duration) -> Result<ApiReply, Unanswered> {
        self.ask(Method::POST, path, body, within).await
    }

    pub async fn get(&self, path: &str, within: Duration) -> Result<ApiReply, Unanswered> {
        self.ask(Method::GET, path, Bytes::new(), within).await
    }

    /// On the connection of the question before, if that is at hand. The server may have closed it meanwhile; then it is
    /// asked again on a new one, since the server knows each of these when it comes twice.
    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        within: Duration,
    ) -> Result<ApiReply, Unanswered> {
        let prepared = self.client.prepare_read().await?;
        let was_used = prepared.is_used();
        let asked = self.ask_on(prepared, method.clone(), path, body.clone(), within).await?;
        let asked = match (asked, was_used) {
            (Err(why), true) => match self.client.connect().await {
                Ok(prepared) => self.ask_on(prepared, method, path, body, within).await?,
                // The server may have got it all the same.
                Err(_) => Err(why),
            },
            (asked, _) => asked,
        };
        asked.map_err(Unanswered::Lost)
    }

    /// `Ok(Err)`: the connection broke.
    async fn ask_on(
        &self,
        prepared: Prepared,
        method: Method,
        path: &str,
        body: Bytes,
        within: Duration,
    ) -> Result<Result<ApiReply, String>, Unanswered> {
        let target = self.client.target();
        let place = format!("{}{BASE}{path}", target.uri().path().trim_end_matches('/'));
        let mut request = Request::new(Payload::from(body));
        *request.method_mut() = method;
        *request.uri_mut() =
            place.parse().map_err(|error| Unanswered::NotReached(format!("{place}: {error}")))?;
        let headers = request.headers_mut();
        if let Ok(host) = HeaderValue::from_str(target.authority()) {
            headers.insert(HOST, host);
        }
        headers.insert(AUTHORIZATION, self.authorization.clone());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let exchange = async {
            let response = self.client.send(prepared, request).await.map_err(|error| error.to_string())?;
            let (parts, answer) = response.into_parts();
            let whole =
                body::read(answer, ANSWER_BYTES_MAX, within).await.map_err(|error| error.to_string())?;
            let body = serde_json::from_slice(&whole).unwrap_or_default();
            Ok(ApiReply { status: parts.status, body })
        };
        let lost = |why: String| with_advice(format!("{target} did not answer: {why}"));
        match tokio::time::timeout(within, exchange).await {
            Ok(answered) => Ok(answered.map_err(lost)),
            Err(_) => Err(Unanswered::Lost(lost(format!("not within {} seconds", within.as_secs())))),
        }
    }
}

pub(super) fn bytes_of(form: &impl serde::Serialize) -> Bytes {
    Bytes::from(serde_json::to_vec(form).expect("forms have string keys"))
}
