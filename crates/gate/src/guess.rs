//! Guessing that a call is new.
//!
//! Most calls are, and then looking them up before the claim finds nothing, while the claim requires by itself that
//! nothing is there. So whoever has found nothing many times in a row stops looking first: the claim is refused if the
//! guess was wrong, without a flush, and the call is looked up like any other. Only speed hangs on it.

use semel_ledger::Found;
use semel_ledger::store::Revision;
use std::sync::atomic::{AtomicU32, Ordering};

/// So many new calls in a row make the next one a new one. A wrong guess costs about as much as three right ones save.
const NEW_IN_A_ROW: u32 = 16;

#[derive(Debug)]
pub(crate) struct Guess {
    new_in_a_row: AtomicU32,
    /// From so many on.
    bold_at: u32,
}

impl Default for Guess {
    fn default() -> Self {
        Guess { new_in_a_row: AtomicU32::new(0), bold_at: NEW_IN_A_ROW }
    }
}

impl Guess {
    /// Takes everything for new, however often that was wrong.
    pub(crate) fn always() -> Self {
        Guess { bold_at: 0, ..Guess::default() }
    }

    pub(crate) fn is_new(&self) -> bool {
        self.new_in_a_row.load(Ordering::Relaxed) >= self.bold_at
    }

    /// What a look has found. A store that may have forgotten something has to be looked at each time.
    pub(crate) fn learn(&self, found: &Found) {
        if found.newest.is_some() || found.epoch != Revision::ABSENT {
            self.was_wrong();
        } else if !self.is_new() {
            self.new_in_a_row.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn was_wrong(&self) {
        self.new_in_a_row.store(0, Ordering::Relaxed);
    }
}
