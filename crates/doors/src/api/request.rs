//! A request, once its principal is known and allowed to make it.

use super::problem::Problem;
use crate::call_options::CallOptions;
use crate::http::body::{self, PAUSE_MAX, Unreadable};
use crate::http::call_metadata;
use crate::http::server::{Revocable, caller};
use crate::services::Services;
use axum::body::Body;
use axum::extract::{Query, RawPathParams};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE};
use http::request::Parts;
use http::{Request, StatusCode};
use http_body::Body as _;
use semel_core::call_metadata::CallMetadata;
use semel_core::digest::Secret;
use semel_core::effect::Effect;
use semel_core::ids::{Nonce, Run};
use semel_core::intent::principal_mark;
use semel_gate::clock::Clock;
use semel_ledger::tokens::AccessScope;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// A reply of the size that is kept, with its escapes; what is larger is not kept either.
const BODY_BYTES_MAX: usize = 4 << 20;

#[derive(Debug)]
pub struct ApiRequest {
    pub who: ApiPrincipal,
    /// The run that a header names.
    pub run: Option<Run>,
    pub options: CallOptions,
    /// When it came, on the monotonic clock.
    pub received_at: Duration,
    pub metadata: CallMetadata,
    /// The caller's token, where it can be revoked.
    pub token: Option<Revocable>,
    params: Vec<(String, String)>,
    parts: Parts,
    body: Body,
}

/// The demands of a route.
#[derive(Debug, Clone, Copy)]
pub struct RouteAccess {
    pub scope: AccessScope,
    pub has_dry_run: bool,
}

/// Whose request it is: from the credential, never from what it says.
#[derive(Debug, Clone)]
pub struct ApiPrincipal {
    pub tenant: String,
    pub principal: String,
    pub scope: AccessScope,
    /// By which its own records are known.
    mark: Option<u64>,
}

impl ApiPrincipal {
    /// As a ruling names it.
    pub fn operator(&self) -> String {
        format!("operator token {}", self.principal.strip_prefix("token:").unwrap_or(&self.principal))
    }

    /// Operators see all of their tenant; agents what they did themselves.
    pub fn sees(&self, effect: &Effect) -> bool {
        let facts = &effect.facts;
        facts.tenant == self.tenant && (self.operates() || self.made(effect))
    }

    pub fn operates(&self) -> bool {
        self.scope >= AccessScope::Operator
    }

    /// One client's nonce is never another's.
    pub fn nonce(&self, nonce: &str, secret: &Secret) -> Nonce {
        let parts = [self.tenant.as_bytes(), self.principal.as_bytes(), nonce.as_bytes()];
        Nonce(secret.mac("client nonce", &parts).first_bits())
    }

    pub fn made(&self, effect: &Effect) -> bool {
        effect.facts.tenant == self.tenant && self.mark == Some(effect.facts.principal)
    }
}

impl ApiRequest {
    pub fn read(
        services: &Services,
        access: RouteAccess,
        params: &RawPathParams,
        request: Request<Body>,
    ) -> Result<ApiRequest, Problem> {
        let (mut parts, body) = request.into_parts();
        let Some(scope) = parts.extensions.get::<AccessScope>().copied() else {
            return Err(Problem::new(
                StatusCode::UNAUTHORIZED,
                "nothing was done: a token of semel is needed. Send it as Authorization: Bearer TOKEN",
            ));
        };
        if scope < access.scope {
            let needs =
                format!("nothing was done: this needs a token of scope {}; yours is {scope}", access.scope);
            return Err(Problem::new(StatusCode::FORBIDDEN, needs));
        }
        let caller = caller(services.secret(), None, &mut parts)
            .map_err(|_| Problem::bad("Semel-Run-Id cannot name a run"))?;
        let options = CallOptions::of(&parts.headers).map_err(|bad| Problem::bad(bad.to_string()))?;
        if options.dry_run && !access.has_dry_run {
            return Err(Problem::bad("nothing was done: this has no dry run"));
        }
        let (tenant, principal) = (caller.tenant, caller.principal);
        let mark = services.secret().map(|secret| principal_mark(secret, &tenant, &principal));
        let who = ApiPrincipal { tenant, principal, scope, mark };
        let params = params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let metadata = call_metadata(&parts.headers);
        let (run, token, received_at) = (caller.run, caller.token, services.clock.elapsed());
        Ok(ApiRequest { who, run, options, received_at, metadata, token, params, parts, body })
    }

    /// A part of the path. The table says that it is there.
    pub fn param(&self, name: &str) -> &str {
        self.params.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    pub fn query<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        let read = Query::<T>::try_from_uri(&self.parts.uri);
        read.map(|Query(query)| query).map_err(|error| {
            let said = error.body_text();
            let said = said.strip_prefix("Failed to deserialize query string: ").unwrap_or(&said);
            // The parameter that it is about comes first, if it is about one.
            let plain = match said.split_once(": ") {
                Some((name, said)) if !name.contains(' ') => format!("{name}: {}", plain(said)),
                _ => plain(said),
            };
            Problem::bad(format!("the query: {plain}"))
        })
    }

    /// How long its body is at most, if it says so.
    pub fn bytes_max(&self) -> Option<u64> {
        self.body.size_hint().upper()
    }

    pub fn wants_markdown(&self) -> bool {
        let accepts = self.parts.headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let mut kinds =
            accepts.flat_map(|value| value.split(',')).map(|kind| kind.split(';').next().unwrap_or_default());
        kinds.any(|kind| kind.trim().eq_ignore_ascii_case("text/markdown"))
    }

    pub async fn json<T: DeserializeOwned>(
        self,
    ) -> Result<(ApiPrincipal, Option<Run>, Duration, T), Problem> {
        self.json_of(BODY_BYTES_MAX).await
    }

    /// The same of so many bytes at most.
    pub async fn json_of<T: DeserializeOwned>(
        self,
        bytes_max: usize,
    ) -> Result<(ApiPrincipal, Option<Run>, Duration, T), Problem> {
        // A body that cannot be understood is not read either.
        if !self.is_plain_json() {
            return Err(no_json());
        }
        let bytes = whole(self.body, bytes_max).await?;
        if bytes.is_empty() {
            return Err(Problem::bad("the body is empty"));
        }
        Ok((self.who, self.run, self.received_at, parsed(&bytes)?))
    }

    /// The same for a ruling, which never comes out of a run: its agent would rule on its own doubts.
    pub async fn json_outside_a_run<T: DeserializeOwned>(
        self,
    ) -> Result<(ApiPrincipal, Duration, T), Problem> {
        let (who, run, received_at, said) = self.json::<T>().await?;
        let Some(run) = run else { return Ok((who, received_at, said)) };
        let detail =
            format!("nothing was changed: no run rules on its own doubts, and this names the run {}", run.id);
        Err(Problem::new(StatusCode::FORBIDDEN, detail))
    }

    /// The same where a request may say nothing at all.
    pub async fn json_if_any<T: DeserializeOwned + Default>(self) -> Result<(ApiPrincipal, T), Problem> {
        let is_json = self.is_plain_json();
        let bytes = whole(self.body, BODY_BYTES_MAX).await?;
        match bytes.is_empty() {
            true => Ok((self.who, T::default())),
            false if is_json => Ok((self.who, parsed(&bytes)?)),
            false => Err(no_json()),
        }
    }

    fn is_plain_json(&self) -> bool {
        let headers = &self.parts.headers;
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let essence = kind.split(';').next().unwrap_or_default().trim();
        essence.eq_ignore_ascii_case("application/json") && !headers.contains_key(CONTENT_ENCODING)
    }
}

fn no_json() -> Problem {
    Problem::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "the body must be application/json, without a Content-Encoding",
    )
}

async fn whole(body: Body, bytes_max: usize) -> Result<Bytes, Problem> {
    body::read(body, bytes_max, PAUSE_MAX).await.map_err(|error| match error {
        Unreadable::TooLarge(_) => Problem::new(StatusCode::PAYLOAD_TOO_LARGE, error.to_string()),
        error => Problem::bad(error.to_string()),
    })
}

fn parsed<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(bytes)
        .map_err(|error| Problem::bad(format!("the body: {}", plain(&error.to_string()))))
}

/// A parser's message, in the words of JSON. A quotation from the request comes after the words
/// that are looked at, so it stays as it is.
fn plain(said: &str) -> String {
    const WORDS: [(&str, &str); 4] = [
        ("unknown variant ", "unknown word "),
        ("invalid type: map,", "invalid type: object,"),
        ("invalid type: sequence,", "invalid type: array,"),
        ("invalid type: unit", "invalid type: null"),
    ];
    let known = WORDS.iter().find_map(|(theirs, ours)| Some(format!("{ours}{}", said.strip_prefix(theirs)?)));
    known.unwrap_or_else(|| said.to_owned())
}
