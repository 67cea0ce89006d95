//! Tasks that a client was given a handle of. The answer of their call has reached it once it has learnt their end,
//! which it asks for with requests of its own (`task_query`).

use crate::mcp::call::ToolCall;
use crate::mcp::classify::TaskEra;
use crate::mcp::connection::ClientConnection;
use crate::mcp::message::Message;
use semel_core::ids::EffectId;
use semel_ledger::RecordSnapshot;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::Notify;

/// Of more the oldest are forgotten: they count as undelivered.
const TASKS_MAX: usize = 1_000;

/// Of more it is not known whose they were, and no client is shown them.
const OWNERS_MAX: usize = 100_000;

#[derive(Debug, Default)]
pub struct Tasks {
    followed: Mutex<VecDeque<(TaskKey, TaskProgress)>>,
    /// The caller that was given each handle. A process that serves many takes them all for one.
    owners: Mutex<HashMap<String, String>>,
    running: Mutex<HashMap<EffectId, RunningTask>>,
}

/// A task whose effect is in flight, and the answer that it began with.
#[derive(Debug)]
pub struct RunningTask {
    pub whose: String,
    pub connection: Weak<ClientConnection>,
    pub era: TaskEra,
    pub handle: Message,
}

/// The handle is given to no caller any more once this is gone.
#[derive(Debug)]
pub struct RunningGuard<'a> {
    tasks: &'a Tasks,
    effect: EffectId,
}

impl Drop for RunningGuard<'_> {
    fn drop(&mut self) {
        self.tasks.running().remove(&self.effect);
    }
}

/// Whose task, and its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskKey {
    pub whose: String,
    pub id: String,
}

#[derive(Debug)]
enum TaskProgress {
    /// Neither semel nor the client has learnt its end. If the client does first, semel asks at once.
    Working(Arc<Notify>),
    /// The client has, and semel has not yet.
    Told,
    /// The other way round.
    Ended(Box<RecordSnapshot>),
}

impl Tasks {
    /// A client gets the handle of a task, which is its own from now on.
    pub fn set_owner(&self, name: &TaskKey) {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        if owners.len() >= OWNERS_MAX {
            owners.clear();
        }
        owners.insert(name.id.clone(), name.whose.clone());
    }

    pub fn is_owned_by(&self, whose: &str, id: &str) -> bool {
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.get(id).is_some_and(|owner| owner == whose)
    }

    /// The task of this effect is at work until the returned guard is dropped.
    pub fn set_running(&self, effect: EffectId, running: RunningTask) -> RunningGuard<'_> {
        self.running().insert(effect, running);
        RunningGuard { tasks: self, effect }
    }

    /// The handle of the task that this effect is, for a call that can do something with it: one of the same caller
    /// that wants a task. A server of the 2025 era may know its tasks in one session alone.
    pub fn handle_of(
        &self,
        effect: EffectId,
        whose: &str,
        connection: &Arc<ClientConnection>,
        call: &ToolCall,
    ) -> Option<Message> {
        let running = self.running();
        let task = running.get(&effect).filter(|task| task.whose == whose)?;
        let fits = match task.era {
            TaskEra::Result => call.wants_task && task.connection.as_ptr() == Arc::as_ptr(connection),
            TaskEra::Inline => call.takes_tasks,
        };
        fits.then(|| task.handle.clone())
    }

    fn running(&self) -> MutexGuard<'_, HashMap<EffectId, RunningTask>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client is about to get the handle. The returned value is notified once the client has learnt the end.
    pub fn begin(&self, name: TaskKey) -> Arc<Notify> {
        self.set_owner(&name);
        let mut known = self.lock();
        if known.len() >= TASKS_MAX {
            known.pop_front();
        }
        let learnt: Arc<Notify> = Arc::default();
        known.push_back((name, TaskProgress::Working(Arc::clone(&learnt))));
        learnt
    }

    /// A client gets the handle of a task once more whose end is recorded: it may learn that now.
    pub fn begin_ended(&self, name: TaskKey, found: RecordSnapshot) {
        self.set_owner(&name);
        let mut known = self.lock();
        if known.len() >= TASKS_MAX {
            known.pop_front();
        }
        if !known.iter().any(|(known, _)| *known == name) {
            known.push_back((name, TaskProgress::Ended(Box::new(RecordSnapshot { reply: None, ..found }))));
        }
    }

    /// The record of its end, if the client has not learnt that yet.
    pub fn end_of(&self, name: &TaskKey) -> Option<RecordSnapshot> {
        self.lock().iter().find_map(|(known, progress)| match progress {
            TaskProgress::Ended(found) if known == name => Some(RecordSnapshot::clone(found)),
            _ => None,
        })
    }

    /// Its end is recorded. Gives that back if the client has learnt it before: then it is delivered.
    pub fn record_end(&self, name: &TaskKey, found: Option<RecordSnapshot>) -> Option<RecordSnapshot> {
        let mut known = self.lock();
        let at = known.iter().position(|(known, _)| known == name)?;
        match (&known[at].1, found) {
            // A mark does not need the reply.
            (TaskProgress::Working(_), Some(found)) => {
                known[at].1 = TaskProgress::Ended(Box::new(RecordSnapshot { reply: None, ..found }));
                None
            }
            (TaskProgress::Told, found) => {
                known.remove(at);
                found
            }
            (_, _) => {
                known.remove(at);
                None
            }
        }
    }

    /// The client has got its end; the record of that.
    pub fn take_end(&self, name: &TaskKey) -> Option<RecordSnapshot> {
        let mut known = self.lock();
        let at = known.iter().position(|(known, _)| known == name)?;
        match std::mem::replace(&mut known[at].1, TaskProgress::Told) {
            TaskProgress::Ended(found) => {
                known.remove(at);
                return Some(*found);
            }
            TaskProgress::Working(learnt) => learnt.notify_one(),
            TaskProgress::Told => {}
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(TaskKey, TaskProgress)>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
