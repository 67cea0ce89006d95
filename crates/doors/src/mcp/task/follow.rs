//! A tool that answers with a task: its effect is in flight until the task has ended, and semel asks for that itself.

use crate::mcp::call::ToolCall;
use crate::mcp::classify::{AnswerMeaning, AnswerReading, ReadContext, TaskEra, TaskHandle, read};
use crate::mcp::message::{Message, MessageKind, text};
use crate::mcp::server::Server;
use crate::runtime::RuntimeClock;
use crate::wire::members::{Members, quoted};
use bytes::Bytes;
use semel_gate::clock::Clock;
use semel_gate::look::Progress;
use std::time::Duration;
use tokio::sync::Notify;

/// How often a server that does not say is asked.
const POLL_EVERY: Duration = Duration::from_secs(1);
/// No server is asked more often, and none is left alone for longer, whatever it says.
const POLL_BOUNDS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));
/// How long a task that does not say is followed.
const LIVES_DEFAULT: Duration = Duration::from_secs(24 * 3600);
/// A server that cannot be asked this many times in a row no longer knows.
const FAILURES_MAX: usize = 5;

/// A task, and the call that began it.
#[derive(Debug, Clone, Copy)]
pub struct FollowedTask<'a> {
    pub server: &'a Server,
    pub call: &'a ToolCall,
    /// How its end is read.
    pub by: ReadContext<'a>,
    pub handle: &'a TaskHandle,
}

/// How a task ended, as far as its server said.
#[derive(Debug)]
pub struct TaskEnd {
    pub reading: AnswerReading,
    /// The answer that the call would have had without a task.
    pub response: Option<Message>,
}

impl FollowedTask<'_> {
    /// Asks now and then, and at once when the client has `learnt` the end.
    pub async fn follow(self, clock: &RuntimeClock, learnt: &Notify, progress: &Progress) -> TaskEnd {
        let TaskHandle { poll_every_ms, lives_ms, id, .. } = self.handle;
        let every =
            poll_every_ms.map_or(POLL_EVERY, Duration::from_millis).clamp(POLL_BOUNDS.0, POLL_BOUNDS.1);
        let lives = lives_ms.map_or(LIVES_DEFAULT, Duration::from_millis).min(LIVES_DEFAULT);
        let begun = clock.elapsed();
        let mut failures = 0;
        loop {
            // It may know a task for longer than it has promised, and what is at work is not over.
            let over = clock.elapsed().saturating_sub(begun);
            let silent = failures >= FAILURES_MAX || (failures > 0 && over >= lives);
            if silent || over >= LIVES_DEFAULT {
                break;
            }
            tokio::select! {
                () = clock.sleep(every) => {}
                () = learnt.notified() => {}
            }
            match self.ask("tasks/get").await {
                Some(state) => {
                    failures = 0;
                    progress.note(clock);
                    if let Some(ended) = self.read_end(&state).await {
                        return ended;
                    }
                }
                None => failures += 1,
            }
        }
        ambiguous(format!("the server no longer tells what became of task {id}"))
    }

    /// The task's end, once it has one.
    async fn read_end(self, state: &str) -> Option<TaskEnd> {
        let handle = self.handle;
        let members = Members::parse(state)?;
        let said = members.text("statusMessage").unwrap_or_default().into_owned();
        match members.text("status")?.as_ref() {
            "completed" => {
                let result = match handle.era {
                    TaskEra::Inline => members.get("result").map(str::to_owned),
                    TaskEra::Result => self.ask("tasks/result").await,
                };
                let is_known = result.is_some();
                let response =
                    format!(r#"{{"result":{}}}"#, result.unwrap_or_else(|| r#"{"content":[]}"#.into()));
                Some(match Message::parse(Bytes::from(response)) {
                    Ok(response) => TaskEnd {
                        reading: self.read(&response),
                        response: Some(response).filter(|_| is_known),
                    },
                    Err(problem) => ambiguous(problem.to_string()),
                })
            }
            "failed" => {
                let error = match members.get("error") {
                    Some(error) => format!(r#"{{"error":{error}}}"#),
                    None => format!(r#"{{"error":{{"code":0,"message":{}}}}}"#, quoted(&said)),
                };
                let response = Message::parse(Bytes::from(error)).ok()?;
                Some(TaskEnd { reading: self.read(&response), response: Some(response) })
            }
            // A task that stops half-way may have done half.
            "cancelled" => Some(ambiguous(format!("task {} was cancelled. {said}", handle.id))),
            _ => None,
        }
    }

    fn read(self, response: &Message) -> AnswerReading {
        read(response, self.by)
    }

    async fn ask(self, method: &str) -> Option<String> {
        let mut params = Members::default();
        params.set("taskId", quoted(&self.handle.id));
        let meta = self.call.meta();
        if meta != "{}" {
            params.set("_meta", meta);
        }
        let answer = self.server.ask(method, &params.to_string()).await.ok()?;
        let failed = matches!(answer.kind, MessageKind::Response { failed: true, .. });
        answer.body.as_ref().filter(|_| !failed).map(|body| text(body).to_owned())
    }
}

fn ambiguous(line: String) -> TaskEnd {
    TaskEnd { reading: AnswerReading { meaning: AnswerMeaning::Ambiguous, line }, response: None }
}
