//! The state that a commit is checked against: read before, and examined in memory.

use super::codec::{self, ReadRow};
use super::engine::{Found, Span, Value, Version};
use super::layout::{self, Filter};
use crate::Error;
use crate::precondition::{LastWrite, RowHead, View};
use crate::store::{ALIKE_MAX, Against, Card, Commit, Latest, PAGE_ROWS_MAX, Put, SeenAlike};
use semel_core::digest::Digest;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The names and spans that commits need.
#[derive(Debug, Default, Clone)]
pub(super) struct Needs {
    pub(super) names: HashSet<Vec<u8>>,
    pub(super) spans: HashSet<Span>,
}

impl Needs {
    /// All that most commits ask for. The rest is found out by asking.
    pub(super) fn add(&mut self, commit: &Commit) {
        for put in &commit.puts {
            match put {
                Put::Record { key, ordinal, against, index, .. } => {
                    if *against == Against::Itself {
                        self.names.insert(layout::older(*key, *ordinal));
                    }
                    self.names.extend([layout::newest(*key), layout::family(index.family)]);
                }
                Put::Forget { key, ordinal, .. } | Put::DropReply { key, ordinal } => {
                    self.names.extend([layout::newest(*key), layout::older(*key, *ordinal)]);
                }
                Put::Cell { key, .. } | Put::ForgetCell { key, .. } => {
                    self.names.insert(layout::cell(*key));
                }
            }
        }
        self.names.extend(commit.require.cells.iter().map(|(key, _)| layout::cell(*key)));
        self.names.extend(commit.require.family_quiet.map(layout::family));
        if let Some((alike, _)) = commit.require.alike {
            self.names.insert(layout::alike_guard(alike));
            self.spans.extend(alike_spans(alike));
        }
    }

    pub(super) fn lack(&mut self, gap: Gap) -> Result<(), Error> {
        match gap {
            Gap::Name(name) => self.names.insert(name),
            Gap::Span(span) => self.spans.insert(span),
            Gap::Unreadable(error) => return Err(error),
        };
        Ok(())
    }
}

/// The newest, and the open ones.
pub(super) fn alike_spans(alike: Digest) -> [Span; 2] {
    let newest = Filter::Latest(Latest::Alike(alike)).prefix();
    let open = Filter::Latest(Latest::OpenAlike(alike)).prefix();
    [layout::backward(&newest, None, ALIKE_MAX), layout::backward(&open, None, PAGE_ROWS_MAX)]
}

/// Why a question has no answer yet.
#[derive(Debug)]
pub(super) enum Gap {
    Name(Vec<u8>),
    Span(Span),
    Unreadable(Error),
}

impl From<Error> for Gap {
    fn from(error: Error) -> Gap {
        Gap::Unreadable(error)
    }
}

#[derive(Debug, Default)]
pub(super) struct Prefetched {
    values: HashMap<Vec<u8>, Option<Value>>,
    entries: HashMap<Span, Vec<Vec<u8>>>,
}

impl Prefetched {
    pub(super) fn new(names: Vec<Vec<u8>>, spans: Vec<Span>, found: Found) -> Prefetched {
        Prefetched {
            values: names.into_iter().zip(found.values).collect(),
            entries: spans.into_iter().zip(found.entries).collect(),
        }
    }

    /// The version of a value that was read; absent if it was not.
    pub(super) fn version(&self, name: &[u8]) -> Version {
        self.values.get(name).and_then(Option::as_ref).map_or(Version::ABSENT, |value| value.version)
    }
}

/// One commit's look at the state. It remembers every value that was looked at: the write is guarded by exactly those.
#[derive(Debug)]
pub(super) struct Look<'p> {
    state: &'p Prefetched,
    seen: BTreeMap<Vec<u8>, Version>,
}

impl<'p> Look<'p> {
    pub(super) fn at(state: &'p Prefetched) -> Look<'p> {
        Look { state, seen: BTreeMap::new() }
    }

    pub(super) fn into_compares(self) -> Vec<(Vec<u8>, Version)> {
        self.seen.into_iter().collect()
    }

    pub(super) fn value(&mut self, name: Vec<u8>) -> Result<Option<&'p Value>, Gap> {
        let Some(found) = self.state.values.get(&name) else { return Err(Gap::Name(name)) };
        self.seen.insert(name, found.as_ref().map_or(Version::ABSENT, |value| value.version));
        Ok(found.as_ref())
    }

    /// Entries are not compared: some value must guard them.
    fn cards(&self, span: Span) -> Result<Vec<Card>, Gap> {
        let Some(found) = self.state.entries.get(&span) else { return Err(Gap::Span(span)) };
        let read = |entry: &Vec<u8>| layout::card(entry).ok_or_else(|| codec::damaged("the index").into());
        found.iter().map(read).collect()
    }

    pub(super) fn newest_row(&mut self, key: Digest) -> Result<Option<ReadRow>, Gap> {
        Ok(self.value(layout::newest(key))?.map(codec::row).transpose()?)
    }

    pub(super) fn older_row(&mut self, key: Digest, ordinal: u32) -> Result<Option<ReadRow>, Gap> {
        Ok(self.value(layout::older(key, ordinal))?.map(codec::row).transpose()?)
    }

    /// The ordinal of the row before the newest, if there is one. The newest row guards it: whatever removes an older
    /// one writes the newest too.
    pub(super) fn ordinal_before(&self, key: Digest, newest: u32) -> Result<Option<u32>, Gap> {
        let record = Filter::By(crate::store::By::Record(key)).prefix();
        let cards = self.cards(layout::backward(&record, None, 2))?;
        Ok(cards.iter().map(|card| card.ordinal).find(|ordinal| *ordinal < newest))
    }

    pub(super) fn relatives(&mut self, family: Digest) -> Result<Vec<(Digest, u32)>, Gap> {
        let found = self.value(layout::family(family))?;
        Ok(found.map_or_else(Vec::new, |value| codec::relatives(&value.bytes)))
    }
}

impl View for Look<'_> {
    type Error = Gap;

    fn newest(&mut self, key: Digest) -> Result<Option<RowHead>, Gap> {
        Ok(self.newest_row(key)?.map(|row| row.head()))
    }

    fn row(&mut self, key: Digest, ordinal: u32) -> Result<Option<RowHead>, Gap> {
        match self.newest_row(key)? {
            Some(row) if row.stored.ordinal == ordinal => Ok(Some(row.head())),
            _ => Ok(self.older_row(key, ordinal)?.map(|row| row.head())),
        }
    }

    fn cell(&mut self, key: Digest) -> Result<LastWrite, Gap> {
        match self.value(layout::cell(key))? {
            Some(value) => Ok(codec::cell(value)?.0),
            None => Ok(LastWrite::NONE),
        }
    }

    fn open_relative(&mut self, family: Digest, except: Option<Digest>) -> Result<Option<Digest>, Gap> {
        let relatives = self.relatives(family)?;
        Ok(relatives.iter().map(|(key, _)| *key).find(|key| Some(*key) != except))
    }

    fn alike(&mut self, alike: Digest) -> Result<SeenAlike, Gap> {
        self.value(layout::alike_guard(alike))?;
        let [newest, open] = alike_spans(alike);
        Ok(SeenAlike::of(&layout::with_open(self.cards(newest)?, self.cards(open)?)))
    }
}
