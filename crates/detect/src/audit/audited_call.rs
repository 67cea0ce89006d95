//! One effectful call, reduced to what comparing needs.

use crate::ending::{Ending, ListedThing, ResultNames};
use crate::judge::Judged;
use semel_core::time::At;

#[derive(Debug, Clone)]
pub struct AuditedCall {
    pub judged: Judged,
    pub ending: Ending,
    /// The names in its result.
    pub names: ResultNames,
    /// The marks by which a removal may name what it made; empty where none is looked for.
    pub reply_marks: Vec<u64>,
    /// Equal for the calls of one server.
    pub server: u64,
    /// The marks by which it names the thing that it is about, if its answer was lost.
    pub about: Vec<u64>,
    pub at: Option<At>,
    pub place: LinePlace,
    pub session: u64,
    /// The model's id of the call, where it is one in the whole world: a copied session has it too.
    pub unique_id: Option<u64>,
    /// The message, or in logs of execution the model's call, that it belongs to.
    pub turn: Option<u64>,
    /// Its file tells what a model asked for, not what was sent.
    pub in_conversation: bool,
    pub resends: u32,
    pub history: SessionHistory,
}

/// A call that removes something, and may have taken back what an earlier one made.
#[derive(Debug, Clone)]
pub struct RemovalCall {
    /// Where it is looked for: equal for the calls of one server.
    pub server: u64,
    /// The marks that name the thing.
    pub named: Vec<u64>,
    pub at: Option<At>,
    pub place: LinePlace,
}

/// A read after a lost answer of the same server, and the things that it lists.
#[derive(Debug, Clone)]
pub struct ListingCall {
    pub server: u64,
    /// The marks of its arguments: all that it lists belongs to them.
    pub asked: Vec<u64>,
    pub things: Vec<ListedThing>,
    pub at: Option<At>,
    pub place: LinePlace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinePlace {
    /// The file, by its number in the audit.
    pub file: u32,
    pub line: u64,
    /// Counts the calls of the file: several may stand in one line.
    pub order: u64,
}

/// Counts of a session up to a call: the difference between two calls tells what lies between them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionHistory {
    pub user_messages: u32,
    pub compactions: u32,
    /// Reads that succeeded at the same server.
    pub reads: u32,
}
