//! A setting that cannot be used.

use std::fmt;

/// A setting that cannot be used. Nothing was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadSetting {
    what: String,
    /// What to do about it, where that is known.
    pub hint: Option<String>,
}

impl BadSetting {
    /// What is wrong, for people.
    pub fn new(what: impl Into<String>) -> BadSetting {
        BadSetting { what: what.into(), hint: None }
    }

    /// What is wrong, and what to do.
    pub fn hinted(what: impl Into<String>, hint: impl Into<String>) -> BadSetting {
        BadSetting { what: what.into(), hint: Some(hint.into()) }
    }
}

impl fmt::Display for BadSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for BadSetting {}
