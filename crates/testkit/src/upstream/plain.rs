//! Resources without any particular shape: JSON, forms, uploads, a queue, GraphQL.

use super::performed::{Performed, WorldChange, refused};
use super::reply::UpstreamReply;
use super::state::Inner;
use crate::http::request::Request;
use serde_json::{Value, json};

/// None if the path is nobody's.
pub fn answer(method: &str, path: &str, request: &Request, number: u64, world: &Inner) -> Option<Performed> {
    let first = path.split('/').nth(1)?;
    Some(match (method, first) {
        ("GET" | "HEAD" | "OPTIONS", "rest") => {
            let made: Vec<&Value> = world.made.iter().map(|(_, object)| object).collect();
            unchanged(&json!({"items": made}))
        }
        ("POST", "graphql") => graphql(request, number),
        ("POST", "queued") => changed(202, "queued", request, number),
        ("DELETE", "rest") => changed(204, "deleted", request, number),
        ("PUT" | "PATCH", "rest") => changed(200, "updated", request, number),
        ("POST", "rest") if request.json()["invalid"] == true => refused(422, "that is invalid"),
        ("POST", "rest" | "form" | "upload") => changed(201, "created", request, number),
        _ => return None,
    })
}

fn unchanged(answer: &Value) -> Performed {
    Performed { change: WorldChange::Nothing, reply: UpstreamReply::json(200, answer) }
}

fn changed(status: u16, kind: &'static str, request: &Request, number: u64) -> Performed {
    let id = format!("it_{number:012}");
    let object = json!({"id": id, "kind": kind, "path": request.head.path, "body_sha256": request.digest()});
    let reply = match status {
        204 => UpstreamReply::whole(204, "application/json", Vec::new()),
        201 => UpstreamReply::json(201, &object).with("Location", &format!("{}/{id}", request.head.path)),
        status => UpstreamReply::json(status, &object),
    };
    Performed { change: WorldChange::Effect { kind, object }, reply }
}

/// A query reads, a mutation changes; which it is stands in the first word of the document.
fn graphql(request: &Request, number: u64) -> Performed {
    let body = request.json();
    let document = body["query"].as_str().unwrap_or_default().trim_start().to_owned();
    if !document.starts_with("mutation") {
        return unchanged(&json!({"data": {"items": []}}));
    }
    let object = json!({"id": format!("gq_{number:012}"), "variables": body["variables"]});
    let reply = UpstreamReply::json(200, &json!({"data": {"made": object}}));
    Performed { change: WorldChange::Effect { kind: "mutation", object }, reply }
}
