//! Which part of the world a request is for, and what it would change there.

use super::performed::{Performed, refused};
use super::state::Inner;
use super::{models, payments, plain};
use crate::http::request::Request;

pub fn perform(request: &Request, number: u64, world: &Inner) -> Performed {
    let path = request.head.path.as_str();
    match (request.head.method.as_str(), path) {
        ("POST", "/v1/chat/completions") => models::chat::answer(request, number),
        ("POST", "/v1/responses") => models::responses::answer(request, number),
        ("POST", "/v1/messages") => models::messages::answer(request, number),
        (method, _) => {
            let answered = payments::answer(method, path, request, number, world);
            let answered = answered.or_else(|| plain::answer(method, path, request, number, world));
            answered.unwrap_or_else(|| refused(404, "no such route"))
        }
    }
}
