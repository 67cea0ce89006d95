//! The door: which messages pass as they are, and what happens to those that do not.

use super::call::{BadCall, ToolCall};
use super::confirm;
use super::connection::Connection;
use super::frame::Frame;
use super::guarded_calls::Waiter;
use super::intent;
use super::kept_task::{self, OnRecord};
use super::limits::Place;
use super::message::{Id, Message, text};
use super::own_tools;
use super::render::{self, Around, LookWith, Repeats};
use super::server::Server;
use super::tasks::{self, Telling};
use super::tools::{Output, Tools};
use super::upstream::{Asker, ToolUpstream};
use super::word;
use crate::call_options::CallOptions;
use crate::delivery::Delivery;
use crate::errands;
use crate::http::server::Revocable;
use crate::services::Services;
use semel_core::answer::{self, Answer, EffectWord, OutcomeWord, Trouble, Would};
use semel_core::class::Class;
use semel_core::json::Json;
use semel_core::policy::Rule;
use semel_core::policy::rule::{Again, DryRunOption, Rulings};
use semel_core::wording;
use semel_gate::clock::Clock;
use semel_gate::counts;
use semel_gate::patience::Look;
use semel_gate::{GivenReply, Passed};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

pub type Servers = BTreeMap<String, Arc<Server>>;

#[derive(Debug)]
pub struct Door {
    pub services: Arc<Services>,
}

/// The way of a `tools/call`.
#[derive(Debug)]
pub enum Route {
    /// As it came.
    Pass,
    Guard(Box<Guarded>),
    /// A tool of semel's own.
    Own(Box<ToolCall>),
    /// Answered by semel, nothing is sent.
    Answer(Frame),
}

/// A call that goes through the gate.
#[derive(Debug)]
pub struct Guarded {
    pub call: ToolCall,
    pub rule: Arc<Rule>,
    pub server: Arc<Server>,
    pub connection: Arc<Connection>,
    tools: Arc<Tools>,
    pub waiter: Arc<Waiter>,
    /// Held until it has its answer.
    _room: Option<Place>,
    /// The credential of its caller, where that can be revoked.
    pub token: Option<Revocable>,
}

/// A response, and what is marked once it has reached its caller.
#[derive(Debug)]
pub struct Given {
    pub frame: Frame,
    /// Whether it is the answer of an effect that happened.
    pub is_success: bool,
    pub delivery: Option<Delivery>,
    /// The end of a task that it tells.
    pub telling: Option<Telling>,
}

impl Given {
    pub fn plain(frame: Frame) -> Given {
        Given { frame, is_success: false, delivery: None, telling: None }
    }
}

impl Door {
    pub fn new(services: Arc<Services>) -> Door {
        Door { services }
    }

    /// Finds the way of a `tools/call`, given the server's tools and the options that came with it. Within a runtime.
    pub fn route(
        self: &Arc<Self>,
        id: &Id,
        message: &Message,
        server: &Arc<Server>,
        connection: &Arc<Connection>,
        tools: &Arc<Tools>,
        options: &CallOptions,
    ) -> Route {
        // Observing looks at no call, but one that may ask for a dry run must not have its effect.
        let may_be_dry =
            || options.dry_run || message.params.as_ref().is_some_and(|it| text(it).contains("semel"));
        let call = match ToolCall::read(id, message, |name| tools.get(name).cloned()) {
            Ok(call) => call.with(options),
            Err(_) if self.services.observes() && !may_be_dry() => return Route::Pass,
            Err(bad) => return Route::Answer(refused(id, &bad)),
        };
        // A dry run must not have the effect, whatever the mode.
        if self.services.observes() && !call.dry_run {
            self.observe(call, server, connection, tools);
            return Route::Pass;
        }
        if server.settings.own_tools && own_tools::is_own(&call.tool) && tools.get(&call.tool).is_none() {
            return Route::Own(Box::new(call));
        }
        let definition = tools.get(&call.tool).map(AsRef::as_ref);
        let policy = &self.services.policy;
        let pass = || {
            self.services.passed_through(&connection.caller.tenant, counts::Door::Mcp);
            Route::Pass
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
            return Route::Answer(not_now(id, "too much in flight; nothing was sent"));
        };
        let Some(waiter) = connection.begin_call(id, call.progress_token.clone()) else {
            return Route::Answer(not_now(id, "too many calls at once; nothing was sent"));
        };
        let (server, connection, tools) = (Arc::clone(server), Arc::clone(connection), Arc::clone(tools));
        let token = None;
        let guarded = Guarded { call, rule, server, connection, tools, waiter, _room: room, token };
        Route::Guard(Box::new(guarded))
    }

    /// Writes down what would have been decided. The call itself does not wait for it.
    fn observe(
        self: &Arc<Self>,
        call: ToolCall,
        server: &Arc<Server>,
        connection: &Arc<Connection>,
        tools: &Tools,
    ) {
        self.services.passed_through(&connection.caller.tenant, counts::Door::Mcp);
        let definition = tools.get(&call.tool).cloned();
        let (this, working) = (Arc::clone(self), self.services.in_flight.begin());
        let (server, connection) = (Arc::clone(server), Arc::clone(connection));
        tokio::spawn(async move {
            let rule = intent::rule(&this.services.policy, &server, &call, definition.as_deref());
            if let Ok(gate) = &this.services.gate
                && let Ok(intent) =
                    intent::intent(&call, &rule, &server, &connection.caller, gate.ledger.secret())
            {
                gate.observed(&intent, &rule).await;
            }
            drop(working);
        });
    }

    /// Takes a guarded call through the gate. Whoever asked may go away: it is finished and settled all the same.
    ///
    /// `None`: nobody waits for the answer any more.
    pub async fn guard(self: &Arc<Self>, guarded: Guarded) -> Option<Given> {
        let came = self.services.clock.elapsed();
        let guarded = Arc::new(guarded);
        let ended = self.passes(&guarded).await;
        self.given(&guarded, ended, came)
    }

    fn given(&self, guarded: &Guarded, ended: Ended, came: Duration) -> Option<Given> {
        let Guarded { call, rule, server, connection, tools, waiter, .. } = guarded;
        let Ended { mut passed, live } = ended;
        let mut handle = None;
        match kept_task::on_record(&passed.reply, call) {
            Some(OnRecord::End(end)) => passed.reply = GivenReply::Recorded(end),
            Some(OnRecord::Handle(id)) => handle = Some(id),
            None => {}
        }
        connection.end_call(&call.id, waiter);
        if waiter.gave_up() {
            return None;
        }
        let definition = tools.get(&call.tool);
        let free = Output::Free;
        let around = Around {
            call,
            output: definition.map_or(&free, |definition| &definition.output),
            // Only who is in trouble is told what to look with; most calls are not.
            may_report: server.settings.own_tools
                && rule.rulings == Rulings::Agent
                && own_tools::agents_decide(self, &server.action(&call.tool)),
            repeats: match rule.class {
                Class::Act | Class::Convergent if call.key.is_none() => Repeats::Plainly,
                _ if rule.again == Again::Agent && call.offers_again() => Repeats::WithReason,
                _ => Repeats::NotByItself(rule.again),
            },
            look_with: match passed.answer.trouble {
                Some(_) => self.look_with(server, tools, &call.tool, rule),
                None => LookWith::NotKnown,
            },
            server_has_ended: server.link.has_ended(),
        };
        let frame = match (&passed.reply, &live) {
            // A task's handle: its effect is known once it has ended.
            (GivenReply::Live, Some(live)) if passed.answer.effect_id.is_none() => {
                render::as_it_came(live, &call.id)
            }
            _ => render::response(&passed, live.as_ref(), &around),
        };
        let is_success = passed.delivery.is_some();
        let found = match (handle, passed.delivery) {
            // A handle is not the answer yet, however often it is given.
            (Some(id), Some(found)) => {
                let task = tasks::Name { whose: connection.caller.whose(), id };
                server.tasks().given_again(task, found);
                None
            }
            (_, found) => found,
        };
        let delivery = Delivery::of(&self.services, found, Some(came + rule.late_after));
        Some(Given { frame, is_success, delivery, telling: None })
    }

    /// Through the gate, in a task of its own, as soon as one look has an answer or the handle of a task.
    async fn passes(self: &Arc<Self>, guarded: &Arc<Guarded>) -> Ended {
        let gate = match &self.services.gate {
            Ok(gate) => gate,
            Err(why) => {
                let passed = trouble_alone(&guarded.rule, wording::ledger_unavailable(why));
                return Ended { passed, live: None };
            }
        };
        gate.look_until_answered(guarded.rule.timeout, |look| {
            let (tell, handle) = oneshot::channel();
            let pass = Arc::clone(self).pass_once(Arc::clone(guarded), look, tell);
            let pass = errands::beside(pass, &Handle::current());
            async move {
                tokio::select! {
                    ended = pass => ended.unwrap_or_else(|_| {
                        Ended { passed: trouble_alone(&guarded.rule, wording::lost_sight()), live: None }
                    }),
                    Ok(handle) = handle => Ended::with_handle(handle, &guarded.rule),
                }
            }
        })
        .await
    }

    async fn pass_once(
        self: Arc<Self>,
        guarded: Arc<Guarded>,
        look: Look,
        handle: oneshot::Sender<Message>,
    ) -> Ended {
        let _working = self.services.in_flight.begin();
        let Guarded { call, rule, server, connection, .. } = &*guarded;
        let alone = |trouble| Ended { passed: trouble_alone(rule, trouble), live: None };
        let gate = match &self.services.gate {
            Ok(gate) => gate,
            Err(why) => return alone(wording::ledger_unavailable(why)),
        };
        let mut intent = match intent::intent(call, rule, server, &connection.caller, gate.ledger.secret()) {
            Ok(intent) => intent,
            Err(missing) => return alone(wording::key_required(&missing)),
        };
        if connection.has_done(intent.key) {
            intent.keep_on_connection(rule);
        }
        let waiter = Arc::clone(&guarded.waiter);
        let (whose, connection_of_it) = (connection.caller.whose(), Arc::clone(connection));
        let asker = Asker { whose, connection: connection_of_it, waiter, handle };
        let mut upstream = ToolUpstream { asker: Some(asker), ..self.upstream(&guarded) };
        if call.dry_run {
            let answered = gate.dry_run(&intent, rule, &mut upstream).await;
            return match answered {
                Ok(answer) => Ended { passed: self.with_changes(answer, &mut upstream).await, live: None },
                Err(error) => alone(wording::ledger_unavailable(&error.to_string())),
            };
        }
        let passed = gate.pass_in(&look, &intent, rule, &mut upstream).await;
        let ToolUpstream { live, task, .. } = upstream;
        match passed {
            Ok(mut passed) => {
                if let Some(task) = &task {
                    server.tasks().ended(&self.services, task, passed.delivery.clone());
                }
                if passed.answer.ok {
                    connection.did(intent.key);
                }
                if let Some(done) = gate.unconfirmed(rule, &mut passed) {
                    let reply = confirm::reply(&passed, live.as_ref());
                    confirm::follow(&self, &guarded, done, reply);
                }
                Ended { passed, live }
            }
            Err(error) => alone(wording::ledger_unavailable(&error.to_string())),
        }
    }

    /// The tool behind a guarded call.
    pub(super) fn upstream<'a>(&'a self, guarded: &'a Guarded) -> ToolUpstream<'a> {
        let Guarded { call, rule, server, token, .. } = guarded;
        let Services { backends, policy, clock, .. } = &*self.services;
        ToolUpstream {
            server,
            backends,
            policy,
            call,
            rule,
            clock,
            token: token.as_ref(),
            asker: None,
            task: None,
            effect: None,
            must_happen_once: true,
            has_handle: false,
            live: None,
            found: None,
        }
    }

    /// Adds the tool's own dry run, where the rule maps one.
    async fn with_changes(&self, mut answer: Answer, upstream: &mut ToolUpstream<'_>) -> Passed {
        let would_run = |dry_run: &&mut answer::DryRun| dry_run.would == Would::Run;
        if let Some(dry_run) = answer.dry_run.as_mut().filter(would_run) {
            if upstream.rule.class != Class::Read {
                answer.effect = word::by_name(upstream.rule, &upstream.call.tool).would();
            }
            if let Some(DryRunOption::Arg(name, value)) = &upstream.rule.dry_run {
                let value = semel_core::json::parse(value).unwrap_or_else(|_| Json::str(value));
                match upstream.own_dry_run(name, value).await {
                    Ok(said) => answer.take_own_dry_run(said, upstream.rule.effect_word()),
                    Err(why) => dry_run.changes = vec![json!({"own_dry_run_failed": why})],
                }
            }
        }
        nothing_but(answer)
    }
}

/// The end of a call.
#[derive(Debug)]
struct Ended {
    passed: Passed,
    live: Option<Message>,
}

impl Ended {
    /// A task has begun; its effect stays in flight, and the caller gets the handle.
    fn with_handle(handle: Message, rule: &Rule) -> Ended {
        let answer = Answer {
            ok: true,
            effect: EffectWord::None,
            outcome: OutcomeWord::Ran,
            effect_id: None,
            attempt: None,
            tier: rule.tier(),
            evidence: None,
            reason: Some("the server works on it as a task".into()),
            trouble: None,
            dry_run: None,
            undone_by: None,
            possible_repeat: false,
            data: Value::Null,
        };
        Ended { passed: Passed { answer, reply: GivenReply::Live, delivery: None }, live: Some(handle) }
    }
}

fn trouble_alone(rule: &Rule, trouble: Trouble) -> Passed {
    nothing_but(Answer::of_trouble(rule.tier(), OutcomeWord::Refused, trouble))
}

fn nothing_but(answer: Answer) -> Passed {
    Passed { answer, reply: GivenReply::None, delivery: None }
}

/// A client that does less at once may call again.
fn not_now(id: &Id, why: &str) -> Frame {
    Frame::refusal(id, -32603, why, None)
}

fn refused(id: &Id, bad: &BadCall) -> Frame {
    Frame::refusal(id, -32602, &format!("semel sent nothing: {bad}"), None)
}
