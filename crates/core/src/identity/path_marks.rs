//! The marked leaves of a call's arguments.

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

/// One leaf: a value that holds no other, an empty array or object included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
#[serde(from = "(String, PathKind, u64)", into = "(String, PathKind, u64)")]
pub struct PathMark {
    #[n(0)]
    pub path: String,
    #[n(1)]
    pub kind: PathKind,
    #[n(2)]
    pub mark: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Encode, Decode)]
#[cbor(index_only)]
pub enum PathKind {
    /// Another value is another thing.
    #[serde(rename = "k")]
    #[n(1)]
    Key,
    /// Another value may be the same thing in other words.
    #[serde(rename = "c")]
    #[n(2)]
    Content,
    /// Another value may be another try.
    #[serde(rename = "s")]
    #[n(3)]
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
