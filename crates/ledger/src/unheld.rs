//! Claims that this process asked for and never got, because nobody could say whether they had landed. One that did
//! land is in flight by a living process that will not send it.

use crate::Error;
use crate::ledger::Ledger;
use semel_core::digest::Digest;
use semel_core::effect::{Attempt, NotAppliedWhy, Reply};
use semel_core::ids::Nonce;
use semel_core::lifecycle::Event;
use semel_core::outcome::Outcome;
use semel_core::time::At;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// All calls of a busy server at the moment when its ledger went away. An older one lapses by its deadline.
const KEPT_MAX: usize = 10_000;

/// Kept while its claim may still land.
#[derive(Debug, Default)]
pub(crate) struct UnheldClaims(Mutex<VecDeque<UnheldClaim>>);

#[derive(Debug)]
struct UnheldClaim {
    key: Digest,
    nonce: Nonce,
    /// Its record has been looked at since.
    seen: bool,
}

impl UnheldClaims {
    /// From here until it is known what became of its commit.
    pub(crate) fn ask(&self, key: Digest, nonce: Nonce) -> AskedClaim<'_> {
        AskedClaim { key, nonce, unheld: self, certain: false }
    }

    fn holds(&self, attempt: &Attempt) -> bool {
        self.lock().iter().any(|claim| claim.nonce == attempt.nonce)
    }

    fn next_unseen(&self) -> Option<Digest> {
        self.lock().iter().find(|claim| !claim.seen).map(|claim| claim.key)
    }

    fn saw(&self, key: Digest) {
        self.lock().iter_mut().filter(|claim| claim.key == key).for_each(|claim| claim.seen = true);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<UnheldClaim>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A claim whose commit is on its way. Dropped before that is certain, it is nobody's.
pub(crate) struct AskedClaim<'l> {
    key: Digest,
    nonce: Nonce,
    unheld: &'l UnheldClaims,
    certain: bool,
}

impl AskedClaim<'_> {
    /// It is its caller's, or has not landed and never will.
    pub(crate) fn end(mut self) {
        self.certain = true;
    }
}

impl Drop for AskedClaim<'_> {
    fn drop(&mut self) {
        if !self.certain {
            let mut claims = self.unheld.lock();
            if claims.len() == KEPT_MAX {
                claims.pop_front();
            }
            claims.push_back(UnheldClaim { key: self.key, nonce: self.nonce, seen: false });
        }
    }
}

impl Ledger {
    /// The end of an attempt of this process that nobody in it holds. One that was handed to a caller, who may have sent
    /// it, is none of these, whatever became of the caller.
    pub(crate) fn end_of_unheld(&self, attempt: &Attempt, now: At) -> Option<Event> {
        let why = || NotAppliedWhy::NeverSent("the ledger did not say that its claim had landed".into());
        let never_sent = || Outcome::NotApplied { why: why(), reply: Reply::Unknown };
        let settled = || Event::Settled { attempt: attempt.number, outcome: never_sent(), at: now };
        self.unheld.holds(attempt).then(settled)
    }

    /// Looks once at the record of each claim that this process never got: others may wait for it. One that lands later is
    /// found by the next call that meets it.
    pub async fn settle_unheld(&self, now: At) -> Result<(), Error> {
        while let Some(key) = self.unheld.next_unseen() {
            self.observe(key, now).await?;
            self.unheld.saw(key);
        }
        Ok(())
    }
}
