//! Tasks that a client was given a handle of. The answer of their call has reached it once it has learnt their end, and
//! it learns that by questions of its own, which pass.

use super::call::ToolCall;
use super::classify::TaskEra;
use super::connection::Connection;
use super::message::Message;
use crate::delivery::Delivery;
use crate::services::Services;
use crate::wire::members::Members;
use semel_core::ids::EffectId;
use semel_core::json::{self, Json};
use semel_ledger::RecordSnapshot;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::Notify;

/// Of more the oldest are forgotten: they count as undelivered.
const TASKS_MAX: usize = 1_000;

/// Of more nobody knows whose they were, and nobody is told of them.
const OWNERS_MAX: usize = 100_000;

#[derive(Debug, Default)]
pub struct Tasks {
    followed: Mutex<VecDeque<(Name, Progress)>>,
    /// The caller that was given each handle. A process that serves many takes them all for one.
    owners: Mutex<HashMap<String, String>>,
    running: Mutex<HashMap<EffectId, Running>>,
}

/// A task whose effect is in flight, and the answer that it began with.
#[derive(Debug)]
pub struct Running {
    pub whose: String,
    pub connection: Weak<Connection>,
    pub era: TaskEra,
    pub handle: Message,
}

/// Nobody is given the handle any more once this is gone.
#[derive(Debug)]
pub struct Runs<'a> {
    tasks: &'a Tasks,
    effect: EffectId,
}

impl Drop for Runs<'_> {
    fn drop(&mut self) {
        self.tasks.running().remove(&self.effect);
    }
}

/// Whose task, and its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    pub whose: String,
    pub id: String,
}

#[derive(Debug)]
enum Progress {
    /// Neither semel nor the client has learnt its end. If the client does first, semel asks at once.
    Working(Arc<Notify>),
    /// The client has, and semel has not yet.
    Told,
    /// The other way round.
    Ended(Box<RecordSnapshot>),
}

impl Tasks {
    /// A client gets the handle of a task, which is its own from now on.
    pub fn belongs(&self, name: &Name) {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        if owners.len() >= OWNERS_MAX {
            owners.clear();
        }
        owners.insert(name.id.clone(), name.whose.clone());
    }

    pub fn is_of(&self, whose: &str, id: &str) -> bool {
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.get(id).is_some_and(|owner| owner == whose)
    }

    /// The task of this effect is at work until what is returned is dropped.
    pub fn runs(&self, effect: EffectId, running: Running) -> Runs<'_> {
        self.running().insert(effect, running);
        Runs { tasks: self, effect }
    }

    /// The handle of the task that this effect is, for a call that can do something with it: one of the same caller
    /// that wants a task. A server of the 2025 era may know its tasks in one session alone.
    pub fn handle_of(
        &self,
        effect: EffectId,
        whose: &str,
        connection: &Arc<Connection>,
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

    fn running(&self) -> MutexGuard<'_, HashMap<EffectId, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client is about to get the handle. What is returned tells that it has learnt the end.
    pub fn begun(&self, name: Name) -> Arc<Notify> {
        self.belongs(&name);
        let mut known = self.lock();
        if known.len() >= TASKS_MAX {
            known.pop_front();
        }
        let learnt: Arc<Notify> = Arc::default();
        known.push_back((name, Progress::Working(Arc::clone(&learnt))));
        learnt
    }

    /// A client gets the handle of a task once more whose end is recorded: it may learn that now.
    pub fn given_again(&self, name: Name, found: RecordSnapshot) {
        self.belongs(&name);
        let mut known = self.lock();
        if known.len() >= TASKS_MAX {
            known.pop_front();
        }
        if !known.iter().any(|(known, _)| *known == name) {
            known.push_back((name, Progress::Ended(Box::new(RecordSnapshot { reply: None, ..found }))));
        }
    }

    /// The record of its end, if the client has not learnt that yet.
    fn end_of(&self, name: &Name) -> Option<RecordSnapshot> {
        self.lock().iter().find_map(|(known, progress)| match progress {
            Progress::Ended(found) if known == name => Some(RecordSnapshot::clone(found)),
            _ => None,
        })
    }

    /// Its end is recorded.
    pub fn ended(&self, services: &Arc<Services>, name: &Name, found: Option<Found>) {
        let mut known = self.lock();
        let Some(at) = known.iter().position(|(known, _)| known == name) else { return };
        match (&known[at].1, found) {
            // A mark does not need the reply.
            (Progress::Working(_), Some(found)) => {
                known[at].1 = Progress::Ended(Box::new(RecordSnapshot { reply: None, ..found }));
            }
            (Progress::Told, found) => {
                known.remove(at);
                drop(known);
                mark(services, found);
            }
            (_, _) => drop(known.remove(at)),
        }
    }

    /// The client has got its end; what is on record of that.
    fn told(&self, name: &Name) -> Option<RecordSnapshot> {
        let mut known = self.lock();
        let at = known.iter().position(|(known, _)| known == name)?;
        match std::mem::replace(&mut known[at].1, Progress::Told) {
            Progress::Ended(found) => {
                known.remove(at);
                return Some(*found);
            }
            Progress::Working(learnt) => learnt.notify_one(),
            Progress::Told => {}
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Name, Progress)>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn mark(services: &Arc<Services>, found: Option<Found>) {
    Delivery::of(services, found, None).into_iter().for_each(Delivery::mark);
}

/// The end of a task, on its way to the client.
#[derive(Debug, Clone)]
pub struct Telling {
    services: Arc<Services>,
    tasks: Arc<Tasks>,
    task: Name,
    /// There before it leaves: a client may call again the moment it has it.
    delivery: Option<Delivery>,
}

impl Telling {
    /// It has left. Within a runtime.
    pub fn has_left(self) {
        let found = self.tasks.told(&self.task);
        match self.delivery {
            Some(delivery) => delivery.mark(),
            None => mark(&self.services, found),
        }
    }
}

/// Whether an error says that there is no such task. Any other may be over in a moment.
fn is_unknown(error: &str) -> bool {
    Members::parse(error).is_some_and(|error| error.get("code") == Some("-32602"))
}

/// The task that a request is about, whatever it wants of it.
pub fn task_of(method: &str, params: &str) -> Option<String> {
    let names_one = matches!(method, "tasks/get" | "tasks/result" | "tasks/cancel" | "tasks/update");
    names_one.then(|| Members::parse(params)?.text("taskId").map(|id| id.into_owned()))?
}

/// A listing of tasks with those alone that are wanted.
pub fn listing_of(result: &str, is_wanted: impl Fn(&str) -> bool) -> Option<String> {
    let mut result = json::parse(result).ok()?;
    let Json::Object(members) = &mut result else { return None };
    let Some(Json::Array(tasks)) = members.get_mut("tasks") else { return None };
    tasks.retain(|task| task.get("taskId").and_then(Json::as_str).is_some_and(&is_wanted));
    Some(result.canonical())
}

/// A client's question for a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    task: Name,
    wants: Wants,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wants {
    State,
    Result,
}

impl Question {
    pub fn read(method: &str, params: &str, whose: impl FnOnce() -> String) -> Option<Question> {
        let wants = match method {
            "tasks/get" => Wants::State,
            "tasks/result" => Wants::Result,
            _ => return None,
        };
        let id = Members::parse(params)?.text("taskId")?.into_owned();
        Some(Question { task: Name { whose: whose(), id }, wants })
    }

    /// To be run once its answer has left, if that tells the end; `Err` is an error.
    pub fn answered(
        self,
        services: &Arc<Services>,
        tasks: &Arc<Tasks>,
        answer: Result<&str, &str>,
    ) -> Option<Telling> {
        let end = tasks.end_of(&self.task);
        let tells = match answer {
            Ok(answer) => self.is_told_end(answer),
            // From a server that does not know an ended task any more nobody can learn more than that.
            Err(error) => is_unknown(error) && end.is_some(),
        };
        tells.then(|| Telling {
            services: Arc::clone(services),
            tasks: Arc::clone(tasks),
            task: self.task,
            delivery: Delivery::of(services, end, None),
        })
    }

    /// The result itself is the end, or a state that has it, or that will never have one.
    fn is_told_end(&self, answer: &str) -> bool {
        let members = Members::parse(answer).unwrap_or_default();
        match (self.wants, members.text("status").as_deref()) {
            (Wants::Result, _) | (Wants::State, Some("failed" | "cancelled")) => true,
            (Wants::State, Some("completed")) => members.get("result").is_some(),
            (Wants::State, _) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(method: &str) -> Question {
        Question::read(method, r#"{"taskId":"t"}"#, || "ann".to_owned()).unwrap()
    }

    #[test]
    fn a_state_is_no_end() {
        for (method, answer, is_end) in [
            ("tasks/get", r#"{"taskId":"t","status":"working"}"#, false),
            ("tasks/get", r#"{"taskId":"t","status":"input_required"}"#, false),
            // 2025: the result is asked for separately.
            ("tasks/get", r#"{"taskId":"t","status":"completed"}"#, false),
            ("tasks/get", r#"{"taskId":"t","status":"completed","result":{"content":[]}}"#, true),
            ("tasks/get", r#"{"taskId":"t","status":"failed"}"#, true),
            ("tasks/result", r#"{"content":[],"status":"working"}"#, true),
        ] {
            assert_eq!(question(method).is_told_end(answer), is_end, "{method} {answer}");
        }
    }

    #[test]
    fn trouble_is_not_ignorance() {
        assert!(is_unknown(r#"{"code":-32602,"message":"no such task"}"#));
        assert!(!is_unknown(r#"{"code":-32603,"message":"try again"}"#) && !is_unknown("null"));
    }

    #[test]
    fn a_listing_shows_what_is_wanted() {
        let listing = r#"{"tasks":[{"taskId":"a"},{"taskId":"b"},{}],"nextCursor":"c"}"#;
        let own = listing_of(listing, |id| id == "b");
        assert_eq!(own.as_deref(), Some(r#"{"nextCursor":"c","tasks":[{"taskId":"b"}]}"#));
        assert_eq!(listing_of("[]", |_| true), None);
        assert_eq!(task_of("tasks/cancel", r#"{"taskId":"a"}"#).as_deref(), Some("a"));
        assert_eq!((task_of("tasks/list", r#"{"taskId":"a"}"#), task_of("tasks/get", "{}")), (None, None));
    }

    #[test]
    fn only_questions_for_a_task_are_looked_at() {
        assert_eq!(question("tasks/get").task, Name { whose: "ann".into(), id: "t".into() });
        for (method, params) in [("tasks/cancel", r#"{"taskId":"t"}"#), ("tasks/get", "{}")] {
            assert_eq!(Question::read(method, params, String::new), None, "{method} {params}");
        }
    }
}
