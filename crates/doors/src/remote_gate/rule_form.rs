//! A caller's rule on its way to a server: as much of it as the ledger goes by.
//!
//! Reading the outcome stays with the caller, and with it all that a rule says about that.

use super::forms::{whole, whole_if_any};
use schemars::JsonSchema;
use semel_core::class::Class;
use semel_core::identity::Sorting;
use semel_core::json::{Json, Path};
use semel_core::normalise::Normaliser;
use semel_core::policy::rule::{
    Again, CallerKey, Failure, Inject, InjectInto, KeyForm, Rule, RuleOrigin, Rulings, ScopeChoice,
};
use semel_core::policy::{ActionFacts, Mode, Policy, duration};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

const PATHS_MAX: usize = 100;
const ORIGIN_CHARS_MAX: usize = 300;

/// No policy needs more; a server must not send again for ever because a caller said so.
const BUDGET_MAX: u64 = 100;

/// Longer than any key that is made.
const LENGTH_MAX: u64 = 65_535;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schemars(rename = "CallerRule")]
pub struct RuleForm {
    /// Where it stands, as `semel.toml:12`. Null: the caller's policy has no rule for the action.
    pub origin: Option<String>,
    pub class: Class,
    /// The caller's rule says that the same call again changes nothing, whatever class this one call asks for.
    #[serde(default)]
    pub converges: bool,
    #[serde(default)]
    pub scope: Option<ScopeChoice>,
    /// Paths of the identity; empty means all arguments.
    #[serde(default)]
    pub key: Vec<String>,
    #[serde(default)]
    pub content: Vec<String>,
    #[serde(default)]
    pub volatile: Vec<String>,
    #[serde(default)]
    pub secret: Vec<String>,
    #[serde(default)]
    pub normalize: Vec<NormalizeForm>,
    #[serde(default)]
    pub key_required: bool,
    #[serde(default)]
    pub caller_key: CallerKey,
    #[serde(default)]
    pub again: Again,
    /// How long a delivered success answers repeats, as `24h`.
    #[serde(default)]
    pub window: Option<String>,
    #[serde(default, deserialize_with = "whole")]
    #[schemars(range(min = 0, max = 100))]
    pub budget: u64,
    /// Where the caller sends the idempotency key.
    #[serde(default)]
    pub inject: Option<InjectForm>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Normalize")]
pub struct NormalizeForm {
    pub path: String,
    /// `trim`, `lower`, `collapse_space`, `sort`, `number` or `email`.
    pub by: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Inject")]
pub struct InjectForm {
    pub into: InjectPlace,
    pub name: String,
    #[serde(default)]
    pub form: KeyForm,
    #[serde(default, deserialize_with = "whole_if_any")]
    #[schemars(range(min = 0, max = 65_535))]
    pub length: Option<u64>,
    #[serde(default)]
    pub valid_for: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InjectPlace {
    Arg,
    Env,
    Flag,
}

impl RuleForm {
    pub fn of(rule: &Rule) -> RuleForm {
        let texts = |paths: &[Path]| paths.iter().map(ToString::to_string).collect();
        let words = |by: &Vec<Normaliser>| {
            let word = |one| match serde_json::to_value(one) {
                Ok(Value::String(word)) => word,
                _ => unreachable!("a normaliser is a word"),
            };
            by.iter().map(word).collect()
        };
        let Sorting { key, content, volatile, secret, normalize, .. } = &rule.sorting;
        RuleForm {
            origin: (rule.origin != RuleOrigin::Default).then(|| rule.origin.to_string()),
            class: rule.class,
            converges: rule.converges,
            scope: rule.scope,
            key: texts(key),
            content: texts(content),
            volatile: texts(volatile),
            secret: texts(secret),
            normalize: (normalize.iter())
                .map(|(path, by)| NormalizeForm { path: path.to_string(), by: words(by) })
                .collect(),
            key_required: rule.key_required,
            caller_key: rule.caller_key,
            again: rule.again,
            window: rule.window.map(duration::text),
            budget: u64::from(rule.budget).min(BUDGET_MAX),
            inject: rule.inject.as_ref().and_then(InjectForm::of),
        }
    }

    /// The rule by which the server decides: the caller's, with all that its own forbids, hides or holds back. Where the
    /// caller's policy says nothing, the server's own is the rule, but for what only the sender could do.
    ///
    /// `class`: what this one call asks for. `has_key`: it has a key of its own.
    pub fn into_rule(
        self,
        policy: &Policy,
        (action, arguments): (&str, &Json),
        class: Option<Class>,
        has_key: bool,
    ) -> Result<Rule, RefusedRule> {
        let facts = ActionFacts::new(action, arguments);
        let own = policy.rule_for(&facts);
        let has_own = own.origin != RuleOrigin::Default;
        if let Some(weaker) = class.and_then(|class| policy.too_weak(class, &own)) {
            return Err(RefusedRule::Weak(weaker));
        }
        if self.origin.is_none() && has_own {
            let own = policy.rule_for(&ActionFacts { class_override: class, ..facts });
            let mut own = without_sending(Arc::unwrap_or_clone(own));
            if action.starts_with("cli:") {
                own.sorting.set_surroundings_aside(arguments, has_key);
            }
            return Ok(own);
        }
        // Without a rule its class is a default, which gives way to a strict server's.
        let class = match policy.too_weak(self.class, &own) {
            None => self.class,
            Some(_) if self.origin.is_none() => own.class,
            Some(weaker) => return Err(RefusedRule::Weak(weaker)),
        };
        let base = policy.rule_for(&ActionFacts { class_override: Some(class), ..facts });
        let base = without_sending(Arc::unwrap_or_clone(base));
        let converges = self.converges && policy.mode != Mode::Strict;
        let brought = Rule { class, converges, ..self.read(base)? };
        Ok(if has_own { brought.restricted_by(&own) } else { brought })
    }

    fn read(self, base: Rule) -> Result<Rule, RefusedRule> {
        let bad =
            |what: &str, error: &dyn std::fmt::Display| RefusedRule::Bad(format!("rule.{what}: {error}"));
        let paths = |what: &str, texts: &[String]| -> Result<Vec<Path>, RefusedRule> {
            if texts.len() > PATHS_MAX {
                return Err(bad(what, &format_args!("at most {PATHS_MAX} paths")));
            }
            texts.iter().map(|text| Path::parse(text).map_err(|error| bad(what, &error))).collect()
        };
        if self.budget > BUDGET_MAX {
            return Err(bad("budget", &format_args!("at most {BUDGET_MAX}")));
        }
        let normalize = self.normalize.iter().take(PATHS_MAX).map(|NormalizeForm { path, by }| {
            let path = Path::parse(path).map_err(|error| bad("normalize", &error))?;
            let by: Result<Vec<Normaliser>, _> =
                by.iter().map(|word| serde_json::from_value(Value::from(word.as_str()))).collect();
            Ok((path, by.map_err(|error| bad("normalize", &error))?))
        });
        let span = |what: &str, text: &Option<String>| {
            text.as_deref().map(duration::parse).transpose().map_err(|error| bad(what, &error))
        };
        let inject = self.inject.map(|inject| {
            let InjectForm { into, name, form, length, valid_for } = inject;
            let valid_for = span("inject.valid_for", &valid_for)?;
            if length.is_some_and(|length| length > LENGTH_MAX) {
                return Err(bad("inject.length", &format_args!("at most {LENGTH_MAX}")));
            }
            let length = length.and_then(|length| usize::try_from(length).ok());
            let into = match into {
                InjectPlace::Arg => InjectInto::Arg(name),
                InjectPlace::Env => InjectInto::Env(name),
                InjectPlace::Flag => InjectInto::Flag(name),
            };
            Ok(Inject { into, form, length, valid_for })
        });
        let plain = |origin: &str| {
            origin.chars().count() <= ORIGIN_CHARS_MAX && !origin.chars().any(char::is_control)
        };
        let origin = match self.origin {
            None => RuleOrigin::Default,
            Some(origin) if !plain(&origin) => {
                return Err(bad("origin", &format_args!("at most {ORIGIN_CHARS_MAX} plain characters")));
            }
            Some(origin) => {
                // Never the name of a rule of this server's own.
                let (path, line) = origin.rsplit_once(':').unwrap_or((&origin, ""));
                RuleOrigin::File {
                    path: PathBuf::from(format!("caller's {path}")),
                    line: line.parse().unwrap_or(0),
                }
            }
        };
        Ok(Rule {
            origin,
            class_because: "the caller's policy says so".into(),
            scope: self.scope,
            sorting: Sorting {
                key: paths("key", &self.key)?,
                content: paths("content", &self.content)?,
                volatile: paths("volatile", &self.volatile)?,
                secret: paths("secret", &self.secret)?,
                normalize: normalize.collect::<Result<_, RefusedRule>>()?,
                reading: 0,
            }
            .numbered(),
            key_required: self.key_required,
            caller_key: self.caller_key,
            again: self.again,
            rulings: Rulings::default(),
            failure: Failure::default(),
            budget: u32::try_from(self.budget).unwrap_or_default(),
            window: span("window", &self.window)?,
            serialize_by: None,
            inject: inject.transpose()?,
            ..base
        })
    }
}

/// A rule for a call that is sent from somewhere else: nothing is asked, taken back or given a key from here.
fn without_sending(rule: Rule) -> Rule {
    Rule { inject: None, own_key: None, probe: None, confirm: None, undo: None, dry_run: None, ..rule }
}

impl InjectForm {
    /// `None`: a place that neither a command nor a tool has.
    fn of(inject: &Inject) -> Option<InjectForm> {
        let (into, name) = match &inject.into {
            InjectInto::Arg(name) => (InjectPlace::Arg, name),
            InjectInto::Env(name) => (InjectPlace::Env, name),
            InjectInto::Flag(name) => (InjectPlace::Flag, name),
            InjectInto::Header(_) | InjectInto::Body(_) | InjectInto::Query(_) | InjectInto::Directive(_) => {
                return None;
            }
        };
        let valid_for = inject.valid_for.map(duration::text);
        let length = inject.length.map(|length| (length as u64).min(LENGTH_MAX));
        Some(InjectForm { into, name: name.clone(), form: inject.form, length, valid_for })
    }
}

/// Why a caller's rule is not taken. Nothing was begun.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RefusedRule {
    #[error("class {0}")]
    Weak(String),
    #[error("{0}")]
    Bad(String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use semel_core::policy::PolicyFile;

    fn policy(text: &str) -> Policy {
        let text = format!("version = 1\n{text}");
        Policy::load(vec![PolicyFile { path: "semel.toml".into(), text }]).expect("a policy")
    }

    fn arguments() -> Json {
        semel_core::json::parse(r#"{"argv":["charge","ann"],"cwd":"/"}"#).expect("JSON")
    }

    /// The server's rule for what a caller with this policy asks.
    fn decided(callers: &str, servers: &str, class: Option<Class>) -> Result<Rule, RefusedRule> {
        let (callers, servers, arguments) = (policy(callers), policy(servers), arguments());
        let rule = callers
            .rule_for(&ActionFacts { class_override: class, ..ActionFacts::new("cli:charge", &arguments) });
        let form = serde_json::to_string(&RuleForm::of(&rule)).expect("JSON");
        let form: RuleForm = serde_json::from_str(&form).expect("its own form");
        form.into_rule(&servers, ("cli:charge", &arguments), class, false)
    }

    const RULE: &str = "[[rule]]\nmatch = \"cli:charge\"\nclass = \"consequential\"\nscope = \"global\"\n\
        key = [\"argv[1]\"]\ncontent = [\"stdin\"]\nvolatile = [\"cwd\"]\nnormalize = { \"argv[1]\" = [\"trim\", \"lower\"] }\n\
        again = \"person\"\nwindow = \"36h\"\ninject = { flag = \"--key\", valid_for = \"24h\" }\nbudget = 3\n";

    #[test]
    fn a_callers_rule_arrives_whole() {
        let there = decided(RULE, "", None).expect("it is taken");
        let here = policy(RULE).rule_for(&ActionFacts::new("cli:charge", &arguments()));
        assert_eq!(there.sorting, here.sorting);
        assert_eq!((there.class, there.scope, there.again), (here.class, here.scope, here.again));
        assert_eq!((there.window, there.budget), (here.window, here.budget));
        assert_eq!((&there.inject, there.tier()), (&here.inject, here.tier()));
        assert_ne!(there.origin.to_string(), here.origin.to_string(), "no rule of the server's has its name");
    }

    #[test]
    fn the_servers_rule_holds_back_and_never_lets_go() {
        let strict = "[[rule]]\nmatch = \"cli:charge\"\nclass = \"consequential\"\nagain = \"never\"\nkey_required = true\n";
        let there = decided(RULE, strict, None).expect("it is taken");
        assert_eq!((there.again, there.key_required), (Again::Never, true));
        let weak = "[[rule]]\nmatch = \"cli:charge\"\nclass = \"act\"\n";
        assert!(matches!(decided(weak, strict, None), Err(RefusedRule::Weak(_))));
        assert!(matches!(decided("", strict, Some(Class::Act)), Err(RefusedRule::Weak(_))));
        // A caller without a rule gets the server's, but for a key that it would not send.
        let strict = decided("", "mode = \"strict\"\n", None).expect("it is taken");
        assert_eq!(strict.class, Class::Consequential);
        let there = decided("", RULE, None).expect("it is taken");
        assert_eq!((there.class, there.again, there.inject), (Class::Consequential, Again::Person, None));
        assert_eq!(there.sorting.key.len(), 1);
    }

    #[test]
    fn a_stricter_class_leaves_what_both_sides_call_convergent_one_that_runs_again() {
        let rule = |class: &str| format!("[[rule]]\nmatch = \"cli:charge\"\nclass = \"{class}\"\n");
        let (converges, stricter) = (rule("convergent"), Some(Class::Consequential));
        for (callers, servers, expected) in [
            (converges.as_str(), "", true),
            (&converges, &converges, true),
            ("", &converges, true),
            (&converges, &rule("act"), false),
            (&converges, "mode = \"strict\"\n", false),
            ("", "", false),
        ] {
            let there = decided(callers, servers, stricter).expect("it is taken");
            assert_eq!(
                (there.class, there.converges),
                (Class::Consequential, expected),
                "{callers} {servers}"
            );
        }
    }

    #[test]
    fn a_rule_that_makes_no_sense_is_refused() {
        let form = RuleForm::of(&policy(RULE).rule_for(&ActionFacts::new("cli:charge", &arguments())));
        let bad = [
            RuleForm { key: vec!["[".into()], ..form.clone() },
            RuleForm { window: Some("soon".into()), ..form.clone() },
            RuleForm { origin: Some("a\nb".into()), ..form.clone() },
            RuleForm { volatile: vec!["cwd".into(); PATHS_MAX + 1], ..form.clone() },
            RuleForm { normalize: vec![NormalizeForm { path: "cwd".into(), by: vec!["x".into()] }], ..form },
        ];
        for form in bad {
            let refused = form.clone().into_rule(&policy(""), ("cli:charge", &arguments()), None, false);
            assert!(matches!(refused, Err(RefusedRule::Bad(_))), "{form:?}");
        }
    }
}
