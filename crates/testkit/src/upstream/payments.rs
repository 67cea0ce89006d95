//! Payments, in the shape of Stripe's first API: forms in, objects out.

use super::performed::{Performed, WorldChange, refused};
use super::reply::UpstreamReply;
use super::state::Inner;
use crate::http::request::{Request, pairs};
use serde_json::{Value, json};

/// What can be made, as paths and as objects call it, and how its ids begin.
const KINDS: [(&str, &str, &str); 4] = [
    ("charges", "charge", "ch"),
    ("payment_intents", "payment_intent", "pi"),
    ("refunds", "refund", "re"),
    ("customers", "customer", "cus"),
];

/// Any time will do, as long as it stays the same.
const FIRST_SECOND: u64 = 1_790_000_000;

/// None if the path is somebody else's.
pub fn answer(method: &str, path: &str, request: &Request, number: u64, world: &Inner) -> Option<Performed> {
    let (plural, id) = path.strip_prefix("/v1/").map(|rest| rest.split_once('/').unwrap_or((rest, "")))?;
    let (_, kind, prefix) = KINDS.iter().find(|(known, ..)| *known == plural)?;
    Some(match (method, id) {
        ("POST", "") => create(kind, prefix, request, number),
        ("GET", "") => list(kind, path, request, world),
        ("GET", id) => {
            let mut made = world.made.iter().filter(|(made, object)| made == kind && object["id"] == id);
            match made.next() {
                Some((_, object)) => {
                    Performed { change: WorldChange::Nothing, reply: UpstreamReply::json(200, object) }
                }
                None => refused(404, &format!("No such {kind}: '{id}'")),
            }
        }
        _ => refused(405, "this cannot be done to it"),
    })
}

fn create(kind: &'static str, prefix: &str, request: &Request, number: u64) -> Performed {
    let form = request.form();
    let needs_amount = matches!(kind, "charge" | "payment_intent");
    if needs_amount && !form.iter().any(|(name, _)| name == "amount") {
        return refused(400, "Missing required param: amount.");
    }
    // Of one length for all numbers, so that a cut at byte n is at the same place each time.
    let id = format!("{prefix}_{number:012}");
    let mut object = json!({"id": id, "object": kind, "created": FIRST_SECOND + number, "livemode": false});
    for (name, value) in form {
        // `metadata[order]` is the only nesting that tests use.
        match name.strip_suffix(']').and_then(|name| name.split_once('[')) {
            Some((outer, inner)) => object[outer][inner] = value.into(),
            None => object[name] = value.parse::<i64>().map_or_else(|_| Value::from(value), Value::from),
        }
    }
    object["status"] = "succeeded".into();
    let reply = UpstreamReply::json(200, &object).with("Request-Id", &format!("req_{number:012}"));
    Performed { change: WorldChange::Effect { kind, object }, reply }
}

fn list(kind: &str, path: &str, request: &Request, world: &Inner) -> Performed {
    let wanted = pairs(&request.head.query);
    let customer = wanted.iter().find(|(name, _)| name == "customer").map(|(_, value)| value.as_str());
    let made = world.made.iter().rev().filter(|(made, _)| *made == kind).map(|(_, object)| object);
    let made = made.filter(|object| customer.is_none_or(|customer| object["customer"] == customer));
    let list = json!({"object": "list", "url": path, "has_more": false, "data": made.collect::<Vec<_>>()});
    Performed { change: WorldChange::Nothing, reply: UpstreamReply::json(200, &list) }
}
