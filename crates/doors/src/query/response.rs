//! The response to a question, as expressions see it.

use semel_core::json::Json;
use semel_core::policy::expression::{EvalError, Expression};
use std::time::Duration;

/// A question is a read; one that takes longer has no answer.
pub const TAKES_MAX: Duration = Duration::from_secs(30);

/// A page that somebody wants to look at fits; a longer one is a truncated answer in the making.
pub const ANSWER_BYTES_MAX: usize = 1024 * 1024;

#[derive(Debug, Clone, PartialEq)]
pub struct QueryResponse {
    pub resp: Json,
    pub kind: ResponseKind,
    /// The word by which the answer says that there are more pages.
    pub more: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ResponseKind {
    Tool,
    Http {
        status: u16,
        headers: Json,
    },
    Command {
        /// `None`: it died by a signal.
        exit: Option<i32>,
        printed: Vec<u8>,
    },
}

impl QueryResponse {
    pub fn eval_bool(&self, expression: &Expression, places: &Json) -> Result<bool, EvalError> {
        self.with_variables(places, |variables| expression.eval_bool(variables))
    }

    pub fn eval(&self, expression: &Expression, places: &Json) -> Result<Json, EvalError> {
        self.with_variables(places, |variables| expression.eval(variables))
    }

    fn with_variables<T>(&self, places: &Json, eval: impl FnOnce(&[(&str, &Json)]) -> T) -> T {
        let mut variables: Vec<(&str, &Json)> = match places {
            Json::Object(members) => members.iter().collect(),
            _ => Vec::new(),
        };
        variables.push(("resp", &self.resp));
        let status = match &self.kind {
            ResponseKind::Http { status, .. } => Json::from(serde_json::Value::from(*status)),
            ResponseKind::Tool | ResponseKind::Command { .. } => Json::Null,
        };
        if let ResponseKind::Http { headers, .. } = &self.kind {
            variables.extend([("status", &status), ("resp_headers", headers)]);
        }
        eval(&variables)
    }
}
