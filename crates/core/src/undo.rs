//! How an effect can be taken back, as its record keeps it.

use crate::ids::{EffectId, Reason};
use crate::time::At;
use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};
use std::fmt;

/// How an effect can be taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
#[serde(rename_all = "snake_case")]
#[cbor(flat)]
pub enum Undo {
    #[n(1)]
    By(#[n(0)] UndoCall),
    /// The rule has an undo, and this is why it does not serve for this effect.
    #[n(2)]
    Not(#[n(0)] String),
}

/// A call with every value in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
#[serde(rename_all = "snake_case")]
#[cbor(flat)]
pub enum UndoCall {
    #[n(1)]
    Mcp {
        #[n(0)]
        server: String,
        #[n(1)]
        tool: String,
        /// One JSON object, in canonical form.
        #[n(2)]
        arguments: String,
    },
    #[n(2)]
    Http {
        #[n(0)]
        method: String,
        #[n(1)]
        url: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[n(2)]
        body: Option<UndoBody>,
    },
    #[n(3)]
    Command {
        #[n(0)]
        argv: Vec<String>,
        #[n(1)]
        cwd: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
pub struct UndoBody {
    #[n(0)]
    pub form: BodyForm,
    /// One JSON object, in canonical form.
    #[n(1)]
    pub members: String,
}

/// How a body is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
#[serde(rename_all = "snake_case")]
#[cbor(index_only)]
pub enum BodyForm {
    #[n(1)]
    Json,
    /// As a web page sends its fields.
    #[n(2)]
    Urlencoded,
}

/// Which effect an undo takes back, who wanted that and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
pub struct Undoes {
    #[n(0)]
    pub effect: EffectId,
    #[n(1)]
    pub by: String,
    #[n(2)]
    pub reason: Reason,
}

/// The effect that took another one back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
pub struct Undone {
    #[n(0)]
    pub by: EffectId,
    #[n(1)]
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
