//! Marks: what a record keeps of its arguments, so that it can say which of them differ without keeping them.

use super::Sorted;
use super::path_marks::{PathKind, PathMark, PathMarks};
use crate::digest::{Digest, Secret};
use crate::json::{Json, push_member};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// Leaves marked one by one. Tool calls have a dozen; beyond this a record would grow by more than its answer gains.
pub const PATHS_MAX: usize = 64;

/// The longest path kept in a mark, for the same reason.
pub const MARK_PATH_BYTES_MAX: usize = 256;

/// What a difference is called when the leaves were too many to mark.
const ARGUMENTS: &str = "arguments";
const CONTENT: &str = "content";
/// What a difference is called when one key came with two actions.
const ACTION: &str = "action";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marks {
    /// Of the action alone, so that a caller's key used for another action is named as that.
    pub action: u64,
    /// Of all arguments but the content and volatile ones.
    pub fingerprint: Digest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Digest>,
    /// The fingerprinted leaves; empty if there are too many.
    #[serde(default, skip_serializing_if = "PathMarks::is_empty")]
    pub paths: PathMarks,
    /// The leaves of the content; empty if there are none or too many.
    #[serde(default, skip_serializing_if = "PathMarks::is_empty")]
    pub content_paths: PathMarks,
}

impl Marks {
    pub fn of(secret: &Secret, action: &str, sorted: &Sorted<'_>) -> Marks {
        // One buffer for all canonical texts: a call has a dozen.
        let mut text = String::new();
        let mut whole = |purpose, json: &Json| {
            text.clear();
            json.write_canonical(&mut text);
            secret.mac(purpose, &[action.as_bytes(), text.as_bytes()])
        };
        let fingerprint = whole("fingerprint", &sorted.fingerprinted);
        let content = sorted.content.as_ref().map(|content| whole("content", content));
        let mut mark = |leaves: Leaves<'_>| {
            let marked = leaves.found.iter().filter(|_| !leaves.too_many).map(|(path, leaf)| {
                let path = &leaves.paths[path.clone()];
                text.clear();
                leaf.write_canonical(&mut text);
                let mark = secret.mac("path", &[path.as_bytes(), text.as_bytes()]).short();
                PathMark { kind: kind(path, leaf), mark, path }
            });
            marked.collect()
        };
        let mut leaves = Leaves::default();
        leaves.collect(&sorted.fingerprinted);
        let mut content_leaves = Leaves::default();
        // The members of the content object are named by paths already.
        for (path, value) in
            sorted.content.iter().filter_map(Json::as_object).flat_map(|content| content.iter())
        {
            content_leaves.path.clear();
            content_leaves.path.push_str(path);
            content_leaves.collect(value);
        }
        Marks {
            action: secret.mac("action", &[action.as_bytes()]).short(),
            fingerprint,
            content,
            paths: mark(leaves),
            content_paths: mark(content_leaves),
        }
    }

    /// What makes it drift: `action` if that differs, and the paths that differ, added and removed ones too. Content
    /// may be reworded and is not among them.
    pub fn differing(&self, other: &Marks) -> Vec<String> {
        let mut differing = Vec::new();
        if self.action != other.action {
            differing.push(ACTION.to_owned());
        }
        match self.compare(other) {
            Comparison::Equal => {}
            Comparison::Unknown => differing.push(ARGUMENTS.to_owned()),
            Comparison::Paths(paths) => {
                // Another action may have another rule, to which the same argument is content.
                let is_equal =
                    |path: &str| self.content_is_in(other, path) || other.content_is_in(self, path);
                let differs = |path: &&str| self.action == other.action || !is_equal(path);
                differing.extend(paths.into_iter().filter(differs).map(shown));
            }
        }
        differing
    }

    /// Whether the other side has among its arguments, with the same value, what is content here.
    fn content_is_in(&self, other: &Marks, path: &str) -> bool {
        let of = |marks: &PathMarks| marks.iter().find(|mark| mark.path == path).map(|mark| mark.mark);
        let own = of(&self.content_paths);
        own.is_some() && own == of(&other.paths)
    }

    /// Whether these are the arguments of a possible rewording: every atom is equal, at least one of them says what
    /// it is about, and at most prose differs. The differing paths are given back; none differ if only the caller's
    /// keys did.
    pub fn looks_like(&self, other: &Marks) -> Option<Vec<String>> {
        if self.action != other.action {
            return None;
        }
        let differing = match self.compare(other) {
            Comparison::Equal => Vec::new(),
            Comparison::Unknown => return None,
            Comparison::Paths(paths) => paths,
        };
        let is_atom = |mark: &PathMark<'_>| mark.kind == PathKind::Atom;
        let mut all = self.paths.iter().chain(other.paths.iter());
        if all.any(|mark| is_atom(&mark) && differing.contains(&mark.path)) {
            return None;
        }
        // The same program in the same directory is where a call happens, not what it is about.
        let telling = |mark: PathMark<'_>| is_atom(&mark) && !matches!(mark.path, "" | "cwd" | "argv[0]");
        if !self.paths.is_empty() && !self.paths.iter().any(telling) {
            return None;
        }
        Some(differing.into_iter().map(shown).chain(self.differing_content(other)).collect())
    }

    fn compare<'a>(&'a self, other: &'a Marks) -> Comparison<'a> {
        if self.fingerprint == other.fingerprint {
            return Comparison::Equal;
        }
        compare_paths(&self.paths, &other.paths)
    }

    /// What of the content was worded otherwise.
    pub fn differing_content(&self, other: &Marks) -> Vec<String> {
        if self.content == other.content {
            return Vec::new();
        }
        let paths = match (&self.content, &other.content) {
            (Some(_), Some(_)) => match compare_paths(&self.content_paths, &other.content_paths) {
                // The digest of the content has the action in it; the marks of its leaves do not.
                Comparison::Paths(paths) if paths.is_empty() && self.action != other.action => {
                    return Vec::new();
                }
                Comparison::Paths(paths) => paths,
                Comparison::Equal | Comparison::Unknown => Vec::new(),
            },
            // All content of the one side was added by it.
            _ => self.content_paths.iter().chain(other.content_paths.iter()).map(|mark| mark.path).collect(),
        };
        if paths.is_empty() {
            vec![CONTENT.to_owned()]
        } else {
            paths.into_iter().map(str::to_owned).collect()
        }
    }
}

enum Comparison<'a> {
    Equal,
    /// They differ, and one side had too many leaves to say where.
    Unknown,
    Paths(Vec<&'a str>),
}

/// Leaves are always marked unless there are too many, so a side without marks can only be compared as a whole.
fn compare_paths<'a>(mine: &'a PathMarks, theirs: &'a PathMarks) -> Comparison<'a> {
    if mine.is_empty() || theirs.is_empty() {
        return Comparison::Unknown;
    }
    let mut marks: BTreeMap<&str, [Option<u64>; 2]> = BTreeMap::new();
    for (side, list) in [mine, theirs].into_iter().enumerate() {
        for mark in list.iter() {
            marks.entry(mark.path).or_default()[side] = Some(mark.mark);
        }
    }
    Comparison::Paths(marks.into_iter().filter(|(_, [a, b])| a != b).map(|(path, _)| path).collect())
}

/// The root itself has no path.
fn shown(path: &str) -> String {
    if path.is_empty() { ARGUMENTS.to_owned() } else { path.to_owned() }
}

fn kind(path: &str, leaf: &Json) -> PathKind {
    match leaf {
        // A directory with a space in its name is still a place.
        Json::String(text) if path != "cwd" && text.trim().contains(char::is_whitespace) => PathKind::Prose,
        _ => PathKind::Atom,
    }
}

/// The leaves of a tree with their paths.
#[derive(Default)]
struct Leaves<'a> {
    found: Vec<(Range<usize>, &'a Json)>,
    /// Where the paths of `found` lie.
    paths: String,
    /// There are too many, or one whose path is too long.
    too_many: bool,
    /// Where the walk is.
    path: String,
}

impl<'a> Leaves<'a> {
    fn collect(&mut self, json: &'a Json) {
        let here = self.path.len();
        match json {
            Json::Object(object) if !object.is_empty() => {
                for (name, value) in object.iter() {
                    push_member(name, &mut self.path);
                    self.deeper(value, here);
                }
            }
            Json::Array(elements) if !elements.is_empty() => {
                for (i, value) in elements.iter().enumerate() {
                    self.path.push_str(&format!("[{i}]"));
                    self.deeper(value, here);
                }
            }
            _ => {
                self.too_many |= self.found.len() == PATHS_MAX || here > MARK_PATH_BYTES_MAX;
                let begin = self.paths.len();
                self.paths.push_str(&self.path);
                self.found.push((begin..self.paths.len(), json));
            }
        }
    }

    fn deeper(&mut self, json: &'a Json, here: usize) {
        if !self.too_many {
            self.collect(json);
        }
        self.path.truncate(here);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Sorting, sort, tests::paths};
    use super::*;
    use crate::json::parse;

    fn marks_with(arguments: &str, sorting: &Sorting) -> Marks {
        Marks::of(&Secret::new([1; 32]), "fn:x", &sort(&parse(arguments).unwrap(), sorting))
    }

    fn marks(arguments: &str) -> Marks {
        marks_with(arguments, &Sorting::default())
    }

    #[test]
    fn differing_paths_are_named_added_and_removed_ones_too() {
        let a = marks(r#"{"args":{"to":"ann","amount":1,"tags":["x"],"gone":{}}}"#);
        let b = marks(r#"{"args":{"to":"ann","amount":2,"tags":["x","y"]}}"#);
        assert_eq!(a.differing(&b), ["args.amount", "args.gone", "args.tags[1]"]);
        assert_eq!(a.differing(&a), Vec::<String>::new());
    }

    #[test]
    fn reworded_content_has_the_same_fingerprint_and_is_named() {
        let sorting = Sorting { content: paths(&["args.body"]), ..Sorting::default() };
        let a = marks_with(r#"{"args":{"to":"ann","body":"hello there"}}"#, &sorting);
        let b = marks_with(r#"{"args":{"to":"ann","body":"hi there"}}"#, &sorting);
        let none = marks_with(r#"{"args":{"to":"ann"}}"#, &sorting);
        assert_eq!(a.fingerprint, b.fingerprint);
        assert_ne!(a.content, b.content);
        assert_eq!(a.differing_content(&b), ["args.body"]);
        assert_eq!(a.differing_content(&none), ["args.body"]);
        assert_eq!(none.differing_content(&a), ["args.body"]);
        let elsewhere = marks_with(r#"{"args":{"to":"bob","body":"hi there"}}"#, &sorting);
        assert_eq!(a.differing(&b), Vec::<String>::new());
        assert_eq!(a.differing(&elsewhere), ["args.to"], "the other words do not make it drift");
    }

    #[test]
    fn too_many_leaves_are_not_marked_and_differ_as_a_whole() {
        let list = |last: i32| {
            let numbers: Vec<String> = (0..PATHS_MAX as i32).chain([last]).map(|n| n.to_string()).collect();
            format!("{{\"args\":[{}]}}", numbers.join(","))
        };
        let (a, b) = (marks(&list(1)), marks(&list(2)));
        assert!(a.paths.is_empty());
        assert_eq!(a.differing(&b), ["arguments"]);
        assert_eq!(a.looks_like(&b), None);
        assert_eq!(a.looks_like(&a), Some(vec![]));
        let long = format!("{{\"{}\":1}}", "n".repeat(MARK_PATH_BYTES_MAX + 1));
        assert!(marks(&long).paths.is_empty());
    }

    #[test]
    fn a_lookalike_says_the_same_thing_in_other_words() {
        let mail = marks(r#"{"args":{"to":"ann@example.com","body":"Your order has shipped."}}"#);
        let reworded = marks(r#"{"args":{"to":"ann@example.com","body":"Good news: the order shipped!"}}"#);
        let longer =
            marks(r#"{"args":{"to":"ann@example.com","body":"Your order has shipped.","note":"with love"}}"#);
        let elsewhere = marks(r#"{"args":{"to":"bob@example.com","body":"Your order has shipped."}}"#);
        let curt = marks(r#"{"args":{"to":"ann@example.com","body":"Shipped"}}"#);
        assert_eq!(mail.looks_like(&reworded), Some(vec!["args.body".to_owned()]));
        assert_eq!(mail.looks_like(&longer), Some(vec!["args.note".to_owned()]));
        assert_eq!(mail.looks_like(&elsewhere), None);
        assert_eq!(mail.looks_like(&curt), None);
    }

    #[test]
    fn the_program_and_its_directory_alone_do_not_make_a_lookalike() {
        let a = marks(r#"{"argv":["say","good morning all"],"cwd":"/my work"}"#);
        let b = marks(r#"{"argv":["say","good night all"],"cwd":"/my work"}"#);
        let moved = marks(r#"{"argv":["say","good morning all"],"cwd":"/my home"}"#);
        assert_eq!(a.looks_like(&b), None);
        assert_eq!(a.looks_like(&moved), None);
        let commit = marks(r#"{"argv":["git","commit","-m","fix the bug"],"cwd":"/w"}"#);
        let again = marks(r#"{"argv":["git","commit","-m","fix that bug"],"cwd":"/w"}"#);
        assert_eq!(commit.looks_like(&again), Some(vec!["argv[3]".to_owned()]));
    }

    #[test]
    fn one_key_for_two_actions_differs_in_the_action_and_in_what_else_differs() {
        let of = |action: &str, arguments: &str| {
            let sorting = Sorting { content: paths(&["args.body"]), ..Sorting::default() };
            Marks::of(&Secret::new([1; 32]), action, &sort(&parse(arguments).unwrap(), &sorting))
        };
        let charge = of("fn:charge", r#"{"args":{"to":"ann","amount":1,"body":"hello there"}}"#);
        let refund = of("fn:refund", r#"{"args":{"to":"ann","amount":1,"body":"hello there"}}"#);
        let other = of("fn:refund", r#"{"args":{"to":"ann","amount":2,"body":"hi there"}}"#);
        assert_ne!(charge.fingerprint, refund.fingerprint);
        assert_eq!(charge.differing(&refund), ["action"]);
        assert_eq!(charge.differing(&other), ["action", "args.amount"]);
        assert_eq!(charge.differing_content(&other), ["args.body"]);
        assert_eq!(charge.looks_like(&refund), None);
        // To the rule of another action its words are no content.
        let plain = marks(r#"{"args":{"to":"ann","amount":1,"body":"hello there"}}"#);
        assert_eq!(charge.differing(&plain), ["action"]);
        assert_eq!(other.differing(&plain), ["action", "args.amount", "args.body"]);
    }

    #[test]
    fn no_arguments_are_like_nothing() {
        let (none, some) = (marks("{}"), marks(r#"{"note":"hello there"}"#));
        assert_eq!(none.looks_like(&some), None);
        assert_eq!(some.looks_like(&none), None);
        assert_eq!(none.looks_like(&none), None);
        assert_eq!(none.differing(&some), ["arguments", "note"]);
    }

    #[test]
    fn marks_read_back_and_tell_nothing_without_the_secret() {
        let marks = marks(r#"{"args":{"pin":"1234"}}"#);
        let text = serde_json::to_string(&marks).unwrap();
        assert!(!text.contains("1234"));
        assert_eq!(serde_json::from_str::<Marks>(&text).unwrap(), marks);
        let other = Marks::of(
            &Secret::new([2; 32]),
            "fn:x",
            &sort(&parse(r#"{"args":{"pin":"1234"}}"#).unwrap(), &Sorting::default()),
        );
        assert_ne!(other.paths, marks.paths);
    }
}
