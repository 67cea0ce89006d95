//! Taking an effect back: the call that was kept with it, carried out as an effect of its own.
//!
//! Not a door: nobody calls an undo by its arguments. Whoever may ask for one names the effect.

mod request;

use crate::command::intent::CommandLine;
use crate::command::serve::{CommandOptions, CommandUpstream, Show};
use crate::mcp::call::ToolCall;
use crate::mcp::configured::{self, ConfiguredServers};
use crate::mcp::id::Id;
use crate::mcp::message::Message;
use crate::mcp::server::Server;
use crate::mcp::upstream::ToolUpstream;
use crate::mcp::{era, intent as tool_intent, probe};
use crate::proxy::query;
use crate::proxy::upstream::HttpUpstream;
use crate::proxy::upstream_answer::UpstreamAnswer;
use crate::query::witness::ConfirmWitness;
use crate::query::{Credentials, Query, Subject};
use crate::services::Services;
use async_trait::async_trait;
use bytes::Bytes;
use request::{PreparedUndo, UndoCallHttp};
use semel_core::class::Class;
use semel_core::effect::Effect;
use semel_core::identity::Sorting;
use semel_core::ids::{AttemptNo, EffectId, Reason};
use semel_core::intent::{Ask, AskedBy, Intent};
use semel_core::json::{self, Json};
use semel_core::policy::rule::{InjectInto, Probe};
use semel_core::policy::{ActionFacts, Rule};
use semel_core::undo::{UndoCall, Undoes};
use semel_core::wording;
use semel_gate::Gate;
use semel_gate::undo::Undoable;
use semel_gate::upstream::{CallView, NotStarted, ProbeAnswer, Sending, Sent, Upstream};
use semel_gate::{Error, Passed};
use serde_json::{Value, json};
use std::sync::Arc;

/// A request to take an effect back.
#[derive(Debug, Clone)]
pub struct UndoRequest {
    pub effect: EffectId,
    /// From the credential, never from what was asked.
    pub tenant: String,
    pub principal: String,
    /// The person's name in the ledger.
    pub by: String,
    pub reason: Reason,
    pub dry_run: bool,
    /// Where the output of a command goes. `None`: no command is run. A command inherits the lock of the process that
    /// runs it, and with it all that the process holds, so a process that serves others runs none.
    pub commands: Option<Show>,
}

/// One undo on its way.
struct ActiveUndo<'a> {
    services: &'a Arc<Services>,
    servers: &'a ConfiguredServers,
    gate: &'a Gate,
    request: &'a UndoRequest,
    undoable: Undoable,
}

/// Takes effects back.
#[derive(Debug, Clone)]
pub struct Undoer {
    pub services: Arc<Services>,
    pub servers: Arc<ConfiguredServers>,
}

impl Undoer {
    /// Takes an effect back, once, however many ask for it; or answers why not. Within a runtime.
    pub async fn carry_out(&self, request: &UndoRequest) -> Result<Passed, Error> {
        let Undoer { services, servers } = self;
        let gate = services
            .gate
            .as_ref()
            .map_err(|why| Error::Ledger(semel_ledger::Error::NotWritten { what: why.clone() }))?;
        let undoable = match gate.undoable(request.effect, &request.tenant).await? {
            Ok(undoable) => undoable,
            Err(passed) => return Ok(*passed),
        };
        let undoing = ActiveUndo { services, servers, gate, request, undoable };
        if undoing.undoable.effect.undone.is_some() {
            return undoing.nobody().await;
        }
        match undoing.undoable.call.clone() {
            UndoCall::Command { argv, cwd } => undoing.by_command(argv, cwd).await,
            UndoCall::Http { method, url, body } => {
                let call = UndoCallHttp { method: &method, url: &url, body: body.as_ref() };
                undoing.by_request(call).await
            }
            UndoCall::Mcp { server, tool, arguments } => undoing.by_tool(&server, &tool, &arguments).await,
        }
    }
}

impl ActiveUndo<'_> {
    async fn by_command(&self, argv: Vec<String>, cwd: String) -> Result<Passed, Error> {
        let line = CommandLine { argv, cwd, input: None };
        let prepared = self.prepared(line.action(), line.arguments(), String::new());
        let intent = self.intent(&prepared);
        if self.request.dry_run {
            return self.dry_run(&intent, &prepared.rule).await;
        }
        let Some(show) = self.request.commands else {
            let trouble = wording::undo_by_hand(&self.undoable.effect);
            return Ok(Passed::refused(&self.undoable.effect, trouble));
        };
        let Services { policy, clock, .. } = &**self.services;
        let backends = Arc::clone(&self.services.backends);
        let options = CommandOptions {
            show,
            pass_input: false,
            effect: None,
            backends,
            waits: None,
            output_drain: None,
        };
        let holders = self.gate.ledger.holders();
        let action = prepared.action.clone();
        let mut upstream =
            CommandUpstream::new(&line, action, (&prepared.rule, policy), holders, clock, options);
        let passed = self.pass(&intent, &prepared, &mut upstream).await?;
        upstream.deliver();
        let reply = upstream.view().and_then(|view| view.places.get("reply").cloned());
        self.confirmed(passed, &prepared, reply.unwrap_or(Json::Null)).await
    }

    async fn by_request(&self, call: UndoCallHttp<'_>) -> Result<Passed, Error> {
        let action = call.action(&self.services.policy);
        let mut prepared = self.prepared(action, call.arguments(), String::new());
        // Only a header carries the key here; a rule that puts it elsewhere is one without.
        prepared.rule.inject =
            prepared.rule.inject.filter(|inject| matches!(inject.into, InjectInto::Header(_)));
        let intent = self.intent(&prepared);
        if self.request.dry_run {
            return self.dry_run(&intent, &prepared.rule).await;
        }
        let guarded = match call.guarded(self.services, &prepared, intent.clone()) {
            Ok(guarded) => guarded,
            Err(why) => return self.pass(&intent, &prepared, &mut NoUpstream(why)).await,
        };
        let mut upstream = HttpUpstream::for_undo(&guarded);
        let mut passed = self.pass(&intent, &prepared, &mut upstream).await?;
        let answer = upstream.finish();
        let reply = query::reply(&passed, answer.as_ref());
        if let Some(data) = answer.and_then(UpstreamAnswer::data).filter(|_| passed.answer.data.is_null()) {
            passed.answer.data = data;
        }
        self.confirmed(passed, &prepared, reply).await
    }

    async fn by_tool(&self, server: &str, tool: &str, arguments: &str) -> Result<Passed, Error> {
        if self.request.dry_run {
            return self.nobody().await;
        }
        let (server, started) = match self.servers.get(server).await {
            Ok(server) => server,
            Err(why) => return self.not_reached(why).await,
        };
        let passed = self.with_tool(&server, tool, arguments).await;
        if started {
            configured::end(&server).await;
        }
        passed
    }

    async fn with_tool(&self, server: &Server, tool: &str, arguments: &str) -> Result<Passed, Error> {
        let call = match tool_call(server, tool, arguments) {
            Ok(call) => call,
            Err(why) => return self.not_reached(why).await,
        };
        let tools = server.tools(&call.meta()).await;
        let rule =
            tool_intent::rule(&self.services.policy, server, &call, tools.get(tool).map(AsRef::as_ref));
        let prepared = PreparedUndo {
            action: server.action(tool),
            arguments: call.arguments.clone(),
            authority: server.authority.clone(),
            rule: as_undo(rule),
        };
        let intent = self.intent(&prepared);
        let rule = &prepared.rule;
        let mut upstream = ToolUpstream::new(self.services, server, &call, rule);
        let mut passed = self.pass(&intent, &prepared, &mut upstream).await?;
        let live = upstream.live.take();
        let reply = probe::reply(&passed, live.as_ref());
        if passed.answer.data.is_null() && reply != Json::Null {
            passed.answer.data = reply.to_value();
        }
        self.confirmed(passed, &prepared, reply).await
    }

    /// Answers from the record, or with what would happen: nothing is reached for that.
    async fn nobody(&self) -> Result<Passed, Error> {
        let prepared = self.as_kept();
        let intent = self.intent(&prepared);
        if self.request.dry_run {
            return self.dry_run(&intent, &prepared.rule).await;
        }
        self.pass(&intent, &prepared, &mut NoUpstream("it has been undone".into())).await
    }

    /// The upstream cannot be asked: answers from the record, or why it is not undone.
    async fn not_reached(&self, why: String) -> Result<Passed, Error> {
        let prepared = self.as_kept();
        self.pass(&self.intent(&prepared), &prepared, &mut NoUpstream(why)).await
    }

    async fn pass(
        &self,
        intent: &Intent,
        prepared: &PreparedUndo,
        upstream: &mut dyn Upstream,
    ) -> Result<Passed, Error> {
        self.gate.undo(&self.undoable, intent, &prepared.rule, upstream).await
    }

    async fn dry_run(&self, intent: &Intent, rule: &Rule) -> Result<Passed, Error> {
        let mut nobody = NoUpstream("nobody is asked by a dry run of an undo".into());
        let mut answer = self.gate.dry_run(intent, rule, &mut nobody).await?;
        if let Some(dry_run) = &mut answer.dry_run
            && dry_run.would == semel_core::answer::Would::Run
        {
            let what = format!("undo {}: {}", self.request.effect, self.undoable.call);
            dry_run.changes = vec![json!({"what": what})];
        }
        Ok(Passed { answer, reply: semel_gate::GivenReply::None, delivery: None })
    }

    /// An undo is an effect: where the rule of its action says how, its truth is asked for too.
    async fn confirmed(
        &self,
        mut passed: Passed,
        prepared: &PreparedUndo,
        reply: Json,
    ) -> Result<Passed, Error> {
        let (Some(confirm), Some(done)) =
            (&prepared.rule.confirm, self.gate.unconfirmed(&prepared.rule, &mut passed))
        else {
            return Ok(passed);
        };
        let query = self.query(prepared, Some(&reply));
        let confirmed = self.gate.confirm(confirm, &done, &mut ConfirmWitness { query, confirm }).await?;
        self.gate.confirmed_answer(passed, confirmed).await
    }

    fn query<'b>(&'b self, prepared: &'b PreparedUndo, reply: Option<&'b Json>) -> Query<'b> {
        let PreparedUndo { action, arguments, .. } = prepared;
        let subject = Subject { action, arguments, effect: None, reply, credentials: Credentials::None };
        Query { backends: &self.services.backends, policy: &self.services.policy, subject, signals: None }
    }

    fn prepared(&self, action: String, arguments: Json, authority: String) -> PreparedUndo {
        let rule = self.services.policy.rule_for(&ActionFacts::new(&action, &arguments));
        let rule = if request::speaks_graphql(&arguments) { rule.of_mutation() } else { rule };
        PreparedUndo { action, arguments, authority, rule: as_undo(rule) }
    }

    /// The call without a look at whom it would reach.
    fn as_kept(&self) -> PreparedUndo {
        let arguments = match &self.undoable.call {
            UndoCall::Mcp { arguments, .. } => {
                Json::object([("args", json::parse(arguments).unwrap_or(Json::Null))])
            }
            UndoCall::Http { method, url, body } => {
                UndoCallHttp { method, url, body: body.as_ref() }.arguments()
            }
            UndoCall::Command { argv, .. } => {
                Json::object([("argv", Json::Array(argv.iter().map(|word| Json::str(word)).collect()))])
            }
        };
        self.prepared(self.undoable.call.action(), arguments, String::new())
    }

    fn intent(&self, prepared: &PreparedUndo) -> Intent {
        let PreparedUndo { action, arguments, authority, rule } = prepared;
        let UndoRequest { tenant, principal, by, reason, .. } = self.request;
        let ask = Ask {
            tenant,
            principal,
            authority,
            action,
            arguments,
            run: None,
            key: None,
            again: None,
            asked_by: AskedBy::Person,
            call_id: None,
            live_connection: false,
            serialize_by: None,
            replay_refusals: false,
        };
        let secret = self.gate.ledger.secret();
        let Undoable { effect, call } = &self.undoable;
        // As it was kept, and by no rule: whatever the policy says by now, it is the same undo.
        let kept = Json::object([("undo", Json::str(&call.to_string()))]);
        let as_kept = Ask { action: &call.action(), arguments: &kept, ..ask.clone() };
        let unsorted = Rule { sorting: Sorting::default(), key_required: false, ..rule.clone() };
        let plain = Intent::of(&as_kept, &unsorted, secret).expect("no key is required");
        let by_rule = Intent::of(&ask, rule, secret).unwrap_or_else(|_| plain.clone());
        let undoes = Undoes { effect: effect.id, by: by.clone(), reason: reason.clone() };
        by_rule.to_undo(&plain, effect, undoes, secret)
    }
}

/// Every undo is consequential: nobody wants a thing taken back twice.
fn as_undo(rule: Arc<Rule>) -> Rule {
    Rule { class: Class::Consequential, converges: false, ..Arc::unwrap_or_clone(rule) }
}

fn tool_call(server: &Server, tool: &str, arguments: &str) -> Result<ToolCall, String> {
    let meta = era::meta_for(server);
    let meta = if meta == "{}" { String::new() } else { format!(r#","_meta":{meta}"#) };
    let name = crate::wire::members::quoted(tool);
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":{name},"arguments":{arguments}{meta}}}}}"#
    );
    let message = Message::parse(Bytes::from(text)).map_err(|error| error.to_string())?;
    ToolCall::read(&Id::text("undo"), &message, |_| None).map_err(|bad| bad.to_string())
}

/// No upstream could carry it out, and why.
struct NoUpstream(String);

#[async_trait]
impl Upstream for NoUpstream {
    async fn prepare(&mut self) -> Result<(), NotStarted> {
        Err(NotStarted { why: self.0.clone(), data: Value::Null })
    }

    async fn send(&mut self, _: Sending<'_>) -> Sent {
        unreachable!("nothing is sent that could not be prepared")
    }

    async fn probe(&mut self, _: &Probe, _: Option<&Effect>) -> ProbeAnswer {
        ProbeAnswer::Unknown { why: self.0.clone() }
    }

    fn sends_while_alive(&self) -> bool {
        false
    }

    fn view(&self) -> Option<CallView> {
        None
    }

    fn join(&mut self, _: &Effect, _: AttemptNo) {}

    fn release(&mut self) {}
}
