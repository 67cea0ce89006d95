//! Texts with places: `https://x/{reply.id}`. `{{` and `}}` stand for the braces themselves.

use crate::json::{Json, Path, Step};
use std::fmt;

/// Longer texts than this are not URLs or arguments that a person wrote.
const TEMPLATE_CHARS_MAX: usize = 4_000;

#[derive(Debug, Clone)]
pub struct Template(Shape);

#[derive(Debug, Clone)]
enum Shape {
    Text(Vec<Part>),
    /// A number, a boolean: whatever a policy writes where no text stands.
    Literal(Json),
    List(Vec<Template>),
    Table(Vec<(String, Template)>),
}

#[derive(Debug, Clone)]
enum Part {
    Text(String),
    Place(Path),
}

/// The context that a value must not break out of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Plain,
    /// Everything but unreserved characters is percent-encoded, so a value stays inside its segment or parameter.
    Url,
    /// One argument of a command: a value may not turn it into an option.
    Argument,
}

/// The template asks for a value that is not there, or not fit to be put there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{path}` {why}")]
pub struct MissingPath {
    pub path: String,
    pub why: Why,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    Absent,
    Several,
    /// Nothing at all in a URL would make another path or question of it: `/charges/` lists them all.
    Empty,
    /// `.` or `..` as a URL segment would leave the path that the policy wrote.
    Dots,
    /// The argument would begin with a dash.
    Option,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::Absent => "is not there",
            Why::Several => "names more than one value",
            Why::Empty => "is empty, which would change what the URL names",
            Why::Dots => "makes a dot segment, which would change the path of the URL",
            Why::Option => "begins with a dash, which would make it an option",
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    #[error("a template has at most {TEMPLATE_CHARS_MAX} characters")]
    TooLong,
    #[error("`{{` is not closed")]
    Open,
    #[error("`}}` was not opened")]
    Close,
    #[error("`{{{path}}}` is not a path: {why}")]
    Path { path: String, why: String },
}

impl Template {
    pub fn parse(text: &str) -> Result<Template, ParseError> {
        if text.chars().count() > TEMPLATE_CHARS_MAX {
            return Err(ParseError::TooLong);
        }
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            literal.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            let after = &rest[at + 1..];
            if let Some(doubled) = after.strip_prefix(brace) {
                literal.push_str(brace);
                rest = doubled;
                continue;
            }
            if brace == "}" {
                return Err(ParseError::Close);
            }
            let end = after.find('}').ok_or(ParseError::Open)?;
            let path = Path::parse(&after[..end])
                .map_err(|why| ParseError::Path { path: after[..end].to_owned(), why: why.to_string() })?;
            if !literal.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut literal)));
            }
            parts.push(Part::Place(path));
            rest = &after[end + 1..];
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Text(literal));
        }
        Ok(Template(Shape::Text(parts)))
    }

    pub fn literal(value: Json) -> Template {
        Template(Shape::Literal(value))
    }

    pub fn list(items: Vec<Template>) -> Template {
        Template(Shape::List(items))
    }

    pub fn table(members: Vec<(String, Template)>) -> Template {
        Template(Shape::Table(members))
    }

    /// An address at `host` with `prefix` before its path. `{path}` is whole as it is.
    pub fn below(&self, host: &str, prefix: &str) -> Template {
        let Shape::Text(parts) = &self.0 else { return self.clone() };
        let [Part::Text(beginning), rest @ ..] = parts.as_slice() else { return self.clone() };
        let path_at = beginning.find("://").and_then(|at| {
            let behind = beginning[at + 3..].strip_prefix(host)?;
            Some(beginning.len() - behind.len())
        });
        let Some((origin, path)) = path_at.and_then(|at| beginning.split_at_checked(at)) else {
            return self.clone();
        };
        let is_whole = path == "/" && matches!(rest, [Part::Place(place), ..] if is_request_path(place));
        // Another host may begin like this one.
        if is_whole || !(path.is_empty() && rest.is_empty() || path.starts_with(['/', '?'])) {
            return self.clone();
        }
        let beginning = Part::Text(format!("{origin}{prefix}{path}"));
        Template(Shape::Text([beginning].into_iter().chain(rest.iter().cloned()).collect()))
    }

    /// The places that it fills in, in order.
    pub fn places(&self) -> Vec<&Path> {
        match &self.0 {
            Shape::Text(parts) => parts
                .iter()
                .filter_map(|part| match part {
                    Part::Place(path) => Some(path),
                    Part::Text(_) => None,
                })
                .collect(),
            Shape::Literal(_) => Vec::new(),
            Shape::List(items) => items.iter().flat_map(Template::places).collect(),
            Shape::Table(members) => members.iter().flat_map(|(_, item)| item.places()).collect(),
        }
    }

    /// As text, for a URL, a header or an argument of a command.
    pub fn render(&self, root: &Json, encoding: Encoding) -> Result<String, MissingPath> {
        let Shape::Text(parts) = &self.0 else {
            return Ok(text_of(&self.value(root)?));
        };
        let mut out = String::new();
        for part in parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Place(path) => {
                    let text = text_of(single(path, root)?);
                    let refuse = |why| Err(MissingPath { path: path.to_string(), why });
                    match encoding {
                        Encoding::Url if text.is_empty() => return refuse(Why::Empty),
                        Encoding::Url if is_request_path(path) => {
                            let path = text.trim_start_matches('/');
                            if path.split('/').any(|segment| matches!(segment, "." | "..")) {
                                return refuse(Why::Dots);
                            }
                            out.push_str(&encoded_path(path));
                        }
                        Encoding::Url if text == "." || text == ".." => return refuse(Why::Dots),
                        Encoding::Url => percent_encode(&text, &mut out),
                        Encoding::Argument if out.is_empty() && text.starts_with('-') => {
                            return refuse(Why::Option);
                        }
                        Encoding::Argument | Encoding::Plain => out.push_str(&text),
                    }
                }
            }
        }
        Ok(out)
    }

    /// As an address. A value stays inside its segment or parameter, and none can make a step out of the path: two side
    /// by side, or one beside a dot of the operator's, could.
    pub fn render_url(&self, root: &Json) -> Result<String, MissingPath> {
        let url = self.render(root, Encoding::Url)?;
        let path = url.split(['?', '#']).next().unwrap_or_default();
        match path.split('/').skip(3).any(|segment| segment == "." || segment == "..") {
            true => Err(MissingPath { path: self.to_string(), why: Why::Dots }),
            false => Ok(url),
        }
    }

    /// As JSON, for an argument of a tool: a template that is one place alone keeps the type of its value.
    pub fn value(&self, root: &Json) -> Result<Json, MissingPath> {
        match &self.0 {
            Shape::Text(parts) => match parts.as_slice() {
                [Part::Place(path)] => single(path, root).cloned(),
                _ => self.render(root, Encoding::Plain).map(Json::String),
            },
            Shape::Literal(json) => Ok(json.clone()),
            Shape::List(items) => {
                items.iter().map(|item| item.value(root)).collect::<Result<_, _>>().map(Json::Array)
            }
            Shape::Table(members) => members
                .iter()
                .map(|(name, item)| Ok((name.clone(), item.value(root)?)))
                .collect::<Result<_, _>>()
                .map(Json::Object),
        }
    }
}

impl Template {
    /// The part that is the same for every call: `…` stands where something is filled in.
    pub fn outline(&self) -> String {
        match &self.0 {
            Shape::Text(parts) => parts
                .iter()
                .map(|part| match part {
                    Part::Text(text) => text.as_str(),
                    Part::Place(_) => "…",
                })
                .collect(),
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for Template {
    /// As it was written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Shape::Text(parts) => parts.iter().try_for_each(|part| match part {
                Part::Text(text) => f.write_str(&text.replace('{', "{{").replace('}', "}}")),
                Part::Place(path) => write!(f, "{{{path}}}"),
            }),
            Shape::Literal(json) => f.write_str(&json.canonical()),
            Shape::List(items) => {
                let items: Vec<String> = items.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", items.join(", "))
            }
            Shape::Table(members) => {
                let members: Vec<String> =
                    members.iter().map(|(name, item)| format!("{name} = {item}")).collect();
                write!(f, "{{ {} }}", members.join(", "))
            }
        }
    }
}

/// Null counts as absent: the word "null" inside a URL is an accident.
fn single<'a>(path: &Path, root: &'a Json) -> Result<&'a Json, MissingPath> {
    match path.find(root).as_slice() {
        [(_, Json::Null)] | [] => Err(MissingPath { path: path.to_string(), why: Why::Absent }),
        [(_, value)] => Ok(value),
        _ => Err(MissingPath { path: path.to_string(), why: Why::Several }),
    }
}

fn text_of(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => other.canonical(),
    }
}

/// `{path}` is where the request itself went: its slashes are slashes. What stands before it in the URL ends with the
/// first of them.
fn is_request_path(path: &Path) -> bool {
    matches!(path.steps(), [Step::Member(root)] if root == "path")
}

/// A path as `{path}` puts it into an address.
pub fn encoded_path(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for (at, segment) in path.split('/').enumerate() {
        out.push_str(if at == 0 { "" } else { "/" });
        percent_encode(segment, &mut out);
    }
    out
}

fn percent_encode(text: &str, out: &mut String) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn root() -> Json {
        json::parse(
            r#"{"args": {"customer": "a b/c", "n": 7, "dots": "..", "none": "", "flag": "--all", "gone": null},
                "reply": {"id": "ch_1"}, "argv": ["kubectl", "get"]}"#,
        )
        .unwrap()
    }

    fn render(text: &str, encoding: Encoding) -> Result<String, MissingPath> {
        Template::parse(text).unwrap().render(&root(), encoding)
    }

    #[test]
    fn places_are_filled_in() {
        assert_eq!(render("https://x/{reply.id}", Encoding::Url), Ok("https://x/ch_1".to_owned()));
        assert_eq!(render("{args.customer}", Encoding::Plain), Ok("a b/c".to_owned()));
        assert_eq!(render("q={args.customer}&n={args.n}", Encoding::Url), Ok("q=a%20b%2Fc&n=7".to_owned()));
        assert_eq!(render("{{literal}} {argv[1]}", Encoding::Plain), Ok("{literal} get".to_owned()));
        assert_eq!(render("", Encoding::Plain), Ok(String::new()));
    }

    #[test]
    fn the_path_of_the_request_keeps_its_slashes() {
        let render = |path: &str| {
            let root = Json::object([("path", Json::str(path))]);
            Template::parse("https://x/{path}/tags?q={path}").unwrap().render(&root, Encoding::Url)
        };
        assert_eq!(
            render("/repos/o/a b?c"),
            Ok("https://x/repos/o/a%20b%3Fc/tags?q=repos/o/a%20b%3Fc".to_owned())
        );
        for dots in ["/repos/../o", "/.", ".."] {
            assert!(matches!(render(dots), Err(MissingPath { why: Why::Dots, .. })), "{dots}");
        }
    }

    #[test]
    fn an_address_below_a_prefix_keeps_its_host_and_what_is_filled_in() {
        let below = |text: &str| Template::parse(text).unwrap().below("api.x", "/gw").to_string();
        assert_eq!(below("https://api.x/v1/charges?a={body.a}"), "https://api.x/gw/v1/charges?a={body.a}");
        assert_eq!(below("https://api.x/{reply.id}/{path}"), "https://api.x/gw/{reply.id}/{path}");
        assert_eq!(below("https://api.x"), "https://api.x/gw");
        for same in
            ["https://api.x/{path}/{reply.id}", "https://api.xy/v1", "https://y/api.x/v1", "{reply.url}"]
        {
            assert_eq!(below(same), same);
        }
    }

    #[test]
    fn a_lone_place_keeps_its_type_and_a_mixed_text_does_not() {
        let value = |text: &str| Template::parse(text).unwrap().value(&root()).unwrap();
        assert_eq!(value("{args.n}"), json::parse("7").unwrap());
        assert_eq!(value("n{args.n}"), json::parse("\"n7\"").unwrap());
    }

    #[test]
    fn what_is_missing_or_would_break_out_is_named() {
        let missing = |path: &str, why| Err(MissingPath { path: path.to_owned(), why });
        assert_eq!(render("{args.other}", Encoding::Plain), missing("args.other", Why::Absent));
        assert_eq!(render("{args.gone}", Encoding::Plain), missing("args.gone", Why::Absent));
        assert_eq!(render("/a/{args.dots}/b", Encoding::Url), missing("args.dots", Why::Dots));
        assert_eq!(render("/a/{args.none}", Encoding::Url), missing("args.none", Why::Empty));
        assert_eq!(render("{args.flag}", Encoding::Argument), missing("args.flag", Why::Option));
        assert_eq!(render("--of={args.flag}", Encoding::Argument), Ok("--of=--all".to_owned()));
    }

    #[test]
    fn unbalanced_braces_are_refused() {
        assert_eq!(Template::parse("{args.a").unwrap_err(), ParseError::Open);
        assert_eq!(Template::parse("a}").unwrap_err(), ParseError::Close);
        assert!(matches!(Template::parse("{}").unwrap_err(), ParseError::Path { .. }));
    }
}
