//! Guessing what a look would find: that a call is new, and that nothing near it is open.
//!
//! Most calls are, and then looking them up before the claim finds nothing, while the claim requires by itself that
//! nothing is there. So whoever has found nothing many times in a row stops looking first: the claim is refused if the
//! guess was wrong, without a flush, and the call is looked up like any other. Likewise a claim requires that nothing
//! of others is open near it, until that is not so: then calls look at their neighbours first, for a while. Only speed
//! hangs on either.

use semel_ledger::Found;
use semel_ledger::store::Revision;
use std::sync::atomic::{AtomicU32, Ordering};

/// So many new calls in a row make the next one a new one. A wrong guess costs a way through the ledger's queue, so it
/// should be rare.
const NEW_IN_A_ROW: u32 = 16;

/// So many calls look at their neighbours first once somebody has met one.
const LOOKS_AROUND: u32 = 64;

#[derive(Debug)]
pub(crate) struct Guess {
    new_in_a_row: AtomicU32,
    /// How many calls are still to look around.
    looks_around: AtomicU32,
    /// From so many on a call is taken for new; 0 always.
    bold_at: u32,
}

impl Default for Guess {
    fn default() -> Self {
        Guess { new_in_a_row: AtomicU32::new(0), looks_around: AtomicU32::new(0), bold_at: NEW_IN_A_ROW }
    }
}

impl Guess {
    /// Takes everything for new, however often that was wrong.
    pub(crate) fn always() -> Self {
        Guess { bold_at: 0, ..Guess::default() }
    }

    /// Not where a claim is likely to be refused for its neighbours.
    pub(crate) fn is_new(&self) -> bool {
        let lonely = self.looks_around.load(Ordering::Relaxed) == 0;
        self.bold_at == 0 || (lonely && self.new_in_a_row.load(Ordering::Relaxed) >= self.bold_at)
    }

    /// What a look has found. A store that may have forgotten something has to be looked at each time.
    pub(crate) fn learn(&self, found: &Found) {
        if found.newest.is_some() || found.epoch != Revision::ABSENT {
            self.was_wrong();
        } else if self.new_in_a_row.load(Ordering::Relaxed) < self.bold_at {
            self.new_in_a_row.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn was_wrong(&self) {
        // Nobody else's processor has to hear again what it knows.
        if self.new_in_a_row.load(Ordering::Relaxed) != 0 {
            self.new_in_a_row.store(0, Ordering::Relaxed);
        }
    }

    /// Whether the next call has to look at its neighbours before it claims.
    pub(crate) fn looks_around(&self) -> bool {
        let one_less = |left: u32| left.checked_sub(1);
        self.looks_around.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok()
    }

    pub(crate) fn met_a_neighbour(&self) {
        self.looks_around.store(LOOKS_AROUND, Ordering::Relaxed);
    }
}
