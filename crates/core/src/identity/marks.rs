//! Marks: what a record keeps of its arguments, so that it can say which of them differ without keeping them.

use super::SortedArguments;
use super::path_marks::{PathKind, PathMark};
use crate::digest::{Digest, Secret};
use crate::json::Json;
use crate::judgement::arguments::{ArgumentKind, each_leaf};
use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Leaves marked one by one. Tool calls have a dozen; beyond this a record would grow by more than its answer gains.
pub const PATHS_MAX: usize = 64;

/// The longest path kept in a mark, for the same reason.
pub const MARK_PATH_BYTES_MAX: usize = 256;

/// The name of a difference when the leaves were too many to mark.
const ARGUMENTS: &str = "arguments";
const CONTENT: &str = "content";
/// The name of a difference when one key came with two actions.
const ACTION: &str = "action";
/// The fingerprint of a record that cannot be read. No digest of anything is all zeros.
const UNKNOWN: Digest = Digest([0; 32]);
/// The root that holds a request's path.
const REQUEST_PATH: &str = "path";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
pub struct Marks {
    /// Of the action alone, so that a caller's key used for another action is named as that.
    #[n(0)]
    pub action: u64,
    /// Of all arguments but the content and volatile ones.
    #[n(1)]
    pub fingerprint: Digest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[n(2)]
    pub content: Option<Digest>,
    /// The fingerprinted leaves; empty if there are too many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[n(3)]
    pub paths: Vec<PathMark>,
    /// The leaves of the content; empty if there are none or too many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[n(4)]
    pub content_paths: Vec<PathMark>,
    /// Of the volatile arguments: a key that was sent upstream with them is not sent with others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[n(5)]
    pub volatile: Option<u64>,
    /// The plain digest: of all arguments as they are read without any rule. It finds the effect again whatever the
    /// policy says by then.
    #[n(6)]
    pub plain: u64,
}

impl Marks {
    /// Of arguments that no rule has sorted, unless [`Marks::with_plain`] says how those read.
    pub fn of(secret: &Secret, action: &str, sorted: &SortedArguments<'_>) -> Marks {
        let whole =
            |purpose, json: &Json| secret.mac(purpose, &[action.as_bytes(), json.canonical().as_bytes()]);
        let mut paths = Leaves::new(secret);
        paths.collect("", &sorted.fingerprinted);
        let mut content_paths = Leaves::new(secret);
        // The members of the content object are named by paths already.
        for (path, value) in
            sorted.content.iter().filter_map(Json::as_object).flat_map(|content| content.iter())
        {
            content_paths.collect(path, value);
        }
        let fingerprint = whole("fingerprint", &sorted.fingerprinted);
        Marks {
            action: secret.mac("action", &[action.as_bytes()]).short(),
            fingerprint,
            plain: fingerprint.short(),
            content: sorted.content.as_ref().map(|content| whole("content", content)),
            paths: paths.marked(),
            content_paths: content_paths.marked(),
            volatile: sorted.volatile.as_ref().map(|volatile| whole("volatile", volatile).short()),
        }
    }

    /// The same, with the arguments as they are read without any rule.
    #[must_use]
    pub fn with_plain(self, secret: &Secret, action: &str, plain: &SortedArguments<'_>) -> Marks {
        Marks { plain: Marks::of(secret, action, plain).plain, ..self }
    }

    /// The marks of a record that cannot be read.
    pub fn unknown() -> Marks {
        let (paths, content_paths) = (Vec::new(), Vec::new());
        Marks {
            action: 0,
            fingerprint: UNKNOWN,
            content: None,
            paths,
            content_paths,
            volatile: None,
            plain: 0,
        }
    }

    /// Whether a call with the marks `other` is known to say something else.
    pub fn drifted(&self, other: &Marks) -> bool {
        self.fingerprint != other.fingerprint && self.fingerprint != UNKNOWN
    }

    /// Whether a call with the marks `other` says the same but for arguments that do not `count`. Each side may have
    /// been sorted by a rule of its own, so the leaves alone tell.
    pub fn says_the_same(&self, other: &Marks, counts: impl Fn(&str) -> bool) -> bool {
        if self.plain == other.plain || self.action != other.action {
            return self.plain == other.plain && self.fingerprint != UNKNOWN;
        }
        let leaves = |marks: &'_ Marks| -> Vec<PathMark> {
            marks.paths.iter().chain(&marks.content_paths).cloned().collect()
        };
        match compare_paths(&leaves(self), &leaves(other)) {
            Comparison::Paths(paths) => !paths.into_iter().any(counts),
            Comparison::Equal | Comparison::Unknown => false,
        }
    }

    /// The cause of drift: `action` if that differs, and the paths that differ, added and removed ones too. Content
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
        differing.dedup();
        differing
    }

    /// Whether the other side has among its arguments, with the same value, what is content here.
    fn content_is_in(&self, other: &Marks, path: &str) -> bool {
        let of = |marks: &[PathMark]| marks.iter().find(|mark| mark.path == path).map(|mark| mark.mark);
        let own = of(&self.content_paths);
        own.is_some() && own == of(&other.paths)
    }

    /// How another call with the same outline differs, by all leaves: each side may have been sorted by a rule of its
    /// own.
    pub fn difference(&self, other: &Marks) -> Difference {
        let (mine, theirs) = (self.leaves(), other.leaves());
        let Comparison::Paths(paths) = compare_paths(&mine, &theirs) else {
            let content = self.differing_content(other);
            // Too many to tell: they may be stamps.
            let differs = self.fingerprint != other.fingerprint;
            let paths = differs.then(|| ARGUMENTS.to_owned()).into_iter().chain(content.clone()).collect();
            return Difference { paths, stamps_alone: differs && content.is_empty(), is_all: false };
        };
        // Where all else in it is content, an empty member is left.
        let is_inner = |inner: &str, outer: &str| {
            let rest = inner.strip_prefix(outer).filter(|rest| !rest.is_empty());
            rest.is_some_and(|rest| outer.is_empty() || rest.starts_with(['.', '[']))
        };
        let holds = |path: &&str| mine.iter().chain(&theirs).any(|mark| is_inner(&mark.path, path));
        let paths: Vec<&str> = paths.into_iter().filter(|path| !holds(path)).collect();
        let is_content =
            |path: &str| self.content_paths.iter().chain(&other.content_paths).any(|mark| mark.path == path);
        let is_stamp = |path: &&str| {
            let mut marks = mine.iter().chain(&theirs).filter(|mark| mark.path == *path);
            marks.all(|mark| mark.kind == PathKind::Stamp) && !is_content(path)
        };
        let stamps_alone = !paths.is_empty() && paths.iter().all(is_stamp);
        let mut paths: Vec<String> = paths.into_iter().map(shown).collect();
        paths.dedup();
        Difference { paths, stamps_alone, is_all: self.volatile == other.volatile }
    }

    /// All leaves but the volatile ones. None if they are too many to be known.
    fn leaves(&self) -> Vec<PathMark> {
        if self.paths.is_empty() || (self.content.is_some() && self.content_paths.is_empty()) {
            return Vec::new();
        }
        self.paths.iter().chain(&self.content_paths).cloned().collect()
    }

    fn compare<'a>(&'a self, other: &'a Marks) -> Comparison<'a> {
        if self.fingerprint == other.fingerprint {
            return Comparison::Equal;
        }
        compare_paths(&self.paths, &other.paths)
    }

    /// The content paths that differ.
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
            _ => self
                .content_paths
                .iter()
                .chain(other.content_paths.iter())
                .map(|mark| mark.path.as_str())
                .collect(),
        };
        if paths.is_empty() {
            vec![CONTENT.to_owned()]
        } else {
            paths.into_iter().map(str::to_owned).collect()
        }
    }
}

/// How two calls with one outline differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub paths: Vec<String>,
    /// At least one stamp differs, and nothing else.
    pub stamps_alone: bool,
    /// No other argument differs, not even one that is ignored.
    pub is_all: bool,
}

enum Comparison<'a> {
    Equal,
    /// They differ, and one side had too many leaves to say where.
    Unknown,
    Paths(Vec<&'a str>),
}

/// Leaves are always marked unless there are too many, so a side without marks can only be compared as a whole.
fn compare_paths<'a>(mine: &'a [PathMark], theirs: &'a [PathMark]) -> Comparison<'a> {
    if mine.is_empty() || theirs.is_empty() {
        return Comparison::Unknown;
    }
    let mut marks: BTreeMap<&str, [Option<u64>; 2]> = BTreeMap::new();
    for (side, list) in [mine, theirs].into_iter().enumerate() {
        for mark in list.iter() {
            marks.entry(&mark.path).or_default()[side] = Some(mark.mark);
        }
    }
    Comparison::Paths(marks.into_iter().filter(|(_, [a, b])| a != b).map(|(path, _)| path).collect())
}

/// The root itself has no path, and a request's path is one thing to a reader.
fn shown(path: &str) -> String {
    match path {
        "" => ARGUMENTS.to_owned(),
        _ if path.strip_prefix(REQUEST_PATH).is_some_and(|rest| rest.starts_with('[')) => {
            REQUEST_PATH.to_owned()
        }
        _ => path.to_owned(),
    }
}

/// The leaves of a tree, marked one by one, unless there are too many or one has too long a path.
struct Leaves<'s> {
    secret: &'s Secret,
    marked: Vec<PathMark>,
    count: usize,
    too_many: bool,
    path: String,
    text: String,
}

impl<'s> Leaves<'s> {
    fn new(secret: &'s Secret) -> Self {
        let (path, text) = (String::new(), String::new());
        Leaves { secret, marked: Vec::new(), count: 0, too_many: false, path, text }
    }

    /// Marks the leaves of what stands at a path.
    fn collect(&mut self, at: &str, json: &Json) {
        each_leaf(json, &mut |leaf| {
            self.path.clear();
            self.path.push_str(at);
            leaf.write_path(&mut self.path);
            self.count += 1;
            self.too_many |= self.count > PATHS_MAX || self.path.len() > MARK_PATH_BYTES_MAX;
            if self.too_many {
                return false;
            }
            let kind = match leaf.kind {
                ArgumentKind::Content => PathKind::Content,
                ArgumentKind::Stamp => PathKind::Stamp,
                _ => PathKind::Key,
            };
            match leaf.value.as_str() {
                // The segments of a request's path name things one by one.
                Some(path) if self.path == REQUEST_PATH => {
                    for (at, segment) in path.split('/').filter(|segment| !segment.is_empty()).enumerate() {
                        self.mark(&format!("{REQUEST_PATH}[{at}]"), kind, &Json::str(segment));
                    }
                }
                _ => {
                    let path = std::mem::take(&mut self.path);
                    self.mark(&path, kind, leaf.value);
                    self.path = path;
                }
            }
            true
        });
    }

    fn mark(&mut self, path: &str, kind: PathKind, value: &Json) {
        self.text.clear();
        value.write_canonical(&mut self.text);
        let mark = value_mark(self.secret, &self.text);
        self.marked.push(PathMark { path: path.to_owned(), kind, mark });
    }

    fn marked(self) -> Vec<PathMark> {
        if self.too_many { Vec::new() } else { self.marked }
    }
}

/// The mark of one value, by its canonical text. Equal values have equal marks wherever they stand.
pub fn value_mark(secret: &Secret, canonical: &str) -> u64 {
    secret.mac("value", &[canonical.as_bytes()]).short()
}

#[cfg(test)]
mod tests {
    use super::super::{Sorting, sort, tests::paths as paths_of};
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
        let sorting = Sorting { content: paths_of(&["args.body"]), ..Sorting::default() };
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
        let as_a_whole = Difference { paths: vec!["arguments".into()], stamps_alone: true, is_all: false };
        assert_eq!(a.difference(&b), as_a_whole);
        let long = format!("{{\"{}\":1}}", "n".repeat(MARK_PATH_BYTES_MAX + 1));
        assert!(marks(&long).paths.is_empty());
    }

    #[test]
    fn two_calls_of_one_outline_differ_in_stamps_alone_or_in_more() {
        let mail = marks(r#"{"args":{"to":"ann","body":"Your order has shipped.","request_id":"1"}}"#);
        let stamped = marks(r#"{"args":{"to":"ann","body":"Your order has shipped.","requestId":"2"}}"#);
        let reworded = marks(r#"{"args":{"to":"ann","body":"Shipped","request_id":"2"}}"#);
        let difference = |other: &Marks| {
            let Difference { paths, stamps_alone, is_all: _ } = mail.difference(other);
            (paths, stamps_alone)
        };
        let paths = |names: &[&str]| names.iter().map(|name| format!("args.{name}")).collect::<Vec<_>>();
        assert_eq!(difference(&stamped), (paths(&["requestId", "request_id"]), true));
        assert_eq!(difference(&reworded), (paths(&["body", "request_id"]), false));
        assert_eq!(difference(&mail), (vec![], false));
        let sorting = Sorting { content: paths_of(&["args.body"]), ..Sorting::default() };
        let by_rule = |body: &str, id: &str| {
            let text = format!(r#"{{"args":{{"to":"ann","body":"{body}","request_id":"{id}"}}}}"#);
            marks_with(&text, &sorting)
        };
        assert!(!by_rule("a", "1").difference(&by_rule("b", "2")).stamps_alone);
        assert!(by_rule("a", "1").difference(&by_rule("a", "2")).stamps_alone);
    }

    #[test]
    fn what_differs_is_all_only_where_nothing_was_left_out() {
        let mail = |id: &str, trace: &str| {
            let text = format!(r#"{{"args":{{"to":"ann","request_id":"{id}","trace_id":"{trace}"}}}}"#);
            marks(&text).difference(&marks(r#"{"args":{"to":"ann","request_id":"1","trace_id":"t1"}}"#))
        };
        let differs =
            |is_all| Difference { paths: vec!["args.request_id".into()], stamps_alone: true, is_all };
        assert_eq!(mail("2", "t1"), differs(true));
        assert_eq!(mail("2", "t2"), differs(false), "the trace differs too");
    }

    #[test]
    fn content_to_one_rule_that_is_the_same_argument_to_another_is_no_difference() {
        let sorting = Sorting { content: paths_of(&["args.body"]), ..Sorting::default() };
        let ruled = marks_with(r#"{"args":{"body":"hello there","request_id":"1"}}"#, &sorting);
        let plain = marks(r#"{"args":{"body":"hello there","request_id":"2"}}"#);
        assert_eq!(ruled.difference(&plain).paths, ["args.request_id"]);
        let ruled = marks_with(r#"{"args":{"body":"hello there"}}"#, &sorting);
        assert_eq!(ruled.difference(&plain).paths, ["args.request_id"], "an empty `args` is left of it");
    }

    #[test]
    fn one_key_for_two_actions_differs_in_the_action_and_in_what_else_differs() {
        let of = |action: &str, arguments: &str| {
            let sorting = Sorting { content: paths_of(&["args.body"]), ..Sorting::default() };
            Marks::of(&Secret::new([1; 32]), action, &sort(&parse(arguments).unwrap(), &sorting))
        };
        let charge = of("fn:charge", r#"{"args":{"to":"ann","amount":1,"body":"hello there"}}"#);
        let refund = of("fn:refund", r#"{"args":{"to":"ann","amount":1,"body":"hello there"}}"#);
        let other = of("fn:refund", r#"{"args":{"to":"ann","amount":2,"body":"hi there"}}"#);
        assert_ne!(charge.fingerprint, refund.fingerprint);
        assert_eq!(charge.differing(&refund), ["action"]);
        assert_eq!(charge.differing(&other), ["action", "args.amount"]);
        assert_eq!(charge.differing_content(&other), ["args.body"]);
        // To the rule of another action its words are no content.
        let plain = marks(r#"{"args":{"to":"ann","amount":1,"body":"hello there"}}"#);
        assert_eq!(charge.differing(&plain), ["action"]);
        assert_eq!(other.differing(&plain), ["action", "args.amount", "args.body"]);
    }

    #[test]
    fn no_arguments_differ_from_some_as_a_whole() {
        let (none, some) = (marks("{}"), marks(r#"{"note":"hello there"}"#));
        assert_eq!(none.differing(&some), ["arguments", "note"]);
    }

    #[test]
    fn volatile_arguments_are_marked_apart() {
        let one = marks(r#"{"args":{"amount":1,"trace_id":"a"}}"#);
        let other = marks(r#"{"args":{"amount":1,"trace_id":"b"}}"#);
        assert_eq!(one.fingerprint, other.fingerprint);
        assert_ne!(one.volatile, other.volatile);
        assert_eq!(marks(r#"{"args":{"amount":1}}"#).volatile, None);
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
