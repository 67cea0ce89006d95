//! An MCP result, or any JSON, without its secrets.

use super::names::without_named;
use super::{MayHoldSecret, Secrets};
use semel_core::json::{self, Json, JsonProblem};
use semel_core::redact::redacted;
use std::borrow::Cow;

/// Instead of what a server said, where nobody can say that it holds nothing secret.
pub const NOT_TOLD: &str = "what the server said may hold what its rule calls secret";

impl Secrets {
    /// A tool's result, or an error instead of one, as it may be written: what rules call its reply is its structured
    /// content, and its text as JSON.
    pub fn out_of_result(&self, text: &str) -> Result<String, MayHoldSecret> {
        if self.has_parts() {
            let mut result = json::parse(text).map_err(|_| MayHoldSecret)?;
            if self.out_of_reply_in(&mut result)? {
                return self.out_of_json(&result.canonical());
            }
        }
        self.out_of_json(text)
    }

    fn out_of_reply_in(&self, result: &mut Json) -> Result<bool, MayHoldSecret> {
        let Json::Object(members) = result else { return Ok(false) };
        let mut found = false;
        // The last two are an error's.
        for name in ["structuredContent", "statusMessage", "message", "data"] {
            if let Some(said) = members.get_mut(name) {
                found |= self.parts.out_of(said)?;
            }
        }
        if let Some(Json::Object(task)) = members.get_mut("task")
            && let Some(said) = task.get_mut("statusMessage")
        {
            found |= self.parts.out_of(said)?;
        }
        let Some(Json::Array(content)) = members.get_mut("content") else { return Ok(found) };
        for item in content {
            let Json::Object(item) = item else { continue };
            if let Some(text) = item.get_mut("text") {
                found |= self.parts.out_of(text)?;
            }
            if let Some(Json::Object(resource)) = item.get_mut("resource")
                && let Some(text) = resource.get_mut("text")
            {
                found |= self.parts.out_of(text)?;
            }
        }
        Ok(found)
    }

    /// A reply that did not come as a result.
    pub fn out_of_reply(&self, reply: &Json) -> Result<String, MayHoldSecret> {
        let mut reply = reply.clone();
        self.parts.out_of(&mut reply)?;
        self.out_of_json(&reply.canonical())
    }

    /// A line about an answer that is no result at all: a page of an error, perhaps behind its status.
    pub fn out_of_page(&self, line: String) -> String {
        match self.parts.out_of_text(line.as_bytes()) {
            Ok(None) => line,
            Ok(Some(kept)) => kept,
            Err(MayHoldSecret) => {
                let status = line.strip_prefix("HTTP ").and_then(|rest| rest.split(' ').next());
                status.map_or_else(|| NOT_TOLD.to_owned(), |status| format!("HTTP {status}"))
            }
        }
    }

    /// JSON as it may be written. What holds no secret stays as it was spelled.
    fn out_of_json(&self, text: &str) -> Result<String, MayHoldSecret> {
        let Some(value) = looked_through(text)? else { return self.out_of_text(text.to_owned()) };
        let kept = match redacted(&value, &[]) {
            Cow::Owned(clean) if clean != value => clean.canonical(),
            _ => text.to_owned(),
        };
        self.out_of_text(kept)
    }

    fn out_of_text(&self, text: String) -> Result<String, MayHoldSecret> {
        Ok(match self.values.out_of(text.as_bytes())? {
            Cow::Borrowed(_) => text,
            Cow::Owned(clean) => String::from_utf8_lossy(&clean).into_owned(),
        })
    }
}

/// A result as JSON. `None`: it cannot be read, and as a text it shows no secret. What is too large to be read may hold
/// one that nobody sees.
fn looked_through(text: &str) -> Result<Option<Json>, MayHoldSecret> {
    match json::parse(text) {
        Ok(value) => Ok(Some(value)),
        Err(error) if matches!(error.what, JsonProblem::TooManyValues | JsonProblem::TextTooLong) => {
            Err(MayHoldSecret)
        }
        Err(_) if shows_a_secret(text) => Err(MayHoldSecret),
        Err(_) => Ok(None),
    }
}

/// By a name or by its form. Where it begins and ends is not known of what cannot be read, so it cannot be taken out.
fn shows_a_secret(text: &str) -> bool {
    let whole = Json::str(text);
    without_named(text).is_some() || *redacted(&whole, &[]) != whole
}
