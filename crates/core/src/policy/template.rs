//! Texts with places: `https://x/{reply.id}`. `{{` and `}}` stand for the braces themselves.

use crate::json::{Json, Path, PathStep};
use std::fmt;

/// Longer texts than this are not URLs or arguments that a person wrote.
const TEMPLATE_CHARS_MAX: usize = 4_000;

#[derive(Debug, Clone)]
pub struct Template(TemplateShape);

#[derive(Debug, Clone)]
enum TemplateShape {
    Text(Vec<TemplatePart>),
    /// A number, a boolean: whatever a policy writes where no text stands.
    Literal(Json),
    List(Vec<Template>),
    Table(Vec<(String, Template)>),
}

#[derive(Debug, Clone)]
enum TemplatePart {
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
    pub why: FillProblem,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FillProblem {
    Absent,
    Several,
    /// Nothing at all in a URL would make another path or question of it: `/charges/` lists them all.
    Empty,
    /// `.` or `..` as a URL segment would leave the path that the policy wrote.
    Dots,
    /// The argument would begin with a dash.
    Option,
}

impl fmt::Display for FillProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FillProblem::Absent => "is not there",
            FillProblem::Several => "names more than one value",
            FillProblem::Empty => "is empty, which would change what the URL names",
            FillProblem::Dots => "makes a dot segment, which would change the path of the URL",
            FillProblem::Option => "begins with a dash, which would make it an option",
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
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
    pub fn parse(text: &str) -> Result<Template, TemplateError> {
        if text.chars().count() > TEMPLATE_CHARS_MAX {
            return Err(TemplateError::TooLong);
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
                return Err(TemplateError::Close);
            }
            let end = after.find('}').ok_or(TemplateError::Open)?;
            let path = Path::parse(&after[..end])
                .map_err(|why| TemplateError::Path { path: after[..end].to_owned(), why: why.to_string() })?;
            if !literal.is_empty() {
                parts.push(TemplatePart::Text(std::mem::take(&mut literal)));
            }
            parts.push(TemplatePart::Place(path));
            rest = &after[end + 1..];
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(TemplatePart::Text(literal));
        }
        Ok(Template(TemplateShape::Text(parts)))
    }

    pub fn literal(value: Json) -> Template {
        Template(TemplateShape::Literal(value))
    }

    pub fn list(items: Vec<Template>) -> Template {
        Template(TemplateShape::List(items))
    }

    pub fn table(members: Vec<(String, Template)>) -> Template {
        Template(TemplateShape::Table(members))
    }

    /// An address at `host` with `prefix` before its path. `{path}` is whole as it is.
    pub fn below(&self, host: &str, prefix: &str) -> Template {
        let TemplateShape::Text(parts) = &self.0 else { return self.clone() };
        let [TemplatePart::Text(beginning), rest @ ..] = parts.as_slice() else { return self.clone() };
        let path_at = beginning.find("://").and_then(|at| {
            let behind = beginning[at + 3..].strip_prefix(host)?;
            Some(beginning.len() - behind.len())
        });
        let Some((origin, path)) = path_at.and_then(|at| beginning.split_at_checked(at)) else {
            return self.clone();
        };
        let is_whole =
            path == "/" && matches!(rest, [TemplatePart::Place(place), ..] if is_request_path(place));
        // Another host may begin like this one.
        if is_whole || !(path.is_empty() && rest.is_empty() || path.starts_with(['/', '?'])) {
            return self.clone();
        }
        let beginning = TemplatePart::Text(format!("{origin}{prefix}{path}"));
        Template(TemplateShape::Text([beginning].into_iter().chain(rest.iter().cloned()).collect()))
    }

    /// The places that it fills in, in order.
    pub fn places(&self) -> Vec<&Path> {
        match &self.0 {
            TemplateShape::Text(parts) => parts
                .iter()
                .filter_map(|part| match part {
                    TemplatePart::Place(path) => Some(path),
                    TemplatePart::Text(_) => None,
                })
                .collect(),
            TemplateShape::Literal(_) => Vec::new(),
            TemplateShape::List(items) => items.iter().flat_map(Template::places).collect(),
            TemplateShape::Table(members) => members.iter().flat_map(|(_, item)| item.places()).collect(),
        }
    }

    /// As text, for a URL, a header or an argument of a command.
    pub fn render(&self, root: &Json, encoding: Encoding) -> Result<String, MissingPath> {
        let TemplateShape::Text(parts) = &self.0 else {
            return Ok(text_of(&self.value(root)?));
        };
        let mut out = String::new();
        for part in parts {
            match part {
                TemplatePart::Text(text) => out.push_str(text),
                TemplatePart::Place(path) => {
                    let text = text_of(single(path, root)?);
                    let refuse = |why| Err(MissingPath { path: path.to_string(), why });
                    match encoding {
                        Encoding::Url if text.is_empty() => return refuse(FillProblem::Empty),
                        Encoding::Url if is_request_path(path) => {
                            let path = text.trim_start_matches('/');
                            if path.split('/').any(|segment| matches!(segment, "." | "..")) {
                                return refuse(FillProblem::Dots);
                            }
                            out.push_str(&encoded_path(path));
                        }
                        Encoding::Url if text == "." || text == ".." => return refuse(FillProblem::Dots),
                        Encoding::Url => percent_encode(&text, &mut out),
                        Encoding::Argument if out.is_empty() && text.starts_with('-') => {
                            return refuse(FillProblem::Option);
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
            true => Err(MissingPath { path: self.to_string(), why: FillProblem::Dots }),
            false => Ok(url),
        }
    }

    /// As JSON, for an argument of a tool: a template that is one place alone keeps the type of its value.
    pub fn value(&self, root: &Json) -> Result<Json, MissingPath> {
        match &self.0 {
            TemplateShape::Text(parts) => match parts.as_slice() {
                [TemplatePart::Place(path)] => single(path, root).cloned(),
                _ => self.render(root, Encoding::Plain).map(Json::String),
            },
            TemplateShape::Literal(json) => Ok(json.clone()),
            TemplateShape::List(items) => {
                items.iter().map(|item| item.value(root)).collect::<Result<_, _>>().map(Json::Array)
            }
            TemplateShape::Table(members) => members
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
            TemplateShape::Text(parts) => parts
                .iter()
                .map(|part| match part {
                    TemplatePart::Text(text) => text.as_str(),
                    TemplatePart::Place(_) => "…",
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
            TemplateShape::Text(parts) => parts.iter().try_for_each(|part| match part {
                TemplatePart::Text(text) => f.write_str(&text.replace('{', "{{").replace('}', "}}")),
                TemplatePart::Place(path) => write!(f, "{{{path}}}"),
            }),
            TemplateShape::Literal(json) => f.write_str(&json.canonical()),
            TemplateShape::List(items) => {
                let items: Vec<String> = items.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", items.join(", "))
            }
            TemplateShape::Table(members) => {
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
        [(_, Json::Null)] | [] => Err(MissingPath { path: path.to_string(), why: FillProblem::Absent }),
        [(_, value)] => Ok(value),
        _ => Err(MissingPath { path: path.to_string(), why: FillProblem::Several }),
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
    matches!(path.steps(), [PathStep::Member(root)] if root == "path")
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
            assert!(matches!(render(dots), Err(MissingPath { why: FillProblem::Dots, .. })), "{dots}");
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
        assert_eq!(render("{args.other}", Encoding::Plain), missing("args.other", FillProblem::Absent));
        assert_eq!(render("{args.gone}", Encoding::Plain), missing("args.gone", FillProblem::Absent));
        assert_eq!(render("/a/{args.dots}/b", Encoding::Url), missing("args.dots", FillProblem::Dots));
        assert_eq!(render("/a/{args.none}", Encoding::Url), missing("args.none", FillProblem::Empty));
        assert_eq!(render("{args.flag}", Encoding::Argument), missing("args.flag", FillProblem::Option));
        assert_eq!(render("--of={args.flag}", Encoding::Argument), Ok("--of=--all".to_owned()));
    }

    #[test]
    fn unbalanced_braces_are_refused() {
        assert_eq!(Template::parse("{args.a").unwrap_err(), TemplateError::Open);
        assert_eq!(Template::parse("a}").unwrap_err(), TemplateError::Close);
        assert!(matches!(Template::parse("{}").unwrap_err(), TemplateError::Path { .. }));
    }
}
