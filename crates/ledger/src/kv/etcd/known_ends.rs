//! Where the first entries of spans ended when they were last read. etcd goes through all entries of a range to count them, so
//! it is asked for the part that had enough of them: those that were added since come before its end.

use crate::kv::engine::Span;
use std::collections::HashMap;

/// Spans that are remembered, some hundred bytes each.
const SPANS_MAX: usize = 4_096;

#[derive(Debug, Default)]
pub(super) struct KnownEnds(HashMap<(Vec<u8>, usize), u64>);

impl KnownEnds {
    /// The part of a span that had as many entries as are wanted. It may have fewer now.
    pub(super) fn narrowed(&self, span: &Span) -> Span {
        let known = self.0.get(&(span.prefix.clone(), span.limit)).filter(|_| is_remembered(span));
        Span { below: known.copied().or(span.below), ..span.clone() }
    }

    pub(super) fn note(&mut self, span: &Span, entries: &[Vec<u8>]) {
        let last = entries.last().filter(|_| is_remembered(span) && entries.len() == span.limit);
        let number = last.and_then(|entry| entry.get(span.prefix.len()..)?.first_chunk());
        let Some(end) = number.and_then(|number| u64::from_be_bytes(*number).checked_add(1)) else { return };
        if self.0.len() >= SPANS_MAX {
            self.0.clear();
        }
        self.0.insert((span.prefix.clone(), span.limit), end);
    }
}

fn is_remembered(span: &Span) -> bool {
    span.from == 0 && span.below.is_none() && !span.descending && !span.is_dense
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_that_was_read_to_its_limit_is_asked_for_as_far_as_it_was_read() {
        let of = |prefix: &[u8], from| {
            let prefix = prefix.to_vec();
            Span { prefix, from, below: None, limit: 2, descending: false, is_dense: false }
        };
        let (span, mut ends) = (of(b"Lx", 0), KnownEnds::default());
        let entry = |number| [&span.at(number)[..], b"card"].concat();
        assert_eq!(ends.narrowed(&span), span);
        ends.note(&span, &[entry(5)]);
        assert_eq!(ends.narrowed(&span), span, "all of it was read");
        ends.note(&span, &[entry(5), entry(9)]);
        assert_eq!(ends.narrowed(&span).below, Some(10));
        for other in [of(b"Ly", 0), of(b"Lx", 7), Span { limit: 3, ..span.clone() }] {
            assert_eq!(ends.narrowed(&other), other);
        }
    }
}
