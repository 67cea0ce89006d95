//! The marked leaves of a call's arguments.

use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One leaf: a value that holds no other, an empty array or object included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathMark<'a> {
    pub path: &'a str,
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

/// Leaves in the order in which they were found. Their paths lie in one text: a record has a dozen of them, every
/// repeat reads it, and almost none asks for them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PathMarks {
    paths: String,
    leaves: Vec<MarkedLeaf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MarkedLeaf {
    /// Where its path ends; it begins where the one before it ends.
    path_end: usize,
    kind: PathKind,
    mark: u64,
}

/// The length of a path, as most have it.
const PATH_BYTES_USUAL: usize = 16;

impl PathMarks {
    pub fn with_room(count: usize) -> Self {
        PathMarks {
            paths: String::with_capacity(count * PATH_BYTES_USUAL),
            leaves: Vec::with_capacity(count),
        }
    }

    pub fn push(&mut self, PathMark { path, kind, mark }: PathMark<'_>) {
        self.paths.push_str(path);
        self.leaves.push(MarkedLeaf { path_end: self.paths.len(), kind, mark });
    }

    pub fn is_empty(&self) -> bool {
        self.leaves.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = PathMark<'_>> + Clone {
        let begins = std::iter::once(0).chain(self.leaves.iter().map(|leaf| leaf.path_end));
        begins.zip(&self.leaves).map(|(begin, leaf)| PathMark {
            path: &self.paths[begin..leaf.path_end],
            kind: leaf.kind,
            mark: leaf.mark,
        })
    }
}

impl<'a> FromIterator<PathMark<'a>> for PathMarks {
    fn from_iter<I: IntoIterator<Item = PathMark<'a>>>(marks: I) -> Self {
        let marks = marks.into_iter();
        let mut all = PathMarks::with_room(marks.size_hint().0);
        marks.for_each(|mark| all.push(mark));
        all
    }
}

/// A list of lists of three.
impl Serialize for PathMarks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.leaves.len()))?;
        for PathMark { path, kind, mark } in self.iter() {
            list.serialize_element(&(path, kind, mark))?;
        }
        list.end()
    }
}

impl<'de> Deserialize<'de> for PathMarks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let list = Vec::<(String, PathKind, u64)>::deserialize(deserializer)?;
        Ok(list.iter().map(|(path, kind, mark)| PathMark { path, kind: *kind, mark: *mark }).collect())
    }
}
