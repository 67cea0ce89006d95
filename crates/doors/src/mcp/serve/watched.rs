//! Requests that pass, and how their answers are looked at, for every client and every server.

use crate::mcp::door::Door;
use crate::mcp::frame::Frame;
use crate::mcp::message::{Id, text};
use crate::mcp::server::Server;
use crate::mcp::tasks::{Question, Telling};
use crate::wire::members::Members;
use bytes::Bytes;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watched {
    Plain,
    Listing {
        first_page: bool,
    },
    /// How the two sides introduce themselves; `params` as the client sent them.
    Hello {
        method: String,
        params: Bytes,
    },
    Task(Question),
}

/// The outcome of looking at an answer.
#[derive(Debug, Default)]
pub struct Inspection {
    /// The result that goes out instead. `None`: as it came.
    pub result: Option<String>,
    /// To be run once it has left.
    pub telling: Option<Telling>,
}

impl Watched {
    pub fn of(method: &str, params: &Bytes, whose: impl FnOnce() -> String) -> Watched {
        match method {
            "tools/list" => {
                let members = Members::parse(text_of(params)).unwrap_or_default();
                Watched::Listing { first_page: members.get("cursor").is_none() }
            }
            "initialize" | "server/discover" => {
                Watched::Hello { method: method.to_owned(), params: params.clone() }
            }
            _ => Question::read(method, text_of(params), whose).map_or(Watched::Plain, Watched::Task),
        }
    }

    /// Its answer has come; `Err` is an error.
    pub fn answered(self, door: &Door, server: &Server, answer: Result<&str, &str>) -> Inspection {
        match (self, answer) {
            (Watched::Listing { first_page }, Ok(result)) => {
                server.page_seen(first_page, result);
                Inspection { result: door.listing(server, result), telling: None }
            }
            (Watched::Hello { method, .. }, Ok(result)) => {
                Inspection { result: door.hello(server, &method, result), telling: None }
            }
            (Watched::Task(question), answer) => Inspection {
                result: None,
                telling: question.answered(&door.services, server.tasks(), answer),
            },
            (Watched::Plain | Watched::Listing { .. } | Watched::Hello { .. }, _) => Inspection::default(),
        }
    }
}

fn text_of(params: &Bytes) -> &str {
    if params.is_empty() { "{}" } else { text(params) }
}

/// The request that a `notifications/cancelled` is about.
pub fn cancelled_id(params: &str) -> Option<Id> {
    Id::from_json(Members::parse(params)?.get("requestId")?)
}

/// A call without an id: nobody could be told what became of it, and it would pass the gate by.
pub fn call_without_id() -> Frame {
    Frame::complaint(-32600, "semel passed nothing on: a call of a tool needs an id")
}
