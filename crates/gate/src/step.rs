//! The result of one step of a call.

use crate::reply::Passed;
use semel_ledger::claim::Claim;

/// The result of one look at the ledger and one act.
pub(crate) enum StepResult {
    /// Something has changed, or was waited for.
    LookAgain,
    Answer(Box<Passed>),
    /// The claim for a client that sends by itself.
    Hand(Box<HandedClaim>),
}

pub(crate) struct HandedClaim {
    pub(crate) claim: Claim,
    pub(crate) possible_repeat: bool,
}

impl From<Passed> for StepResult {
    fn from(passed: Passed) -> StepResult {
        StepResult::Answer(Box::new(passed))
    }
}
