//! placeholder
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("illegal")]
pub struct Illegal;
