//! Parsing single values, with findings that point inside them.

use crate::json::{Json, Number, Path, PathStep};
use crate::policy::diagnostic::DiagnosticCode::{BadExpression, BadPath, BadTemplate};
use crate::policy::diagnostic::{DiagnosticCode, Diagnostics, SourceText};
use crate::policy::expression::{CompileError, Expression};
use crate::policy::file::Spot;
use crate::policy::nearest::suggest;
use crate::policy::template::Template;
use std::ops::Range;

/// All variables. `args` is a tool's, `argv` a command's, `body` a request's; `status` and `resp_headers` are those of an
/// HTTP answer to a question.
#[rustfmt::skip]
const VARIABLES: [&str; 14] = [
    "reply", "args", "argv", "body", "query", "headers", "path", "cwd", "stdin", "action", "attempt", "resp", "status",
    "resp_headers",
];

/// The parts of a call, before it is made.
pub const ARGUMENTS: &[&str] = VARIABLES.split_at(10).0.split_at(1).1;

/// The variables of a question, before there is an answer.
pub const ASKING: &[&str] = VARIABLES.split_at(11).0.split_at(1).1;

/// The variables once a probe was answered.
pub const ASKED: &[&str] = VARIABLES.split_at(1).1;

/// The variables once the upstream reported success.
pub const AFTERWARDS: &[&str] = VARIABLES.split_at(11).0;

/// The variables once the upstream reported success and a confirm was answered.
pub const CONFIRMING: &[&str] = &VARIABLES;

#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    pub source: SourceText<'a>,
    /// Whether everything in it could be read.
    pub whole: bool,
}

/// A place in the file that a finding can point to.
pub trait Located {
    fn place(self) -> Range<usize>;
}

impl Located for Range<usize> {
    fn place(self) -> Range<usize> {
        self
    }
}

impl Located for &Range<usize> {
    fn place(self) -> Range<usize> {
        self.clone()
    }
}

impl<T> Located for &Spot<T> {
    fn place(self) -> Range<usize> {
        self.span.clone()
    }
}

pub struct Checker<'a> {
    pub input: Input<'a>,
    pub found: &'a mut Diagnostics,
}

impl Checker<'_> {
    pub fn error(
        &mut self,
        at: impl Located,
        code: DiagnosticCode,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.found.error(self.input.source, at.place(), code, message, help);
    }

    /// Something is not there. In a file with unreadable entries it may well have been meant to be, and the finding
    /// about that entry is enough.
    pub fn absent(
        &mut self,
        at: impl Located,
        code: DiagnosticCode,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        if self.input.whole {
            self.error(at, code, message, help);
        }
    }

    pub fn path(&mut self, text: &Spot<String>) -> Option<Path> {
        match Path::parse(&text.value) {
            Ok(path) => Some(path),
            Err(error) => {
                let place = self.inside(text, error.offset);
                let help = "write a path such as args.customer, args.items[*].id or argv[3]";
                self.error(place, BadPath, format!("bad path: {}", error.what), help);
                None
            }
        }
    }

    pub fn expression(&mut self, text: &Spot<String>, variables: &[&str]) -> Option<Expression> {
        let expression = match Expression::compile(&text.value) {
            Ok(expression) => expression,
            Err(error) => {
                let place = match &error {
                    CompileError::Syntax { at: Some((line, column)), .. } => {
                        self.inside(text, offset_of(&text.value, *line, *column))
                    }
                    _ => text.span.clone(),
                };
                let help = "expressions are CEL, such as args.method == 'create' && has(args.title)";
                self.error(place, BadExpression, format!("bad expression: {error}"), help);
                return None;
            }
        };
        for name in expression.variables() {
            if variables.contains(&name) {
                continue;
            }
            let help = suggest(name, variables);
            let place = match text.value.find(name) {
                Some(at) => {
                    let first = self.inside(text, at);
                    if first == text.span { first } else { first.start..first.start + name.len() }
                }
                None => text.span.clone(),
            };
            self.error(place, BadExpression, format!("`{name}` is not known here"), help);
        }
        Some(expression)
    }

    pub fn template(&mut self, text: &Spot<String>, roots: &[&str]) -> Option<Template> {
        let template = match Template::parse(&text.value) {
            Ok(template) => template,
            Err(error) => {
                let help = "`{args.name}` is filled in; write `{{` for a brace";
                self.error(text, BadTemplate, format!("bad template: {error}"), help);
                return None;
            }
        };
        self.roots(&template, &text.span, roots);
        Some(template)
    }

    /// A place whose first name never exists would fail at the worst moment: when an outcome is in doubt.
    pub fn roots(&mut self, template: &Template, span: &Range<usize>, roots: &[&str]) {
        for place in template.places() {
            let Some(PathStep::Member(root)) = place.steps().first() else { continue };
            if roots.contains(&root.as_str()) {
                continue;
            }
            let help = suggest(root, roots);
            self.error(span, BadTemplate, format!("`{root}` is not known here"), help);
        }
    }

    /// The place of one character of a string, if the file spells the string as it is; else the whole string.
    fn inside(&self, text: &Spot<String>, offset: usize) -> Range<usize> {
        let Some(raw) = self.input.source.text.get(text.span.clone()) else { return text.span.clone() };
        let mut opening = match raw {
            _ if raw.starts_with("\"\"\"") || raw.starts_with("'''") => 3,
            _ if raw.starts_with(['"', '\'']) => 1,
            _ => 0,
        };
        if opening == 3 {
            let rest = &raw[3..];
            opening += if rest.starts_with("\r\n") { 2 } else { usize::from(rest.starts_with('\n')) };
        }
        if !raw[opening..].starts_with(text.value.as_str()) {
            return text.span.clone();
        }
        let offset = offset.min(text.value.len());
        let length = text.value.get(offset..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
        let start = text.span.start + opening + offset;
        start..start + length
    }
}

fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let rest = &text[start..];
    start + rest.char_indices().nth(column - 1).map_or(rest.len(), |(at, _)| at)
}

/// `None` for what JSON cannot hold: `inf` and `nan`.
pub fn json_of(value: &toml::Value) -> Option<Json> {
    Some(match value {
        toml::Value::String(text) => Json::String(text.clone()),
        toml::Value::Integer(number) => Json::Number(Number::from_i64(*number)),
        toml::Value::Float(number) => Json::Number(Number::from_f64(*number)?),
        toml::Value::Boolean(value) => Json::Bool(*value),
        toml::Value::Datetime(time) => Json::String(time.to_string()),
        toml::Value::Array(items) => Json::Array(items.iter().map(json_of).collect::<Option<_>>()?),
        toml::Value::Table(table) => {
            let members = table.iter().map(|(name, value)| Some((name.clone(), json_of(value)?)));
            Json::Object(members.collect::<Option<_>>()?)
        }
    })
}
