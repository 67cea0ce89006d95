//! What the tests tell it: paths below `/__`, which no log mentions.

use super::plan::PlanUpdate;
use super::reply::UpstreamReply;
use super::state::UpstreamState;
use crate::http::request::Request;
use serde_json::json;

/// None if the request is for the world.
pub fn answer(state: &UpstreamState, request: &Request) -> Option<UpstreamReply> {
    let path = request.head.path.strip_prefix("/__")?;
    Some(match path.split_once('/').unwrap_or((path, "")) {
        ("plan", "") if request.head.method == "POST" => tell(state, request),
        // How many faults have not been met: none, if a test did what it meant to.
        ("plan", "") => UpstreamReply::json(200, &json!({"waiting": state.inner().plan.waiting()})),
        ("release", name) => {
            state.release(name);
            UpstreamReply::json(200, &json!({}))
        }
        _ => UpstreamReply::json(404, &json!({})),
    })
}

fn tell(state: &UpstreamState, request: &Request) -> UpstreamReply {
    match serde_json::from_slice::<PlanUpdate>(&request.body) {
        Ok(told) => {
            let mut inner = state.inner();
            inner.honours = told.keys.unwrap_or(inner.honours);
            inner.plan.tell(told);
            UpstreamReply::json(200, &json!({}))
        }
        Err(error) => UpstreamReply::json(400, &json!({"error": error.to_string()})),
    }
}
