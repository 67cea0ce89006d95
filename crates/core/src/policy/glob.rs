//! The patterns of rules, over the names of actions.

use globset::{Glob, GlobBuilder, GlobMatcher};
use std::fmt;
use std::sync::OnceLock;

/// Longer than any sane pattern, short enough that compiling one costs nothing noticeable.
const PATTERN_CHARS_MAX: usize = 500;

/// The ways in that an action name can start with.
pub const PREFIXES: [&str; 5] = ["mcp:", "http:", "cli:", "llm:", "fn:"];

/// `*` matches anything, `/` and spaces included; `?` one character; `[…]` one of a set; `{a,b}` alternatives.
/// Case counts.
#[derive(Clone)]
pub struct Pattern {
    text: String,
    exact: Matcher,
    /// `cli:kubectl` means kubectl with any arguments, and `cli:git push *` covers a bare `git push`.
    wider: Option<Matcher>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("`match` is empty, so it would never match")]
    Empty,
    #[error("a pattern has at most {PATTERN_CHARS_MAX} characters")]
    TooLong,
    #[error("an action starts with `mcp:`, `http:`, `cli:`, `llm:` or `fn:`")]
    Prefix,
    #[error("{0}")]
    Syntax(String),
}

impl Pattern {
    pub fn parse(text: &str) -> Result<Pattern, PatternError> {
        if text.trim().is_empty() {
            return Err(PatternError::Empty);
        }
        if text.chars().count() > PATTERN_CHARS_MAX {
            return Err(PatternError::TooLong);
        }
        // A wildcard may stand where the prefix does, as in `*` or `{mcp,fn}:*`.
        let prefixed = PREFIXES.iter().any(|prefix| text.starts_with(prefix));
        if !prefixed && !text.starts_with(['*', '?', '{', '[']) {
            return Err(PatternError::Prefix);
        }
        Pattern::compile(text)
    }

    fn compile(text: &str) -> Result<Pattern, PatternError> {
        let wider = match text.strip_prefix("cli:") {
            Some(command) if !command.contains(' ') => Some(Matcher::parse(&format!("{text} *"))?),
            Some(command) => match command.strip_suffix(" *") {
                Some(bare) => Some(Matcher::parse(&format!("cli:{bare}"))?),
                None => None,
            },
            // A place has no slash at its end, with whatever slash a rule speaks of it.
            None if is_longer_than_root(text) => Some(Matcher::parse(text.trim_end_matches('/'))?),
            None => None,
        };
        Ok(Pattern { text: text.to_owned(), exact: Matcher::parse(text)?, wider })
    }

    pub fn matches(&self, subject: &str) -> bool {
        self.exact.matches(subject) || self.wider.as_ref().is_some_and(|wider| wider.matches(subject))
    }

    /// The same pattern for an API that stands below a path of another host: `prefix` comes before the path. `None` if
    /// the pattern is not about this service.
    pub fn below(&self, service: &str, prefix: &str) -> Option<Pattern> {
        let (method, place) = self.text.strip_prefix("http:")?.split_once(' ')?;
        let path = place.strip_prefix(service).filter(|path| path.starts_with(['/', '*']))?;
        Pattern::compile(&format!("http:{method} {service}{}{path}", globset::escape(prefix))).ok()
    }

    /// Whether a name that begins so may match. Only the pattern's literal beginning is looked at.
    pub fn may_match(&self, beginning: &str) -> bool {
        let prefix = &self.exact.prefix;
        prefix.starts_with(beginning) || beginning.starts_with(prefix.as_str())
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}

/// The pattern of this name and no other.
pub fn literal(name: &str) -> String {
    globset::escape(name)
}

/// Whether a pattern speaks of a path with a slash at its end: `http:POST host/charges/`, and not `http:POST host/`.
fn is_longer_than_root(text: &str) -> bool {
    let place = text.strip_prefix("http:").and_then(|text| text.split_once(' '));
    let path = place.and_then(|(_, place)| place.split_once('/')).map_or("", |(_, path)| path);
    path.ends_with('/') && !path.trim_end_matches('/').is_empty()
}

/// Whether one of the patterns covers a host. A pattern that is none covers nothing.
pub fn covers_host(patterns: &[String], host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    patterns.iter().any(|pattern| Matcher::parse(pattern).is_ok_and(|matcher| matcher.matches(&host)))
}

/// Checked at load, compiled when a name first gets past the literal beginning: a short command loads dozens of
/// rules of packs and needs one.
#[derive(Clone)]
struct Matcher {
    prefix: String,
    glob: Glob,
    compiled: OnceLock<GlobMatcher>,
}

impl Matcher {
    fn parse(text: &str) -> Result<Matcher, PatternError> {
        let glob = GlobBuilder::new(text).literal_separator(false).backslash_escape(true).build();
        let glob = glob.map_err(|error| PatternError::Syntax(error.kind().to_string()))?;
        let literal = text.find(['*', '?', '[', ']', '{', '}', '\\']).unwrap_or(text.len());
        Ok(Matcher { prefix: text[..literal].to_owned(), glob, compiled: OnceLock::new() })
    }

    fn matches(&self, subject: &str) -> bool {
        subject.starts_with(&self.prefix)
            && self.compiled.get_or_init(|| self.glob.compile_matcher()).is_match(subject)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({:?})", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_action_names() {
        for (pattern, subject, expected) in [
            ("mcp:billing/charge_*", "mcp:billing/charge_card", true),
            ("mcp:billing/charge_*", "mcp:billing/refund", false),
            ("mcp:billing/charge_*", "mcp:Billing/charge_card", false),
            ("mcp:*/{get,list}[-_]*", "mcp:github/list_issues", true),
            ("mcp:*/{get,list}[-_]*", "mcp:github/getIssue", false),
            ("http:POST api.stripe.com/v1/charges", "http:POST api.stripe.com/v1/charges", true),
            ("http:POST api.stripe.com/v1/charges", "http:POST api.stripe.com/v1/charges/ch_1", false),
            ("http:POST api.stripe.com/*", "http:POST api.stripe.com/v1/charges/ch_1", true),
            ("http:POST api.example.com/charges/", "http:POST api.example.com/charges", true),
            ("http:POST api.example.com/", "http:POST api.example.com/", true),
            ("http:{POST,PUT} *", "http:PUT example.org/a/b", true),
            ("mcp:a/?", "mcp:a/b", true),
            ("mcp:a/?", "mcp:a/bc", false),
            ("*", "fn:charge", true),
            ("cli:kubectl", "cli:kubectl", true),
            ("cli:kubectl", "cli:kubectl rollout restart deploy/web", true),
            ("cli:kubectl", "cli:kubectl-argo get", false),
            ("cli:kubectl rollout restart *", "cli:kubectl rollout restart deploy/web", true),
            ("cli:kubectl rollout restart *", "cli:kubectl rollout undo deploy/web", false),
            ("cli:git push *", "cli:git push", true),
            ("cli:git push *", "cli:git pushy", false),
            ("cli:git push", "cli:git push origin", false),
            ("cli:echo *", "cli:echo two\nlines", true),
        ] {
            assert_eq!(Pattern::parse(pattern).unwrap().matches(subject), expected, "{pattern} on {subject}");
        }
    }

    #[test]
    fn a_pattern_below_a_path_matches_there_and_nowhere_else() {
        let pattern = Pattern::parse("http:{POST,PUT} api.x/v1/{a,b}").unwrap();
        let below = pattern.below("api.x", "/gw[1]").unwrap();
        assert!(below.matches("http:POST api.x/gw[1]/v1/a") && below.matches("http:PUT api.x/gw[1]/v1/b"));
        assert!(!below.matches("http:POST api.x/v1/a") && !below.matches("http:POST api.x/gw1/v1/a"));
        let root = Pattern::parse("http:POST api.x/").unwrap().below("api.x", "/gw").unwrap();
        assert!(root.matches("http:POST api.x/gw") && !root.matches("http:POST api.x/"));
        let long = Pattern::parse(&format!("http:POST api.x/{}", "a".repeat(480))).unwrap();
        assert!(long.below("api.x", "/a/path/of/some/length").is_some(), "only written patterns are bounded");
        for other in ["http:POST api.xy/v1", "mcp:api.x/v1", "*"] {
            assert!(Pattern::parse(other).unwrap().below("api.x", "/gw").is_none(), "{other}");
        }
    }

    #[test]
    fn a_literal_beginning_rules_names_out() {
        let may = |pattern: &str| Pattern::parse(pattern).unwrap().may_match("http:GET api.stripe.com/");
        for about in ["http:GET api.stripe.com/v1/*", "http:* api.stripe.com/x", "*", "http:{GET,POST} x"] {
            assert!(may(about), "{about}");
        }
        for other in ["http:POST api.stripe.com/*", "http:GET api.slack.com/*", "mcp:*", "cli:curl"] {
            assert!(!may(other), "{other}");
        }
    }

    #[test]
    fn a_bad_pattern_says_why() {
        assert_eq!(Pattern::parse(" ").unwrap_err(), PatternError::Empty);
        assert_eq!(Pattern::parse("github/create").unwrap_err(), PatternError::Prefix);
        assert_eq!(Pattern::parse(&"*".repeat(501)).unwrap_err(), PatternError::TooLong);
        assert!(matches!(Pattern::parse("mcp:a/{b").unwrap_err(), PatternError::Syntax(_)));
        assert!(matches!(Pattern::parse("mcp:a/[b").unwrap_err(), PatternError::Syntax(_)));
    }
}
