//! A model behind an endpoint that speaks the chat completions of OpenAI.

use crate::args::EvalArgs;
use crate::context::Context;
use anyhow::Context as _;
use axum::body::Bytes;
use http::{HeaderValue, Method, Request, header};
use semel_detect::eval::model::ChatModel;
use semel_doors::http::body;
use semel_doors::http::client::Client;
use semel_doors::http::target::Target;
use serde_json::{Value, json};
use std::io;
use std::time::Duration;
use tokio::runtime::Runtime;

/// An answer of a model to a short task is far below it.
const ANSWER_BYTES_MAX: usize = 1 << 20;
const ANSWER_TAKES_MAX: Duration = Duration::from_secs(120);
/// An endpoint's error is shown up to this length.
const ERROR_CHARS_MAX: usize = 300;

#[derive(Debug)]
pub struct Endpoint {
    model: String,
    client: Client,
    path: String,
    key: Option<HeaderValue>,
    runtime: Runtime,
}

impl Endpoint {
    /// `None`: no model was named.
    pub fn of(context: &Context, args: &EvalArgs) -> anyhow::Result<Option<Endpoint>> {
        let (Some(model), Some(url)) = (&args.model, &args.endpoint) else { return Ok(None) };
        // The user wrote the address and means it: models run on private machines too.
        let target = Target::parse(url).context("--endpoint")?.with_private(true);
        let path = format!("{}/chat/completions", target.uri().path().trim_end_matches('/'));
        let key = args.key_env.as_deref().map(|name| context.environment.variable(name)).transpose()?;
        let key = key.map(|key| HeaderValue::from_str(&format!("Bearer {key}"))).transpose();
        let mut key = key.context("the key is no header value")?;
        if let Some(key) = &mut key {
            key.set_sensitive(true);
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let client = Client::to(target)?;
        Ok(Some(Endpoint { model: model.clone(), client, path, key, runtime }))
    }

    async fn post(&self, document: &Value) -> Result<Value, String> {
        let prepared = self.client.prepare().await.map_err(|error| error.to_string())?;
        let mut request = Request::new(Bytes::from(document.to_string()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.path.parse().map_err(|error| format!("{error}"))?;
        let headers = request.headers_mut();
        let host = HeaderValue::from_str(self.client.target().authority());
        headers.insert(header::HOST, host.map_err(|error| error.to_string())?);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(key) = &self.key {
            headers.insert(header::AUTHORIZATION, key.clone());
        }
        let response = self.client.send(prepared, request).await.map_err(|error| error.to_string())?;
        let (head, answer) = response.into_parts();
        let answer = body::read(answer, ANSWER_BYTES_MAX, ANSWER_TAKES_MAX).await;
        let answer = answer.map_err(|error| error.to_string())?;
        if !head.status.is_success() {
            let words = String::from_utf8_lossy(&answer);
            // Some endpoints quote the key that they refuse.
            let key = self.key.as_ref().and_then(|key| key.to_str().ok()?.strip_prefix("Bearer "));
            let words = key
                .filter(|key| !key.is_empty())
                .map_or(words.to_string(), |key| words.replace(key, "[key]"));
            let words: String = words.chars().take(ERROR_CHARS_MAX).collect();
            return Err(format!("it answers {}: {words}", head.status));
        }
        serde_json::from_slice(&answer).map_err(|error| format!("its answer is no JSON: {error}"))
    }
}

impl ChatModel for Endpoint {
    fn complete(&self, mut request: Value) -> io::Result<Value> {
        request["model"] = json!(self.model);
        let exchange = async { tokio::time::timeout(ANSWER_TAKES_MAX, self.post(&request)).await };
        let answer = self
            .runtime
            .block_on(exchange)
            .unwrap_or_else(|_| Err(format!("no answer within {} seconds", ANSWER_TAKES_MAX.as_secs())));
        answer.map_err(|why| io::Error::other(format!("the model cannot be asked: {why}")))
    }
}
