//! The arguments of a call as a person writes them, below the roots that rules speak of.

use crate::json::{Json, Object};

/// The roots of a command or a request if they are given. Else a list is the words of a command, and anything else is
/// the `args` of a tool or the `body` of a request.
pub fn rooted(action: &str, value: Json) -> Json {
    if let Some(request) = action.strip_prefix("http:") {
        return of_request(request, value);
    }
    match value {
        Json::Array(_) if action.starts_with("cli:") => Json::object([("argv", value)]),
        value if action.starts_with("cli:") && value.get("argv").is_some() => value,
        value => Json::object([("args", value)]),
    }
}

/// The HTTP door's reading of `POST api.stripe.com/v1/charges`: all roots are there, be they empty.
fn of_request(request: &str, value: Json) -> Json {
    const ROOTS: [&str; 3] = ["body", "query", "headers"];
    let place = request.split_once(' ').map_or(request, |(_, place)| place);
    let path = place.find('/').map_or("/", |at| &place[at..]);
    let given = ROOTS.iter().any(|root| value.get(root).is_some());
    let root = |name: &str| match given {
        true => value.get(name).cloned(),
        false => Some(&value).filter(|_| name == "body").cloned(),
    };
    let mut roots: Object = ROOTS
        .iter()
        .map(|name| ((*name).to_owned(), root(name).unwrap_or_else(|| Json::Object(Object::new()))))
        .collect();
    roots.insert("path", value.get("path").filter(|_| given).cloned().unwrap_or_else(|| Json::str(path)));
    Json::Object(roots)
}
