//! Findings: an effect that ran twice, or may have.

use crate::ending::Ending;
use semel_core::class::Class;
use semel_core::time::At;
use serde::Serialize;
use std::time::Duration;

/// How sure a finding is, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingLevel {
    /// The same identity in other words, or a person spoke in between.
    Possible,
    /// The same effect again after a lost or ambiguous answer, or two successes that name nothing.
    Likely,
    /// Two results of one intent name two things, or a later read lists both.
    Proven,
}

impl FindingLevel {
    pub const ALL: [FindingLevel; 3] = [FindingLevel::Possible, FindingLevel::Likely, FindingLevel::Proven];

    pub fn word(self) -> &'static str {
        match self {
            FindingLevel::Possible => "possible",
            FindingLevel::Likely => "likely",
            FindingLevel::Proven => "proven",
        }
    }

    pub fn parse(word: &str) -> Option<FindingLevel> {
        FindingLevel::ALL.into_iter().find(|level| level.word() == word)
    }
}

/// The part of the system that probably sent it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// The model asked for it again.
    Model,
    /// The model asked for it twice in one message.
    ParallelCalls,
    Framework,
    Sdk,
    Transport,
    /// The model had forgotten: its history had been replaced by a summary.
    Compaction,
    /// Another session did it too.
    SecondWorker,
}

impl Layer {
    pub fn in_words(self) -> &'static str {
        match self {
            Layer::Model => "the model called again",
            Layer::ParallelCalls => "the model called twice in one message",
            Layer::Framework => "the framework called again",
            Layer::Sdk => "the SDK sent it again",
            Layer::Transport => "the transport sent it again",
            Layer::Compaction => "the model called again after its history was compacted",
            Layer::SecondWorker => "another session did the same",
        }
    }
}

/// One call of a finding.
#[derive(Debug, Clone, Serialize)]
pub struct FindingCall {
    pub file: String,
    pub line: u64,
    #[serde(serialize_with = "rfc3339")]
    pub at: Option<At>,
    pub ending: Ending,
}

#[derive(Debug, Clone, Serialize)]
pub struct AuditFinding {
    pub level: FindingLevel,
    pub action: String,
    pub class: Class,
    /// The arguments that identify it, redacted.
    pub subject: String,
    pub calls: Vec<FindingCall>,
    /// Between the first call and the one that repeats it.
    #[serde(serialize_with = "seconds")]
    pub gap: Option<Duration>,
    pub layer: Layer,
    /// The reason for the level.
    pub why: String,
    pub prevention: String,
}

fn rfc3339<S: serde::Serializer>(at: &Option<At>, to: S) -> Result<S::Ok, S::Error> {
    at.map(|at| at.to_string()).serialize(to)
}

fn seconds<S: serde::Serializer>(gap: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    gap.map(|gap| gap.as_secs_f64()).serialize(to)
}

/// How semel would have prevented it, at the door that the action came through.
pub fn prevention(action: &str, level: FindingLevel) -> String {
    let door = match action.split_once(':') {
        Some(("mcp", name)) => {
            format!(
                "put `semel mcp --name {} --` in front of the server",
                name.split('/').next().unwrap_or(name)
            )
        }
        Some(("http", _)) => "send the request through `semel serve`".to_owned(),
        Some(("cli", _)) => "run the command with `semel run --key NAME --`".to_owned(),
        _ => "call the function through the API of `semel serve`".to_owned(),
    };
    match level {
        FindingLevel::Proven | FindingLevel::Likely => {
            format!("{door}: the repeat gets the recorded answer, or waits for it")
        }
        FindingLevel::Possible => {
            format!(
                "{door}, with a rule whose `key` names what identifies it; if both were meant, do nothing"
            )
        }
    }
}
