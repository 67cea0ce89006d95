//! A call that code makes itself: the forms in which it is asked for and reported. The API and the SDKs share them.
pub mod answer;
pub mod begin;
pub mod claim;
pub mod key;
pub mod reply;
pub mod settle;

/// A call that was not understood, or asks for too little. Nothing was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadCall {
    #[error("{0}")]
    /// What was not understood.
    NotUnderstood(String),
    /// `by` names an argument that is not there.
    #[error("by: there is no argument {0:?}")]
    Argument(String),
    /// A class that protects less than the policy's.
    #[error("class {0}")]
    Class(String),
}

impl BadCall {
    /// What was not understood, in words.
    pub fn new(what: impl Into<String>) -> BadCall {
        BadCall::NotUnderstood(what.into())
    }
}
