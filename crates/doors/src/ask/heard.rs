//! What came back, as expressions see it.

use super::matter::Matter;
use semel_core::json::Json;
use semel_core::policy::expression::{EvalError, Expression};

#[derive(Debug, Clone, PartialEq)]
pub struct Heard {
    pub resp: Json,
    pub kind: Kind,
    /// The answer says of itself that there is more, in this word.
    pub part: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
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

impl Heard {
    pub fn eval_bool(&self, expression: &Expression, matter: &Matter<'_>) -> Result<bool, EvalError> {
        self.with_variables(matter, |variables| expression.eval_bool(variables))
    }

    pub fn eval(&self, expression: &Expression, matter: &Matter<'_>) -> Result<Json, EvalError> {
        self.with_variables(matter, |variables| expression.eval(variables))
    }

    fn with_variables<T>(&self, matter: &Matter<'_>, eval: impl FnOnce(&[(&str, &Json)]) -> T) -> T {
        let places = matter.places();
        let mut variables: Vec<(&str, &Json)> = match &places {
            Json::Object(members) => members.iter().collect(),
            _ => Vec::new(),
        };
        variables.push(("resp", &self.resp));
        let status = match &self.kind {
            Kind::Http { status, .. } => Json::from(serde_json::Value::from(*status)),
            Kind::Tool | Kind::Command { .. } => Json::Null,
        };
        if let Kind::Http { headers, .. } = &self.kind {
            variables.extend([("status", &status), ("resp_headers", headers)]);
        }
        eval(&variables)
    }
}
