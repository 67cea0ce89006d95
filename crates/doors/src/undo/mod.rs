//! Taking an effect back: the call that was kept with it, carried out as an effect of its own.
//!
//! Not a door: nobody calls an undo by its arguments. Whoever may ask for one names the effect.

mod request;

use crate::ask::asks::Asks;
use crate::ask::{Asker, Lent, Matter};
use crate::command::intent::CommandLine;
use crate::command::serve::{CommandUpstream, Options, Show};
use crate::hall::Hall;
use crate::mcp::call::ToolCall;
use crate::mcp::id::Id;
use crate::mcp::message::Message;
use crate::mcp::server::Server;
use crate::mcp::upstream::ToolUpstream;
use crate::mcp::{era, intent as tool_intent, probe};
use crate::runtime::ServedGate;
use bytes::Bytes;
use request::RequestUpstream;
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
use semel_gate::undo::Undoable;
use semel_gate::upstream::{CallView, NotStarted, ProbeAnswer, Sending, Sent, Upstream};
use semel_gate::{Error, Passed};
use serde_json::{Value, json};
use std::sync::Arc;

/// Somebody wants an effect back.
#[derive(Debug, Clone)]
pub struct Asked {
    pub effect: EffectId,
    /// From the credential, never from what was asked.
    pub tenant: String,
    pub principal: String,
    /// Who it is, as the ledger names people.
    pub by: String,
    pub reason: Reason,
    pub dry_run: bool,
    /// This process does nothing else. A command inherits the lock of the process that runs it, and with it all that
    /// the process holds, so one that serves others runs none.
    pub alone: bool,
    /// Where the output of a command goes.
    pub show: Show,
}

/// One undo on its way.
struct Undoing<'a> {
    hall: &'a Hall,
    gate: &'a ServedGate,
    asked: &'a Asked,
    undoable: Undoable,
}

/// The call that takes it back, as the gate wants it.
struct Prepared {
    action: String,
    arguments: Json,
    /// Tells two servers of one name apart.
    authority: String,
    rule: Rule,
}

/// Takes an effect back, once, whoever else is at it; or answers why not. Within a runtime.
pub async fn carry_out(hall: &Hall, asked: &Asked) -> Result<Passed, Error> {
    let gate = hall
        .gate
        .as_ref()
        .map_err(|why| Error::Ledger(semel_ledger::Error::NotWritten { what: why.clone() }))?;
    let undoable = match gate.undoable(asked.effect, &asked.tenant).await? {
        Ok(undoable) => undoable,
        Err(passed) => return Ok(*passed),
    };
    let undoing = Undoing { hall, gate, asked, undoable };
    if undoing.undoable.effect.undone.is_some() {
        return undoing.nobody().await;
    }
    match undoing.undoable.call.clone() {
        UndoCall::Command { argv, cwd } => undoing.by_command(argv, cwd).await,
        UndoCall::Http { .. } => undoing.by_request().await,
        UndoCall::Mcp { server, tool, arguments } => undoing.by_tool(&server, &tool, &arguments).await,
    }
}

impl Undoing<'_> {
    async fn by_command(&self, argv: Vec<String>, cwd: String) -> Result<Passed, Error> {
        let line = CommandLine { argv, cwd, input: None };
        let prepared = self.prepared(line.action(), line.arguments(), String::new());
        let intent = self.intent(&prepared);
        if self.asked.dry_run {
            return self.dry_run(&intent, &prepared.rule).await;
        }
        if !self.asked.alone {
            let trouble = wording::undo_by_hand(&self.undoable.effect);
            return Ok(Passed::refused(&self.undoable.effect, trouble));
        }
        let Hall { policy, clock, .. } = self.hall;
        let means = Arc::clone(&self.hall.means);
        let options = Options {
            show: self.asked.show,
            pass_input: false,
            effect: None,
            means,
            waits: None,
            output_drain: None,
        };
        let holders = self.gate.ledger.holders();
        let action = prepared.action.clone();
        let mut upstream =
            CommandUpstream::new(&line, action, (&prepared.rule, policy), holders, clock, options);
        let passed = self.gate.undo(&self.undoable, &intent, &prepared.rule, &mut upstream).await?;
        upstream.deliver();
        let reply = upstream.view().and_then(|view| view.places.get("reply").cloned());
        self.confirmed(passed, &prepared, reply.unwrap_or(Json::Null)).await
    }

    async fn by_request(&self) -> Result<Passed, Error> {
        let UndoCall::Http { method, url, body } = &self.undoable.call else { return self.nobody().await };
        let arguments = request::arguments(url, body.as_ref());
        let action = request::action(method, url, &self.hall.policy);
        let mut prepared = self.prepared(action, arguments, String::new());
        // Only a header carries the key here; a rule that puts it elsewhere is one without.
        prepared.rule.inject =
            prepared.rule.inject.filter(|inject| matches!(inject.into, InjectInto::Header(_)));
        let intent = self.intent(&prepared);
        if self.asked.dry_run {
            return self.dry_run(&intent, &prepared.rule).await;
        }
        let asker = self.asker(&prepared, None);
        let upstream = RequestUpstream::new((method, url, body.as_ref()), &prepared.rule, asker);
        let mut upstream = match upstream {
            Ok(upstream) => upstream,
            Err(why) => {
                return self.gate.undo(&self.undoable, &intent, &prepared.rule, &mut Nobody(why)).await;
            }
        };
        let passed = self.gate.undo(&self.undoable, &intent, &prepared.rule, &mut upstream).await?;
        let reply = upstream.heard.take().unwrap_or(Json::Null);
        self.confirmed(passed, &prepared, reply).await
    }

    async fn by_tool(&self, server: &str, tool: &str, arguments: &str) -> Result<Passed, Error> {
        if self.asked.dry_run {
            return self.nobody().await;
        }
        let (server, started) = match self.hall.means.server(server).await {
            Ok(server) => server,
            Err(why) => {
                let prepared = self.as_kept();
                let intent = self.intent(&prepared);
                let mut nobody = Nobody(why);
                return self.gate.undo(&self.undoable, &intent, &prepared.rule, &mut nobody).await;
            }
        };
        let passed = self.with_tool(&server, tool, arguments).await;
        if started {
            crate::ask::means::end(&server).await;
        }
        passed
    }

    async fn with_tool(&self, server: &Server, tool: &str, arguments: &str) -> Result<Passed, Error> {
        let call = match tool_call(server, tool, arguments) {
            Ok(call) => call,
            Err(why) => {
                let prepared = self.as_kept();
                let intent = self.intent(&prepared);
                return self.gate.undo(&self.undoable, &intent, &prepared.rule, &mut Nobody(why)).await;
            }
        };
        let tools = server.tools(&call.meta()).await;
        let rule = tool_intent::rule(&self.hall.policy, server, &call, tools.get(tool).map(AsRef::as_ref));
        let prepared = Prepared {
            action: server.action(tool),
            arguments: call.arguments.clone(),
            authority: server.authority.clone(),
            rule: as_undo(rule),
        };
        let intent = self.intent(&prepared);
        let rule = &prepared.rule;
        let mut upstream = ToolUpstream::new(self.hall, server, &call, rule);
        let mut passed = self.gate.undo(&self.undoable, &intent, rule, &mut upstream).await?;
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
        if self.asked.dry_run {
            return self.dry_run(&intent, &prepared.rule).await;
        }
        let mut nobody = Nobody("it has been undone".into());
        self.gate.undo(&self.undoable, &intent, &prepared.rule, &mut nobody).await
    }

    async fn dry_run(&self, intent: &Intent, rule: &Rule) -> Result<Passed, Error> {
        let mut nobody = Nobody("nobody is asked by a dry run of an undo".into());
        let mut answer = self.gate.dry_run(intent, rule, &mut nobody).await?;
        if let Some(dry_run) = &mut answer.dry_run
            && dry_run.would == semel_core::answer::Would::Run
        {
            let what = format!("undo {}: {}", self.asked.effect, self.undoable.call);
            dry_run.changes = vec![json!({"what": what})];
        }
        Ok(Passed { answer, reply: semel_gate::GivenReply::None, delivery: None })
    }

    /// An undo is an effect: where the rule of its action says how, its truth is asked for too.
    async fn confirmed(&self, mut passed: Passed, prepared: &Prepared, reply: Json) -> Result<Passed, Error> {
        let (Some(confirm), Some(done)) =
            (&prepared.rule.confirm, self.gate.unconfirmed(&prepared.rule, &mut passed))
        else {
            return Ok(passed);
        };
        let mut asks = Asks { asker: self.asker(prepared, Some(&reply)), confirm };
        let confirmed = self.gate.confirm(confirm, &done, &mut asks).await?;
        self.gate.confirmed_answer(passed, confirmed).await
    }

    fn asker<'b>(&'b self, prepared: &'b Prepared, reply: Option<&'b Json>) -> Asker<'b> {
        let Prepared { action, arguments, .. } = prepared;
        let matter = Matter { action, arguments, effect: None, reply, lent: Lent::Nothing };
        Asker { means: &self.hall.means, policy: &self.hall.policy, matter, signals: None }
    }

    fn prepared(&self, action: String, arguments: Json, authority: String) -> Prepared {
        let rule = self.hall.policy.rule_for(&ActionFacts::new(&action, &arguments));
        let rule = if request::speaks_graphql(&arguments) { rule.of_mutation() } else { rule };
        Prepared { action, arguments, authority, rule: as_undo(rule) }
    }

    /// The call without a look at whom it would reach.
    fn as_kept(&self) -> Prepared {
        let arguments = match &self.undoable.call {
            UndoCall::Mcp { arguments, .. } => {
                Json::object([("args", json::parse(arguments).unwrap_or(Json::Null))])
            }
            UndoCall::Http { url, body, .. } => request::arguments(url, body.as_ref()),
            UndoCall::Command { argv, .. } => {
                Json::object([("argv", Json::Array(argv.iter().map(|word| Json::str(word)).collect()))])
            }
        };
        self.prepared(self.undoable.call.action(), arguments, String::new())
    }

    fn intent(&self, prepared: &Prepared) -> Intent {
        let Prepared { action, arguments, authority, rule } = prepared;
        let Asked { tenant, principal, by, reason, .. } = self.asked;
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

/// Whatever its action is by itself: nobody wants a thing taken back twice.
fn as_undo(rule: Arc<Rule>) -> Rule {
    Rule { class: Class::Consequential, ..Arc::unwrap_or_clone(rule) }
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

/// Nobody who could carry it out, and why.
struct Nobody(String);

impl Upstream for Nobody {
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

    fn let_go(&mut self) {}
}
