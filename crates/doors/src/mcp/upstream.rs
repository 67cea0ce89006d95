//! A tool of a real server, as the gate sees it: one request out, one answer read; a question asked through a read
//! tool.

use super::call::{KeyUpstream, ToolCall};
use super::classify::{AnswerMeaning, AnswerReading, ReadContext, TaskHandle, read};
use super::connection::ClientConnection;
use super::effect_word::{by_name, effect_word};
use super::guarded_calls::Waiter;
use super::link::request::{Exchange, LinkRequest, RequestNews};
use super::message::{Message, MessageKind, text};
use super::probe::ProbeSubject;
use super::render;
use super::result::{self, value, words};
use super::route::GuardedCall;
use super::server::Server;
use super::task::follow::{FollowedTask, TaskEnd};
use super::task::record;
use super::task::registry::{RunningTask, TaskKey};
use crate::http::server::{Revocable, lets_send};
use crate::query::{Credentials, Subject};
use crate::redact::Secrets;
use crate::redact::result::NOT_TOLD;
use crate::services::Services;
use crate::wire::members::Members;
use async_trait::async_trait;
use semel_core::effect::{Effect, Evidence, LastSend, NotAppliedWhy, Reply};
use semel_core::ids::{AttemptNo, EffectId};
use semel_core::json::Json;
use semel_core::judgement::evidence;
use semel_core::outcome::Outcome;
use semel_core::policy::rule::{InjectInto, Probe, Rule};
use semel_gate::look::Progress;
use semel_gate::upstream::{CallView, NotStarted, ProbeAnswer, Sending, Sent, Upstream};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// A dry run changes nothing; one that takes longer has failed.
const OWN_DRY_RUN_TAKES_MAX: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct ToolUpstream<'a> {
    services: &'a Services,
    server: &'a Server,
    pub call: &'a ToolCall,
    pub rule: &'a Rule,
    /// The credential of its caller, where that can be revoked.
    token: Option<&'a Revocable>,
    /// Gets a task's handle at once: the client polls with it while the effect is still in flight.
    pub client: Option<WaitingClient>,
    /// The task that it then polls.
    pub task: Option<TaskKey>,
    /// The effect that is sent.
    effect: Option<EffectId>,
    /// Whether a failure of it that proves nothing is a doubt.
    must_happen_once: bool,
    /// Its caller has the handle of a task that another attempt began.
    has_handle: bool,
    /// The way to the server is ready, and nothing was sent on it.
    is_ready: bool,
    /// The newest answer of the server.
    pub live: Option<Message>,
    /// The reply, as a probe found it.
    found: Option<Json>,
}

/// The client that waits for the answer of a call.
#[derive(Debug)]
pub struct WaitingClient {
    pub whose: String,
    pub connection: Arc<ClientConnection>,
    pub waiter: Arc<Waiter>,
    pub handle: oneshot::Sender<Message>,
}

impl<'a> ToolUpstream<'a> {
    /// The tool of this call.
    pub fn new(
        services: &'a Services,
        server: &'a Server,
        call: &'a ToolCall,
        rule: &'a Rule,
    ) -> ToolUpstream<'a> {
        ToolUpstream {
            services,
            server,
            call,
            rule,
            token: None,
            client: None,
            task: None,
            effect: None,
            must_happen_once: true,
            has_handle: false,
            is_ready: false,
            live: None,
            found: None,
        }
    }

    /// The tool behind a guarded call.
    pub fn of(services: &'a Services, guarded: &'a GuardedCall) -> ToolUpstream<'a> {
        let GuardedCall { call, rule, server, token, .. } = guarded;
        ToolUpstream { token: token.as_ref(), ..ToolUpstream::new(services, server, call, rule) }
    }

    /// The newest answer of the server, and the task that its caller polls. A connection that was not used is given back.
    pub fn finish(mut self) -> (Option<Message>, Option<TaskKey>) {
        self.give_back();
        (self.live, self.task)
    }

    fn give_back(&mut self) {
        if std::mem::take(&mut self.is_ready) {
            self.server.link.give_back();
        }
    }

    /// The request for the server, with the upstream's idempotency key where the rule says so.
    fn request(&self, sending: &Sending<'_>) -> LinkRequest {
        let id = self.server.next_id();
        let inject = self.rule.sent_key().map(|inject| &inject.into);
        let put = match (inject, &sending.recorded) {
            (Some(InjectInto::Arg(name)), Some(recorded)) => {
                vec![(name.as_str(), Json::str(recorded.idempotency_key))]
            }
            _ => Vec::new(),
        };
        let key = match &sending.recorded {
            _ if !self.server.protocol().idempotency => KeyUpstream::Stripped,
            Some(recorded) if self.call.key.is_some() && recorded.effect.occurrence.number > 1 => {
                KeyUpstream::Instead(recorded.idempotency_key)
            }
            _ => KeyUpstream::AsItCame,
        };
        let frame = self.call.request(&id, key, &put);
        let attempt = sending.recorded.and_then(|recorded| recorded.effect.attempt(recorded.attempt));
        let last_moment = attempt.and_then(|attempt| match attempt.last_send {
            LastSend::By(last) => Some(last),
            LastSend::WhileAlive => None,
        });
        let news = RequestNews {
            token: self.call.progress_token.clone(),
            progress: sending.progress.clone(),
            clock: self.services.clock.clone(),
        };
        LinkRequest { id, frame, last_moment, is_read: false, news: Some(news) }
    }

    /// Asks the tool itself what it would do. Its rule says that this argument makes it change nothing.
    pub async fn own_dry_run(&self, name: &str, value: Json) -> Result<Value, String> {
        let id = self.server.next_id();
        let frame = self.call.request(&id, KeyUpstream::Stripped, &[(name, value)]);
        let asked = self.server.link.exchange(LinkRequest {
            id,
            frame,
            last_moment: None,
            is_read: false,
            news: None,
        });
        let answer = match tokio::time::timeout(OWN_DRY_RUN_TAKES_MAX, asked).await {
            Ok(exchange) => exchange.into_reply()?,
            Err(_) => return Err("it did not answer".to_owned()),
        };
        let members = Members::parse(answer.body.as_ref().map_or("null", text)).unwrap_or_default();
        let why = match answer.kind {
            MessageKind::Response { failed: true, .. } => {
                members.text("message").unwrap_or_default().into_owned()
            }
            _ if members.is_true("isError") => words(&members),
            _ => return Ok(result::value(&members).to_value()),
        };
        Err(why.trim().to_owned())
    }

    fn subject(&self) -> ProbeSubject<'a> {
        let ToolUpstream { services, server, call, rule, .. } = *self;
        ProbeSubject { services, server, call, rule }
    }

    fn read_context(&self, asked_for_task: bool) -> ReadContext<'_> {
        ReadContext { rule: self.rule, must_happen_once: self.must_happen_once, asked_for_task }
    }

    fn secrets(&self) -> Secrets {
        Secrets::of(&self.call.arguments, self.rule)
    }

    async fn outcome(&mut self, answer: Message, progress: &Progress) -> (Outcome, Option<Vec<u8>>) {
        let reading = read(&answer, self.read_context(self.call.wants_task));
        let AnswerReading { meaning, line } = self.redacted(reading, Some(&answer));
        let recorded = render::recorded(&answer, &self.secrets());
        let kept = match (&recorded, &answer.body) {
            (Some(_), _) => Reply::Kept,
            (None, Some(body)) => Reply::TooLarge(body.len() as u64),
            (None, None) => Reply::Unknown,
        };
        let applied = |evidence| {
            let word = effect_word(&answer, self.rule, &self.call.tool);
            Outcome::Applied { evidence, word, reply: kept }
        };
        let refused = |why| Outcome::NotApplied { why, reply: kept };
        let outcome = match meaning {
            AnswerMeaning::Succeeded => applied(evidence::of_success(self.rule, || {
                let result = answer.body.as_ref().and_then(|body| Members::parse(text(body)));
                value(&result.unwrap_or_default())
            })),
            AnswerMeaning::Accepted => applied(Evidence::Accepted),
            AnswerMeaning::Refused => refused(NotAppliedWhy::Refused(line)),
            AnswerMeaning::Reported => refused(NotAppliedWhy::Reported(line)),
            AnswerMeaning::AwaitingInput => refused(NotAppliedWhy::AwaitingInput),
            // It was sent whole, and once; what the server still does with it is what `quiet` is for.
            AnswerMeaning::Ambiguous => Outcome::InDoubt { why: line, sender_gone: true },
            AnswerMeaning::Task(handle) => return Box::pin(self.follow(answer, handle, progress)).await,
        };
        self.live = Some(answer);
        (outcome, recorded)
    }

    /// The meaning of an answer, with a line that may be written: it is made of the answer without its secrets.
    fn redacted(&self, reading: AnswerReading, answer: Option<&Message>) -> AnswerReading {
        let secrets = self.secrets();
        if !secrets.has_parts() {
            return reading;
        }
        let AnswerReading { meaning, line } = reading;
        let Some(answer) = answer else { return AnswerReading { meaning, line: secrets.out_of_page(line) } };
        let kept = render::recorded(answer, &secrets).and_then(|kept| Message::parse(kept.into()).ok());
        let again = kept.map(|kept| read(&kept, self.read_context(self.call.wants_task)));
        let line = again.filter(|again| again.meaning == meaning).map(|again| again.line);
        AnswerReading { meaning, line: line.unwrap_or_else(|| NOT_TOLD.to_owned()) }
    }

    /// A task is followed to its end. The record has its handle, which a repeat of the call must get, and its end, for a
    /// repeat that wants no task.
    async fn follow(
        &mut self,
        answer: Message,
        handle: TaskHandle,
        progress: &Progress,
    ) -> (Outcome, Option<Vec<u8>>) {
        let recorded = render::recorded(&answer, &self.secrets());
        let mut learnt = Arc::default();
        let mut _runs = None;
        if let Some(WaitingClient { whose, connection, handle: tell, .. }) = self.client.take() {
            _runs = self.effect.map(|effect| {
                let (whose, connection) = (whose.clone(), Arc::downgrade(&connection));
                let running = RunningTask { whose, connection, era: handle.era, handle: answer.clone() };
                self.server.tasks().set_running(effect, running)
            });
            let task = TaskKey { whose, id: handle.id.clone() };
            learnt = self.server.tasks().begin(task.clone());
            self.task = tell.send(answer.clone()).is_ok().then_some(task);
        }
        let followed = FollowedTask {
            server: self.server,
            call: self.call,
            by: self.read_context(false),
            handle: &handle,
        };
        let TaskEnd { reading, response } = followed.follow(&self.services.clock, &learnt, progress).await;
        let ended = self.redacted(reading, response.as_ref());
        let end = response.and_then(|response| render::recorded(&response, &self.secrets()));
        let recorded = match (recorded, end) {
            (Some(handle), Some(end)) => Some(record::with_end(handle, &end)),
            (handle, _) => handle,
        };
        self.live = Some(answer);
        let kept = if recorded.is_some() { Reply::Kept } else { Reply::Unknown };
        let outcome = match ended.meaning {
            AnswerMeaning::Succeeded | AnswerMeaning::Accepted => {
                let word = by_name(self.rule, &self.call.tool);
                Outcome::Applied { evidence: Evidence::Reported, word, reply: kept }
            }
            AnswerMeaning::Refused | AnswerMeaning::AwaitingInput => {
                Outcome::NotApplied { why: NotAppliedWhy::Refused(ended.line), reply: kept }
            }
            AnswerMeaning::Reported => {
                Outcome::NotApplied { why: NotAppliedWhy::Reported(ended.line), reply: kept }
            }
            AnswerMeaning::Ambiguous | AnswerMeaning::Task(_) => {
                Outcome::InDoubt { why: ended.line, sender_gone: true }
            }
        };
        (outcome, recorded)
    }
}

#[async_trait]
impl Upstream for ToolUpstream<'_> {
    async fn prepare(&mut self) -> Result<(), NotStarted> {
        // A call that was sent is finished for the next caller; one that was not is not begun without a caller.
        if self.client.as_ref().is_some_and(|client| client.waiter.gave_up()) {
            let why = "it was cancelled before anything was sent".to_owned();
            return Err(NotStarted { why, data: Value::Null });
        }
        if self.has_handle {
            let why = "its caller has the handle of a task".to_owned();
            return Err(NotStarted { why, data: Value::Null });
        }
        self.give_back();
        self.server.link.ready().await.map_err(|why| NotStarted { why, data: Value::Null })?;
        self.is_ready = true;
        lets_send(self.token).await
    }

    /// A caller that wants a task gets the one that is at work: its end is the answer of both.
    fn join(&mut self, effect: &Effect, _: AttemptNo) {
        let handle = self.client.as_ref().and_then(|client| {
            self.server.tasks().handle_of(effect.id, &client.whose, &client.connection, self.call)
        });
        if let Some(handle) = handle
            && let Some(client) = self.client.take()
        {
            self.has_handle = client.handle.send(handle).is_ok();
        }
    }

    /// Waits as long as it takes: an answer after the deadline still is evidence, and the caller is not kept by it.
    async fn send(&mut self, sending: Sending<'_>) -> Sent {
        let request = self.request(&sending);
        self.is_ready = false;
        self.effect = sending.recorded.map(|recorded| recorded.effect.id);
        self.must_happen_once = sending.must_happen_once(self.rule);
        let secrets = self.secrets();
        let page = |why| secrets.out_of_page(why);
        let in_doubt = |why| (Outcome::InDoubt { why, sender_gone: false }, None);
        let not_applied = |why| (Outcome::NotApplied { why, reply: Reply::Unknown }, None);
        let (outcome, reply) = match self.server.link.exchange(request).await {
            Exchange::Reply(answer) => self.outcome(answer, sending.progress).await,
            // A client that lost its session sends the call again: one that can be known by that is not sent twice.
            Exchange::Unclear(why) if self.must_happen_once || self.call.is_known_again() => {
                in_doubt(page(why))
            }
            Exchange::Unclear(why) => not_applied(NotAppliedWhy::Reported(page(why))),
            Exchange::Refused(why) => not_applied(NotAppliedWhy::Refused(page(why))),
            Exchange::NeverSent(why) => not_applied(NotAppliedWhy::NeverSent(why)),
            Exchange::Lost(why) => in_doubt(page(why)),
        };
        let outcome = match outcome {
            Outcome::Applied { .. } => outcome,
            other => secrets.out_of_outcome(other),
        };
        Sent { reply, ..Sent::of(outcome) }
    }

    async fn probe(&mut self, probe: &Probe, effect: Option<&Effect>) -> ProbeAnswer {
        let (answer, found) = self.subject().probe(probe, effect).await;
        self.found = found.or(self.found.take());
        answer
    }

    fn view(&self) -> Option<CallView> {
        let live = self.live.as_ref().and_then(|live| live.body.as_ref());
        let live = live.and_then(|body| Members::parse(text(body)));
        let reply = self.found.clone().or_else(|| live.map(|result| value(&result)));
        let action = self.server.action(&self.call.tool);
        let arguments = &self.call.arguments;
        let credentials = Credentials::None;
        let subject =
            Subject { action: &action, arguments, effect: None, reply: reply.as_ref(), credentials };
        let cwd = self.services.backends.shell.cwd.to_string_lossy().into_owned();
        Some(CallView { places: subject.places(), cwd })
    }

    /// The server is the upstream, not the sender: what it still does with a request is what `quiet` is for.
    fn sends_while_alive(&self) -> bool {
        false
    }

    fn release(&mut self) {}
}
