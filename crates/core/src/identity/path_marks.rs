//! The marked leaves of a call's arguments.

use serde::{Deserialize, Serialize};

/// One leaf: a value that holds no other, an empty array or object included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(String, PathKind, u64)", into = "(String, PathKind, u64)")]
pub struct PathMark {
    pub path: String,
    pub kind: PathKind,
    pub mark: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PathKind {
    /// Another value is another thing.
    #[serde(rename = "k")]
    Key,
    /// Another value may be the same thing in other words.
    #[serde(rename = "c")]
    Content,
    /// Another value may be another try.
    #[serde(rename = "s")]
    Stamp,
}

impl From<(String, PathKind, u64)> for PathMark {
    fn from((path, kind, mark): (String, PathKind, u64)) -> PathMark {
        PathMark { path, kind, mark }
    }
}

impl From<PathMark> for (String, PathKind, u64) {
    fn from(PathMark { path, kind, mark }: PathMark) -> Self {
        (path, kind, mark)
    }
}
