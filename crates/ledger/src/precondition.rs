//! The conditions for a commit to land. Every engine asks this one function, so that none can differ.

use crate::store::{Against, COPY_CELL, Commit, Conflict, Index, Nonce, Put, Revision, SeenAlike};
use semel_core::digest::Digest;

/// The parts of a row that matter to a commit that overwrites it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowHead {
    /// The engine's own number of the row, in order of insertion.
    pub(crate) id: u64,
    pub(crate) ordinal: u32,
    pub(crate) last_write: LastWrite,
    pub(crate) index: Index,
    /// The engine keeps its reply apart from the row.
    pub(crate) reply_apart: bool,
}

/// The last write of a row or cell, and the commit that it came with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastWrite {
    pub(crate) revision: Revision,
    pub(crate) nonce: Nonce,
}

impl LastWrite {
    /// Of something that is not there.
    pub(crate) const NONE: LastWrite = LastWrite { revision: Revision::ABSENT, nonce: Nonce(0) };

    /// The write of a commit that found this revision.
    pub(crate) fn after(expected: Revision, nonce: Nonce) -> LastWrite {
        LastWrite { revision: expected.next(), nonce }
    }
}

/// An engine's state, as of the transaction in which the commit would land.
pub(crate) trait View {
    type Error;

    fn newest(&mut self, key: Digest) -> Result<Option<RowHead>, Self::Error>;

    fn row(&mut self, key: Digest, ordinal: u32) -> Result<Option<RowHead>, Self::Error>;

    fn cell(&mut self, key: Digest) -> Result<LastWrite, Self::Error>;

    /// The intent key of an open row of this family, other than `except`.
    fn open_relative(
        &mut self,
        family: Digest,
        except: Option<Digest>,
    ) -> Result<Option<Digest>, Self::Error>;

    /// The rows that calls of this kind are compared with, by the engine's own numbers.
    fn alike(&mut self, alike: Digest) -> Result<SeenAlike, Self::Error>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Finding {
    /// It may land. For each put, the row that it overwrites or deletes; `None` inserts.
    Clear(Vec<Option<RowHead>>),
    /// It has landed before. Its sender did not hear so, and sent it again.
    Landed,
    Conflict(Conflict),
    /// No state of the store could ever satisfy it: a mistake of the caller, which a retry would not mend.
    Absurd(String),
}

/// Puts first, because a caller that lost a race wants to know that before anything else; then the required cells;
/// then the family and what is alike, the only checks that cost a search.
pub(crate) fn examine<V: View>(view: &mut V, commit: &Commit) -> Result<Finding, V::Error> {
    if let Some(what) = absurd(commit) {
        return Ok(Finding::Absurd(what));
    }
    match examine_puts(view, commit)? {
        // Asked only now: a commit that has landed finds its own writes in its way.
        Finding::Conflict(_) if has_landed(view, commit)? => Ok(Finding::Landed),
        Finding::Clear(found) => Ok(match unmet(view, commit)? {
            Some(conflict) => Finding::Conflict(conflict),
            None => Finding::Clear(found),
        }),
        other => Ok(other),
    }
}

fn examine_puts<V: View>(view: &mut V, commit: &Commit) -> Result<Finding, V::Error> {
    let mut found = Vec::with_capacity(commit.puts.len());
    for put in &commit.puts {
        match put {
            Put::Record { key, ordinal, expected, against: Against::Itself, .. } => {
                match view.row(*key, *ordinal)? {
                    Some(head) if head.last_write.revision == *expected => found.push(Some(head)),
                    _ => return Ok(Finding::Conflict(Conflict::Record)),
                }
            }
            Put::Record { key, ordinal, expected, against: Against::Newest, .. } => {
                let newest = view.newest(*key)?;
                let (at, last) = newest
                    .as_ref()
                    .map_or((Revision::ABSENT, 0), |head| (head.last_write.revision, head.ordinal));
                if at != *expected {
                    return Ok(Finding::Conflict(Conflict::Record));
                }
                if *ordinal != last && *ordinal != last + 1 && !(copies(commit) && *ordinal > last) {
                    let what = format!("effect {ordinal} of a record cannot follow effect {last}");
                    return Ok(Finding::Absurd(what));
                }
                found.push(newest.filter(|head| head.ordinal == *ordinal));
            }
            Put::Forget { key, ordinal, expected } => match view.row(*key, *ordinal)? {
                Some(head) if head.last_write.revision == *expected && head.index.open => {
                    return Ok(Finding::Absurd("an open effect is never forgotten".to_owned()));
                }
                Some(head) if head.last_write.revision == *expected => found.push(Some(head)),
                _ => return Ok(Finding::Conflict(Conflict::Record)),
            },
            Put::DropReply { key, ordinal } => match view.row(*key, *ordinal)? {
                Some(head) if head.index.open => {
                    return Ok(Finding::Absurd("the reply of an open effect is never dropped".to_owned()));
                }
                Some(head) => found.push(Some(head)),
                None => return Ok(Finding::Conflict(Conflict::Record)),
            },
            Put::Cell { key, expected, .. } | Put::ForgetCell { key, expected } => {
                if view.cell(*key)?.revision != *expected {
                    return Ok(Finding::Conflict(Conflict::Cell(*key)));
                }
                found.push(None);
            }
        }
    }
    Ok(Finding::Clear(found))
}

/// Whether every put that leaves something behind is the last write of its row or cell. One of several is not enough:
/// two commits of a caller that uses a nonce twice would else be taken for one.
fn has_landed<V: View>(view: &mut V, commit: &Commit) -> Result<bool, V::Error> {
    let mut proven = false;
    for put in &commit.puts {
        let (last, expected) = match put {
            Put::Record { key, ordinal, expected, against, .. } => {
                let row = match against {
                    Against::Newest => view.newest(*key)?,
                    Against::Itself => view.row(*key, *ordinal)?,
                };
                (row.map_or(LastWrite::NONE, |head| head.last_write), expected)
            }
            Put::Cell { key, expected, .. } => (view.cell(*key)?, expected),
            Put::Forget { .. } | Put::DropReply { .. } | Put::ForgetCell { .. } => continue,
        };
        if last != LastWrite::after(*expected, commit.nonce) {
            return Ok(false);
        }
        proven = true;
    }
    Ok(proven)
}

/// What the commit requires and does not find.
fn unmet<V: View>(view: &mut V, commit: &Commit) -> Result<Option<Conflict>, V::Error> {
    for (key, required) in &commit.require.cells {
        if view.cell(*key)?.revision != *required {
            return Ok(Some(Conflict::Cell(*key)));
        }
    }
    if let Some(family) = commit.require.family_quiet
        && let Some(other) = view.open_relative(family, record_of(commit))?
    {
        return Ok(Some(Conflict::Family(other)));
    }
    if let Some((alike, seen)) = commit.require.alike
        && view.alike(alike)? != seen
    {
        return Ok(Some(Conflict::Alike));
    }
    Ok(None)
}

/// Two puts of one commit are checked against the same state, so they must not be about the same thing.
fn absurd(commit: &Commit) -> Option<String> {
    let twice =
        |index: usize, put: &Put| commit.puts[..index].iter().any(|other| target(other) == target(put));
    if commit.puts.iter().enumerate().any(|(index, put)| twice(index, put)) {
        return Some("one commit writes the same row twice".to_owned());
    }
    let zero = |put: &Put| matches!(put, Put::Record { ordinal: 0, .. });
    commit.puts.iter().any(zero).then(|| "the effects of a record are counted from 1".to_owned())
}

/// Retention may have dropped effects of a record before it was copied. Nothing else may skip any.
fn copies(commit: &Commit) -> bool {
    commit.puts.iter().any(|put| matches!(put, Put::Cell { key, .. } if *key == COPY_CELL))
}

#[derive(PartialEq)]
enum PutTarget {
    Record(Digest),
    Row(Digest, u32),
    Cell(Digest),
}

fn target(put: &Put) -> PutTarget {
    match put {
        Put::Record { key, .. } => PutTarget::Record(*key),
        Put::Forget { key, ordinal, .. } | Put::DropReply { key, ordinal } => PutTarget::Row(*key, *ordinal),
        Put::Cell { key, .. } | Put::ForgetCell { key, .. } => PutTarget::Cell(*key),
    }
}

pub(crate) fn record_of(commit: &Commit) -> Option<Digest> {
    commit.puts.iter().find_map(|put| match put {
        Put::Record { key, .. } => Some(*key),
        _ => None,
    })
}

/// Every key whose revision a commit moves, to wake those who wait on one.
pub(crate) fn moved(commit: &Commit) -> impl Iterator<Item = (Digest, Revision)> {
    commit.puts.iter().map(|put| match put {
        Put::Record { key, expected, against: Against::Newest, .. } | Put::Cell { key, expected, .. } => {
            (*key, expected.next())
        }
        Put::Record { key, .. }
        | Put::Forget { key, .. }
        | Put::DropReply { key, .. }
        | Put::ForgetCell { key, .. } => (*key, Revision::ABSENT),
    })
}
