//! The requests by which a client asks for a task, and the delivery of the end that it learns by them.

use super::registry::{TaskKey, Tasks};
use crate::delivery::Delivery;
use crate::services::Services;
use crate::wire::members::Members;
use semel_core::json::{self, Json};
use std::sync::Arc;

/// The end of a task, on its way to the client.
#[derive(Debug, Clone)]
pub struct TaskEndDelivery {
    services: Arc<Services>,
    tasks: Arc<Tasks>,
    task: TaskKey,
    /// There before it leaves: a client may call again the moment it has it.
    delivery: Option<Delivery>,
}

impl TaskEndDelivery {
    /// It has left. Within a runtime.
    pub fn has_left(self) {
        let found = self.tasks.take_end(&self.task);
        match self.delivery {
            Some(delivery) => delivery.mark(),
            None => Delivery::of(&self.services, found, None).into_iter().for_each(Delivery::mark),
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

/// A client's request for the state or the result of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskQuery {
    task: TaskKey,
    wants: Wants,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wants {
    State,
    Result,
}

impl TaskQuery {
    pub fn read(method: &str, params: &str, whose: impl FnOnce() -> String) -> Option<TaskQuery> {
        let wants = match method {
            "tasks/get" => Wants::State,
            "tasks/result" => Wants::Result,
            _ => return None,
        };
        let id = Members::parse(params)?.text("taskId")?.into_owned();
        Some(TaskQuery { task: TaskKey { whose: whose(), id }, wants })
    }

    /// To be run once its answer has left, if that tells the end; `Err` is an error.
    pub fn answered(
        self,
        services: &Arc<Services>,
        tasks: &Arc<Tasks>,
        answer: Result<&str, &str>,
    ) -> Option<TaskEndDelivery> {
        let end = tasks.end_of(&self.task);
        let tells = match answer {
            Ok(answer) => self.is_told_end(answer),
            // From a server that does not know an ended task any more no client can learn more than that.
            Err(error) => is_unknown(error) && end.is_some(),
        };
        tells.then(|| TaskEndDelivery {
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

    fn query(method: &str) -> TaskQuery {
        TaskQuery::read(method, r#"{"taskId":"t"}"#, || "ann".to_owned()).unwrap()
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
            assert_eq!(query(method).is_told_end(answer), is_end, "{method} {answer}");
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
        assert_eq!(query("tasks/get").task, TaskKey { whose: "ann".into(), id: "t".into() });
        for (method, params) in [("tasks/cancel", r#"{"taskId":"t"}"#), ("tasks/get", "{}")] {
            assert_eq!(TaskQuery::read(method, params, String::new), None, "{method} {params}");
        }
    }
}
