//! An intent: scope, action, arguments, occurrence; and the keys that make two of them the same.

use crate::call_metadata::CallMetadata;
use crate::class::Class;
use crate::digest::{Digest, Secret};
use crate::effect::{Effect, Facts, Occurrence};
use crate::identity::{self, IntentDigest, Marks, Sorting};
use crate::ids::{EffectId, IdempotencyKey, Reason, Run};
use crate::json::Json;
use crate::judgement::outline::Outline;
use crate::judgement::{arguments, superseded};
use crate::policy::rule::{CallerKey, Rule, ScopeChoice, WINDOW_NAMED, WINDOW_UNNAMED};
use crate::redact;
use crate::subject::subject;
use crate::time::At;
use crate::undo::Undoes;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A call, as a door understood it.
#[derive(Debug, Clone)]
pub struct Ask<'a> {
    /// From the credential, never from a header or body.
    pub tenant: &'a str,
    pub principal: &'a str,
    pub authority: &'a str,
    pub action: &'a str,
    /// One object; its members are what rules call `args`, `argv`, `body`, ….
    pub arguments: &'a Json,
    pub run: Option<Run>,
    pub key: Option<IdempotencyKey>,
    pub again: Option<Reason>,
    pub asked_by: AskedBy,
    pub call_id: Option<String>,
    /// Repeats on one live connection keep the longer window.
    pub live_connection: bool,
    /// Take turns on this resource, whatever the rule says.
    pub serialize_by: Option<String>,
    /// A refusal under the caller's key answers its repeats, as a success does.
    pub replay_refusals: bool,
}

impl<'a> Ask<'a> {
    /// A call of an agent, with nothing besides. The doors name every field instead, so that none forgets a new one.
    pub fn of((tenant, principal): (&'a str, &'a str), action: &'a str, arguments: &'a Json) -> Ask<'a> {
        Ask {
            tenant,
            principal,
            authority: "",
            action,
            arguments,
            run: None,
            key: None,
            again: None,
            asked_by: AskedBy::Agent,
            call_id: None,
            live_connection: false,
            serialize_by: None,
            replay_refusals: false,
        }
    }
}

/// The one who vouches for a deliberate repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskedBy {
    Agent,
    Person,
}

/// An ask with its keys. Past this point nobody looks at raw arguments to decide.
#[derive(Debug, Clone)]
pub struct Intent {
    pub tenant: String,
    /// Of the principal: see [`principal_mark`].
    pub principal: u64,
    /// Of the authority: see [`authority_mark`].
    pub authority: u64,
    pub action: String,
    pub run: Option<Run>,
    pub scope: Scope,
    pub digest: IntentDigest,
    /// The intent key: the digest that makes two intents the same.
    pub key: Digest,
    /// Same tenant, principal, authority, action and identity, whatever the scope.
    pub family: Digest,
    /// Where effects are found that the call is compared with.
    pub alike: Alike,
    /// Where the run's effects and its fence are found.
    pub run_key: Option<Digest>,
    /// The turn to take, if intents on one resource take turns.
    pub turn: Option<Digest>,
    /// Under `caller_key = "joins"`: where the caller's own key points to the intent it first came with.
    pub alias: Option<Digest>,
    pub marks: Arc<Marks>,
    pub named_by: NamedBy,
    pub again: Option<Reason>,
    pub asked_by: AskedBy,
    pub call_id: Option<String>,
    pub subject: String,
    /// When the intent was born, as far as its key tells (UUIDv7).
    pub born_at: Option<At>,
    /// How long a delivered success of it answers repeats; `None` = for ever.
    pub window: Option<Duration>,
    /// A refusal of the upstream is answered from the record, and not sent again.
    pub replay_refusals: bool,
    pub metadata: CallMetadata,
    /// It carries its document's full text, where a twin may have sent only a digest that the upstream did not know: the
    /// twin's refusal is not this call's answer.
    pub says_in_full: bool,
    /// It takes an effect back.
    pub undoes: Option<Undoes>,
    /// A mark of the key that goes upstream: where it stands and how it is written, or the caller's own. One effect has
    /// one of them. 0: none does.
    pub upstream_key: u64,
}

/// The effects that a call is compared with, besides its own record. No rule has a part in where they are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alike {
    /// A call is compared with others of its outline.
    Outline {
        key: Digest,
        /// Of the content that the outline leaves out.
        content: u64,
        /// The outline has a title or an amount.
        is_specific: bool,
        /// It answers a thread or a message.
        is_answer: bool,
        /// Where later effects are found that may have removed what this one made.
        removals: Option<Digest>,
    },
    /// A call that removes something is compared with others that do so at its server, and is found there by those
    /// whose success it may have superseded.
    Removal {
        key: Digest,
        /// Its plain digest.
        plain: u64,
    },
    Nothing,
}

impl Alike {
    /// Under which others find an effect of this call.
    pub fn key(&self) -> Option<Digest> {
        match self {
            Alike::Outline { key, .. } | Alike::Removal { key, .. } => Some(*key),
            Alike::Nothing => None,
        }
    }

    /// Two calls with one key have this in common if they differ in stamps alone.
    pub fn content(&self) -> u64 {
        match self {
            Alike::Outline { content, .. } => *content,
            Alike::Removal { plain, .. } => *plain,
            Alike::Nothing => 0,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    Run(String),
    Global,
}

/// The source of the identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedBy {
    CallerKey,
    Rule,
    Arguments,
}

/// A rule wanted a key, and the call has neither one nor the fields for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct KeyMissing {
    /// Empty: the rule names no fields, so only the caller can give a key.
    pub wanted: Vec<String>,
    pub missing: Vec<String>,
}

impl fmt::Display for KeyMissing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.wanted.is_empty() {
            return f.write_str("the rule requires a key, and the call has none");
        }
        let (wanted, missing) = (self.wanted.join(", "), self.missing.join(", "));
        write!(f, "the rule identifies this action by {wanted}, and the call does not have {missing}")
    }
}

impl Intent {
    pub fn of(ask: &Ask<'_>, rule: &Rule, secret: &Secret) -> Result<Intent, KeyMissing> {
        let sorted = identity::sort(ask.arguments, &rule.sorting);
        let unruled = (!rule.sorting.is_plain()).then(|| without_ruled(ask.arguments, &rule.sorting));
        let plain = unruled.as_deref().map(|arguments| identity::sort(arguments, &Sorting::default()));
        let missing: Vec<String> = sorted.missing_key_paths.iter().map(ToString::to_string).collect();
        let rule_names = !rule.sorting.key.is_empty() && missing.is_empty();
        let joins = rule.caller_key == CallerKey::Joins && rule_names;
        let caller_key = ask.key.as_ref().filter(|_| !joins);
        if rule.key_required && !rule_names && caller_key.is_none() {
            let wanted = rule.sorting.key.iter().map(ToString::to_string).collect();
            return Err(KeyMissing { wanted, missing });
        }
        let named_by = match (caller_key, rule_names) {
            (Some(_), _) => NamedBy::CallerKey,
            (None, true) => NamedBy::Rule,
            (None, false) => NamedBy::Arguments,
        };
        let digest = match caller_key {
            Some(key) => IntentDigest::of_caller_key(key.as_str()),
            None => IntentDigest::of(ask.action, &sorted.identity),
        };
        let scope = match (&ask.run, rule.scope, named_by) {
            // A caller's key is tenant-wide.
            (_, _, NamedBy::CallerKey) | (_, Some(ScopeChoice::Global), _) => Scope::Global,
            (Some(run), _, _) if run.named => Scope::Run(run.id.clone()),
            _ => Scope::Global,
        };
        let scope_text = match &scope {
            Scope::Run(run) => format!("run:{run}"),
            Scope::Global => "global".to_owned(),
        };
        let parts = identity::IntentParts {
            tenant: ask.tenant,
            principal: ask.principal,
            authority: ask.authority,
            scope: &scope_text,
        };
        let in_run = matches!(scope, Scope::Run(_));
        let window = match named_by {
            NamedBy::CallerKey => None,
            _ if rule.window.is_some() => rule.window,
            NamedBy::Rule => Some(WINDOW_NAMED),
            NamedBy::Arguments if in_run || ask.live_connection => Some(WINDOW_NAMED),
            NamedBy::Arguments => Some(WINDOW_UNNAMED),
        };
        let resource = ask.serialize_by.clone().or_else(|| rule.resource(ask.arguments));
        // A key that a model wrote among the arguments adds sameness and never takes any away. Models use one for
        // several things, so it counts for one outline.
        let own_key = arguments::own_key(ask.arguments).filter(|_| named_by == NamedBy::Arguments);
        let alias = match (&ask.key, own_key) {
            (Some(key), _) if joins => Some(identity::alias_key(secret, &parts, key.as_str())),
            (_, Some(key)) => {
                let outline = Outline::of(ask.arguments).text;
                Some(identity::alias_key(secret, &parts, &[ask.action, key, &outline].join("\n")))
            }
            _ => None,
        };
        let marks = Marks::of(secret, ask.action, &sorted);
        let marks = match &plain {
            Some(plain) => marks.with_plain(secret, ask.action, plain),
            None => marks,
        };
        let removals = |server| identity::removals_key(secret, &parts, server);
        let alike = match superseded::server(ask.action) {
            Some(server) if superseded::removes(ask.action) => {
                Alike::Removal { key: removals(server), plain: marks.plain }
            }
            _ if matches!(rule.class, Class::Read | Class::Generate) => Alike::Nothing,
            server => {
                let unruled = unruled.as_deref().unwrap_or(ask.arguments);
                let Outline { text, content, is_specific, is_answer } = Outline::of(unruled);
                let key = identity::outline_key(secret, &parts, ask.action, &text);
                let content = if content.is_empty() { 0 } else { identity::value_mark(secret, &content) };
                let removals = server.filter(|_| rule.class == Class::Consequential).map(removals);
                Alike::Outline { key, content, is_specific, is_answer, removals }
            }
        };
        Ok(Intent {
            tenant: ask.tenant.to_owned(),
            principal: principal_mark(secret, ask.tenant, ask.principal),
            authority: authority_mark(secret, ask.tenant, ask.authority),
            action: redact::action_without_shapes(ask.action).into_owned(),
            digest,
            key: identity::intent_key(secret, &parts, &digest),
            family: identity::family_key(secret, &parts, &digest),
            alike,
            run_key: ask.run.as_ref().map(|run| run_key(secret, ask.tenant, &run.id)),
            turn: resource.map(|text| secret.mac("turn", &[ask.tenant.as_bytes(), text.as_bytes()])),
            alias,
            marks: Arc::new(marks),
            named_by,
            run: ask.run.clone(),
            scope,
            again: ask.again.clone(),
            asked_by: ask.asked_by,
            // The same key again is the same call, whatever the window of its identity.
            call_id: ask.call_id.clone().or_else(|| alias.map(|alias| format!("key_{:016x}", alias.short()))),
            subject: subject(ask.arguments, &rule.sorting, ask.key.as_ref().map(IdempotencyKey::as_str)),
            born_at: caller_key.and_then(|key| uuid_v7_time(key.as_str())),
            window,
            replay_refusals: ask.replay_refusals && named_by == NamedBy::CallerKey,
            metadata: CallMetadata::default(),
            says_in_full: false,
            undoes: None,
            upstream_key: rule.inject.as_ref().map_or(0, |inject| upstream_key(secret, &inject.written())),
        })
    }

    /// The same call as the one that takes an effect back: one intent for each effect, however many callers ask.
    /// It belongs to no run, so that what a cancelled run has done can be undone. `plain` is the call as it was kept,
    /// so that a change of policy between two tries is no drift.
    pub fn to_undo(self, plain: &Intent, effect: &Effect, undoes: Undoes, secret: &Secret) -> Intent {
        Intent {
            digest: IntentDigest::of(UNDO, &Json::str(&effect.id.to_string())),
            key: undo_key(secret, &effect.facts.tenant, effect.id),
            marks: Arc::clone(&plain.marks),
            scope: Scope::Global,
            named_by: NamedBy::CallerKey,
            window: None,
            // Nobody can have wanted it back before it was there.
            born_at: Some(effect.changed_at()),
            run: None,
            run_key: None,
            alias: None,
            alike: Alike::Nothing,
            again: None,
            call_id: None,
            replay_refusals: false,
            undoes: Some(undoes),
            ..self
        }
    }

    /// The same intent as that of an effect which has another name: what it says is no drift from that.
    pub fn as_effect(&self, effect: &Effect) -> Intent {
        let marks = Marks { fingerprint: effect.marks.fingerprint, ..Marks::clone(&self.marks) };
        Intent { marks: Arc::new(marks), ..self.clone() }
    }

    /// The same intent on a connection that has done it before: repeats are tied together for longer.
    pub fn keep_on_connection(&mut self, rule: &Rule) {
        if self.named_by == NamedBy::Arguments && rule.window.is_none() {
            self.window = Some(WINDOW_NAMED);
        }
    }

    /// The facts that a new effect of this intent begins with.
    pub fn seed(&self, id: EffectId, occurrence: Occurrence, rule: &Rule) -> Seed {
        Seed { id, occurrence, marks: Arc::clone(&self.marks), facts: self.facts(rule) }
    }

    /// The ledger's facts about an attempt made for this intent.
    pub fn facts(&self, rule: &Rule) -> Arc<Facts> {
        Arc::new(Facts {
            action: self.action.clone(),
            class: rule.class,
            tier: rule.tier(),
            tenant: self.tenant.clone(),
            run: self.run.clone(),
            digest: self.digest,
            caller_key: self.named_by == NamedBy::CallerKey,
            by_joining_key: self.alias.is_some() && self.named_by == NamedBy::Rule,
            subject: self.subject.clone(),
            rule: rule.origin.to_string(),
            undoes: self.undoes.clone(),
            principal: self.principal,
            upstream_key: self.upstream_key,
            authority: self.authority,
            reading: rule.sorting.reading,
        })
    }
}

/// The arguments without those that are there only because the rule names them: most headers.
fn without_ruled<'a>(arguments: &'a Json, sorting: &Sorting) -> Cow<'a, Json> {
    let mut arguments = Cow::Borrowed(arguments);
    for header in sorting.ruled_headers() {
        header.remove_from(arguments.to_mut());
    }
    arguments
}

#[derive(Debug, Clone)]
pub struct Seed {
    pub id: EffectId,
    pub occurrence: Occurrence,
    pub facts: Arc<Facts>,
    pub marks: Arc<Marks>,
}

/// The mark that a record keeps of a key that goes upstream.
pub fn upstream_key(secret: &Secret, written: &str) -> u64 {
    secret.mac("upstream key", &[written.as_bytes()]).short().max(1)
}

/// Where a run's effects and its fence are found: tenant and run, as one digest.
pub fn run_key(secret: &Secret, tenant: &str, run: &str) -> Digest {
    secret.mac("run", &[tenant.as_bytes(), run.as_bytes()])
}

/// The intent key of the undo of an effect. It follows from the effect, so any reader of the effect finds its undo.
pub fn undo_key(secret: &Secret, tenant: &str, effect: EffectId) -> Digest {
    secret.mac(UNDO, &[tenant.as_bytes(), &effect.0.to_be_bytes()])
}

/// The namespace of undos, apart from all names that a caller could choose.
const UNDO: &str = "undo";

/// By which a record tells whose it is, without naming anybody. Never 0.
pub fn principal_mark(secret: &Secret, tenant: &str, principal: &str) -> u64 {
    secret.mac("principal mark", &[tenant.as_bytes(), principal.as_bytes()]).short().max(1)
}

/// By which a record tells what is behind a name that several may have: two servers, or two accounts at one. 0: nothing
/// tells them apart.
pub fn authority_mark(secret: &Secret, tenant: &str, authority: &str) -> u64 {
    match authority {
        "" => 0,
        _ => secret.mac("authority mark", &[tenant.as_bytes(), authority.as_bytes()]).short().max(1),
    }
}

/// The time inside a UUIDv7, which is when its maker thought of it.
fn uuid_v7_time(key: &str) -> Option<At> {
    let digits: String = key.chars().filter(|c| *c != '-').collect();
    let shaped = key.len() == 36 || key.len() == 32;
    if !shaped || digits.len() != 32 || digits.as_bytes()[12] != b'7' {
        return None;
    }
    let millis = u64::from_str_radix(&digits[..12], 16).ok()?;
    Some(At::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_version_7_uuid_tells_its_age() {
        assert_eq!(
            uuid_v7_time("01890a5d-ac96-774b-bcce-b302099a8057"),
            Some(At::from_millis(0x0189_0a5d_ac96))
        );
        for not in ["order-1001", "01890a5d-ac96-474b-bcce-b302099a8057", ""] {
            assert_eq!(uuid_v7_time(not), None, "{not}");
        }
    }
}
