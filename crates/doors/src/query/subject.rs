//! The subject of a question: a call, as rules see it.

use super::origins::UrlOrigin;
use super::tools::ToolServer;
use http::HeaderMap;
use semel_core::effect::Effect;
use semel_core::json::{Json, Object};
use serde_json::json;

#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    pub action: &'a str,
    /// One object, whose members rules call `args`, `argv`, `body`, ….
    pub arguments: &'a Json,
    /// Absent when asking before the first attempt.
    pub effect: Option<&'a Effect>,
    /// Its reply, once there is one.
    pub reply: Option<&'a Json>,
    pub credentials: Credentials<'a>,
}

/// Access that the call itself lends to questions about it.
#[derive(Debug, Clone, Copy)]
pub enum Credentials<'a> {
    None,
    /// Its own server, by its own way, with the `_meta` of its request.
    Server {
        server: &'a dyn ToolServer,
        meta: &'a str,
    },
    /// The credential that its caller passes through. It is the upstream's, and nobody else sees it.
    Headers {
        upstream: &'a UrlOrigin,
        headers: &'a HeaderMap,
    },
}

impl Subject<'_> {
    /// The values that templates are filled in from.
    pub fn places(&self) -> Json {
        let mut places = match self.arguments {
            Json::Object(members) => members.clone(),
            _ => Object::default(),
        };
        places.insert("action", Json::str(self.action));
        if let Some(effect) = self.effect {
            places.insert("attempt", attempt(effect));
        }
        if let Some(reply) = self.reply {
            places.insert("reply", reply.clone());
        }
        Json::Object(places)
    }
}

fn attempt(effect: &Effect) -> Json {
    let started = effect.attempts.first().map_or(effect.opened_at, |attempt| attempt.claimed_at);
    Json::from(json!({"started": started.to_string(), "started_unix": started.0 / 1_000_000}))
}
