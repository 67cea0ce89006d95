//! The verbs that a key-value server must have to keep a ledger. None of them knows what is in a value.

use crate::Error;
use crate::engine_facts::EngineFacts;
use semel_core::time::At;
use std::future::Future;

/// The last write of a value, as the server counts them; 0 means that there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Version(pub u64);

impl Version {
    pub const ABSENT: Version = Version(0);
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    pub version: Version,
    pub bytes: Vec<u8>,
}

/// Values whose names begin so are marks of the process that wrote them.
pub const MARK: u8 = b'h';

/// A part of the index, which is a set of byte strings in order: the entries that begin so, by the eight bytes behind it.
/// No number stands in two entries of one prefix.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Span {
    pub prefix: Vec<u8>,
    /// The lowest number that is wanted.
    pub from: u64,
    /// The lowest one that is not wanted any more.
    pub below: Option<u64>,
    pub limit: usize,
    /// From the highest number down.
    pub descending: bool,
    /// Most of the numbers that were given have an entry here.
    pub is_dense: bool,
}

impl Span {
    /// Before every entry that has this number or a higher one.
    pub fn at(&self, number: u64) -> Vec<u8> {
        [&self.prefix[..], &number.to_be_bytes()].concat()
    }

    pub fn first(&self) -> Vec<u8> {
        self.at(self.from)
    }

    /// Behind its last entry.
    pub fn end(&self) -> Vec<u8> {
        self.below.map_or_else(|| [&self.prefix[..], &[0xff; 9]].concat(), |below| self.at(below))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    /// In the order of the names asked for.
    pub values: Vec<Option<Value>>,
    /// In the order of the spans asked for.
    pub entries: Vec<Vec<Vec<u8>>>,
    /// The highest number that was given so far. Told where a name was asked for.
    pub last: u64,
}

/// Bytes that may have a number in them: one that is above all numbers given before, so that only the server can say it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pub before: Vec<u8>,
    /// The first number of a group is 0.
    pub number: Option<u32>,
    /// The number's bits stand inverted in it, so that the bytes of a later one come first.
    pub is_inverted: bool,
    pub after: Vec<u8>,
}

impl Template {
    pub fn plain(bytes: Vec<u8>) -> Template {
        Template { before: bytes, number: None, is_inverted: false, after: Vec::new() }
    }

    /// `first` is the number that the group's first one has become.
    pub fn fill(&self, first: u64) -> Vec<u8> {
        let mut bytes = self.before.clone();
        let place = |number: u32| first + u64::from(number);
        let number = self.number.map(|number| if self.is_inverted { !place(number) } else { place(number) });
        bytes.extend(number.into_iter().flat_map(u64::to_be_bytes));
        bytes.extend(&self.after);
        bytes
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    Put {
        name: Vec<u8>,
        value: Template,
    },
    Delete {
        name: Vec<u8>,
    },
    /// Adds an entry to the index.
    Enter(Template),
    /// Takes one away.
    Leave(Vec<u8>),
}

/// Writes that land together, if every value still has the version that it was read at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Group {
    pub compares: Vec<(Vec<u8>, Version)>,
    /// No name comes twice.
    pub writes: Vec<Write>,
    /// How many numbers the writes have in them.
    pub numbers: u32,
}

/// Groups that travel together. They land in this order, each by itself.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'g> {
    /// The history that the server must still have.
    pub lineage: &'g str,
    pub groups: &'g [Group],
    /// Whether they have to be on the disk before the answer.
    pub durable: bool,
    /// The keys to announce to the waiters of other processes.
    pub moved: &'g [u64],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Applied {
    /// For each group whether it landed. One that did not met another version than it expected.
    Each(Vec<bool>),
    /// Nothing was written: the server has another history now.
    OtherLineage,
    /// Nothing was written, and the same may work in a moment.
    Again(String),
    /// Nothing was written, and the server says why it never will be.
    Refused(String),
    /// The way to the server broke after it was sent.
    Unknown(String),
}

pub trait Kv: Send + Sync + 'static {
    /// The names first and then the spans, so that a value read here can guard a span.
    fn read(
        &self,
        names: Vec<Vec<u8>>,
        spans: Vec<Span>,
    ) -> impl Future<Output = Result<Found, Error>> + Send;

    /// The names of all values that begin so, in any order, and perhaps more than once.
    fn names(&self, prefix: u8) -> impl Future<Output = Result<Vec<Vec<u8>>, Error>> + Send;

    fn apply(&self, batch: Batch<'_>) -> impl Future<Output = Applied> + Send;

    /// Names the server's history: it changes whenever acknowledged writes may be gone.
    fn lineage(&self) -> impl Future<Output = Result<String, Error>> + Send;

    /// Whether the history has another name now, and every acknowledged write is there all the same.
    fn has_only_restarted(&self) -> impl Future<Output = Result<bool, Error>> + Send {
        async { Ok(false) }
    }

    /// Whether the server takes marks away by itself, some time after their process last kept them. Else their age tells.
    fn takes_marks_away(&self) -> bool {
        false
    }

    /// Keeps the marks of this process that were written with this lease. `None`: there is none, and so no mark.
    fn keep_marks(&self) -> impl Future<Output = Result<Option<String>, Error>> + Send {
        async { Ok(None) }
    }

    /// Calls `heard` for every key that a process has announced, until the way to the server breaks.
    fn listen(&self, heard: impl Fn(u64) + Send) -> impl Future<Output = ()> + Send;

    /// Its name, from a closed set.
    fn engine(&self) -> &'static str;

    /// Whether an acknowledged durable write is on a disk.
    fn is_durable(&self) -> bool;

    /// The server and how far its answers can be trusted, for people.
    fn describe(&self, now: At) -> impl Future<Output = Result<EngineFacts, Error>> + Send;

    /// How the server is named in an error; without a password.
    fn address(&self) -> String;
}
