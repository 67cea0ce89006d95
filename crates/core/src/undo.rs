//! How an effect can be taken back, as its record keeps it.

use crate::ids::{EffectId, Reason};
use crate::time::At;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How an effect can be taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Undo {
    By(UndoCall),
    /// The rule has an undo, and this is why it does not serve for this effect.
    Not(String),
}

/// A call with every value in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UndoCall {
    Mcp {
        server: String,
        tool: String,
        /// One JSON object, in canonical form.
        arguments: String,
    },
    Http {
        method: String,
        url: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<UndoBody>,
    },
    Command {
        argv: Vec<String>,
        cwd: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoBody {
    pub form: BodyForm,
    /// One JSON object, in canonical form.
    pub members: String,
}

/// How a body is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BodyForm {
    Json,
    /// As a web page sends its fields.
    Urlencoded,
}

/// Which effect an undo takes back, who wanted that and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undoes {
    pub effect: EffectId,
    pub by: String,
    pub reason: Reason,
}

/// The effect that took another one back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undone {
    pub by: EffectId,
    pub at: At,
}

impl UndoCall {
    /// The action's name, as rules write it.
    pub fn action(&self) -> String {
        match self {
            UndoCall::Mcp { server, tool, .. } => format!("mcp:{server}/{tool}"),
            UndoCall::Http { method, url, .. } => {
                let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
                format!("http:{method} {}", rest.split('?').next().unwrap_or_default())
            }
            UndoCall::Command { argv, .. } => {
                let program = argv.first().map(String::as_str).unwrap_or_default();
                format!("cli:{}", program.rsplit('/').next().unwrap_or(program))
            }
        }
    }
}

impl fmt::Display for UndoCall {
    /// In one line, as a rule writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UndoCall::Mcp { server, tool, arguments } => write!(f, "mcp {server}/{tool} {arguments}"),
            UndoCall::Http { method, url, body: None } => write!(f, "http {method} {url}"),
            UndoCall::Http { method, url, body: Some(body) } => {
                write!(f, "http {method} {url} {}", body.members)
            }
            UndoCall::Command { argv, .. } => write!(f, "cmd {}", argv.join(" ")),
        }
    }
}
