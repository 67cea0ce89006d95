//! Paths into arguments, as rules write them: `args.customer`, `args.items[*].id`, `argv[3]`, `args["odd name"]`.

use super::{Json, write_string};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// The longest path a rule may write. Bounds the steps too, and so the recursion along them.
pub const PATH_BYTES_MAX: usize = 1024;

/// At least one step. Two spellings of one path, `a.b` and `a["b"]`, are equal and print alike.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    steps: Vec<PathStep>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathStep {
    Member(String),
    /// `.*`: every member of an object.
    AnyMember,
    Element(usize),
    /// `[*]`: every element of an array.
    AnyElement,
}

impl PathStep {
    fn may_meet(&self, other: &PathStep) -> bool {
        match (self, other) {
            (PathStep::AnyMember, PathStep::Member(_) | PathStep::AnyMember)
            | (PathStep::Member(_), PathStep::AnyMember) => true,
            (PathStep::AnyElement, PathStep::Element(_) | PathStep::AnyElement)
            | (PathStep::Element(_), PathStep::AnyElement) => true,
            (a, b) => a == b,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid path at byte {offset}: {what}")]
pub struct PathError {
    pub offset: usize,
    pub what: PathProblem,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathProblem {
    #[error("a path may have at most {PATH_BYTES_MAX} bytes")]
    TooLong,
    #[error("a name is expected, such as `args` or `argv`; other names are written [\"in quotes\"]")]
    NameExpected,
    #[error("'.' or '[' is expected between two steps")]
    StepExpected,
    #[error("after '[' a position from 0, a '*' or a name in double quotes is expected")]
    BracketContents,
    #[error("']' is expected")]
    BracketOpen,
    #[error("the name in double quotes is not a JSON string")]
    BadQuotedName,
}

impl Path {
    pub fn parse(text: &str) -> Result<Path, PathError> {
        if text.len() > PATH_BYTES_MAX {
            return Err(PathError { offset: PATH_BYTES_MAX, what: PathProblem::TooLong });
        }
        let mut steps = Vec::new();
        let mut at = 0;
        while at < text.len() || steps.is_empty() {
            let (step, length) = match text.as_bytes().get(at) {
                Some(b'[') => bracket(&text[at..]),
                Some(b'.') if !steps.is_empty() => match text.as_bytes().get(at + 1) {
                    Some(b'*') => Ok((PathStep::AnyMember, 2)),
                    _ => bare_name(&text[at + 1..])
                        .map(|(step, length)| (step, length + 1))
                        .map_err(|(offset, what)| (offset + 1, what)),
                },
                _ if steps.is_empty() => bare_name(text),
                _ => Err((0, PathProblem::StepExpected)),
            }
            .map_err(|(offset, what)| PathError { offset: at + offset, what })?;
            steps.push(step);
            at += length;
        }
        Ok(Path { steps })
    }

    /// To a member of a root.
    pub fn to_member(root: &str, name: &str) -> Path {
        Path { steps: [root, name].map(|name| PathStep::Member(name.to_owned())).into() }
    }

    /// By its steps, of which there is at least one.
    pub(crate) fn of(steps: Vec<PathStep>) -> Path {
        Path { steps }
    }

    pub fn steps(&self) -> &[PathStep] {
        &self.steps
    }

    /// Whether it may name several values.
    pub fn has_wildcard(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, PathStep::AnyMember | PathStep::AnyElement))
    }

    /// Whether it may name something inside what the other one names.
    pub fn may_lead_into(&self, outer: &Path) -> bool {
        self.steps.len() > outer.steps.len() && outer.covers(self)
    }

    /// Whether the other one may name what it names, or something inside.
    pub fn covers(&self, inner: &Path) -> bool {
        inner.steps.len() >= self.steps.len()
            && inner.steps.iter().zip(&self.steps).all(|(a, b)| a.may_meet(b))
    }

    /// Every value it names, with the concrete path of each, in the order of the tree.
    pub fn find<'a>(&self, root: &'a Json) -> Vec<(String, &'a Json)> {
        let behind = |path: &str, name: &str| {
            let mut path = path.to_owned();
            push_member(name, &mut path);
            path
        };
        let mut found = vec![(String::new(), root)];
        for step in &self.steps {
            let mut next = Vec::new();
            for (path, json) in found {
                match (step, json) {
                    (PathStep::Member(name), Json::Object(object)) => {
                        next.extend(object.get(name).map(|value| (behind(&path, name), value)));
                    }
                    (PathStep::AnyMember, Json::Object(object)) => {
                        next.extend(object.iter().map(|(name, value)| (behind(&path, name), value)));
                    }
                    (PathStep::Element(index), Json::Array(elements)) => {
                        next.extend(elements.get(*index).map(|value| (format!("{path}[{index}]"), value)));
                    }
                    (PathStep::AnyElement, Json::Array(elements)) => {
                        next.extend(
                            elements.iter().enumerate().map(|(i, value)| (format!("{path}[{i}]"), value)),
                        );
                    }
                    _ => {}
                }
            }
            found = next;
        }
        found
    }

    /// Changes every value it names, in place.
    pub fn change_in(&self, root: &mut Json, change: &mut dyn FnMut(&mut Json)) {
        each_mut(&self.steps, root, change);
    }

    /// Takes out what it names. A member goes; `[*]` empties its array; an element named by position becomes null,
    /// so that the positions other paths speak of stay what they were.
    pub fn remove_from(&self, root: &mut Json) {
        let (last, before) = self.steps.split_last().expect("a path has at least one step");
        each_mut(before, root, &mut |parent| match (last, parent) {
            (PathStep::Member(name), Json::Object(object)) => drop(object.remove(name)),
            (PathStep::AnyMember, Json::Object(object)) => object.clear(),
            (PathStep::Element(index), Json::Array(elements)) => {
                if let Some(element) = elements.get_mut(*index) {
                    *element = Json::Null;
                }
            }
            (PathStep::AnyElement, Json::Array(elements)) => elements.clear(),
            _ => {}
        });
    }
}

fn each_mut(steps: &[PathStep], json: &mut Json, change: &mut dyn FnMut(&mut Json)) {
    let Some((step, rest)) = steps.split_first() else {
        return change(json);
    };
    match (step, json) {
        (PathStep::Member(name), Json::Object(object)) => {
            if let Some(value) = object.get_mut(name) {
                each_mut(rest, value, change);
            }
        }
        (PathStep::AnyMember, Json::Object(object)) => {
            object.iter_mut().for_each(|(_, value)| each_mut(rest, value, change));
        }
        (PathStep::Element(index), Json::Array(elements)) => {
            if let Some(value) = elements.get_mut(*index) {
                each_mut(rest, value, change);
            }
        }
        (PathStep::AnyElement, Json::Array(elements)) => {
            elements.iter_mut().for_each(|value| each_mut(rest, value, change));
        }
        _ => {}
    }
}

/// Writes a member's step behind a path: `.name`, or `["a name"]` where the name needs quotes.
pub(crate) fn push_member(name: &str, path: &mut String) {
    let bare = !name.is_empty() && name.chars().all(is_bare);
    if bare {
        // At the beginning of a path there is nothing to tell it apart from.
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(name);
    } else {
        path.push('[');
        write_string(name, path);
        path.push(']');
    }
}

/// Characters that need no quotes: all but those with a meaning in paths or in the templates around them.
fn is_bare(character: char) -> bool {
    !matches!(character, '.' | '[' | ']' | '"' | '*' | '{' | '}')
        && !character.is_whitespace()
        && !character.is_control()
}

type ParsedStep = Result<(PathStep, usize), (usize, PathProblem)>;

fn bare_name(text: &str) -> ParsedStep {
    let name: String = text.chars().take_while(|character| is_bare(*character)).collect();
    let length = name.len();
    if length == 0 { Err((0, PathProblem::NameExpected)) } else { Ok((PathStep::Member(name), length)) }
}

/// `[3]`, `[*]` or `["name"]` at the start of the text.
fn bracket(text: &str) -> ParsedStep {
    let inner = &text[1..];
    let (step, length) = match inner.as_bytes().first() {
        Some(b'*') => (PathStep::AnyElement, 1),
        Some(b'0'..=b'9') => {
            let length = inner.bytes().take_while(u8::is_ascii_digit).count();
            let digits = &inner[..length];
            let plain = length == 1 || !digits.starts_with('0');
            match digits.parse() {
                Ok(index) if plain => (PathStep::Element(index), length),
                _ => return Err((1, PathProblem::BracketContents)),
            }
        }
        Some(b'"') => {
            let length = quoted_length(inner).ok_or((1, PathProblem::BadQuotedName))?;
            match super::parse(&inner[..length]) {
                Ok(Json::String(name)) => (PathStep::Member(name), length),
                _ => return Err((1, PathProblem::BadQuotedName)),
            }
        }
        _ => return Err((1, PathProblem::BracketContents)),
    };
    if inner.as_bytes().get(length) != Some(&b']') {
        return Err((1 + length, PathProblem::BracketOpen));
    }
    Ok((step, length + 2))
}

/// Bytes from the opening quote to the closing one, both included.
fn quoted_length(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.steps.iter().enumerate() {
            match step {
                PathStep::Member(name) => {
                    // A beginning of one character stands for the path so far.
                    let mut text = if i == 0 { String::new() } else { ".".to_owned() };
                    let before = text.len();
                    push_member(name, &mut text);
                    f.write_str(&text[before..])?;
                }
                PathStep::AnyMember => f.write_str(".*")?,
                PathStep::Element(index) => write!(f, "[{index}]")?,
                PathStep::AnyElement => f.write_str("[*]")?,
            }
        }
        Ok(())
    }
}

impl std::str::FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Path, PathError> {
        Path::parse(text)
    }
}

impl<'de> Deserialize<'de> for Path {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Path::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use proptest::prelude::*;

    fn found(path: &str, json: &str) -> Vec<String> {
        let json = parse(json).unwrap();
        let found = Path::parse(path).unwrap().find(&json);
        found.into_iter().map(|(path, value)| format!("{path} = {}", value.canonical())).collect()
    }

    fn without(path: &str, json: &str) -> String {
        let mut json = parse(json).unwrap();
        Path::parse(path).unwrap().remove_from(&mut json);
        json.canonical()
    }

    #[test]
    fn a_path_finds_values_and_names_each() {
        let json = r#"{"args":{"customer":"c1","items":[{"id":1},{"id":2},{}],"odd name":{"x.y":true}},"argv":["a","b"]}"#;
        assert_eq!(found("args.customer", json), ["args.customer = \"c1\""]);
        assert_eq!(found("args.items[0].id", json), ["args.items[0].id = 1"]);
        assert_eq!(found("args.items[*].id", json), ["args.items[0].id = 1", "args.items[1].id = 2"]);
        assert_eq!(found("argv[1]", json), ["argv[1] = \"b\""]);
        assert_eq!(found("args[\"odd name\"].*", json), ["args[\"odd name\"][\"x.y\"] = true"]);
        assert_eq!(found("argv", json), ["argv = [\"a\",\"b\"]"]);
        assert_eq!(found("args.*", json).len(), 3);
        for nothing in
            ["args.nobody", "argv[7]", "argv.name", "args[0]", "args.customer.x", "argv.*", "args[*]"]
        {
            assert!(found(nothing, json).is_empty(), "{nothing}");
        }
    }

    #[test]
    fn a_path_leads_into_another_that_it_begins_with() {
        let leads = |inner: &str, outer: &str| {
            Path::parse(inner).unwrap().may_lead_into(&Path::parse(outer).unwrap())
        };
        for (inner, outer) in [
            ("a.b", "a"),
            ("a[*].b", "a[0]"),
            ("a[0].b", "a[*]"),
            ("a.*", "a"),
            ("a.b.c", "a.*"),
            ("a.*.c", "a.b"),
        ] {
            assert!(leads(inner, outer), "{inner} into {outer}");
        }
        for (inner, outer) in [("a", "a"), ("a", "a.b"), ("ab.c", "a"), ("a[0].b", "a[1]"), ("a.b.c", "a[*]")]
        {
            assert!(!leads(inner, outer), "{inner} into {outer}");
        }
    }

    #[test]
    fn removing_keeps_the_positions_of_others() {
        let json = r#"{"args":{"a":1,"b":[1,2,3]}}"#;
        assert_eq!(without("args.a", json), r#"{"args":{"b":[1,2,3]}}"#);
        assert_eq!(without("args.b[1]", json), r#"{"args":{"a":1,"b":[1,null,3]}}"#);
        assert_eq!(without("args.b[*]", json), r#"{"args":{"a":1,"b":[]}}"#);
        assert_eq!(without("args.*", json), r#"{"args":{}}"#);
        assert_eq!(without("args", json), "{}");
        assert_eq!(without("args.b[9]", json), json);
    }

    #[test]
    fn a_wrong_path_is_refused_with_its_place() {
        for (text, offset) in [
            ("", 0),
            (".a", 0),
            ("a..b", 2),
            ("a.", 2),
            ("a[", 2),
            ("a[x]", 2),
            ("a[-1]", 2),
            ("a[01]", 2),
            ("a[1", 3),
            ("a[\"x]", 2),
            ("a[\"\\q\"]", 2),
            ("a b", 1),
            ("a[0]b", 4),
            ("*", 0),
            ("a.{b}", 2),
            ("a[99999999999999999999999]", 2),
        ] {
            assert_eq!(Path::parse(text).expect_err(text).offset, offset, "{text}");
        }
        assert_eq!(Path::parse(&"a".repeat(2000)).unwrap_err().what, PathProblem::TooLong);
    }

    #[test]
    fn two_spellings_of_one_path_are_equal() {
        assert_eq!(Path::parse("args[\"a\"]").unwrap().to_string(), "args.a");
        assert_eq!(Path::parse("[\"args\"].a"), Path::parse("args.a"));
    }

    proptest! {
        #[test]
        fn a_path_reads_back_from_its_text(steps in prop::collection::vec(prop_oneof![
            ".{0,8}".prop_map(PathStep::Member),
            Just(PathStep::AnyMember),
            any::<usize>().prop_map(PathStep::Element),
            Just(PathStep::AnyElement),
        ], 0..5), root in ".{0,8}") {
            let path = Path { steps: std::iter::once(PathStep::Member(root)).chain(steps).collect() };
            prop_assert_eq!(Path::parse(&path.to_string()), Ok(path));
        }

        #[test]
        fn no_text_makes_it_panic(text in "[a.\\[\\]\"*0-9\\\\é ]{0,20}") {
            if let Ok(path) = Path::parse(&text) {
                prop_assert_eq!(Path::parse(&path.to_string()), Ok(path));
            }
        }
    }
}
