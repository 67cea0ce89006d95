//! What goes wrong next, as told by `POST /__plan`.

use crate::http::request::RequestHead;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Tells the requests of one case of a test from all others.
pub const CASE: &str = "x-case";

/// The body of `POST /__plan`. A word that nobody knows is refused: a fault that silently never happens would make a
/// test that cannot fail.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PlanUpdate {
    /// Forgets the faults that are still waiting.
    pub clear: bool,
    /// Whether idempotency keys are honoured from now on.
    pub keys: Option<KeySupport>,
    pub next: Vec<PlannedFault>,
}

#[derive(Debug, Default, Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum KeySupport {
    #[default]
    Ignore,
    Honour,
}

/// What goes wrong with the requests that it matches. Every member is optional; together they describe one exchange in
/// the order in which it happens.
#[derive(Debug, Deserialize, Clone)]
#[serde(deny_unknown_fields, default)]
pub struct PlannedFault {
    pub method: Option<String>,
    /// The path begins so.
    pub path: String,
    /// The request says `X-Case: …` with this: many cases can then be tried at once.
    pub case: Option<String>,
    /// How many requests it meets; 0 for all of them.
    pub times: u64,

    /// The connection is reset once so many bytes of the request were read; below zero, so many before its end. Only a
    /// request that was read as a whole has its effect.
    pub cut_request: Option<isize>,
    pub effect: EffectMoment,
    /// Nothing is answered until this is released; never released, it is a black hole.
    pub hold: Option<String>,
    /// So long from the effect to the answer.
    pub delay_ms: u64,

    /// Informational responses that go ahead.
    pub interim: Vec<u16>,
    /// Instead of the answer's own.
    pub status: Option<u16>,
    /// An answer of this status that points to the second listener.
    pub redirect: Option<u16>,
    pub headers: BTreeMap<String, String>,
    /// So many more bytes in a JSON answer.
    pub pad: usize,
    /// This instead of any answer: one byte for each character up to U+00FF.
    pub raw: Option<String>,
    pub framing: ReplyFraming,
    pub stream: StreamFault,

    /// Only so many bytes of the response go out, or all but so many. 0: the reply is lost.
    pub cut_response: Option<isize>,
    /// How a connection ends that is cut.
    pub how: CutMode,
    /// What becomes of the connection after a whole answer.
    pub close: Close,
}

impl Default for PlannedFault {
    fn default() -> Self {
        PlannedFault {
            method: None,
            path: String::new(),
            case: None,
            times: 1,
            cut_request: None,
            effect: EffectMoment::Now,
            hold: None,
            delay_ms: 0,
            interim: Vec::new(),
            status: None,
            redirect: None,
            headers: BTreeMap::new(),
            pad: 0,
            raw: None,
            framing: ReplyFraming::Natural,
            stream: StreamFault::default(),
            cut_response: None,
            how: CutMode::Close,
            close: Close::Kept,
        }
    }
}

/// How many bytes of a whole a plan means.
pub fn byte_at(told: isize, whole: usize) -> usize {
    if told < 0 { whole.saturating_sub(told.unsigned_abs()) } else { told.unsigned_abs() }
}

/// When the world changes.
#[derive(Debug, Deserialize, Clone, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum EffectMoment {
    Now,
    /// Answered as if it had.
    Never,
    /// The connection is cut at once, as `how` says; the effect is there so many milliseconds later.
    LateMs(u64),
    /// The same, once this is released.
    Late(String),
}

#[derive(Debug, Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum CutMode {
    Close,
    Reset,
    /// A stream ends in good order, but without its last events.
    End,
}

#[derive(Debug, Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Close {
    Kept,
    Announced,
    /// Closed without a word, as idle connections are.
    Silent,
}

/// How the end of a body is marked.
#[derive(Debug, Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum ReplyFraming {
    /// By length, and by chunks for a stream.
    Natural,
    Chunked,
    /// By the end of the connection, as in HTTP/1.0.
    Close,
}

#[derive(Debug, Default, Deserialize, Clone)]
#[serde(deny_unknown_fields, default)]
pub struct StreamFault {
    /// The stream ends after so many events, as `how` says.
    pub stop_after: Option<usize>,
    /// After so many events an error event comes, and then the end in good order.
    pub error_after: Option<usize>,
    /// After so many events nothing comes until `hold` is released.
    pub hold_after: Option<usize>,
    pub pause_ms: u64,
}

/// The faults that still wait, first come first met.
#[derive(Debug, Default)]
pub struct FaultPlan {
    waiting: Vec<PlannedFault>,
}

impl FaultPlan {
    pub fn tell(&mut self, told: PlanUpdate) {
        if told.clear {
            self.waiting.clear();
        }
        self.waiting.extend(told.next);
    }

    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub fn next(&mut self, head: &RequestHead) -> Option<PlannedFault> {
        let is =
            |wanted: &Option<String>, found: Option<&str>| wanted.is_none() || wanted.as_deref() == found;
        let met = |fault: &PlannedFault| {
            head.path.starts_with(&fault.path)
                && is(&fault.method, Some(&head.method))
                && is(&fault.case, head.header(CASE))
        };
        let at = self.waiting.iter().position(met)?;
        let fault = self.waiting[at].clone();
        match fault.times {
            0 => {}
            1 => drop(self.waiting.remove(at)),
            _ => self.waiting[at].times -= 1,
        }
        Some(fault)
    }
}
