//! Long spans, read a stretch of numbers at a time. etcd goes through everything that lies between two keys, whatever the
//! limit is, and gives the last few of many only after it has read all.

use crate::kv::engine::Span;

/// A stretch has so many numbers at first, for each entry that is wanted.
const NUMBERS_PER_ENTRY: u64 = 4;

/// And not fewer than this.
const NUMBERS_MIN: u64 = 64;

/// A stretch that had too little is followed by one that is longer by this factor.
const GROWTH: u64 = 4;

/// The others are short, or are read from their beginning.
pub(super) fn is_for(span: &Span) -> bool {
    span.descending || span.is_dense
}

/// A question: from which entry on, before which one, and how many.
pub(super) struct Stretch {
    pub(super) from: Vec<u8>,
    pub(super) to: Vec<u8>,
    pub(super) limit: usize,
}

/// A span on its way through its stretches.
pub(super) struct Stretches<'s> {
    span: &'s Span,
    /// The numbers that nobody has looked at.
    low: u64,
    high: u64,
    length: u64,
    entries: Vec<Vec<u8>>,
}

impl Stretches<'_> {
    /// `last` is the highest number that was given.
    pub(super) fn of(span: &Span, last: u64) -> Stretches<'_> {
        let high = span.below.map_or(last + 1, |below| below.min(last + 1));
        let mut stretches = Stretches { span, low: span.from, high, length: 0, entries: Vec::new() };
        stretches.length = stretches.shortest();
        stretches
    }

    fn shortest(&self) -> u64 {
        (self.span.limit as u64).saturating_mul(NUMBERS_PER_ENTRY).max(NUMBERS_MIN)
    }

    fn numbers(&self) -> (u64, u64) {
        match self.span.descending {
            true => (self.low.max(self.high.saturating_sub(self.length)), self.high),
            false => (self.low, self.high.min(self.low.saturating_add(self.length))),
        }
    }

    /// The next one to be asked for; `None` at the end.
    pub(super) fn next(&self) -> Option<Stretch> {
        if self.low >= self.high || self.entries.len() >= self.span.limit {
            return None;
        }
        let (from, to) = self.numbers();
        // Of an ascending one the first entries are enough. A descending one is asked for again where it has more.
        let limit = match self.span.descending {
            true => usize::try_from(self.shortest()).unwrap_or(usize::MAX),
            false => self.span.limit - self.entries.len(),
        };
        Some(Stretch { from: self.span.at(from), to: self.span.at(to), limit })
    }

    /// The answer to it, and whether its limit has left some out.
    pub(super) fn take(&mut self, mut found: Vec<Vec<u8>>, more: bool) {
        let (from, to) = self.numbers();
        if self.span.descending {
            if more && self.length > self.shortest() {
                self.length = (self.length / GROWTH).max(self.shortest());
                return;
            }
            found.reverse();
            self.high = from;
        } else {
            self.low = to;
        }
        self.entries.extend(found);
        self.length = self.length.saturating_mul(GROWTH);
    }

    pub(super) fn into_entries(mut self) -> Vec<Vec<u8>> {
        self.entries.truncate(self.span.limit);
        self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The numbers that are found, and how many entries the server gave for them.
    fn found(numbers: &BTreeSet<u64>, span: &Span, last: u64) -> (Vec<u64>, usize) {
        let entry = |number: &u64| [&span.at(*number)[..], b"card"].concat();
        let entries: BTreeSet<Vec<u8>> = numbers.iter().map(entry).collect();
        let (mut stretches, mut given) = (Stretches::of(span, last), 0);
        while let Some(Stretch { from, to, limit }) = stretches.next() {
            let all: Vec<_> = entries.range(from..to).take(limit + 1).cloned().collect();
            let more = all.len() > limit;
            given += all.len().min(limit);
            stretches.take(all.into_iter().take(limit).collect(), more);
        }
        let number = |entry: &Vec<u8>| entry[1..].first_chunk().map(|number| u64::from_be_bytes(*number));
        (stretches.into_entries().iter().filter_map(number).collect(), given)
    }

    #[test]
    fn a_page_is_the_same_as_in_one_piece_and_costs_a_page_wherever_it_lies() {
        const LAST: u64 = 100_000;
        let every = |step| (0..=LAST).step_by(step).collect::<BTreeSet<_>>();
        // A run that ended long ago, and one entry long before it.
        let long_ago = [3].into_iter().chain(20_000..26_000).collect();
        for numbers in [every(2), every(50), every(997), long_ago] {
            for (from, below) in [(0, None), (50_001, None), (0, Some(23_000)), (0, Some(1)), (LAST, None)] {
                for descending in [true, false] {
                    let prefix = b"A".to_vec();
                    let span = Span { prefix, from, below, limit: 65, descending, is_dense: true };
                    let wanted = numbers.range(from..below.unwrap_or(u64::MAX));
                    let expected: Vec<u64> = match descending {
                        true => wanted.rev().take(65).copied().collect(),
                        false => wanted.take(65).copied().collect(),
                    };
                    let (read, given) = found(&numbers, &span, LAST);
                    assert_eq!(read, expected, "{span:?}");
                    // Some pages of them, where a stretch was too long at first.
                    assert!(given <= 2_500, "{given} for {span:?}");
                }
            }
        }
    }
}
