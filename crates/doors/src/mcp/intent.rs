//! From a tool call to the rule that holds for it and the intent that it is.

use super::call::ToolCall;
use super::server::Server;
use super::tools::Definition;
use crate::caller::Caller;
use semel_core::class::Class;
use semel_core::digest::Secret;
use semel_core::ids::Run;
use semel_core::intent::{Ask, AskedBy, Intent, KeyMissing};
use semel_core::json::{Json, Path};
use semel_core::judgement::arguments;
use semel_core::policy::rule::{Inject, InjectInto};
use semel_core::policy::{ActionFacts, Annotations, Policy, Rule};
use std::sync::Arc;

/// Whether a tool is a read whatever it is called with. A definition belongs to one server, under one policy.
pub fn only_reads(policy: &Policy, server: &Server, definition: &Definition) -> bool {
    *definition.only_reads.get_or_init(|| {
        let action = server.action(&definition.name);
        policy.class_of_all(&facts(&action, &Json::Null, server, Some(definition))) == Some(Class::Read)
    })
}

pub fn rule(policy: &Policy, server: &Server, call: &ToolCall, definition: Option<&Definition>) -> Arc<Rule> {
    let action = server.action(&call.tool);
    let mut rule = policy.rule_for(&facts(&action, &call.arguments, server, definition));
    // A tool drops an argument that it does not know without a word, and a key that is not read protects nothing.
    let honoured = |inject: &Inject| match &inject.into {
        InjectInto::Arg(name) => definition.is_some_and(|definition| definition.has_argument(name)),
        // A call of a tool has arguments and nothing else.
        _ => false,
    };
    if rule.inject.as_ref().is_some_and(|inject| !honoured(inject)) {
        Arc::make_mut(&mut rule).inject = None;
    }
    if let Some(Inject { into: InjectInto::Arg(name), .. }) = &rule.inject {
        // It is overwritten on its way, and a model that sees such an argument makes up another value for each call.
        let overwritten = Path::to_member("args", name);
        if !rule.sorting.key.contains(&overwritten) {
            Arc::make_mut(&mut rule).sorting.volatile.push(overwritten);
        }
    }
    // Without a rule's own, a key that the tool has a place for is filled in unless the call brings one.
    let own_key = definition.and_then(|definition| definition.own_key.as_ref());
    if let Some(own_key) = own_key
        && rule.inject.is_none()
        && arguments::own_key(&call.arguments).is_none()
    {
        Arc::make_mut(&mut rule).own_key = Some(own_key.clone());
    }
    if call.wants_task && rule.timeout.is_some() {
        // A task is asked for so that it may take its time: its own ttl bounds it, and semel follows it to its end.
        Arc::make_mut(&mut rule).timeout = None;
    }
    rule
}

/// The facts that the policy is asked about.
pub fn facts<'a>(
    action: &'a str,
    arguments: &'a Json,
    server: &Server,
    definition: Option<&Definition>,
) -> ActionFacts<'a> {
    ActionFacts {
        annotations: definition.map_or_else(Annotations::default, |definition| definition.annotations),
        trusted: server.settings.trusted,
        ..ActionFacts::new(action, arguments)
    }
}

/// The run that a call belongs to, strongest first.
pub fn run<'a>(call: &'a ToolCall, caller: &'a Caller) -> Option<&'a Run> {
    let runs = &call.runs;
    (caller.run.as_ref())
        .or(runs.named.as_ref())
        .or(caller.surrounding_run.as_ref())
        .or(runs.baggage.as_ref())
        .or(runs.thread.as_ref())
}

pub fn intent(
    call: &ToolCall,
    rule: &Rule,
    server: &Server,
    caller: &Caller,
    secret: &Secret,
) -> Result<Intent, KeyMissing> {
    let mut intent = Intent::of(&ask(call, server, caller, &server.action(&call.tool)), rule, secret)?;
    intent.metadata.trace = call.trace;
    Ok(intent)
}

pub fn ask<'a>(call: &'a ToolCall, server: &'a Server, caller: &'a Caller, action: &'a str) -> Ask<'a> {
    Ask {
        tenant: &caller.tenant,
        principal: &caller.principal,
        authority: &server.authority,
        action,
        arguments: &call.arguments,
        run: run(call, caller).cloned(),
        key: call.key.clone(),
        again: call.again.clone(),
        asked_by: AskedBy::Agent,
        call_id: call.call_id.clone(),
        live_connection: false,
        serialize_by: None,
        // SEP-3182: a completed call is answered with its result, success or error.
        replay_refusals: call.key.is_some(),
    }
}
