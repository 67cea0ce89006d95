//! A rule with every choice made: what the rest of semel asks the policy for.

use crate::class::{Class, Tier};
use crate::digest::Digest;
use crate::identity::Sorting;
use crate::json::{Json, Path, PathStep};
use crate::policy::expression::{EvalError, Expression, Template};
use crate::policy::graphql::{self, GraphqlRequest};
use crate::undo::BodyForm;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long a delivered success answers repeats where nothing else is said (DESIGN: window).
pub const WINDOW_NAMED: Duration = Duration::from_secs(24 * 3600);
/// The same without a run, a rule's key or a live connection to tie the calls together.
pub const WINDOW_UNNAMED: Duration = Duration::from_secs(3600);

/// The effective rule for one action with its arguments. There always is one: the defaults are a rule too.
#[derive(Debug, Clone)]
pub struct Rule {
    pub origin: RuleOrigin,
    pub class: Class,
    /// Why it has that class, for `semel policy explain`.
    pub class_because: Cow<'static, str>,
    /// The policy says that the same call again changes nothing. A stricter class that one call asks for holds its doubts,
    /// and does not make an old answer of the next call.
    pub converges: bool,
    pub effect: Option<EffectWording>,
    pub scope: Option<ScopeChoice>,
    /// Which argument paths are identity, content and volatile, and how they are normalised.
    pub sorting: Sorting,
    pub key_required: bool,
    pub caller_key: CallerKey,
    pub again: Again,
    pub rulings: Rulings,
    pub failure: Failure,
    pub on_disconnect: OnDisconnect,
    pub unmarked: Unmarked,
    /// How many re-sends semel itself may make for one effect.
    pub budget: u32,
    pub timeout: Option<Duration>,
    pub wait: Duration,
    /// How long a delivered effect answers repeats; `None` lets the situation decide (24 h or 1 h).
    pub window: Option<Duration>,
    pub late_after: Duration,
    pub serialize_by: Option<Path>,
    pub inject: Option<Inject>,
    /// Where the tool itself has a place for a key. It gets one, and promises nothing.
    pub own_key: Option<Inject>,
    pub probe: Option<Probe>,
    pub confirm: Option<Confirm>,
    pub undo: Option<RuleCall>,
    pub dry_run: Option<DryRunOption>,
    /// How an answer that looks like a success is read for a refusal.
    pub refused: Option<RefusedIf>,
    /// Exit codes that mean a refusal: certainly not applied.
    pub refused_exit: Vec<i32>,
}

impl Rule {
    /// The word for the effect, where it is the same whatever the reply.
    pub fn effect_word(&self) -> Option<crate::effect_word::EffectWord> {
        match &self.effect {
            Some(EffectWording::Word(word)) => Some(*word),
            Some(EffectWording::Expression(_)) | None => None,
        }
    }

    /// The promise. A key that we send counts before a probe: it holds without a second question.
    pub fn tier(&self) -> Tier {
        if self.inject.is_some() {
            Tier::Keyed
        } else if self.probe.is_some() {
            Tier::Probed
        } else if self.class == Class::Convergent {
            Tier::Convergent
        } else {
            Tier::Opaque
        }
    }
}

impl Rule {
    /// The resource on which calls with these arguments take turns.
    pub fn resource(&self, arguments: &Json) -> Option<String> {
        let values = self.serialize_by.as_ref()?.find(arguments);
        let texts: Vec<String> = values.iter().map(|(_, value)| value.canonical()).collect();
        (!texts.is_empty()).then(|| texts.join("\n"))
    }

    /// Where a key goes upstream, and how it is written.
    pub fn sent_key(&self) -> Option<&Inject> {
        self.inject.as_ref().or(self.own_key.as_ref())
    }

    /// This rule, with all that another one that may apply forbids, hides or holds back. Of each setting the greater
    /// value is the stricter one; of `rulings` the smaller.
    #[must_use]
    pub fn restricted_by(self, other: &Rule) -> Rule {
        let mut sorting = self.sorting;
        sorting.secret.extend_from_slice(&other.sorting.secret);
        Rule {
            sorting,
            scope: match (self.scope, other.scope) {
                (Some(ScopeChoice::Global), _) | (_, Some(ScopeChoice::Global)) => Some(ScopeChoice::Global),
                (own, others) => own.or(others),
            },
            key_required: self.key_required || other.key_required,
            caller_key: self.caller_key.max(other.caller_key),
            again: self.again.max(other.again),
            rulings: self.rulings.min(other.rulings),
            failure: self.failure.max(other.failure),
            converges: self.converges && other.converges,
            // Without either of them the situation decides, and does not go further than this.
            window: self.window.max(other.window).map(|window| window.max(WINDOW_NAMED)),
            serialize_by: self.serialize_by.or_else(|| other.serialize_by.clone()),
            ..self
        }
    }

    /// The same for what may be a mutation of GraphQL, which is answered with 200 whatever became of it: its answer is
    /// read by what its errors are about, unless the rule says how.
    pub fn of_mutation(mut self: Arc<Rule>) -> Arc<Rule> {
        if self.refused.is_none() {
            Arc::make_mut(&mut self).refused = Some(RefusedIf::PerhapsGraphql);
        }
        self
    }

    /// The same for a request whose GraphQL document is named by its digest, as the argument `document`: whether the
    /// text comes along makes no difference to what is asked for.
    pub fn of_named_document(mut self: Arc<Rule>) -> Arc<Rule> {
        let told_by_the_text = ["query", "operation", "fields", "selected"];
        let volatile = &mut Arc::make_mut(&mut self).sorting.volatile;
        volatile.extend(told_by_the_text.map(|name| Path::to_member("body", name)));
        self
    }

    /// Whether an answer that looks like a success says no: some APIs answer 200 to everything, and refuse in the body.
    /// An error means that nobody can say. `reply` is read only if the rule asks.
    pub fn refuses(
        &self,
        asked: &GraphqlRequest,
        reply: impl FnOnce() -> Json,
    ) -> Result<bool, UnclearReply> {
        match &self.refused {
            Some(RefusedIf::Expression(refused)) => Ok(refused.eval_bool(&[("reply", &reply())])?),
            Some(RefusedIf::Graphql) => Ok(graphql::refuses(asked, &reply())?),
            Some(RefusedIf::PerhapsGraphql) => match graphql::refuses(asked, &reply()) {
                Err(graphql::GraphqlUnclear::NoAnswer) => Ok(false),
                refuses => Ok(refuses?),
            },
            None => Ok(false),
        }
    }

    /// Whether the body of an answer whose status refuses shows that something may have been carried out all the same.
    pub fn contradicts_refusal(&self, asked: &GraphqlRequest, reply: impl FnOnce() -> Json) -> bool {
        match &self.refused {
            Some(RefusedIf::Graphql | RefusedIf::PerhapsGraphql) => {
                graphql::contradicts_refusal(asked, &reply())
            }
            Some(RefusedIf::Expression(_)) | None => false,
        }
    }
}

/// How an answer that looks like a success is read for a refusal.
#[derive(Debug, Clone)]
pub enum RefusedIf {
    /// CEL over `reply`.
    Expression(Expression),
    /// An answer of GraphQL, by what its errors are about.
    Graphql,
    /// The same if it is one: to a mutation that no rule says anything of.
    PerhapsGraphql,
}

impl RefusedIf {
    /// How a policy says the latter.
    pub const GRAPHQL: &str = "graphql";

    /// As it stands in the policy.
    pub fn source(&self) -> &str {
        match self {
            RefusedIf::Expression(expression) => expression.source(),
            RefusedIf::Graphql | RefusedIf::PerhapsGraphql => RefusedIf::GRAPHQL,
        }
    }
}

/// Nobody can say whether an answer refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnclearReply {
    #[error(transparent)]
    Expression(#[from] EvalError),
    #[error(transparent)]
    Graphql(#[from] graphql::GraphqlUnclear),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleOrigin {
    /// A rule of a file: `line` counts from 1.
    File {
        path: PathBuf,
        line: usize,
    },
    Pack {
        name: String,
        line: usize,
    },
    /// No rule matched.
    Default,
}

#[derive(Debug, Clone)]
pub enum EffectWording {
    Word(crate::effect_word::EffectWord),
    /// CEL over `reply` that yields one of the words.
    Expression(Expression),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScopeChoice {
    /// In one named run, or among all calls without a run.
    Run,
    /// In all runs.
    Global,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallerKey {
    /// The caller's key is the identity.
    #[default]
    Decides,
    /// The rule's fields are the identity; a caller's key can only add sameness.
    Joins,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Again {
    /// The caller, with a reason.
    #[default]
    Agent,
    /// A person alone.
    Person,
    /// Nobody.
    Never,
}

/// Who decides about a doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rulings {
    /// A person alone.
    #[default]
    Person,
    /// An agent too, with evidence.
    Agent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// The door's table reads the upstream's answer.
    #[default]
    Table,
    /// Every error of the action is ambiguous.
    InDoubt,
}

/// The reading of a result that only tells of an error and is not marked as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unmarked {
    /// Like a marked error.
    #[default]
    Read,
    /// As the success that it claims.
    Trust,
}

/// The end of a generation that nobody reads any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnDisconnect {
    /// It is read to its end and kept for the retry.
    #[default]
    Finish,
    /// It is ended; a retry generates anew.
    Stop,
}

/// Where the upstream's idempotency key goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inject {
    pub into: InjectInto,
    pub form: KeyForm,
    /// At most this many characters.
    pub length: Option<usize>,
    /// How long the upstream honours a key; `None` = not known to end.
    pub valid_for: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InjectInto {
    Header(String),
    /// An argument of a tool. A server that does not know it drops it without a word, and then the key protects
    /// nothing: a door that sees the tool's schema treats the rule as one without a key where it is not declared.
    Arg(String),
    /// A member of a JSON or form body; dots lead into objects.
    Body(String),
    Query(String),
    /// A directive of GraphQL mutations, which takes the key as `key`.
    Directive(String),
    Flag(String),
    Env(String),
}

impl InjectInto {
    /// Whether a call of this name has such a place. A key that cannot be carried protects nobody.
    pub fn is_of(&self, action: &str) -> bool {
        match (action.split(':').next().unwrap_or_default(), self) {
            ("cli", into) => matches!(into, InjectInto::Flag(_) | InjectInto::Env(_)),
            ("llm", into) => matches!(into, InjectInto::Header(_)),
            ("http", into) => !matches!(into, InjectInto::Arg(_) | InjectInto::Flag(_) | InjectInto::Env(_)),
            // Whoever calls a tool itself is given the key; what a server takes its tools say.
            _ => true,
        }
    }
}

impl Inject {
    /// A key that code which calls a tool itself is given, and passes on.
    pub fn given_to_caller(valid_for: Duration) -> Inject {
        let into = InjectInto::Arg("idempotency_key".to_owned());
        Inject { into, form: KeyForm::Text, length: None, valid_for: Some(valid_for) }
    }

    /// Where a key of this rule stands and how it is written: two rules that say the same send the same key.
    pub fn written(&self) -> String {
        let Inject { into, form, length, valid_for: _ } = self;
        let (place, name) = match into {
            InjectInto::Header(name) => ("header", &name.to_ascii_lowercase()),
            InjectInto::Arg(name) => ("arg", name),
            InjectInto::Body(name) => ("body", name),
            InjectInto::Query(name) => ("query", name),
            InjectInto::Directive(name) => ("directive", name),
            InjectInto::Flag(name) => ("flag", name),
            InjectInto::Env(name) => ("env", name),
        };
        let length = length.map_or_else(String::new, |length| length.to_string());
        format!("{place} {name}\n{form:?} {length}")
    }

    /// The key of an effect as this upstream wants it written. It depends on the digest alone, so it is the same over
    /// attempts and restarts.
    pub fn key(&self, effect: Digest) -> String {
        let mut text = self.form.write(effect);
        text.truncate(self.length.unwrap_or(usize::MAX));
        text
    }
}

/// How a key that goes upstream is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeyForm {
    /// `semel_` and hexadecimal digits.
    #[default]
    Text,
    /// Hexadecimal digits alone.
    Hex,
    /// A UUID of version 4.
    Uuid,
}

impl KeyForm {
    pub fn write(self, effect: Digest) -> String {
        let hex = effect.to_string();
        match self {
            KeyForm::Text => format!("semel_{}", &hex[..40]),
            KeyForm::Hex => hex[..32].to_owned(),
            KeyForm::Uuid => {
                let variant = ["8", "9", "a", "b"][usize::from(effect.0[8] & 3)];
                let (a, b, c) = (&hex[..8], &hex[8..12], &hex[13..16]);
                format!("{a}-{b}-4{c}-{variant}{}-{}", &hex[17..20], &hex[20..32])
            }
        }
    }
}

/// One call of a tool, as a rule writes it.
#[derive(Debug, Clone)]
pub enum RuleCall {
    /// `tool` is `server/tool` as written, or `./tool`; [`server_and_tool`] tells which server is meant.
    Mcp {
        tool: String,
        args: Vec<(String, Template)>,
    },
    Http {
        method: String,
        url: Template,
        /// Of an undo alone: questions have none.
        body: Option<CallBody>,
    },
    Command {
        argv: Vec<Template>,
    },
}

impl RuleCall {
    /// Whom it calls, in a few words and without what is filled in.
    pub fn name(&self, action: &str) -> String {
        match self {
            RuleCall::Mcp { tool, .. } => match server_and_tool(tool, action) {
                Some((server, tool)) => format!("{server}/{tool}"),
                None => tool.clone(),
            },
            RuleCall::Http { method, url, .. } => {
                let url = url.outline();
                let url = url.split(['?', '#']).next().unwrap_or_default();
                format!("{method} {url}")
            }
            RuleCall::Command { argv } => argv.first().map(Template::outline).unwrap_or_default(),
        }
    }

    /// The parts that are filled in.
    pub fn templates(&self) -> Vec<&Template> {
        match self {
            RuleCall::Mcp { args, .. } => args.iter().map(|(_, template)| template).collect(),
            RuleCall::Http { url, body, .. } => {
                let body = body.iter().flat_map(|body| body.members.iter().map(|(_, template)| template));
                body.chain([url]).collect()
            }
            RuleCall::Command { argv } => argv.iter().collect(),
        }
    }
}

/// The body of a request.
#[derive(Debug, Clone)]
pub struct CallBody {
    pub form: BodyForm,
    pub members: Vec<(String, Template)>,
}

/// The server and the tool that `server/tool` or `./tool` names for an action. `./tool` is a tool of the action's own
/// server, under whatever name it is registered: a pack cannot know that name, and a question put to another server
/// of the same kind would be answered for another account. An action that is no MCP tool has no server of its own.
pub fn server_and_tool<'a>(tool: &'a str, action: &'a str) -> Option<(&'a str, &'a str)> {
    let (server, tool) = tool.split_once('/')?;
    if server != SAME_SERVER {
        return Some((server, tool));
    }
    let (own, _) = action.strip_prefix("mcp:")?.split_once('/')?;
    Some((own, tool))
}

/// Stands for the server of the action itself, as it does for the directory that one is in.
pub const SAME_SERVER: &str = ".";

/// Did it happen?
#[derive(Debug, Clone)]
pub struct Probe {
    pub call: RuleCall,
    /// CEL over `resp`, `status`, `args`/`argv`, `attempt`. Without one a command's exit code answers: 0 yes, 1 no,
    /// else unknown.
    pub found: Option<Expression>,
    pub reply: Option<Expression>,
    /// How long after the last possible sending a "no" begins to count.
    pub quiet: Duration,
    /// Ask before the first attempt, and skip what is already there.
    pub before: bool,
}

impl Probe {
    /// Whether a yes can only speak of this effect. One that does not ask when may have found an earlier effect of the
    /// same record.
    pub fn tells_apart(&self, occurrence: u32) -> bool {
        let asks_when =
            |place: &&Path| matches!(place.steps().first(), Some(PathStep::Member(name)) if name == ATTEMPT);
        occurrence == 1
            || self.found.iter().any(|found| found.variables().any(|name| name == ATTEMPT))
            || self.call.templates().iter().any(|template| template.places().iter().any(asks_when))
    }
}

impl Probe {
    /// Whether it speaks of the call's arguments, which nobody has but a caller.
    pub fn needs_arguments(&self) -> bool {
        const OTHERS: [&str; 5] = [ATTEMPT, "action", "resp", "resp_headers", "status"];
        let templates = self.call.templates();
        let roots =
            templates.iter().flat_map(|template| template.places()).map(|place| place.steps().first());
        let is_other = |root: Option<&PathStep>| matches!(root, Some(PathStep::Member(name)) if OTHERS.contains(&name.as_str()));
        let mut variables =
            self.found.iter().chain(&self.reply).flat_map(|expression| expression.variables());
        roots.into_iter().any(|root| !is_other(root)) || variables.any(|name| !OTHERS.contains(&name))
    }
}

/// The name by which a question speaks of the attempt that it is about.
const ATTEMPT: &str = "attempt";

/// It said yes: is it true?
#[derive(Debug, Clone)]
pub struct Confirm {
    pub call: RuleCall,
    pub ok: Expression,
    pub within: Duration,
}

/// How the tool is asked for its own dry run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DryRunOption {
    Flag(String),
    Arg(String, String),
    Header(String, String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{ActionFacts, Policy};

    #[test]
    fn a_dot_is_the_server_of_the_action_itself() {
        let named = |tool, action| server_and_tool(tool, action);
        assert_eq!(named("./list", "mcp:gh-work/create_issue"), Some(("gh-work", "list")));
        assert_eq!(named("./list", "mcp:gh-home/create_issue"), Some(("gh-home", "list")));
        assert_eq!(named("billing/list", "mcp:gh-work/create_issue"), Some(("billing", "list")));
        assert_eq!(named("billing/list", "cli:charge"), Some(("billing", "list")));
        assert_eq!(named("./list", "cli:charge"), None);
        assert_eq!(named("list", "mcp:gh-work/create_issue"), None);
    }

    #[test]
    fn a_key_is_written_as_the_upstream_wants_it_and_never_changes() {
        let effect = Digest::of(&[b"one effect"]);
        let key = |form, length| {
            Inject { into: InjectInto::Query("k".into()), form, length, valid_for: None }.key(effect)
        };
        let text = key(KeyForm::Text, None);
        assert!(text.starts_with("semel_") && text.len() == 46, "{text}");
        assert_eq!(key(KeyForm::Text, Some(36)), text[..36]);
        assert_eq!(key(KeyForm::Hex, None), effect.to_string()[..32]);
        let uuid = key(KeyForm::Uuid, None);
        let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12], "{uuid}");
        assert!(uuid.as_bytes()[14] == b'4' && b"89ab".contains(&uuid.as_bytes()[19]), "{uuid}");
    }

    #[test]
    fn the_tier_is_the_strongest_promise_that_the_rule_allows() {
        let arguments = crate::json::Json::Null;
        let rule = Policy::default().rule_for(&ActionFacts::new("fn:poke", &arguments));
        let mut rule = Arc::unwrap_or_clone(rule);
        assert_eq!(rule.tier(), Tier::Opaque);
        rule.class = Class::Convergent;
        assert_eq!(rule.tier(), Tier::Convergent);
        rule.probe = Some(Probe {
            call: RuleCall::Command { argv: Vec::new() },
            found: None,
            reply: None,
            quiet: Duration::ZERO,
            before: false,
        });
        assert_eq!(rule.tier(), Tier::Probed);
        rule.inject = Some(Inject {
            into: InjectInto::Header("Idempotency-Key".to_owned()),
            form: KeyForm::Text,
            length: None,
            valid_for: None,
        });
        assert_eq!(rule.tier(), Tier::Keyed);
    }
}
