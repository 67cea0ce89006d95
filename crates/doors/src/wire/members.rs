//! Edits of a JSON object that leave everything else as it was written: order, spelling, numbers.

use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

/// The members of one object, in order, each with its value as it was written.
#[derive(Debug, Clone, Default)]
pub struct Members<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Members<'a> {
    /// `None` if it is not an object, or names a member twice: then nobody can say what an edit of it means.
    pub fn parse(json: &'a str) -> Option<Members<'a>> {
        Members::read(json).ok()
    }

    /// The same, for whoever has to say why not.
    pub fn read(json: &'a str) -> Result<Members<'a>, NotMembers> {
        let members = Members::all(json).ok_or(NotMembers::NotAnObject)?;
        match members.named_twice() {
            Some(name) => Err(NotMembers::Twice(name.to_owned())),
            None => Ok(members),
        }
    }

    /// Also those that are named twice.
    fn all(json: &'a str) -> Option<Members<'a>> {
        if !json.trim_ascii_start().starts_with('{') {
            // Texts and numbers are asked too, and the parser's complaint costs more than its work.
            return None;
        }
        serde_json::Deserializer::from_str(json).deserialize_map(MembersVisitor).ok()
    }

    fn named_twice(&self) -> Option<&str> {
        // Each with each only where they are few: whoever writes an object may write a million members.
        const FEW: usize = 12;
        if self.0.len() <= FEW {
            let is_known = |at: usize, name: &str| self.0[..at].iter().any(|(other, _)| other == name);
            let mut names = self.names().enumerate();
            return names.find(|(at, name)| is_known(*at, name)).map(|(_, name)| name);
        }
        let mut seen = HashSet::with_capacity(self.0.len());
        self.names().find(|name| !seen.insert(*name))
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_ref())
    }

    /// The member as an object; empty if it is absent or something else.
    pub fn object(&self, name: &str) -> Members<'_> {
        self.get(name).and_then(Members::parse).unwrap_or_default()
    }

    /// The member as text.
    pub fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        serde_json::from_str(self.get(name)?).ok()
    }

    pub fn is_true(&self, name: &str) -> bool {
        self.get(name) == Some("true")
    }

    /// In its place if it is there, else at the end.
    pub fn set(&mut self, name: &str, json: String) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, value)) => *value = Cow::Owned(json),
            None => self.0.push((Cow::Owned(name.to_owned()), Cow::Owned(json))),
        }
    }

    pub fn remove(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|(known, _)| known != name);
        self.0.len() < before
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_ref())
    }
}

/// Why a text cannot be taken apart and edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotMembers {
    NotAnObject,
    Twice(String),
}

/// A member of an object that may name it twice: then the last, as most readers take it. Nothing is decided by it that
/// a server could read otherwise to anybody's harm.
pub fn last<'a>(json: &'a str, name: &str) -> Option<Cow<'a, str>> {
    let members = Members::all(json)?.0.into_iter();
    members.rev().find(|(known, _)| known == name).map(|(_, value)| value)
}

impl fmt::Display for Members<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (i, (name, value)) in self.0.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            write!(f, "{comma}{}:{value}", quoted(name))?;
        }
        f.write_str("}")
    }
}

/// A text as JSON.
pub fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a text is JSON")
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some(JsonMemberName(name)) = map.next_key()? {
            let value: &'de RawValue = map.next_value()?;
            members.push((name, Cow::Borrowed(value.get())));
        }
        Ok(Members(members))
    }
}

/// A plain `Cow` would always be read as owned.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct JsonMemberName<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_leaves_all_else_as_it_was_written() {
        let mut members =
            Members::parse(r#"{ "z": 1.0e5 , "id":18446744073709551616,"a":{"b" : [1, 2]}}"#).unwrap();
        members.set("id", "7".into());
        members.set("new", quoted("x\"y"));
        assert!(members.remove("z"));
        assert_eq!(members.to_string(), r#"{"id":7,"a":{"b" : [1, 2]},"new":"x\"y"}"#);
    }

    #[test]
    fn what_has_no_single_reading_is_not_edited() {
        for text in ["[]", "1", "", r#"{"a":1,"a":2}"#, r#"{"a":1,"\u0061":2}"#, r#"{"a":}"#] {
            assert!(Members::parse(text).is_none(), "{text}");
        }
        let twice = |text: &str| Members::read(text).unwrap_err();
        assert_eq!(twice(r#"{"a":1,"b":2,"\u0061":2}"#), NotMembers::Twice("a".into()));
        let many: Vec<String> = (0..20).map(|i| format!(r#""m{i}":{i}"#)).collect();
        let many = format!(r#"{{{},"m7":0}}"#, many.join(","));
        assert_eq!(twice(&many), NotMembers::Twice("m7".into()));
        assert_eq!(last(&many, "m7").as_deref(), Some("0"));
        assert_eq!(twice("[]"), NotMembers::NotAnObject);
    }
}
