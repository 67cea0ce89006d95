//! Requests to etcd's JSON gateway, at whichever endpoint answers.

use super::address::EtcdAddress;
use crate::Error;
use crate::engine_facts::{EngineFacts, ahead_ms};
use crate::error::advice_on_connection;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response, StatusCode};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use semel_core::time::At;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// An answer that takes longer is given up. Elections take about one second.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(7);

pub(super) struct Client {
    address: EtcdAddress,
    http: HttpClient<HttpsConnector<HttpConnector>, Full<Bytes>>,
    /// The endpoint that answered last.
    endpoint: AtomicUsize,
    token: Mutex<Option<String>>,
}

#[derive(Debug)]
pub(super) enum Failure {
    /// It was not done, and may be in a moment.
    NotSent(String),
    /// The server says why it will not do it.
    Refused(String),
    /// It may have been done.
    Unknown(String),
}

impl Failure {
    pub(super) fn into_words(self) -> String {
        match self {
            Failure::NotSent(what) | Failure::Refused(what) | Failure::Unknown(what) => what,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
struct Complaint {
    #[serde(default)]
    message: String,
    #[serde(default)]
    error: String,
    #[serde(default)]
    code: u32,
}

/// Codes of gRPC after which nothing was done: a request that makes no sense, an unknown thing, a missing right, a full
/// disk, a missing login.
const REFUSALS: [u32; 5] = [3, 5, 7, 8, 16];
const UNAUTHENTICATED: u32 = 16;

impl Client {
    pub(super) fn new(address: EtcdAddress) -> Client {
        let mut roots = rustls::RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider has the default versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().build();
        let http = HttpClient::builder(TokioExecutor::new()).retry_canceled_requests(false).build(connector);
        Client { address, http, endpoint: AtomicUsize::new(0), token: Mutex::default() }
    }

    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        let body = Bytes::from(serde_json::to_vec(body).expect("a request has only string keys"));
        if self.address.login.is_some() && self.token().is_none() {
            self.log_in().await?;
        }
        match self.ask_once(path, body.clone()).await {
            Err((Failure::Refused(words), code))
                if self.address.login.is_some() && is_ended_token(code, &words) =>
            {
                self.log_in().await?;
                self.ask_once(path, body).await
            }
            answer => answer,
        }
        .map_err(|(failure, _)| failure)
    }

    async fn ask_once<T: DeserializeOwned>(&self, path: &str, body: Bytes) -> Result<T, (Failure, u32)> {
        let whole = async {
            let answer = self.send(path, body).await?;
            let status = answer.status();
            let body = answer.into_body().collect().await;
            let body = body.map_err(|error| Failure::Unknown(error.to_string()))?;
            Ok((status, body.to_bytes()))
        };
        let late = || Failure::Unknown("the server did not answer in time".to_owned());
        let answer = tokio::time::timeout(ANSWER_TIMEOUT, whole).await.unwrap_or_else(|_| Err(late()));
        let (status, body) = answer.map_err(|failure| {
            self.try_another();
            (failure, 0)
        })?;
        if status == StatusCode::OK {
            return serde_json::from_slice(&body).map_err(|error| {
                (Failure::Unknown(format!("the server's answer makes no sense: {error}")), 0)
            });
        }
        let complaint: Complaint = serde_json::from_slice(&body).unwrap_or_default();
        let words = if complaint.message.is_empty() { complaint.error } else { complaint.message };
        let words = match status {
            _ if !words.is_empty() => words,
            StatusCode::NOT_FOUND => {
                "there is no gateway of etcd 3.4 or later at this place (HTTP 404)".to_owned()
            }
            StatusCode::BAD_REQUEST => "HTTP 400; if it speaks TLS there, write etcds://".to_owned(),
            _ => format!("HTTP {status}"),
        };
        if REFUSALS.contains(&complaint.code) {
            return Err((Failure::Refused(words), complaint.code));
        }
        self.try_another();
        Err((Failure::Unknown(words), complaint.code))
    }

    /// The answer's head; its body may go on for ever.
    pub(super) async fn send(&self, path: &str, body: Bytes) -> Result<Response<Incoming>, Failure> {
        let endpoint =
            &self.address.endpoints[self.endpoint.load(Ordering::Relaxed) % self.address.endpoints.len()];
        let mut request = Request::post(format!("{endpoint}{path}"));
        if let Some(token) = self.token() {
            request = request.header("authorization", token);
        }
        let request = request.body(Full::new(body)).map_err(|error| Failure::Refused(error.to_string()))?;
        self.http.request(request).await.map_err(|error| {
            let words = causes(&error);
            if error.is_connect() { Failure::NotSent(words) } else { Failure::Unknown(words) }
        })
    }

    /// The server, as `semel doctor` shows it. It tells the time in the head of its answers alone, in whole seconds.
    pub(super) async fn describe(&self, now: At) -> Result<EngineFacts, Failure> {
        #[derive(Deserialize)]
        struct Members {
            members: Vec<serde_json::Value>,
        }
        #[derive(Deserialize)]
        struct Status {
            version: String,
            #[serde(default, rename = "dbSize")]
            size: String,
            #[serde(default)]
            errors: Vec<String>,
        }
        let nothing = serde_json::json!({});
        let nodes = self.ask::<Members>("/v3/cluster/member/list", &nothing).await?.members.len();
        let status = self.ask::<Status>("/v3/maintenance/status", &nothing).await?;
        let answer = self.send("/v3/maintenance/status", Bytes::from_static(b"{}")).await?;
        let date =
            answer.headers().get(hyper::header::DATE).and_then(|date| At::parse_http(date.to_str().ok()?));
        let durability = match nodes {
            1 => {
                "durable: on the disk of its only node before anything is sent; the loss of that disk loses all"
            }
            _ => {
                "durable: on the disks of most nodes before anything is sent; the loss of a node loses nothing"
            }
        };
        let kib = status.size.parse::<u64>().unwrap_or_default() / 1024;
        let complaints: String = status.errors.iter().map(|error| format!(", {error}")).collect();
        Ok(EngineFacts {
            server: format!("etcd {}", status.version),
            persistence: format!("{nodes} nodes, each writes to its disk, database of {kib} KiB{complaints}"),
            durability: durability.to_owned(),
            clock_ahead_ms: date.map(|there| ahead_ms(there, now)),
        })
    }

    fn try_another(&self) {
        self.endpoint.fetch_add(1, Ordering::Relaxed);
    }

    async fn log_in(&self) -> Result<(), Failure> {
        #[derive(Deserialize)]
        struct Token {
            token: String,
        }
        let Some((name, password)) = &self.address.login else { return Ok(()) };
        let body = serde_json::json!({"name": name, "password": password}).to_string();
        self.set_token(None);
        let answer = self.ask_once::<Token>("/v3/auth/authenticate", Bytes::from(body)).await;
        // Nothing of the ledger was written, whatever became of the login.
        let answer = answer.map_err(|(failure, _)| match failure {
            Failure::Refused(what) => Failure::Refused(what),
            other => Failure::NotSent(other.into_words()),
        })?;
        self.set_token(Some(answer.token));
        Ok(())
    }

    fn token(&self) -> Option<String> {
        self.token.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_token(&self, token: Option<String>) {
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = token;
    }

    pub(super) fn not_read(&self, failure: Failure) -> Error {
        Error::Engine { ledger: self.address.to_string(), what: failure.into_words() }
    }
}

/// Tokens end by themselves, and signed ones with each change of anybody's rights.
fn is_ended_token(code: u32, words: &str) -> bool {
    code == UNAUTHENTICATED || words.ends_with("revision of auth store is old")
}

/// The client's own `Display` says only "client error".
fn causes(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        words = format!("{words}: {next}");
        cause = next.source();
    }
    let advice = advice_on_connection(&words);
    words + advice
}
