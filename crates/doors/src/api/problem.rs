//! Problems, as RFC 9457 has them, with the answer object's fields as its members.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};
use schemars::JsonSchema;
use semel::call::{BadCall, answer};
use semel_core::answer::{Answer, Code, OutcomeWord, Trouble};
use semel_core::class::Tier;
use semel_core::effect::STORM;
use semel_ledger::Error;
use serde_json::{Map, Value};

/// Tells the official SDKs of model and payment APIs not to try again by themselves.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    detail: String,
    code: Option<Code>,
    members: Map<String, Value>,
}

/// RFC 9457.
#[derive(JsonSchema)]
#[schemars(rename = "Problem")]
#[allow(dead_code, reason = "it is only described")]
pub struct ProblemForm {
    title: String,
    status: u16,
    detail: String,
    /// Present when it is about an effect; then all fields of an answer are there too.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<Code>,
}

impl Problem {
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Problem {
        Problem { status, detail: detail.into(), code: None, members: Map::new() }
    }

    pub fn bad(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, detail)
    }

    /// Absent, or somebody else's: nobody can tell which.
    pub fn not_found(what: &str) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, format!("there is no {what}"))
    }

    #[must_use]
    pub fn with(mut self, member: &str, value: impl Into<Value>) -> Problem {
        self.members.insert(member.to_owned(), value.into());
        self
    }

    pub fn of_trouble(trouble: Trouble) -> Problem {
        problem_of(&Answer::of_trouble(Tier::Opaque, OutcomeWord::Refused, trouble))
    }

    /// Under another status than its code has elsewhere.
    #[must_use]
    pub fn under(self, status: StatusCode) -> Problem {
        Problem { status, ..self }
    }

    /// The same where a call that was not started is the caller's own news.
    #[must_use]
    pub fn of_caller(self) -> Problem {
        match self.code {
            Some(Code::NotStarted) => self.under(StatusCode::FAILED_DEPENDENCY),
            _ => self,
        }
    }

    /// The ledger failed before anything was sent.
    pub fn of_ledger(error: &Error) -> Problem {
        Problem::of_trouble(semel_core::wording::ledger_unavailable(&error.to_string()))
    }
}

impl From<BadCall> for Problem {
    fn from(bad: BadCall) -> Problem {
        match bad {
            BadCall::NotUnderstood(what) => Problem::bad(what),
            BadCall::Argument(_) => Problem::new(StatusCode::UNPROCESSABLE_ENTITY, bad.to_string()),
            BadCall::Class(_) => Problem::new(StatusCode::FORBIDDEN, bad.to_string()),
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        Problem::of_ledger(&error)
    }
}

impl From<semel_gate::Error> for Problem {
    fn from(error: semel_gate::Error) -> Problem {
        let semel_gate::Error::Ledger(error) = error;
        Problem::of_ledger(&error)
    }
}

/// An answer that is not ok. Its status is the one of `spec/answer.md`.
pub fn problem_of(answer: &Answer) -> Problem {
    let trouble = answer.trouble.as_ref();
    let code = trouble.map(|trouble| trouble.code);
    let status = code.map_or(StatusCode::BAD_GATEWAY, status_of);
    let detail = trouble.map_or_else(String::new, |trouble| trouble.what_happened.clone());
    let members = match serde_json::to_value(answer) {
        Ok(Value::Object(members)) => members,
        _ => Map::new(),
    };
    Problem { status, detail, code, members }
}

pub fn status_of(code: Code) -> StatusCode {
    StatusCode::from_u16(answer::status_of(code)).expect("the table has statuses of HTTP")
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Problem { status, detail, code, mut members } = self;
        let title = status.canonical_reason().unwrap_or_default();
        members.insert("title".into(), code.map_or(title, Code::word).into());
        members.insert("status".into(), status.as_u16().into());
        members.insert("detail".into(), format!("semel: {detail}").into());
        let mut response = Response::new(Body::from(Value::Object(members).to_string()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"semel\""));
        }
        match code {
            Some(Code::InFlight | Code::LedgerUnavailable) => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
                headers.insert(RETRY_AFTER_MS, HeaderValue::from_static("1000"));
            }
            Some(Code::UpstreamRefused | Code::NotStarted) | None => {}
            Some(code) => {
                headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
                if code == Code::BudgetSpent {
                    headers.insert(RETRY_AFTER, HeaderValue::from(STORM.as_secs()));
                }
            }
        }
        response
    }
}
