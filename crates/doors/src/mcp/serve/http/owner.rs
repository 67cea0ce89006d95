//! Whose a request is.

/// A client, as far as requests can tell one from another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    /// [`Caller::whose`](crate::caller::Caller::whose).
    pub principal: String,
    pub session: Option<String>,
}
