//! The members of an object, in canonical order.

use super::Json;
use std::cmp::Ordering;

/// Members sorted by the UTF-16 code units of their names (RFC 8785), no name twice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Object {
    members: Vec<(String, Json)>,
}

impl Object {
    pub fn new() -> Object {
        Object::default()
    }

    pub fn get(&self, name: &str) -> Option<&Json> {
        self.position(name).ok().map(|at| &self.members[at].1)
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut Json> {
        self.position(name).ok().map(|at| &mut self.members[at].1)
    }

    /// Puts a member in its place and gives back the value it replaces.
    pub fn insert(&mut self, name: impl Into<String>, value: Json) -> Option<Json> {
        let name = name.into();
        match self.position(&name) {
            Ok(at) => Some(std::mem::replace(&mut self.members[at].1, value)),
            Err(at) => {
                self.members.insert(at, (name, value));
                None
            }
        }
    }

    pub fn remove(&mut self, name: &str) -> Option<Json> {
        self.position(name).ok().map(|at| self.members.remove(at).1)
    }

    pub fn clear(&mut self) {
        self.members.clear();
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Json)> {
        self.members.iter().map(|(name, value)| (name.as_str(), value))
    }

    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = (&str, &mut Json)> {
        self.members.iter_mut().map(|(name, value)| (name.as_str(), value))
    }

    pub fn len(&self) -> usize {
        self.members.len()
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    fn position(&self, name: &str) -> Result<usize, usize> {
        self.members.binary_search_by(|(other, _)| by_utf16(other, name))
    }

    /// Sorts once instead of inserting one by one, which would be quadratic for a hostile object. Of equal names
    /// the position of the later one is given back as an error.
    pub(super) fn from_distinct<T>(mut members: Vec<(String, Json, T)>) -> Result<Object, (String, T)> {
        members.sort_by(|(a, ..), (b, ..)| by_utf16(a, b));
        if let Some(at) = members.windows(2).position(|pair| pair[0].0 == pair[1].0) {
            let (name, _, tag) = members.swap_remove(at + 1);
            return Err((name, tag));
        }
        Ok(Object { members: members.into_iter().map(|(name, value, _)| (name, value)).collect() })
    }
}

impl FromIterator<(String, Json)> for Object {
    /// Of two members with one name the later wins, as with any map; only [`super::parse`] refuses them.
    fn from_iter<I: IntoIterator<Item = (String, Json)>>(members: I) -> Object {
        let mut members: Vec<_> = members.into_iter().collect();
        members.reverse();
        members.sort_by(|(a, _), (b, _)| by_utf16(a, b));
        members.dedup_by(|(later, _), (kept, _)| later == kept);
        Object { members }
    }
}

impl IntoIterator for Object {
    type Item = (String, Json);
    type IntoIter = std::vec::IntoIter<(String, Json)>;

    fn into_iter(self) -> Self::IntoIter {
        self.members.into_iter()
    }
}

fn by_utf16(a: &str, b: &str) -> Ordering {
    // Nearly all names are ASCII, where bytes and code units are the same.
    if a.is_ascii() && b.is_ascii() {
        return a.cmp(b);
    }
    a.encode_utf16().cmp(b.encode_utf16())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_collected_members_with_one_name_the_later_wins() {
        let object: Object = [("b", "1"), ("a", "2"), ("b", "3")]
            .map(|(k, v)| (k.to_owned(), Json::str(v)))
            .into_iter()
            .collect();
        assert_eq!(Json::Object(object).canonical(), r#"{"a":"2","b":"3"}"#);
    }

    #[test]
    fn insert_and_remove_keep_the_order() {
        let mut object = Object::new();
        for name in ["c", "a", "b"] {
            assert_eq!(object.insert(name, Json::Null), None);
        }
        assert_eq!(object.insert("b", Json::Bool(true)), Some(Json::Null));
        assert_eq!(object.remove("a"), Some(Json::Null));
        assert_eq!(object.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["b", "c"]);
    }
}
