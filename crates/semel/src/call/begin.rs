//! `begin`: code that calls tools itself asks for the right to make one attempt.

use super::BadCall;
use schemars::JsonSchema;
use semel_core::class::Class;
use semel_core::ids::{IdempotencyKey, Reason, Run};
use semel_core::intent::{Ask, AskedBy};
use semel_core::json::{self, Json, Object, Path};
use semel_core::policy::rule::{Inject, Rule};
use semel_core::policy::{ActionFacts, Policy, duration};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Duration;

/// As long as the name of a resource may be.
pub const RESOURCE_CHARS_MAX: usize = 1_024;
/// As long as a model's id of a call may be.
pub const CALL_ID_CHARS_MAX: usize = 255;

/// Too random to be guessed, and no longer than that needs.
pub const NONCE_PATTERN: &str = r"^[!-~]{16,128}$";

/// Nobody sees a client die, so its attempt is not merely slow for a day, as a command's is. A late answer still
/// counts.
const DEADLINE: Duration = Duration::from_secs(300);
const DEADLINE_MAX: Duration = Duration::from_secs(24 * 3600);

/// How long a request may be kept waiting for a twin.
const WAIT_MAX: Duration = Duration::from_secs(60);

const ACTION_CHARS_MAX: usize = 255;

/// As many as a function that people read has parameters.
const BY_MAX: usize = 64;

/// Longer than any service keeps keys; a table of the caller's own may keep them for ever.
const KEYED_FOR_MAX: Duration = Duration::from_secs(3_660 * 24 * 3600);

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schemars(rename = "Begin")]
#[allow(missing_docs, reason = "a comment would be part of the schema")]
pub struct BeginForm {
    /// What is to be done: `fn:NAME`.
    #[schemars(regex(pattern = r"^fn:[!-~]{1,252}$"))]
    pub action: String,
    /// What it is done with; rules see it as `args`.
    #[schemars(with = "Option<std::collections::BTreeMap<String, serde_json::Value>>")]
    pub arguments: Option<Box<RawValue>>,
    /// A key that names this request; the same key again is the same effect.
    #[schemars(regex(pattern = r"^[!-~]{1,255}$"))]
    pub key: Option<String>,
    /// The run this call belongs to; the header `Semel-Run-Id` is stronger.
    #[schemars(regex(pattern = r"^[!-~]{1,255}$"))]
    pub run: Option<String>,
    /// Do it once more on purpose; the same reason again is the same repetition.
    #[schemars(regex(pattern = r"^[!-~]{1,255}$"))]
    pub again: Option<String>,
    /// The class decides about repeats. It can ask for more protection than the policy gives, not for less.
    pub class: Option<Class>,
    /// How long the client may take; 5m unless given here or in the rule.
    #[schemars(regex(pattern = r"^([1-9][0-9]{0,3}s|[1-9][0-9]{0,2}m|1?[0-9]h)$"))]
    pub timeout: Option<String>,
    /// How long to wait for a twin before answering `in_flight`.
    #[schemars(regex(pattern = r"^([0-9]|[1-5][0-9]|60)s$"))]
    pub wait: Option<String>,
    /// The arguments that alone make two calls the same, within the run. A rule with `key` fields is stronger.
    #[schemars(length(min = 1, max = BY_MAX))]
    pub by: Option<Vec<String>>,
    /// How long the tool itself honours `idempotency_key`: so long a doubt is sent again under the same key.
    #[schemars(regex(pattern = r"^[1-9][0-9]{0,3}(s|m|h|d)$"))]
    pub keyed_for: Option<String>,
    /// Take turns with other calls on this resource.
    #[schemars(length(min = 1, max = RESOURCE_CHARS_MAX))]
    pub serialize_by: Option<String>,
    /// The model's id of the call.
    #[schemars(length(min = 1, max = CALL_ID_CHARS_MAX))]
    pub call_id: Option<String>,
    /// A random name of this attempt. Whoever lost the answer asks again with it and gets the same claim.
    #[schemars(regex(pattern = NONCE_PATTERN))]
    pub nonce: Option<String>,
    /// Say what would happen, and do nothing. The header `Semel-Dry-Run: 1` says the same.
    #[serde(default)]
    pub dry_run: bool,
}

/// A request to begin, understood and checked.
#[derive(Debug)]
pub struct BeginRequest {
    /// `fn:NAME`.
    pub action: String,
    /// As rules see them, below `args`.
    pub arguments: Json,
    /// The caller's own key.
    pub key: Option<IdempotencyKey>,
    /// The run that it belongs to.
    pub run: Option<Run>,
    /// Why once more.
    pub again: Option<Reason>,
    /// The class that the caller asks for.
    pub class: Option<Class>,
    /// How long the attempt may take.
    pub timeout: Option<Duration>,
    /// How long to wait for a twin.
    pub wait: Option<Duration>,
    /// The arguments that alone identify it.
    pub by: Vec<Path>,
    /// How long the tool honours the key that it is given.
    pub keyed_for: Option<Duration>,
    /// The resource on which calls take turns.
    pub serialize_by: Option<String>,
    /// The model's id of the call.
    pub call_id: Option<String>,
    /// The random name of this attempt.
    pub nonce: Option<String>,
    /// Whether nothing is to be done.
    pub dry_run: bool,
}

impl BeginRequest {
    /// Understands a form, or says what is wrong with it.
    pub fn read(wanted: BeginForm) -> Result<BeginRequest, BadCall> {
        let name = wanted.action.strip_prefix("fn:").unwrap_or_default();
        let visible = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if name.is_empty() || wanted.action.len() > ACTION_CHARS_MAX || !visible(name) {
            return Err(BadCall::new(format!(
                "action is fn:NAME, of at most {ACTION_CHARS_MAX} visible characters"
            )));
        }
        let arguments = match wanted.arguments {
            None => Json::object::<&str, 0>([]),
            Some(raw) => {
                json::parse(raw.get()).map_err(|error| BadCall::new(format!("arguments: {error}")))?
            }
        };
        let Some(members) = arguments.as_object() else {
            return Err(BadCall::new("arguments must be an object"));
        };
        if wanted.by.as_ref().is_some_and(|by| by.is_empty() || by.len() > BY_MAX) {
            return Err(BadCall::new(format!("by names 1 to {BY_MAX} arguments")));
        }
        let by = wanted.by.unwrap_or_default();
        if let Some(name) = by.iter().find(|name| members.get(name).is_none()) {
            return Err(BadCall::Argument(name.clone()));
        }
        let bad = |what: &str, error: &dyn std::fmt::Display| BadCall::new(format!("{what}: {error}"));
        let named = wanted.run.as_deref().map(Run::named).transpose().map_err(|error| bad("run", &error))?;
        let again =
            wanted.again.as_deref().map(Reason::parse).transpose().map_err(|error| bad("again", &error))?;
        let key = wanted
            .key
            .as_deref()
            .map(IdempotencyKey::parse)
            .transpose()
            .map_err(|error| bad("key", &error))?;
        check_length("serialize_by", wanted.serialize_by.as_ref(), RESOURCE_CHARS_MAX)?;
        check_length("call_id", wanted.call_id.as_ref(), CALL_ID_CHARS_MAX)?;
        wanted.nonce.as_deref().map(check_nonce).transpose()?;
        Ok(BeginRequest {
            arguments: Json::object([("args", arguments)]),
            key,
            run: named,
            again,
            class: wanted.class,
            timeout: span("timeout", wanted.timeout.as_deref(), DEADLINE_MAX)?.filter(|span| !span.is_zero()),
            wait: span("wait", wanted.wait.as_deref(), WAIT_MAX)?,
            by: by.iter().map(|name| Path::to_member("args", name)).collect(),
            keyed_for: span("keyed_for", wanted.keyed_for.as_deref(), KEYED_FOR_MAX)?,
            serialize_by: wanted.serialize_by,
            call_id: wanted.call_id,
            nonce: wanted.nonce,
            dry_run: wanted.dry_run,
            action: wanted.action,
        })
    }

    /// The policy's rule, with what this one call says about itself.
    pub fn rule(&self, policy: &Policy) -> Result<Rule, BadCall> {
        let facts = ActionFacts::new(&self.action, &self.arguments);
        let operator = policy.rule_for(&facts);
        if let Some(weaker) = self.class.and_then(|class| policy.too_weak(class, &operator)) {
            return Err(BadCall::Class(weaker));
        }
        let rule = policy.rule_for(&ActionFacts { class_override: self.class, ..facts });
        let mut rule = Arc::unwrap_or_clone(rule);
        rule.timeout = Some(self.timeout.or(rule.timeout).unwrap_or(DEADLINE).min(DEADLINE_MAX));
        rule.wait = self.wait.unwrap_or(rule.wait).min(WAIT_MAX);
        if rule.sorting.key.is_empty() && !self.by.is_empty() {
            rule.sorting.key.clone_from(&self.by);
            // The others may be worded otherwise.
            let members =
                self.arguments.get("args").and_then(Json::as_object).into_iter().flat_map(Object::iter);
            let paths = members.map(|(name, _)| Path::to_member("args", name));
            rule.sorting.content.extend(paths.filter(|path| !self.by.contains(path)));
        }
        if let (None, Some(valid_for)) = (&rule.inject, self.keyed_for) {
            rule.inject = Some(Inject::given_to_caller(valid_for));
        }
        Ok(rule)
    }

    /// The question to the gate.
    pub fn ask<'a>(&'a self, tenant: &'a str, principal: &'a str) -> Ask<'a> {
        Ask {
            tenant,
            principal,
            authority: "",
            action: &self.action,
            arguments: &self.arguments,
            run: self.run.clone(),
            key: self.key.clone(),
            again: self.again.clone(),
            asked_by: AskedBy::Agent,
            call_id: self.call_id.clone(),
            live_connection: false,
            serialize_by: self.serialize_by.clone(),
            replay_refusals: false,
        }
    }
}

fn span(what: &str, text: Option<&str>, max: Duration) -> Result<Option<Duration>, BadCall> {
    let Some(text) = text else { return Ok(None) };
    let span = duration::parse(text).map_err(|error| BadCall::new(format!("{what}: {error}")))?;
    match span > max {
        true => Err(BadCall::new(format!("{what} is at most {}", duration::text(max)))),
        false => Ok(Some(span)),
    }
}

/// Refuses a text that is empty or too long.
pub fn check_length(what: &str, text: Option<&String>, max: usize) -> Result<(), BadCall> {
    match text {
        Some(text) if text.is_empty() || text.chars().count() > max => {
            Err(BadCall::new(format!("{what} has 1 to {max} characters")))
        }
        _ => Ok(()),
    }
}

/// As [`NONCE_PATTERN`] has it.
pub fn check_nonce(nonce: &str) -> Result<(), BadCall> {
    match (16..=128).contains(&nonce.len()) && nonce.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(()),
        false => Err(BadCall::new("nonce has 16 to 128 visible characters, chosen at random")),
    }
}
