//! The way of a `tools/call`: as it came, through the gate, to a tool of semel's own, or back with an answer.

use super::call::{BadCall, ToolCall};
use super::connection::ClientConnection;
use super::frame::Frame;
use super::guarded_calls::Waiter;
use super::id::Id;
use super::intent;
use super::limits::Permit;
use super::message::{Message, text};
use super::own_tools;
use super::server::Server;
use super::tools::Tools;
use crate::call_options::CallOptions;
use crate::http::server::Revocable;
use crate::services::Services;
use semel_core::class::Class;
use semel_core::policy::Rule;
use semel_gate::counts;
use std::sync::Arc;

#[derive(Debug)]
pub enum CallRoute {
    /// As it came.
    Pass,
    Guard(Box<GuardedCall>),
    /// A tool of semel's own.
    Own(Box<ToolCall>),
    /// Answered by semel, nothing is sent.
    Answer(Frame),
}

/// A call that goes through the gate.
#[derive(Debug)]
pub struct GuardedCall {
    pub call: ToolCall,
    pub rule: Arc<Rule>,
    pub server: Arc<Server>,
    pub connection: Arc<ClientConnection>,
    pub tools: Arc<Tools>,
    pub waiter: Arc<Waiter>,
    /// Held until its caller has the answer; its sending may take longer.
    pub permit: Option<Permit>,
    /// Held as long as its arguments are.
    _room: Option<Permit>,
    /// The credential of its caller, where that can be revoked.
    pub token: Option<Revocable>,
}

/// Finds the way of a `tools/call`, given the server's tools and the options that came with it. Within a runtime.
pub fn route(
    services: &Arc<Services>,
    id: &Id,
    message: &Message,
    server: &Arc<Server>,
    connection: &Arc<ClientConnection>,
    tools: &Arc<Tools>,
    options: &CallOptions,
) -> CallRoute {
    // Observing looks at no call, but one that may ask for a dry run must not have its effect.
    let may_be_dry =
        || options.dry_run || message.params.as_ref().is_some_and(|it| text(it).contains("semel"));
    let call = match ToolCall::read(id, message, |name| tools.get(name).cloned()) {
        Ok(call) => call.with_options(options),
        Err(_) if services.observes() && !may_be_dry() => return CallRoute::Pass,
        Err(bad) => return CallRoute::Answer(refused(id, &bad)),
    };
    // A dry run must not have the effect, whatever the mode.
    if services.observes() && !call.dry_run {
        observe(services, call, server, connection, tools);
        return CallRoute::Pass;
    }
    if server.settings.own_tools && own_tools::is_own(&call.tool) && tools.get(&call.tool).is_none() {
        return CallRoute::Own(Box::new(call));
    }
    let definition = tools.get(&call.tool).map(AsRef::as_ref);
    let policy = &services.policy;
    let pass = || {
        services.passed_through(&connection.caller.tenant, counts::DoorKind::Mcp);
        CallRoute::Pass
    };
    let only_reads = definition.is_some_and(|definition| intent::only_reads(policy, server, definition));
    if only_reads && !call.dry_run {
        return pass();
    }
    let rule = intent::rule(policy, server, &call, definition);
    if rule.class == Class::Read && !call.dry_run {
        return pass();
    }
    let Ok(room) = connection.limits.room_for(message.bytes.len()) else {
        return CallRoute::Answer(not_now(id, "too much in flight; nothing was sent"));
    };
    let Some((waiter, permit)) = connection.begin_call(id, call.progress_token.clone()) else {
        return CallRoute::Answer(not_now(id, "too many calls at once; nothing was sent"));
    };
    let (server, connection, tools) = (Arc::clone(server), Arc::clone(connection), Arc::clone(tools));
    let guarded = GuardedCall {
        call,
        rule,
        server,
        connection,
        tools,
        waiter,
        permit: Some(permit),
        _room: room,
        token: None,
    };
    CallRoute::Guard(Box::new(guarded))
}

/// Writes down what would have been decided. The call itself does not wait for it.
fn observe(
    services: &Arc<Services>,
    call: ToolCall,
    server: &Arc<Server>,
    connection: &Arc<ClientConnection>,
    tools: &Tools,
) {
    services.passed_through(&connection.caller.tenant, counts::DoorKind::Mcp);
    let definition = tools.get(&call.tool).cloned();
    let (services, working) = (Arc::clone(services), services.in_flight.begin());
    let (server, connection) = (Arc::clone(server), Arc::clone(connection));
    tokio::spawn(async move {
        let rule = intent::rule(&services.policy, &server, &call, definition.as_deref());
        if let Ok(gate) = &services.gate
            && let Ok(intent) =
                intent::intent(&call, &rule, &server, &connection.caller, gate.ledger.secret())
        {
            gate.observed(&intent, &rule).await;
        }
        drop(working);
    });
}

/// A client that does less at once may call again.
fn not_now(id: &Id, why: &str) -> Frame {
    Frame::refusal(id, -32603, why, None)
}

fn refused(id: &Id, bad: &BadCall) -> Frame {
    Frame::refusal(id, -32602, &format!("semel sent nothing: {bad}"), None)
}
