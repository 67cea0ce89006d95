//! Sameness of intents.
//!
//! Arguments are one object whose members are the roots that rules speak of: `args` for tools and HTTP bodies; `argv`,
//! `cwd` and `stdin` for commands. A rule sorts their paths into identity, content and volatile; this module does the
//! sorting and derives the digests. `spec/intent-key.md` is the normative text.

mod keys;
mod marks;
mod path_marks;

pub use keys::{IntentDigest, IntentParts, alias_key, family_key, intent_key, outline_key, removals_key};
pub use marks::{Difference, MARK_PATH_BYTES_MAX, Marks, PATHS_MAX, value_mark};
pub use path_marks::{PathKind, PathMark};

use crate::digest::Digest;
use crate::json::{Json, Object, Path, PathStep};
use crate::judgement::arguments;
use crate::normalise::Normaliser;
use std::borrow::Cow;

/// How a rule sorts argument paths. The default sorts nothing: everything is identity but what is volatile by its name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sorting {
    /// The identity. Empty means all arguments but `content` and `volatile`.
    pub key: Vec<Path>,
    /// May be reworded by the model; compared and reported, never a new intent.
    pub content: Vec<Path>,
    /// Ignored.
    pub volatile: Vec<Path>,
    /// Never written or shown.
    pub secret: Vec<Path>,
    /// Applied first, in this order.
    pub normalize: Vec<(Path, Vec<Normaliser>)>,
    /// A number for all this as the policy says it, whatever a door adds for one call. 0: the policy sorts nothing.
    pub reading: u64,
}

impl Sorting {
    /// Whether another value at the path of a leaf makes another intent, where the key fields are all there.
    pub fn tells_apart_by(&self, leaf: &str) -> bool {
        let Ok(leaf) = Path::parse(leaf) else { return true };
        let covers = |paths: &[Path]| paths.iter().any(|path| path.covers(&leaf));
        let in_key = self.key.iter().any(|key| key.covers(&leaf) || leaf.covers(key));
        (self.key.is_empty() || in_key) && !covers(&self.content) && !covers(&self.volatile)
    }

    /// The headers that are read only because they are named here.
    pub fn ruled_headers(&self) -> impl Iterator<Item = &Path> {
        self.key.iter().filter(|path| match path.steps() {
            [PathStep::Member(root), PathStep::Member(name), ..] => {
                root == "headers" && !HEADERS_READ.contains(&name.as_str())
            }
            _ => false,
        })
    }

    /// Whether all arguments are read as they would be without a rule.
    pub fn is_plain(&self) -> bool {
        let Sorting { key, content, volatile, normalize, secret: _, reading: _ } = self;
        key.is_empty() && content.is_empty() && volatile.is_empty() && normalize.is_empty()
    }

    /// The same with its number.
    #[must_use]
    pub fn numbered(self) -> Sorting {
        if self.is_plain() {
            return self;
        }
        let texts = |paths: &[Path]| paths.iter().map(Path::to_string).collect::<Vec<_>>().join("\n");
        let Sorting { key, content, volatile, normalize, .. } = &self;
        // As they are written in a policy: a stored number must not hang on the names in this code.
        let normalize = serde_json::to_string(
            &normalize.iter().map(|(path, by)| (path.to_string(), by)).collect::<Vec<_>>(),
        )
        .expect("names alone");
        let parts = [texts(key), texts(content), texts(volatile), normalize];
        let reading = Digest::of(&parts.each_ref().map(String::as_bytes)).short().max(1);
        Sorting { reading, ..self }
    }

    /// A command that a key or a rule's fields name needs neither the directory nor the spelling of the program's path
    /// to be known again: they are then compared no more.
    pub fn set_surroundings_aside(&mut self, arguments: &Json, has_key: bool) {
        let by_rule = !self.key.is_empty() && self.key.iter().all(|path| !path.find(arguments).is_empty());
        if has_key || by_rule {
            let program = Path::of(vec![PathStep::Member("argv".to_owned()), PathStep::Element(0)]);
            self.volatile.extend([Path::of(vec![PathStep::Member("cwd".to_owned())]), program]);
        }
    }
}

/// Headers of a request that are always among its arguments. They say what is done, or on which state or part of the
/// world: with another value it is another request. A rule's `key` may name further ones.
pub const HEADERS_READ: [&str; 4] = [
    "if-match",
    "if-none-match",
    "content-range",
    // Names the operation, where one address takes all of them.
    "x-amz-target",
];

/// Arguments after sorting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortedArguments<'a> {
    /// The input of the intent digest.
    pub identity: Cow<'a, Json>,
    /// The input of the fingerprint: all arguments but content and volatile ones.
    pub fingerprinted: Cow<'a, Json>,
    /// The content found, as an object of concrete path to value; `None` if there is none.
    pub content: Option<Json>,
    /// The volatile arguments found, likewise.
    pub volatile: Option<Json>,
    /// Key paths that name nothing. If there are any, all arguments but the volatile ones are `identity`, the content
    /// too: nothing else tells two calls apart. The caller decides whether to go on.
    pub missing_key_paths: Vec<Path>,
}

pub fn sort<'a>(arguments: &'a Json, sorting: &Sorting) -> SortedArguments<'a> {
    // Most calls have no rule that changes anything, and are not copied.
    let mut all = Cow::Borrowed(arguments);
    for (path, normalisers) in &sorting.normalize {
        path.change_in(all.to_mut(), &mut |value| {
            let taken = std::mem::replace(value, Json::Null);
            *value = normalisers.iter().fold(taken, |value, normaliser| normaliser.apply(value));
        });
    }

    let mut volatile_paths = arguments::volatile(&all);
    volatile_paths.extend_from_slice(&sorting.volatile);
    let mut identity = Object::new();
    let mut missing_key_paths = Vec::new();
    for path in &sorting.key {
        let inner = volatile_paths.iter().chain(&sorting.content).filter(|other| other.may_lead_into(path));
        match value_at(path, &without(inner, &all)) {
            Some(value) => drop(identity.insert(path.to_string(), value)),
            None => missing_key_paths.push(path.clone()),
        }
    }

    let mut fingerprinted = all;
    let volatile = take(&volatile_paths, &mut fingerprinted);
    let all_but_volatile = (!missing_key_paths.is_empty()).then(|| fingerprinted.clone());
    let content = take(&sorting.content, &mut fingerprinted);

    SortedArguments {
        identity: match all_but_volatile {
            Some(all) => all,
            None if sorting.key.is_empty() => fingerprinted.clone(),
            None => Cow::Owned(Json::Object(identity)),
        },
        fingerprinted,
        content,
        volatile,
        missing_key_paths,
    }
}

/// Takes out what the paths name, as an object of concrete path to value; `None` if they name nothing.
fn take(paths: &[Path], from: &mut Cow<'_, Json>) -> Option<Json> {
    let mut taken = Object::new();
    for (path, value) in paths.iter().flat_map(|path| path.find(from)) {
        taken.insert(path, value.clone());
    }
    for path in paths {
        path.remove_from(from.to_mut());
    }
    without_empty(from);
    (!taken.is_empty()).then_some(Json::Object(taken))
}

/// A request without a query, or without a header that tells, is one whose query or headers say nothing.
fn without_empty(arguments: &mut Cow<'_, Json>) {
    for root in ["query", "headers"] {
        let is_empty = |json: &Json| json.as_object().is_some_and(Object::is_empty);
        if arguments.get(root).is_some_and(is_empty)
            && let Json::Object(members) = arguments.to_mut()
        {
            members.remove(root);
        }
    }
}

/// The arguments as a key path sees them: what is sorted out inside the very thing that the path names is gone, so that
/// `body` can be identity but for its description.
fn without<'a>(inner: impl Iterator<Item = &'a Path>, all: &'a Json) -> Cow<'a, Json> {
    inner.fold(Cow::Borrowed(all), |mut seen, inner| {
        inner.remove_from(seen.to_mut());
        seen
    })
}

/// A null names nothing, nor does an empty text: `{"invoice": null}` twice is no evidence that both mean one invoice. A
/// root is the exception: a request without a body says all that it has to say.
fn value_at(path: &Path, arguments: &Json) -> Option<Json> {
    let mut found: Vec<Json> = path.find(arguments).into_iter().map(|(_, value)| value.clone()).collect();
    let names_nothing = |value: &Json| matches!(value, Json::Null) || value.as_str() == Some("");
    if found.iter().all(names_nothing) {
        let is_root = matches!(path.steps(), [PathStep::Member(_)]);
        return is_root.then(|| found.pop().unwrap_or(Json::Null));
    }
    if path.has_wildcard() { Some(Json::Array(found)) } else { found.pop() }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::json::{parse, tests::any_json};
    use proptest::prelude::*;

    pub(crate) fn paths(texts: &[&str]) -> Vec<Path> {
        texts.iter().map(|text| Path::parse(text).unwrap()).collect()
    }

    fn charge() -> Json {
        parse(
            r#"{"args":{"customer":" CUS_1 ","invoice":1001.0,"description":"March, again","at":"12:00","tags":["b","a"]}}"#,
        )
        .unwrap()
    }

    #[test]
    fn without_a_rule_everything_is_identity() {
        let charge = charge();
        let sorted = sort(&charge, &Sorting::default());
        assert_eq!(*sorted.identity, charge);
        assert_eq!(*sorted.fingerprinted, charge);
        assert_eq!(sorted.content, None);
    }

    #[test]
    fn a_key_names_the_identity_and_the_rest_is_fingerprinted() {
        let charge = charge();
        let sorting = Sorting {
            key: paths(&["args.customer", "args.invoice", "args.tags[*]"]),
            content: paths(&["args.description"]),
            volatile: paths(&["args.at"]),
            normalize: vec![(
                Path::parse("args.customer").unwrap(),
                vec![Normaliser::Trim, Normaliser::Lower],
            )],
            ..Sorting::default()
        };
        let sorted = sort(&charge, &sorting);
        assert_eq!(
            sorted.identity.canonical(),
            r#"{"args.customer":"cus_1","args.invoice":1001,"args.tags[*]":["b","a"]}"#
        );
        assert_eq!(
            sorted.fingerprinted.canonical(),
            r#"{"args":{"customer":"cus_1","invoice":1001,"tags":["b","a"]}}"#
        );
        assert_eq!(sorted.content.unwrap().canonical(), r#"{"args.description":"March, again"}"#);
        assert!(sorted.missing_key_paths.is_empty());
    }

    #[test]
    fn a_key_that_holds_content_is_identity_but_for_that() {
        let sorting = |key: &[&str]| Sorting {
            key: paths(key),
            content: paths(&["args.description", "args.lines[*].note"]),
            volatile: paths(&["args.at"]),
            ..Sorting::default()
        };
        let arguments = parse(
            r#"{"args":{"amount":1,"at":"12:00","description":"d","lines":[{"id":7,"note":"n"}],"order":null}}"#,
        )
        .unwrap();
        let identity = |key: &[&str]| sort(&arguments, &sorting(key)).identity.canonical();
        assert_eq!(identity(&["args"]), r#"{"args":{"amount":1,"lines":[{"id":7}],"order":null}}"#);
        assert_eq!(identity(&["args.lines[0]"]), r#"{"args.lines[0]":{"id":7}}"#);
        assert_eq!(identity(&["args.lines[*]"]), r#"{"args.lines[*]":[{"id":7}]}"#);
        assert_eq!(identity(&["args.*"]), r#"{"args.*":[1,"12:00","d",[{"id":7}],null]}"#, "named by itself");
        assert_eq!(identity(&["args.description"]), r#"{"args.description":"d"}"#, "named by itself");
    }

    #[test]
    fn a_root_that_is_not_there_is_not_missing() {
        let sorting = Sorting { key: paths(&["path", "body"]), ..Sorting::default() };
        let arguments = parse(r#"{"path":"/refunds"}"#).unwrap();
        let sorted = sort(&arguments, &sorting);
        assert_eq!(sorted.identity.canonical(), r#"{"body":null,"path":"/refunds"}"#);
        assert!(sorted.missing_key_paths.is_empty());
    }

    #[test]
    fn a_missing_or_empty_key_field_is_named_and_all_arguments_identify() {
        let sorting = Sorting {
            key: paths(&["args.customer", "args.order", "args.nil", "args.empty", "args.list[*]"]),
            content: paths(&["args.description"]),
            volatile: paths(&["args.at"]),
            ..Sorting::default()
        };
        let arguments =
            r#"{"args":{"at":1,"customer":"c","description":"d","empty":"","list":["",null],"nil":null}}"#;
        let arguments = parse(arguments).unwrap();
        let sorted = sort(&arguments, &sorting);
        assert_eq!(
            sorted.missing_key_paths,
            paths(&["args.order", "args.nil", "args.empty", "args.list[*]"])
        );
        assert_eq!(
            sorted.identity.canonical(),
            r#"{"args":{"customer":"c","description":"d","empty":"","list":["",null],"nil":null}}"#
        );
        assert_eq!(
            sorted.fingerprinted.canonical(),
            r#"{"args":{"customer":"c","empty":"","list":["",null],"nil":null}}"#
        );
        assert_eq!(sorted.content.unwrap().canonical(), r#"{"args.description":"d"}"#);
    }

    #[test]
    fn an_empty_text_is_a_root_like_any_other() {
        let sorting = Sorting { key: paths(&["stdin"]), ..Sorting::default() };
        let arguments = parse(r#"{"stdin":""}"#).unwrap();
        assert_eq!(sort(&arguments, &sorting).identity.canonical(), r#"{"stdin":""}"#);
    }

    #[test]
    fn what_is_volatile_is_ignored_even_where_it_is_also_content() {
        let (charge, both) = (charge(), paths(&["args.at"]));
        let sorted = sort(&charge, &Sorting { content: both.clone(), volatile: both, ..Sorting::default() });
        assert_eq!(sorted.content, None);
    }

    proptest! {
        #[test]
        fn volatile_values_change_nothing_and_content_only_itself(value in any_json(), other in any_json()) {
            let sorting = Sorting {
                content: paths(&["args.text"]), volatile: paths(&["args.at"]), ..Sorting::default()
            };
            let arguments = |at: &Json, text: &Json| {
                Json::object([("args", Json::object([("at", at.clone()), ("text", text.clone()), ("n", Json::Null)]))])
            };
            let asked = [arguments(&value, &value), arguments(&other, &value), arguments(&value, &other)];
            let [a, b, c] = asked.each_ref().map(|arguments| sort(arguments, &sorting));
            prop_assert_eq!(&a.identity, &b.identity);
            prop_assert_eq!(&a.fingerprinted, &b.fingerprinted);
            prop_assert_eq!(&a.content, &b.content);
            prop_assert_eq!(&a.identity, &c.identity);
            prop_assert_eq!(&a.fingerprinted, &c.fingerprinted);
        }
    }
}
