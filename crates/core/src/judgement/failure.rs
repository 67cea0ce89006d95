//! Weighs a failed attempt. `spec/judgement.md`, section 2, is the normative page.

use super::error_text::ErrorReading;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureMeaning {
    /// It did not happen.
    Refused,
    /// The tool says that it failed. Whether it changed anything is not known.
    Reported,
    InDoubt,
}

/// Where the structure of an answer has not decided: its words do, and else whether the effect must happen only once.
pub fn weigh(says: &ErrorReading, must_happen_once: bool) -> FailureMeaning {
    match says {
        ErrorReading::Lost(_) | ErrorReading::Done(_) => FailureMeaning::InDoubt,
        ErrorReading::Refused => FailureMeaning::Refused,
        ErrorReading::Nothing if must_happen_once => FailureMeaning::InDoubt,
        ErrorReading::Nothing => FailureMeaning::Reported,
    }
}
