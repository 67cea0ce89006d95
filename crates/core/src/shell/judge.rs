//! The judgement of a line: pass, bracket or deny.

use super::call::{Behind, Call, SCRIPTS_MAX};
use super::reader::{Line, read};
use super::request::{CLIENTS, Request, request};
use super::{Input, Place, Word};
use crate::class::Class;
use crate::digest::Digest;
use crate::json::{Json, Object};
use crate::policy::rule::RuleOrigin;
use crate::policy::{ActionFacts, Policy, Rule};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// The judgement of a command line.
#[derive(Debug, Clone)]
pub enum Judgement {
    /// Nothing in it is guarded: it runs as it is, and no ledger is opened.
    Pass,
    /// One guarded command, whose end is known from the end of the line.
    Bracket(Box<Guarded>),
    /// Guarded commands whose end nobody could tell, or a line that nobody could read.
    Deny(Denial),
}

/// The one guarded command of a line.
#[derive(Debug, Clone)]
pub struct Guarded {
    /// The pipeline that it ends, as bytes of the line.
    pub range: Range<usize>,
    /// Names the command to an agent: `gh pr create`.
    pub name: String,
    /// `cli:PROGRAM`, or of curl, wget and httpie `http:METHOD HOST/PATH`.
    pub action: String,
    /// As rules and keys know them: of a command `argv`, `cwd`, `stdin` (a digest, of a here-document or here-string) and
    /// `env` (variables set for it in the line); of a request `path`, `query`, `body`, `headers`.
    pub arguments: Json,
    /// Whether the arguments are all there is to know. If not (`$X`, `$(…)`, a glob, piped input), an equal call may be
    /// another one: it is a lookalike, and never answered from the record.
    pub is_known: bool,
    /// The rule that guards it, without an upstream key: nothing can be put into the command.
    pub rule: Arc<Rule>,
}

/// Guarded commands that must be run by themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// Names of the commands, in their order and each once: `git push`. Of a line that is not read, its programs.
    pub names: Vec<String>,
    pub reason: DenialReason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DenialReason {
    /// It stands where its end is not told by the end of the line.
    Place,
    /// There are several, and each must be run by itself.
    Several,
    /// The line could not be read: an open quote, say.
    Unreadable,
}

impl Guarded {
    /// The line with the pipeline between two commands: `before && PIPELINE && behind`.
    pub fn bracketed(&self, line: &str, before: &str, behind: &str) -> String {
        let Range { start, end } = self.range;
        format!("{}{before} && {} && {behind}{}", &line[..start], &line[start..end], &line[end..])
    }
}

/// So many are looked at and named to an agent. It meets the others once it has run these.
const FOUND_MAX: usize = 5;

/// More variables than a person sets in a line, and longer paths than a system takes, are not followed.
const VARIABLES_MAX: usize = 64;
const PATH_BYTES_MAX: usize = 4096;

/// Judges a line that a shell runs in `cwd`. The policy is one for shells: [`Policy::for_shell`].
pub fn judge(line: &str, cwd: &str, policy: &Policy) -> Judgement {
    let surroundings = Surroundings { cwd: cwd.to_owned(), variables: Vec::new(), is_known: true };
    judge_script(line, surroundings, policy, 0)
}

fn judge_script(line: &str, mut surroundings: Surroundings, policy: &Policy, depth: usize) -> Judgement {
    let Line { commands, is_read, is_and_list } = read(line);
    if !is_read || depth > SCRIPTS_MAX {
        return unreadable(line, policy);
    }
    let mut found = Vec::new();
    for command in commands {
        let Place { pipeline, is_last, is_nested, .. } = command.place.clone();
        let has_end = is_and_list && is_last && !is_nested && command.words[0].text != "exec";
        let judgement = match Behind::of(command) {
            Behind::Nothing { variables } => {
                surroundings.set(variables);
                continue;
            }
            Behind::Call(call) if !is_nested && surroundings.change_by(&call) => continue,
            Behind::Call(call) => guard(call, &surroundings, policy)
                .map_or(Judgement::Pass, |guarded| Judgement::Bracket(Box::new(guarded))),
            Behind::Script { script, variables } => {
                let mut inner = surroundings.clone();
                inner.set(variables);
                inner.is_known &= script.is_known;
                judge_script(&script.text, inner, policy, depth + 1)
            }
        };
        found.extend(match judgement {
            Judgement::Pass => None,
            Judgement::Bracket(mut guarded) if has_end => {
                guarded.range = pipeline;
                Some(Judgement::Bracket(guarded))
            }
            Judgement::Bracket(guarded) => Some(Judgement::Deny(Denial::place(guarded.name))),
            denied @ Judgement::Deny(_) => Some(denied),
        });
        if found.len() == FOUND_MAX {
            break;
        }
    }
    found.into_iter().fold(Judgement::Pass, Judgement::and)
}

impl Judgement {
    /// Of two parts of a line.
    fn and(self, other: Judgement) -> Judgement {
        let names = match (&self, &other) {
            (Judgement::Pass, _) => return other,
            (_, Judgement::Pass) => return self,
            (one, other) => one.names().chain(other.names()),
        };
        let mut denial = Denial { names: Vec::new(), reason: DenialReason::Several };
        for name in names {
            denial.name(name);
        }
        Judgement::Deny(denial)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let names = match self {
            Judgement::Pass => &[],
            Judgement::Bracket(guarded) => std::slice::from_ref(&guarded.name),
            Judgement::Deny(denial) => denial.names.as_slice(),
        };
        names.iter().map(String::as_str)
    }
}

impl Denial {
    fn place(name: String) -> Denial {
        Denial { names: vec![name], reason: DenialReason::Place }
    }

    fn name(&mut self, name: &str) {
        if self.names.len() < FOUND_MAX && !self.names.iter().any(|known| known == name) {
            self.names.push(name.to_owned());
        }
    }
}

/// A line that nobody could read is denied if it has the name of a guarded program.
fn unreadable(line: &str, policy: &Policy) -> Judgement {
    let mut denial = Denial { names: Vec::new(), reason: DenialReason::Unreadable };
    let words: BTreeSet<&str> =
        line.split(|c: char| !(c.is_ascii_alphanumeric() || "._-".contains(c))).collect();
    for word in words.into_iter().filter(|word| !word.is_empty()) {
        if CLIENTS.contains(&word) || policy.may_speak_of(&format!("cli:{word} ")) {
            denial.name(word);
        }
    }
    if denial.names.is_empty() { Judgement::Pass } else { Judgement::Deny(denial) }
}

/// The parts of a command's world that the line itself says.
#[derive(Debug, Clone)]
struct Surroundings {
    cwd: String,
    /// `NAME=value`
    variables: Vec<Word>,
    /// Whether the directory is the one, and these are all variables.
    is_known: bool,
}

impl Surroundings {
    fn set(&mut self, variables: impl IntoIterator<Item = Word>) {
        self.variables.extend(variables);
        self.is_known &= self.variables.len() <= VARIABLES_MAX;
        self.variables.truncate(VARIABLES_MAX);
    }

    /// Whether the command changes them, and nothing else.
    fn change_by(&mut self, call: &Call) -> bool {
        match call.program() {
            "cd" | "pushd" | "popd" => {
                match call.words[1..].iter().rfind(|word| !word.text.starts_with("--")) {
                    Some(Word { text, is_known: true })
                        if text != "-" && self.cwd.len() + text.len() < PATH_BYTES_MAX =>
                    {
                        self.cwd = joined(&self.cwd, text);
                    }
                    _ => self.is_known = false,
                }
            }
            "export" => {
                let set = call.words[1..].iter().filter(|word| word.variable().is_some());
                self.set(set.cloned());
            }
            _ => return false,
        }
        true
    }
}

/// A path as `cd` takes it, without a look at the disk.
fn joined(cwd: &str, path: &str) -> String {
    let from = if path.starts_with('/') { "" } else { cwd };
    let mut parts: Vec<&str> = Vec::new();
    for part in from.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop(),
            _ => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// The call with its rule, if that guards it.
fn guard(call: Call, surroundings: &Surroundings, policy: &Policy) -> Option<Guarded> {
    match request(&call.words, &call.input) {
        Some(request) => guard_request(&call, request, surroundings, policy),
        None => guard_command(&call, surroundings, policy),
    }
}

/// A request is guarded without a rule too: its method says enough.
fn guard_request(
    call: &Call,
    request: Request,
    surroundings: &Surroundings,
    policy: &Policy,
) -> Option<Guarded> {
    let is_local = request.is_local();
    let Request { action, mut arguments, headers, is_known } = request;
    arguments.insert("headers", Json::Object(headers));
    let arguments = Json::Object(arguments);
    let rule = policy.rule_for(&ActionFacts::new(&action, &arguments));
    if rule.class == Class::Read || rule.origin == RuleOrigin::Default && is_local {
        return None;
    }
    let is_known = is_known && surroundings.is_known && call.is_known();
    Some(Guarded {
        range: 0..0,
        name: call.program().to_owned(),
        action,
        arguments,
        is_known,
        rule: bare(rule),
    })
}

fn guard_command(call: &Call, surroundings: &Surroundings, policy: &Policy) -> Option<Guarded> {
    let action = call.action();
    // Rules see a document as the last word, and identity its digest, as of any input.
    let mut seen = call.argv();
    if let (Json::Array(seen), Input::Text(document)) = (&mut seen, &call.input) {
        seen.push(Json::str(document));
    }
    let rule = policy.rule_for(&ActionFacts::new(&action, &Json::object([("argv", seen)])));
    if rule.class == Class::Read || rule.origin == RuleOrigin::Default {
        return None;
    }
    let mut arguments = Object::new();
    arguments.insert("argv", call.argv());
    arguments.insert("cwd", Json::str(&surroundings.cwd));
    if let Input::Text(document) = &call.input {
        arguments.insert("stdin", Json::str(&Digest::of(&[document.as_bytes()]).to_string()));
    }
    let variables = || surroundings.variables.iter().chain(&call.variables);
    let mut env = Object::new();
    for (name, value) in variables().filter_map(|variable| variable.text.split_once('=')) {
        env.insert(name, Json::str(value));
    }
    if !env.is_empty() {
        arguments.insert("env", Json::Object(env));
    }
    let is_fed = call.input == Input::Unknown;
    let is_known =
        surroundings.is_known && call.is_known() && !is_fed && variables().all(|variable| variable.is_known);
    let arguments = Json::Object(arguments);
    Some(Guarded { range: 0..0, name: name(call), action, arguments, is_known, rule: bare(rule) })
}

/// The rule without a key for the upstream.
fn bare(mut rule: Arc<Rule>) -> Arc<Rule> {
    if rule.inject.is_some() {
        Arc::make_mut(&mut rule).inject = None;
    }
    rule
}

/// The program and its verbs, such as `gh pr create`.
fn name(call: &Call) -> String {
    const VERBS_MAX: usize = 2;
    let is_verb = |text: &str| {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(is_plain)
    };
    let verbs = call.words[1..].iter().take(VERBS_MAX).take_while(|word| is_verb(&word.text));
    verbs.fold(call.program().to_owned(), |name, verb| format!("{name} {}", verb.text))
}
