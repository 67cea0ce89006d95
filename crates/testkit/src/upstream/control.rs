//! What the tests tell it: paths below `/__`, which no log mentions.

use super::plan::Told;
use super::reply::Reply;
use super::state::State;
use crate::http::request::Request;
use serde_json::json;

/// None if the request is for the world.
pub fn answer(state: &State, request: &Request) -> Option<Reply> {
    let path = request.head.path.strip_prefix("/__")?;
    Some(match path.split_once('/').unwrap_or((path, "")) {
        ("plan", "") if request.head.method == "POST" => tell(state, request),
        // How many faults have not been met: none, if a test did what it meant to.
        ("plan", "") => Reply::json(200, &json!({"waiting": state.inner().plan.waiting()})),
        ("release", name) => {
            state.release(name);
            Reply::json(200, &json!({}))
        }
        _ => Reply::json(404, &json!({})),
    })
}

fn tell(state: &State, request: &Request) -> Reply {
    match serde_json::from_slice::<Told>(&request.body) {
        Ok(told) => {
            let mut inner = state.inner();
            inner.honours = told.keys.unwrap_or(inner.honours);
            inner.plan.tell(told);
            Reply::json(200, &json!({}))
        }
        Err(error) => Reply::json(400, &json!({"error": error.to_string()})),
    }
}
