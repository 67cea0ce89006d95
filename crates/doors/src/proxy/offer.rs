//! One API that is offered.

use super::method::is_safe;
use crate::http::client::Client;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use regex::Regex;
use semel_core::ids::Run;
use semel_core::policy::Policy;
use semel_core::policy::file::Speaks;
use semel_core::policy::upstreams::{HttpApi, KeyPolicy};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Of at most [`JUDGED_BYTES_MAX`](super::upstream::JUDGED_BYTES_MAX) each.
const LARGE_ANSWERS_AT_ONCE: usize = 16;

#[derive(Debug)]
pub struct Offer {
    pub name: String,
    /// The name that replaces the host in the names of actions.
    pub service: String,
    pub client: Client,
    /// Tells two APIs of one name apart: scheme, host, port and path.
    pub authority: String,
    /// Put into every request, in place of the client's.
    pub headers: HeaderMap,
    pub speaks: Speaks,
    pub keys: KeyPolicy,
    /// The run of calls that name none.
    pub run: Option<Run>,
    /// The pack whose preset holds for it.
    pub preset: Option<&'static str>,
    /// Semel itself shows the credential; what clients show is for semel.
    pub injects_credentials: bool,
    /// The beginning of all paths of the upstream, without a slash at its end.
    pub base: String,
    /// The upstream's name in `Host`.
    pub host: HeaderValue,
    pub key_header: HeaderName,
    /// Matches whole keys.
    pub key_pattern: Option<Regex>,
    /// Room for large answers that are held back to be read.
    pub large_answers: Arc<Semaphore>,
    /// Some rule may be about a request whose method only reads.
    guards_reads: bool,
}

/// Settings of an API beside those of the policy.
#[derive(Debug)]
pub struct OfferSettings {
    pub client: Client,
    pub authority: String,
    pub headers: HeaderMap,
    pub run: Option<Run>,
}

/// An API cannot be offered.
#[derive(Debug, thiserror::Error)]
pub enum OfferError {
    #[error("keys.header: {0}")]
    KeyHeader(#[from] http::header::InvalidHeaderName),
    #[error("keys.pattern: {0}")]
    KeyPattern(#[from] regex::Error),
    #[error("url: {0}")]
    Host(#[from] http::header::InvalidHeaderValue),
}

impl Offer {
    /// An address of which the policy says nothing.
    pub fn of_url(settings: OfferSettings, policy: &Policy) -> Result<Offer, OfferError> {
        let service = settings.client.target().authority().to_owned();
        let api = HttpApi {
            path: PathBuf::new(),
            line: 0,
            url: String::new(),
            preset: None,
            service,
            account: None,
            speaks: Speaks::Nothing,
            headers: Vec::new(),
            headers_env: Vec::new(),
            private: false,
            run: None,
            keys: KeyPolicy::default(),
        };
        Offer::new("", &api, settings, policy)
    }

    pub fn new(name: &str, api: &HttpApi, with: OfferSettings, policy: &Policy) -> Result<Offer, OfferError> {
        let target = with.client.target();
        let pattern = api.keys.pattern.as_ref();
        let reads = [Method::GET, Method::HEAD, Method::OPTIONS];
        let mut offer = Offer {
            name: name.to_owned(),
            service: api.service.clone(),
            base: target.uri().path().trim_end_matches('/').to_owned(),
            host: HeaderValue::from_str(target.authority())?,
            authority: with.authority,
            headers: with.headers,
            speaks: api.speaks,
            key_header: api.keys.header.parse()?,
            key_pattern: pattern.map(|text| Regex::new(&format!(r"\A(?:{text})\z"))).transpose()?,
            keys: api.keys.clone(),
            run: with.run,
            preset: api.preset,
            injects_credentials: api.injects_credentials(),
            large_answers: Arc::new(Semaphore::new(LARGE_ANSWERS_AT_ONCE)),
            guards_reads: false,
            client: with.client,
        };
        offer.guards_reads = reads.iter().any(|read| policy.may_speak_of(&offer.action(read, "/")));
        Ok(offer)
    }

    /// The name of what a request does: `http:POST api.stripe.com/v1/charges`.
    pub fn action(&self, method: &Method, path: &str) -> String {
        let method = method.as_str();
        let mut action = String::with_capacity(6 + method.len() + self.service.len() + path.len());
        for part in ["http:", method, " ", &self.service, path] {
            action.push_str(part);
        }
        action
    }

    /// Whether a request with this method passes without asking the policy.
    pub fn passes(&self, method: &Method) -> bool {
        is_safe(method) && !self.guards_reads
    }
}
