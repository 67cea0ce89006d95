//! Answers to requests that pass: how each is looked at on its way back, for every client and every link.

use crate::mcp::classify;
use crate::mcp::listing;
use crate::mcp::message::text;
use crate::mcp::server::Server;
use crate::mcp::task::query::{TaskEndDelivery, TaskQuery, listing_of};
use crate::mcp::task::registry::TaskKey;
use crate::services::Services;
use crate::wire::members::Members;
use bytes::Bytes;
use std::sync::Arc;

/// The request that an answer belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerCheck {
    /// Its answer goes on as it comes.
    None,
    Listing {
        first_page: bool,
    },
    /// How the two sides introduce themselves; `params` as the client sent them.
    Hello {
        method: String,
        params: Bytes,
        is_shared: bool,
    },
    Task(TaskQuery),
    /// A process that many clients share takes them for one: each is shown its own tasks.
    SharedTasks {
        whose: String,
    },
    /// The same process may begin a task for a call that only reads.
    SharedCall {
        whose: String,
    },
}

/// The outcome of looking at an answer.
#[derive(Debug, Default)]
pub struct CheckedAnswer {
    /// The result that goes out instead. `None`: as it came.
    pub result: Option<String>,
    /// To be run once it has left.
    pub task_end: Option<TaskEndDelivery>,
}

impl AnswerCheck {
    pub fn of(method: &str, params: &Bytes, is_shared: bool, whose: impl FnOnce() -> String) -> AnswerCheck {
        let params_text = if params.is_empty() { "{}" } else { text(params) };
        match method {
            "tools/list" => {
                let members = Members::parse(params_text).unwrap_or_default();
                AnswerCheck::Listing { first_page: members.get("cursor").is_none() }
            }
            "initialize" | "server/discover" => {
                AnswerCheck::Hello { method: method.to_owned(), params: params.clone(), is_shared }
            }
            "tasks/list" if is_shared => AnswerCheck::SharedTasks { whose: whose() },
            "tools/call" if is_shared => AnswerCheck::SharedCall { whose: whose() },
            _ => TaskQuery::read(method, params_text, whose).map_or(AnswerCheck::None, AnswerCheck::Task),
        }
    }

    /// Its answer has come; `Err` is an error.
    pub fn check(
        self,
        services: &Arc<Services>,
        server: &Server,
        answer: Result<&str, &str>,
    ) -> CheckedAnswer {
        let result = match (self, answer) {
            (AnswerCheck::Task(query), answer) => {
                let task_end = query.answered(services, server.tasks(), answer);
                return CheckedAnswer { result: None, task_end };
            }
            (AnswerCheck::Listing { first_page }, Ok(result)) => {
                server.add_listing_page(first_page, result);
                listing::listing(services, server, result)
            }
            (AnswerCheck::Hello { method, is_shared, .. }, Ok(result)) => {
                listing::hello(services, server, &method, result, is_shared)
            }
            (AnswerCheck::SharedTasks { whose }, Ok(result)) => {
                let own = listing_of(result, |task| server.tasks().is_owned_by(&whose, task));
                Some(own.unwrap_or_else(|| r#"{"tasks":[]}"#.to_owned()))
            }
            (AnswerCheck::SharedCall { whose }, Ok(result)) => {
                if let Some(id) = classify::task_in(result) {
                    server.tasks().set_owner(&TaskKey { whose, id });
                }
                None
            }
            (_, _) => None,
        };
        CheckedAnswer { result, task_end: None }
    }
}
