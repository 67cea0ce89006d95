//! Faults of a policy: where they are and how to fix them.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use serde::Serialize;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// After this many, more would only scroll the first one away.
pub const DIAGNOSTICS_MAX: usize = 50;

/// One finding. Its JSON form is `{severity, code, file, line, column, message, help}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    pub severity: Severity,
    pub code: DiagnosticCode,
    pub file: PathBuf,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    pub message: String,
    pub help: Option<String>,
    #[serde(skip)]
    excerpt: Excerpt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The policy does not load.
    Error,
    /// It loads, and is probably not meant so.
    Warning,
    /// A fact to know, which often cannot be helped.
    Note,
}

/// Stable names, for tools that read `--json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DiagnosticCode {
    TomlSyntax,
    UnknownKey,
    WrongType,
    UnknownWord,
    UnsupportedVersion,
    UnknownPack,
    MissingMatch,
    BadMatch,
    BadWhen,
    BadPath,
    BadDuration,
    BadExpression,
    BadTemplate,
    BadCall,
    BadInject,
    BadDryRun,
    BadEffect,
    BadBudget,
    BadExitCode,
    BadServer,
    ConflictingPaths,
    VolatileKey,
    ConstantKey,
    WrongExample,
    Unprobed,
    KeyWithoutEnd,
    Shadowed,
    WithoutEffect,
    NeverMatches,
    UnknownRoot,
}

impl DiagnosticCode {
    pub fn word(self) -> String {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::String(word)) => word,
            _ => String::new(),
        }
    }
}

/// The line that the finding is about, and the bytes of it that are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Excerpt {
    line: String,
    span: Range<usize>,
}

/// A text with the name that its findings are reported under.
#[derive(Debug, Clone, Copy)]
pub struct SourceText<'a> {
    pub path: &'a Path,
    pub text: &'a str,
}

impl SourceText<'_> {
    /// The line, from 1, on which a byte stands.
    pub fn line_of(&self, offset: usize) -> usize {
        self.text.as_bytes()[..offset.min(self.text.len())].iter().filter(|byte| **byte == b'\n').count() + 1
    }

    /// Only the first line of a longer span is shown.
    fn excerpt(&self, span: Range<usize>) -> (usize, usize, Excerpt) {
        let start = floor_boundary(self.text, span.start);
        let line_start = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = self.text[start..].find('\n').map_or(self.text.len(), |at| start + at);
        let line = without_passwords(self.text[line_start..line_end].trim_end_matches('\r'));
        let from = (start - line_start).min(line.len());
        let to = floor_boundary(self.text, span.end).clamp(start, line_end) - line_start;
        let to = to.min(line.len()).max(from);
        let column = line[..from].chars().count() + 1;
        (self.line_of(start), column, Excerpt { line, span: from..to })
    }
}

/// Stars in the place of passwords in URLs, as many as bytes. A line that is no TOML may hold one all the same.
fn without_passwords(line: &str) -> String {
    let mut shown = line.to_owned();
    for (at, separator) in line.match_indices("://") {
        let start = at + separator.len();
        let end = line[start..].find([' ', '/', '"', '\'']).map_or(line.len(), |length| start + length);
        if let Some((login, _host)) = line[start..end].rsplit_once('@')
            && let Some((_name, password)) = login.split_once(':')
        {
            let from = start + login.len() - password.len();
            shown.replace_range(from..from + password.len(), &"*".repeat(password.len()));
        }
    }
    shown
}

fn floor_boundary(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

/// Findings in the order of their places: errors and warnings together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// An empty help is none.
    pub fn error(
        &mut self,
        source: SourceText<'_>,
        span: Range<usize>,
        code: DiagnosticCode,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.add(Severity::Error, source, span, code, message.into(), help.into());
    }

    pub fn warning(
        &mut self,
        source: SourceText<'_>,
        span: Range<usize>,
        code: DiagnosticCode,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.add(Severity::Warning, source, span, code, message.into(), help.into());
    }

    pub fn note(
        &mut self,
        source: SourceText<'_>,
        span: Range<usize>,
        code: DiagnosticCode,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.add(Severity::Note, source, span, code, message.into(), help.into());
    }

    fn add(
        &mut self,
        severity: Severity,
        source: SourceText<'_>,
        span: Range<usize>,
        code: DiagnosticCode,
        message: String,
        help: String,
    ) {
        let (line, column, excerpt) = source.excerpt(span);
        let (file, help) = (source.path.to_owned(), Some(help).filter(|help| !help.is_empty()));
        self.0.push(Diagnostic { severity, code, file, line, column, message, help, excerpt });
    }

    pub fn extend(&mut self, other: Diagnostics) {
        self.0.extend(other.0);
    }

    /// By file in the order given, then by place. Of too many the errors are kept first: a policy with one must not load.
    pub(super) fn sorted(mut self, files: &[&Path]) -> Diagnostics {
        let rank = |file: &Path| files.iter().position(|known| *known == file).unwrap_or(files.len());
        let place = |finding: &Diagnostic| (rank(&finding.file), finding.line, finding.column);
        self.0.sort_by_key(|finding| (finding.severity, place(finding)));
        self.0.truncate(DIAGNOSTICS_MAX);
        self.0.sort_by_key(place);
        self
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.0.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn has_errors(&self) -> bool {
        self.count(Severity::Error) > 0
    }

    pub fn count(&self, severity: Severity) -> usize {
        self.0.iter().filter(|finding| finding.severity == severity).count()
    }

    /// All of them as text, one blank line apart. `styled` adds ANSI colours.
    pub fn render(&self, styled: bool) -> String {
        self.0.iter().map(|finding| finding.render(styled)).collect::<Vec<_>>().join("\n\n")
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}

impl Diagnostic {
    pub fn render(&self, styled: bool) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
            Severity::Note => Level::NOTE,
        };
        let path = self.file.display().to_string();
        let snippet = Snippet::source(self.excerpt.line.as_str())
            .line_start(self.line)
            .path(path)
            .annotation(AnnotationKind::Primary.span(self.excerpt.span.clone()));
        let title = level.primary_title(self.message.as_str()).id(self.code.word());
        let mut group = title.element(snippet);
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        let renderer = if styled { Renderer::styled() } else { Renderer::plain() };
        renderer.render(&[group])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_shows_its_line_with_a_caret_and_a_help_line() {
        let text = "version = 1\nmode = \"gard\"\n";
        let source = SourceText { path: Path::new("semel.toml"), text };
        let mut found = Diagnostics::default();
        found.error(
            source,
            19..25,
            DiagnosticCode::UnknownWord,
            "`gard` is not a mode",
            "did you mean `guard`?",
        );
        assert_eq!(
            found.to_string(),
            "\
error[unknown_word]: `gard` is not a mode
 --> semel.toml:2:8
  |
2 | mode = \"gard\"
  |        ^^^^^^
  |
  = help: did you mean `guard`?"
        );
        assert_eq!(
            serde_json::to_value(&found).unwrap(),
            serde_json::json!([{
                "severity": "error", "code": "unknown_word", "file": "semel.toml", "line": 2, "column": 8,
                "message": "`gard` is not a mode", "help": "did you mean `guard`?"
            }])
        );
    }

    #[test]
    fn a_line_is_shown_without_the_passwords_in_it() {
        let text =
            "ledger = \"postgres://semel:s3\u{fc}cr:et@db/agents, redis://:s3cret@h https://me@h/a:b@c\n";
        let source = SourceText { path: Path::new("semel.toml"), text };
        let mut found = Diagnostics::default();
        found.error(source, 9..14, DiagnosticCode::TomlSyntax, "unclosed", "");
        let shown = found.to_string();
        let line = "ledger = \"postgres://semel:*********@db/agents, redis://:******@h https://me@h/a:b@c";
        assert!(shown.contains(line), "{shown}");
    }

    #[test]
    fn spans_that_lie_outside_or_inside_characters_are_clipped() {
        let text = "é\r\n\tü = 1";
        let source = SourceText { path: Path::new("x"), text };
        let mut found = Diagnostics::default();
        for start in 0..text.len() + 3 {
            for end in 0..text.len() + 3 {
                found.error(source, start..end, DiagnosticCode::TomlSyntax, "m", "");
            }
        }
        assert!(!found.render(false).is_empty());
    }
}
