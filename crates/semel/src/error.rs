//! Why semel itself could not do its job. A duplicate, a wait or a doubt is none of these, but [`Error::Held`].

use crate::BadSetting;
use crate::call::BadCall;
use semel_core::answer::Answer;

#[derive(Debug, thiserror::Error)]
/// Why semel could not do its job.
pub enum Error {
    #[error(transparent)]
    /// The environment or a file is wrong.
    Setting(#[from] BadSetting),
    /// The rules of the policy do not hold together.
    #[error("the policy does not hold together: {0}")]
    Policy(String),
    #[error("the ledger is not available: {0}")]
    /// The ledger did not answer, or cannot be used.
    Ledger(#[from] semel_ledger::Error),
    #[error(transparent)]
    /// The call was not understood; nothing was sent.
    Call(#[from] BadCall),
    /// It was not done, and the answer says why and what to do.
    #[error("{}", told(.0))]
    Held(Box<Answer>),
    #[error("the ledger of this process was closed")]
    /// The ledger was closed while a call was on its way.
    Closed,
}

impl Error {
    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Setting(bad) => bad.hint.clone(),
            Error::Policy(_) => Some("semel policy lint".to_owned()),
            Error::Ledger(_) => Some("semel doctor".to_owned()),
            Error::Call(_) | Error::Held(_) | Error::Closed => None,
        }
    }
}

impl From<semel_gate::Error> for Error {
    fn from(error: semel_gate::Error) -> Error {
        let semel_gate::Error::Ledger(error) = error;
        Error::Ledger(error)
    }
}

/// An answer that is not ok, in a line: what happened, and what to do.
pub fn told(answer: &Answer) -> String {
    match &answer.trouble {
        Some(trouble) => format!("{} {}", trouble.what_happened, trouble.next_step),
        None => answer.reason.clone().unwrap_or_default(),
    }
}
