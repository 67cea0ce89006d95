//! Nothing was sent, and this says why.

use super::offer::Offer;
use super::render;
use crate::http::server::problem;
use axum::response::Response;
use http::StatusCode;
use semel_core::answer::{Answer, OutcomeWord, Trouble};
use semel_core::policy::Rule;

pub type RefusalResponse = Box<Response>;

pub fn refuse(status: StatusCode, detail: &str) -> RefusalResponse {
    Box::new(problem(status, detail))
}

pub fn malformed(bad: &dyn std::fmt::Display) -> RefusalResponse {
    refuse(StatusCode::BAD_REQUEST, &format!("{bad}; nothing was sent"))
}

pub fn trouble(rule: &Rule, offer: &Offer, trouble: Trouble) -> RefusalResponse {
    let answer = Answer::of_trouble(rule.tier(), OutcomeWord::Refused, trouble);
    Box::new(render::answer(&answer, offer, None))
}
