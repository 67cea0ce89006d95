//! From the file's shape to compiled rules: every text is parsed here, once, and every finding has its place.

mod call;
mod check;
mod prices;
mod servers;
mod upstreams;

use super::diagnostic::DiagnosticCode::{
    BadBudget, BadDryRun, BadDuration, BadEffect, BadExitCode, BadInject, BadMatch, BadPath, BadWhen,
    ConflictingPaths, MissingMatch, UnsupportedVersion,
};
use super::diagnostic::{Diagnostics, SourceText};
use super::duration;
use super::expression::Expression;
use super::file::{self, Entries, File, RuleTable, Spot, WhenCondition};
use super::glob::{self, Pattern};
use super::nearest::nearest;
use super::retention::RetentionChoices;
use super::rule::{
    Again, CallerKey, DryRunOption, EffectWording, Failure, Inject, InjectInto, KeyForm, OnDisconnect,
    RefusedIf, Rule, RuleCall, RuleOrigin, Rulings, ScopeChoice, Unmarked,
};
use crate::class::Class;
use crate::effect_word::EffectWord;
use crate::identity::Sorting;
use crate::json::{Json, Path};
use check::Checker;
pub use check::{ARGUMENTS, Input, json_of};
pub use prices::prices;
pub use servers::{mcp_servers, notify, serve};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
pub use upstreams::{preset, upstreams};

/// The version of the format that this code reads.
const VERSION: i64 = 1;

/// More re-sends than this of one effect are a retry storm, not a budget.
const BUDGET_MAX: i64 = 20;

/// Two re-sends are what the SDKs of the large APIs do.
const BUDGET_DEFAULT: u32 = 2;

/// Shorter than the 30 s and 60 s after which common clients give up on a call.
const WAIT_DEFAULT: Duration = Duration::from_secs(25);

/// An answer later than this probably met nobody: the same clients, the same reason.
const LATE_AFTER_DEFAULT: Duration = Duration::from_secs(25);

/// Clients of models wait ten minutes, and give up after five without a sign of life at the earliest.
const WAIT_GENERATE: Duration = Duration::from_secs(240);
const LATE_AFTER_GENERATE: Duration = Duration::from_secs(600);

/// More paths than this in one list were generated, and every one is looked up on every call.
const LIST_MAX: usize = 1_000;

/// A rule of the policy: which calls it is about, and what it says of them.
#[derive(Debug, Clone)]
pub struct RuleEntry {
    pub pattern: Pattern,
    pub when: Option<RuleCondition>,
    /// `None`: each call's own name and hints decide.
    pub class: Option<Class>,
    /// Those of the defaults included.
    pub choices: Choices,
    /// Compiled once and shared by all calls. A call that changes anything in it has a copy of its own.
    pub rule: Arc<Rule>,
}

impl RuleEntry {
    /// The same for an API of this name that stands below a path. Its questions and its undo go there too.
    pub fn below(&self, service: &str, prefix: &str) -> Option<RuleEntry> {
        let pattern = self.pattern.below(service, prefix)?;
        let mut rule = Rule::clone(&self.rule);
        let probe = rule.probe.as_mut().map(|probe| &mut probe.call);
        let confirm = rule.confirm.as_mut().map(|confirm| &mut confirm.call);
        for call in [probe, confirm, rule.undo.as_mut()].into_iter().flatten() {
            if let RuleCall::Http { url, .. } = call {
                *url = url.below(service, prefix);
            }
        }
        Some(RuleEntry { pattern, rule: Arc::new(rule), ..self.clone() })
    }
}

#[derive(Debug, Clone)]
pub enum RuleCondition {
    /// All of them hold: some value at the path equals.
    Equal(Vec<(Path, Json)>),
    Expression(Expression),
}

/// Settings that both a rule and `[defaults]` can have.
#[derive(Debug, Clone, Default)]
pub struct Choices {
    pub scope: Option<ScopeChoice>,
    pub caller_key: Option<CallerKey>,
    pub again: Option<Again>,
    pub rulings: Option<Rulings>,
    pub failure: Option<Failure>,
    pub budget: Option<u32>,
    pub timeout: Option<Duration>,
    pub wait: Option<Duration>,
    pub window: Option<Duration>,
    pub late_after: Option<Duration>,
}

impl Choices {
    /// These, and the others' where these are silent.
    pub fn or(&self, others: &Choices) -> Choices {
        Choices {
            scope: self.scope.or(others.scope),
            caller_key: self.caller_key.or(others.caller_key),
            again: self.again.or(others.again),
            rulings: self.rulings.or(others.rulings),
            failure: self.failure.or(others.failure),
            budget: self.budget.or(others.budget),
            timeout: self.timeout.or(others.timeout),
            wait: self.wait.or(others.wait),
            window: self.window.or(others.window),
            late_after: self.late_after.or(others.late_after),
        }
    }

    /// A rule that makes these choices, and says nothing else.
    pub fn rule(&self, origin: RuleOrigin, class: Class, class_because: Cow<'static, str>) -> Rule {
        Rule {
            origin,
            class,
            class_because,
            converges: false,
            effect: None,
            scope: self.scope,
            sorting: Sorting::default(),
            key_required: false,
            caller_key: self.caller_key.unwrap_or_default(),
            again: self.again.unwrap_or_default(),
            rulings: self.rulings.unwrap_or_default(),
            failure: self.failure.unwrap_or_default(),
            on_disconnect: OnDisconnect::default(),
            unmarked: Unmarked::default(),
            budget: self.budget.unwrap_or(BUDGET_DEFAULT),
            timeout: self.timeout,
            wait: self.wait(class),
            window: self.window,
            late_after: self.late_after(class),
            serialize_by: None,
            inject: None,
            own_key: None,
            probe: None,
            confirm: None,
            undo: None,
            dry_run: None,
            refused: None,
            refused_exit: Vec::new(),
        }
    }

    pub fn wait(&self, class: Class) -> Duration {
        let otherwise = if class == Class::Generate { WAIT_GENERATE } else { WAIT_DEFAULT };
        self.wait.unwrap_or(otherwise)
    }

    pub fn late_after(&self, class: Class) -> Duration {
        let otherwise = if class == Class::Generate { LATE_AFTER_GENERATE } else { LATE_AFTER_DEFAULT };
        self.late_after.unwrap_or(otherwise)
    }
}

pub fn version(source: SourceText<'_>, file: &File, found: &mut Diagnostics) {
    let Some(version) = &file.version else { return };
    if version.value != VERSION {
        found.error(
            source,
            version.span.clone(),
            UnsupportedVersion,
            format!("version {} of the policy format is not known", version.value),
            format!("this semel reads version {VERSION}"),
        );
    }
}

/// The settings that `[defaults]` and `[[rule]]` both have, under the same names.
macro_rules! choices {
    ($check:ident, $table:ident) => {
        Choices {
            scope: $table.scope,
            caller_key: $table.caller_key,
            again: $table.again,
            rulings: $table.rulings,
            failure: $table.failure,
            budget: $check.budget($table.budget.as_ref()),
            timeout: $check.some_time($table.timeout.as_ref()),
            wait: $check.time($table.wait.as_ref()),
            window: $check.some_time($table.window.as_ref()),
            late_after: $check.some_time($table.late_after.as_ref()),
        }
    };
}

pub fn defaults(input: Input<'_>, table: &file::Defaults, found: &mut Diagnostics) -> Choices {
    let mut check = Checker { input, found };
    choices!(check, table)
}

pub fn retention(
    input: Input<'_>,
    table: &file::RetentionTable,
    found: &mut Diagnostics,
) -> RetentionChoices {
    let mut check = Checker { input, found };
    RetentionChoices {
        replies: check.some_time(table.replies.as_ref()),
        facts: check.some_time(table.facts.as_ref()),
    }
}

/// `None` only when there is no pattern to put the rule under; other faults are found all the same.
pub fn rule(
    input: Input<'_>,
    origin: RuleOrigin,
    Spot { value: table, span }: &Spot<RuleTable>,
    defaults: &Choices,
    found: &mut Diagnostics,
) -> Option<RuleEntry> {
    let mut check = Checker { input, found };
    let pattern = check.pattern(table.pattern.as_ref(), span.clone());
    let own_server = table.pattern.as_ref().is_none_or(|pattern| pattern.value.starts_with("mcp:"));
    let choices = choices!(check, table).or(defaults);
    // Without a class of its own it never holds as it is.
    let class = table.class.unwrap_or(Class::Consequential);
    let rule = Rule {
        converges: class == Class::Convergent,
        effect: table.effect.as_ref().and_then(|effect| check.effect(effect)),
        sorting: check.sorting(table),
        key_required: table.key_required.unwrap_or(false),
        on_disconnect: table.on_disconnect.unwrap_or_default(),
        unmarked: table.unmarked.unwrap_or_default(),
        serialize_by: table.serialize_by.as_ref().and_then(|path| check.path(path)),
        inject: table.inject.as_ref().and_then(|inject| check.inject(inject)),
        probe: table.probe.as_ref().and_then(|probe| call::probe(&mut check, probe, own_server)),
        confirm: table.confirm.as_ref().and_then(|confirm| call::confirm(&mut check, confirm, own_server)),
        undo: table.undo.as_ref().and_then(|undo| call::undo(&mut check, undo, own_server)),
        dry_run: table.dry_run.as_ref().and_then(|dry_run| check.dry_run(dry_run)),
        refused: table.refused.as_ref().and_then(|text| check.refused(text, table.pattern.as_ref())),
        refused_exit: check.exit_codes(&table.refused_exit),
        ..choices.rule(origin, class, BECAUSE_OF_RULE)
    };
    let when = table.when.as_ref().and_then(|when| check.condition(when));
    Some(RuleEntry { pattern: pattern?, when, class: table.class, choices, rule: Arc::new(rule) })
}

/// Why a call has the class that its rule names.
pub const BECAUSE_OF_RULE: Cow<'static, str> = Cow::Borrowed("the rule says so");

impl Checker<'_> {
    fn pattern(&mut self, text: Option<&Spot<String>>, rule: Range<usize>) -> Option<Pattern> {
        let Some(text) = text else {
            self.absent(
                rule,
                MissingMatch,
                "this rule has no `match`",
                "add one, such as match = \"mcp:github/*\"",
            );
            return None;
        };
        match Pattern::parse(&text.value) {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                let help = match &error {
                    glob::PatternError::Empty => "use \"*\" to match every action".to_owned(),
                    glob::PatternError::Prefix => self.prefix_help(&text.value),
                    glob::PatternError::TooLong => "split it into several rules".to_owned(),
                    glob::PatternError::Syntax(_) => {
                        "`*` matches anything, `{a,b}` alternatives, `[ab]` one of a set; `\\` escapes"
                            .to_owned()
                    }
                };
                let message = match &error {
                    glob::PatternError::Syntax(why) => format!("bad pattern: {why}"),
                    other => other.to_string(),
                };
                self.error(text, BadMatch, message, help);
                None
            }
        }
    }

    fn prefix_help(&self, text: &str) -> String {
        let written = text.split(':').next().unwrap_or_default();
        match nearest(written, glob::PREFIXES.map(|prefix| prefix.trim_end_matches(':'))) {
            Some(prefix) if text.contains(':') => format!("did you mean `{prefix}:`?"),
            _ if begins_with_a_method(text) => format!("for a request write \"http:{text}\""),
            _ if text.contains('/') => format!("for a tool of an MCP server write \"mcp:{text}\""),
            _ => format!("for a command write \"cli:{text}\""),
        }
    }

    fn condition(&mut self, when: &Spot<WhenCondition>) -> Option<RuleCondition> {
        match &when.value {
            WhenCondition::Expression(text) => {
                let text = Spot { value: text.clone(), span: when.span.clone() };
                self.expression(&text, check::ARGUMENTS).map(RuleCondition::Expression)
            }
            WhenCondition::Equal(Entries(entries)) => {
                if entries.is_empty() {
                    self.error(when, BadWhen, "`when` is empty", "leave it out to match always");
                    return None;
                }
                let mut pairs = Vec::new();
                for (path, value) in entries {
                    let Some(value) = check::json_of(&value.0) else {
                        self.error(
                            path,
                            BadWhen,
                            "this value has no JSON form",
                            "inf and nan cannot occur in arguments",
                        );
                        continue;
                    };
                    pairs.extend(self.path(path).map(|path| (path, value)));
                }
                Some(RuleCondition::Equal(pairs))
            }
        }
    }

    fn effect(&mut self, text: &Spot<String>) -> Option<EffectWording> {
        const WORDS: [&str; 5] = ["created", "updated", "deleted", "sent", "noop"];
        let word = text.value.trim();
        if WORDS.contains(&word) {
            return EffectWord::parse(word).map(EffectWording::Word);
        }
        if word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') {
            let help = match (nearest(word, WORDS), word) {
                (Some(near), _) => format!("did you mean `{near}`?"),
                (None, "none") => "an action without an effect has class = \"read\"".to_owned(),
                (None, _) => format!("one of {}, or CEL over `reply`", WORDS.join(", ")),
            };
            self.error(text, BadEffect, format!("`{word}` is not an effect"), help);
            return None;
        }
        self.expression(text, check::AFTERWARDS).map(EffectWording::Expression)
    }

    fn refused(&mut self, text: &Spot<String>, pattern: Option<&Spot<String>>) -> Option<RefusedIf> {
        // Elsewhere nobody reads documents of GraphQL.
        if text.value == RefusedIf::GRAPHQL && pattern.is_none_or(|it| it.value.starts_with("http:")) {
            return Some(RefusedIf::Graphql);
        }
        self.expression(text, &["reply"]).map(RefusedIf::Expression)
    }

    fn sorting(&mut self, table: &RuleTable) -> Sorting {
        let mut taken: Vec<(Path, &'static str)> = Vec::new();
        let mut sorted = |check: &mut Checker<'_>, name: &'static str, texts: &[Spot<String>]| {
            check.length(texts);
            let mut paths = Vec::new();
            for text in texts.iter().take(LIST_MAX) {
                let Some(path) = check.path(text) else { continue };
                match taken.iter().find(|(known, _)| *known == path) {
                    Some((_, other)) if *other == name => {}
                    Some((_, other)) => check.error(
                        text,
                        ConflictingPaths,
                        format!("`{path}` is both `{other}` and `{name}`"),
                        "a path is identity (key), content or volatile: choose one",
                    ),
                    None => taken.push((path.clone(), name)),
                }
                paths.push(path);
            }
            paths
        };
        let key = sorted(self, "key", &table.key);
        let content = sorted(self, "content", &table.content);
        let volatile = sorted(self, "volatile", &table.volatile);
        self.length(&table.secret);
        let secret = table.secret.iter().take(LIST_MAX).filter_map(|text| self.path(text)).collect();
        let mut normalize = Vec::new();
        for (path, words) in table.normalize.0.iter().take(LIST_MAX) {
            normalize.extend(self.path(path).map(|path| (path, words.0.clone())));
        }
        Sorting { key, content, volatile, secret, normalize, reading: 0 }.numbered()
    }

    fn length(&mut self, texts: &[Spot<String>]) {
        if let Some(first) = texts.get(LIST_MAX) {
            self.error(first, BadPath, format!("more than {LIST_MAX} paths"), "use `[*]` and `.*`");
        }
    }

    fn inject(&mut self, table: &Spot<file::InjectTable>) -> Option<Inject> {
        type Make = fn(String) -> InjectInto;
        let inject = &table.value;
        let valid_for = self.some_time(inject.valid_for.as_ref());
        let length = inject.length.as_ref().and_then(|length| self.key_length(length, inject.form));
        let choices: [(&str, &Option<Spot<String>>, Make); 7] = [
            ("header", &inject.header, InjectInto::Header),
            ("arg", &inject.arg, InjectInto::Arg),
            ("body", &inject.body, InjectInto::Body),
            ("query", &inject.query, InjectInto::Query),
            ("directive", &inject.directive, InjectInto::Directive),
            ("flag", &inject.flag, InjectInto::Flag),
            ("env", &inject.env, InjectInto::Env),
        ];
        let mut given =
            choices.into_iter().filter_map(|(name, text, make)| Some((name, text.as_ref()?, make)));
        let (Some((name, text, make)), None) = (given.next(), given.next()) else {
            let help =
                "name one place for the key, such as { header = \"Idempotency-Key\", valid_for = \"24h\" }";
            let message = "`inject` needs exactly one of header, arg, body, query, directive, flag, env";
            self.absent(table, BadInject, message, help);
            return None;
        };
        let plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        let fits = match name {
            "header" => plain(&text.value) && !text.value.contains(':'),
            "flag" => plain(&text.value) && text.value.starts_with('-'),
            "env" => plain(&text.value) && !text.value.contains('='),
            "directive" => {
                let name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
                !text.value.is_empty() && text.value.bytes().all(name)
            }
            "body" => plain(&text.value) && text.value.split('.').all(|step| !step.is_empty()),
            _ => !text.value.is_empty(),
        };
        if !fits {
            let message = format!("{:?} is not a name of a {name}", text.value);
            self.error(text, BadInject, message, "give the bare name, such as Idempotency-Key");
            return None;
        }
        Some(Inject {
            into: make(text.value.clone()),
            form: inject.form.unwrap_or_default(),
            length,
            valid_for,
        })
    }

    /// A key that was cut too short would be shared by two effects.
    fn key_length(&mut self, length: &Spot<i64>, form: Option<KeyForm>) -> Option<usize> {
        if form == Some(KeyForm::Uuid) {
            self.error(length, BadInject, "a UUID has its own length", "leave `length` out");
            return None;
        }
        match usize::try_from(length.value) {
            Ok(length @ 24..=255) => Some(length),
            _ => {
                let message = format!("a key has from 24 to 255 characters, not {}", length.value);
                self.error(length, BadInject, message, "a shorter one could be that of two effects");
                None
            }
        }
    }

    fn dry_run(&mut self, table: &Spot<file::DryRunTable>) -> Option<DryRunOption> {
        let dry_run = &table.value;
        let value = || dry_run.value.as_ref().map_or_else(|| "true".to_owned(), |value| value.value.clone());
        match (&dry_run.flag, &dry_run.arg, &dry_run.header) {
            (Some(flag), None, None) if dry_run.value.is_none() && flag.value.starts_with('-') => {
                Some(DryRunOption::Flag(flag.value.clone()))
            }
            (None, Some(arg), None) => Some(DryRunOption::Arg(arg.value.clone(), value())),
            (None, None, Some(header)) => Some(DryRunOption::Header(header.value.clone(), value())),
            _ => {
                self.absent(
                    table,
                    BadDryRun,
                    "`dry_run` needs exactly one of flag, arg, header",
                    "such as { flag = \"--dry-run=server\" } or { arg = \"dry_run\", value = \"true\" }",
                );
                None
            }
        }
    }

    fn budget(&mut self, budget: Option<&Spot<i64>>) -> Option<u32> {
        let budget = budget?;
        if !(0..=BUDGET_MAX).contains(&budget.value) {
            self.error(
                budget,
                BadBudget,
                format!("a budget is from 0 to {BUDGET_MAX}, not {}", budget.value),
                "it counts how often semel itself sends an effect again; 2 is usual",
            );
            return None;
        }
        u32::try_from(budget.value).ok()
    }

    fn exit_codes(&mut self, codes: &[Spot<i64>]) -> Vec<i32> {
        let mut exits = Vec::new();
        for code in codes.iter().take(LIST_MAX) {
            match i32::try_from(code.value) {
                Ok(exit @ 1..=255) => exits.push(exit),
                _ => self.error(
                    code,
                    BadExitCode,
                    format!("{} is not an exit code of a refusal", code.value),
                    "a refusal exits with 1 to 255",
                ),
            }
        }
        exits
    }

    /// A span that may be zero.
    fn time(&mut self, text: Option<&Spot<String>>) -> Option<Duration> {
        let text = text?;
        match duration::parse(&text.value) {
            Ok(span) => Some(span),
            Err(error) => {
                let help = "write a whole number and a unit: 250ms, 30s, 5m, 24h, 30d";
                self.error(text, BadDuration, format!("{:?}: {error}", text.value), help);
                None
            }
        }
    }

    /// A span that is not zero.
    fn some_time(&mut self, text: Option<&Spot<String>>) -> Option<Duration> {
        let span = self.time(text)?;
        if span.is_zero() {
            let place = text.map_or(0..0, |text| text.span.clone());
            self.error(place, BadDuration, "this duration cannot be zero", "leave it out for the default");
            return None;
        }
        Some(span)
    }
}

/// `POST api.example.com/charges`.
fn begins_with_a_method(text: &str) -> bool {
    let method = text.split_once(' ').map_or("", |(method, _)| method);
    ["*", "POST", "PUT", "PATCH", "DELETE", "GET"].contains(&method)
}
