//! A guarded call on its way through the gate, and the response that its caller gets.

use super::effect_word;
use super::frame::Frame;
use super::intent;
use super::listing;
use super::message::Message;
use super::own_tools;
use super::probe;
use super::render::{self, LookWith, RenderContext, RepeatAdvice};
use super::route::GuardedCall;
use super::task::query::TaskEndDelivery;
use super::task::record::{self, RecordedTask};
use super::task::registry::TaskKey;
use super::tools::OutputSchema;
use super::upstream::{ToolUpstream, WaitingClient};
use crate::delivery::Delivery;
use crate::local_tasks;
use crate::remote_gate::{RemoteCall, RemoteGate, RemotePassed, Undelivered};
use crate::services::Services;
use semel_core::answer::{self, Answer, EffectWord, OutcomeWord, Trouble, Would};
use semel_core::class::Class;
use semel_core::digest::Secret;
use semel_core::intent::Intent;
use semel_core::json::Json;
use semel_core::policy::Rule;
use semel_core::policy::rule::{Again, DryRunOption, Rulings};
use semel_core::wording;
use semel_gate::clock::Clock;
use semel_gate::look::{Look, Patience, look_until_answered};
use semel_gate::{GivenReply, Passed};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// A response, and what is marked once it has reached its caller.
#[derive(Debug)]
pub struct ClientAnswer {
    pub frame: Frame,
    /// Whether it is the answer of an effect that happened.
    pub is_success: bool,
    pub delivery: Option<Delivery>,
    pub task_end: Option<TaskEndDelivery>,
}

impl ClientAnswer {
    pub fn plain(frame: Frame) -> ClientAnswer {
        ClientAnswer { frame, is_success: false, delivery: None, task_end: None }
    }

    /// It has reached its caller. Within a runtime.
    pub fn has_left(self) {
        self.delivery.into_iter().for_each(Delivery::mark);
        self.task_end.into_iter().for_each(TaskEndDelivery::has_left);
    }
}

/// Takes a guarded call through the gate. Its caller may go away: it is finished and settled all the same.
///
/// `None`: the caller no longer waits for the answer.
pub async fn guard(services: &Arc<Services>, mut guarded: GuardedCall) -> Option<ClientAnswer> {
    let _permit = guarded.permit.take();
    let came = services.clock.elapsed();
    let guarded = Arc::new(guarded);
    let result = pass(services, &guarded).await;
    answer(services, &guarded, result, came)
}

fn answer(
    services: &Arc<Services>,
    guarded: &GuardedCall,
    result: CallResult,
    came: Duration,
) -> Option<ClientAnswer> {
    let GuardedCall { call, rule, server, connection, tools, waiter, .. } = guarded;
    let CallResult { mut passed, live, undelivered } = result;
    let mut handle = None;
    match record::on_record(&passed.reply, call) {
        Some(RecordedTask::End(end)) => passed.reply = GivenReply::Recorded(end),
        Some(RecordedTask::Handle(id)) => handle = Some(id),
        None => {}
    }
    connection.end_call(&call.id, waiter);
    if waiter.gave_up() {
        return None;
    }
    let definition = tools.get(&call.tool);
    let free = OutputSchema::Free;
    let around = RenderContext {
        call,
        output: definition.map_or(&free, |definition| &definition.output),
        // Only who is in trouble is told what to look with; most calls are not.
        may_report: server.settings.own_tools
            && rule.rulings == Rulings::Agent
            && own_tools::agents_decide(services, &server.action(&call.tool)),
        repeats: match rule.class {
            Class::Act | Class::Convergent if call.key.is_none() => RepeatAdvice::Plainly,
            _ if rule.again == Again::Agent && call.offers_again() => RepeatAdvice::WithReason,
            _ => RepeatAdvice::NotByItself(rule.again),
        },
        look_with: match passed.answer.trouble {
            Some(_) => listing::look_with(services, server, tools, &call.tool, rule),
            None => LookWith::NotKnown,
        },
        ledger_elsewhere: services.remote.is_some(),
        server_has_ended: server.link.has_ended(),
    };
    let frame = match (&passed.reply, &live) {
        // A task's handle: its effect is known once it has ended.
        (GivenReply::Live, Some(live)) if passed.answer.effect_id.is_none() => {
            render::as_it_came(live, &call.id)
        }
        _ => render::response(&passed, live.as_ref(), &around),
    };
    let is_success = passed.delivery.is_some() || undelivered.is_some();
    let found = match (handle, passed.delivery) {
        // A handle is not the answer yet, however often it is given.
        (Some(id), Some(found)) => {
            let task = TaskKey { whose: connection.caller.whose(), id };
            server.tasks().begin_ended(task, found);
            None
        }
        (_, found) => found,
    };
    let late_from = came + rule.late_after;
    let delivery = match undelivered {
        Some(undelivered) => Some(Delivery::of_remote(services, undelivered, late_from)),
        None => Delivery::of(services, found, Some(late_from)),
    };
    Some(ClientAnswer { frame, is_success, delivery, task_end: None })
}

/// Through the gate, in a task of its own, as soon as one look has an answer or the handle of a task.
async fn pass(services: &Arc<Services>, guarded: &Arc<GuardedCall>) -> CallResult {
    if let (Err(why), None) = (&services.gate, &services.remote) {
        return CallResult::trouble(&guarded.rule, wording::ledger_unavailable(why));
    }
    let patience = Patience::of(&guarded.rule, services.silence_max);
    look_until_answered(&services.clock, patience, |look| {
        let (tell, handle) = oneshot::channel();
        let pass = pass_once(Arc::clone(services), Arc::clone(guarded), look, tell);
        let pass = local_tasks::spawn_part(pass, &Handle::current());
        async move {
            tokio::select! {
                result = pass => {
                    result.unwrap_or_else(|_| CallResult::trouble(&guarded.rule, wording::lost_sight()))
                }
                Ok(handle) = handle => CallResult::task(handle, &guarded.rule),
            }
        }
    })
    .await
}

async fn pass_once(
    services: Arc<Services>,
    guarded: Arc<GuardedCall>,
    look: Look,
    handle: oneshot::Sender<Message>,
) -> CallResult {
    let _working = services.in_flight.begin();
    let GuardedCall { call, rule, server, connection, .. } = &*guarded;
    let trouble = |trouble| CallResult::trouble(rule, trouble);
    if let Some(remote) = &services.remote {
        return pass_remote(&services, &guarded, remote, &look, handle).await;
    }
    let gate = match &services.gate {
        Ok(gate) => gate,
        Err(why) => return trouble(wording::ledger_unavailable(why)),
    };
    let mut intent = match intent::intent(call, rule, server, &connection.caller, gate.ledger.secret()) {
        Ok(intent) => intent,
        Err(missing) => return trouble(wording::key_required(&missing)),
    };
    if connection.has_done(intent.key) {
        intent.keep_on_connection(rule);
    }
    let mut upstream = upstream(&services, &guarded, handle);
    if call.dry_run {
        let answered = gate.dry_run(&intent, rule, &mut upstream).await;
        return match answered {
            Ok(answer) => CallResult::of(with_changes(answer, &upstream).await),
            Err(error) => trouble(wording::ledger_unavailable(&error.to_string())),
        };
    }
    let passed = gate.pass_in(&look, &intent, rule, &mut upstream).await;
    let (live, task) = upstream.finish();
    match passed {
        Ok(mut passed) => {
            if let Some(task) = &task {
                let learnt = server.tasks().record_end(task, passed.delivery.clone());
                Delivery::of(&services, learnt, None).into_iter().for_each(Delivery::mark);
            }
            if passed.answer.ok {
                connection.add_done(intent.key);
            }
            if let Some(done) = gate.unconfirmed(rule, &mut passed) {
                let reply = probe::reply(&passed, live.as_ref());
                probe::confirm_later(&services, &guarded, done, reply);
            }
            CallResult { passed, live, undelivered: None }
        }
        Err(error) => trouble(wording::ledger_unavailable(&error.to_string())),
    }
}

/// The same where the ledger is behind a server on another machine.
async fn pass_remote(
    services: &Arc<Services>,
    guarded: &GuardedCall,
    remote: &RemoteGate,
    look: &Look,
    handle: oneshot::Sender<Message>,
) -> CallResult {
    let GuardedCall { call, rule, server, connection, .. } = guarded;
    let action = server.action(&call.tool);
    let mut ask = intent::ask(call, server, &connection.caller, &action);
    // The server's key of it is not known here; among the calls of one connection any will do.
    let here = Intent::of(&ask, rule, &Secret::new([0; 32])).map(|intent| intent.key);
    ask.live_connection = here.as_ref().is_ok_and(|key| connection.has_done(*key));
    let asking = RemoteCall { ask: &ask, rule, class: None };
    let mut upstream = upstream(services, guarded, handle);
    if call.dry_run {
        return match remote.dry_run(asking).await {
            Ok(answer) => CallResult::of(with_changes(answer, &upstream).await),
            Err(trouble) => CallResult::trouble(rule, trouble),
        };
    }
    let RemotePassed { passed, undelivered, unsettled } = remote.pass(asking, look, &mut upstream).await;
    if let Some(unsettled) = unsettled {
        let services = Arc::clone(services);
        tokio::spawn(async move {
            if let Some(remote) = &services.remote {
                remote.settle_late(unsettled).await;
            }
        });
    }
    let (live, task) = upstream.finish();
    if let Some(task) = &task {
        let _nothing_to_mark = server.tasks().record_end(task, None);
    }
    if let (true, Ok(key)) = (passed.answer.ok, here) {
        connection.add_done(key);
    }
    CallResult { passed, live, undelivered }
}

fn upstream<'a>(
    services: &'a Services,
    guarded: &'a GuardedCall,
    handle: oneshot::Sender<Message>,
) -> ToolUpstream<'a> {
    let (connection, waiter) = (Arc::clone(&guarded.connection), Arc::clone(&guarded.waiter));
    let client = WaitingClient { whose: connection.caller.whose(), connection, waiter, handle };
    let mut upstream = ToolUpstream::of(services, guarded);
    upstream.client = Some(client);
    upstream
}

/// Adds the tool's own dry run, where the rule maps one.
async fn with_changes(mut answer: Answer, upstream: &ToolUpstream<'_>) -> Answer {
    let would_run = |dry_run: &&mut answer::DryRun| dry_run.would == Would::Run;
    if let Some(dry_run) = answer.dry_run.as_mut().filter(would_run) {
        if upstream.rule.class != Class::Read {
            answer.effect = effect_word::by_name(upstream.rule, &upstream.call.tool).would();
        }
        if let Some(DryRunOption::Arg(name, value)) = &upstream.rule.dry_run {
            let value = semel_core::json::parse(value).unwrap_or_else(|_| Json::str(value));
            match upstream.own_dry_run(name, value).await {
                Ok(said) => answer.take_own_dry_run(said, upstream.rule.effect_word()),
                Err(why) => dry_run.changes = vec![json!({"own_dry_run_failed": why})],
            }
        }
    }
    answer
}

/// The gate's answer to a call, and the server's own.
#[derive(Debug)]
struct CallResult {
    passed: Passed,
    live: Option<Message>,
    /// A success on record at a remote server, to be marked once its answer has left.
    undelivered: Option<Undelivered>,
}

impl CallResult {
    /// A task has begun; its effect stays in flight, and the caller gets the handle.
    fn task(handle: Message, rule: &Rule) -> CallResult {
        let answer = Answer {
            reason: Some("the server works on it as a task".into()),
            ..Answer::plain(true, EffectWord::None, OutcomeWord::Ran, rule.tier())
        };
        let passed = Passed { answer, reply: GivenReply::Live, delivery: None };
        CallResult { passed, live: Some(handle), undelivered: None }
    }

    fn trouble(rule: &Rule, trouble: Trouble) -> CallResult {
        CallResult::of(Answer::of_trouble(rule.tier(), OutcomeWord::Refused, trouble))
    }

    /// Nothing but an answer of semel's own.
    fn of(answer: Answer) -> CallResult {
        let passed = Passed { answer, reply: GivenReply::None, delivery: None };
        CallResult { passed, live: None, undelivered: None }
    }
}
