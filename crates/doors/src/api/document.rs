//! The OpenAPI document, made from the table of routes: what is not in the table is not there, and what is, is.

use super::problem::ProblemForm;
use super::route::{BASE, FormSchema, Route};
use http::StatusCode;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use std::sync::OnceLock;

/// Ids and runs: one line without control characters.
const NAME: &str = r"^[^\x00-\x1f\x7f-\x9f]{1,255}$";

/// Made once, when somebody asks for it.
static DOCUMENT: OnceLock<Value> = OnceLock::new();

pub fn document(routes: fn() -> Vec<Route>) -> &'static Value {
    DOCUMENT.get_or_init(|| make(routes()))
}

/// OpenAPI 3.1 takes JSON Schema of 2020-12 as it is; only the place of definitions is its own.
fn make(routes: Vec<Route>) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    // Optional members differ: a member that may be left out of a request is not always left out of an answer.
    let mut schemas = Schemas {
        taken: settings.clone().for_deserialize().into_generator(),
        given: settings.for_serialize().into_generator(),
    };
    let mut paths = Map::new();
    for route in routes {
        let path = paths.entry(format!("{BASE}{}", route.path)).or_insert_with(|| json!({}));
        path[route.method.as_str().to_ascii_lowercase()] = operation(&route, &mut schemas);
    }
    let mut definitions = schemas.taken.take_definitions(true);
    for (name, form) in schemas.given.take_definitions(true) {
        let known = definitions.insert(name.clone(), form.clone());
        assert!(known.is_none_or(|known| known == form), "two forms are called {name}");
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "semel",
            "version": "1",
            "summary": "Each intended effect runs at most once, whoever retries.",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": definitions,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "Or in the header `Semel-Token`."},
            },
        },
        "security": [{"token": []}],
    })
}

/// Of what requests bring, and of what answers give.
struct Schemas {
    taken: SchemaGenerator,
    given: SchemaGenerator,
}

fn operation(route: &Route, schemas: &mut Schemas) -> Value {
    let mut content = json!({"application/json": {"schema": (route.gives)(&mut schemas.given)}});
    if route.markdown {
        content["text/markdown"] = json!({"schema": {"type": "string"}});
    }
    let problem =
        json!({"application/problem+json": {"schema": schemas.given.subschema_for::<ProblemForm>()}});
    let mut responses = json!({
        "200": {"description": "It was done, or this is the answer.", "content": content},
        "default": {"description": "It was not; `detail` says why.", "content": problem},
    });
    for status in route.statuses().into_iter().filter(|status| !status.is_success()) {
        responses[status.as_str()] = json!({"description": meaning(status), "content": problem});
    }
    let mut operation = json!({
        "operationId": route.id,
        "summary": route.summary,
        "description": format!("Needs a token of scope `{}` or more.", route.scope),
        "parameters": parameters(route, &mut schemas.taken),
        "responses": responses,
    });
    if let Some(body) = route.body {
        let schema = body(&mut schemas.taken);
        operation["requestBody"] =
            json!({"required": !route.body_optional, "content": {"application/json": {"schema": schema}}});
    }
    operation
}

/// The meaning of a refusal, as far as its status says.
fn meaning(status: StatusCode) -> &'static str {
    match status {
        StatusCode::BAD_REQUEST => "The request is malformed or incomplete.",
        StatusCode::UNAUTHORIZED => "The token is missing or not valid.",
        StatusCode::FORBIDDEN => "Forbidden: for this token, from this origin, or without a person.",
        StatusCode::NOT_FOUND => "Not found, or it belongs to another caller.",
        StatusCode::CONFLICT => "In flight, in another state, or the name is ambiguous.",
        StatusCode::PAYLOAD_TOO_LARGE => "The body is too large.",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "The body is not JSON, or it is encoded.",
        StatusCode::UNPROCESSABLE_ENTITY => "It contradicts an earlier request, or itself.",
        StatusCode::LOCKED => "Nobody knows whether it happened.",
        StatusCode::FAILED_DEPENDENCY => "The attempt that was waited for was refused.",
        StatusCode::BAD_GATEWAY => "It was not begun; nothing was sent.",
        StatusCode::SERVICE_UNAVAILABLE => {
            "The ledger is unavailable, or too many requests are in flight; try again."
        }
        _ => "It was not done; `detail` says why.",
    }
}

fn parameters(route: &Route, schemas: &mut SchemaGenerator) -> Vec<Value> {
    let names = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let in_path = names.map(|name| {
        let schema = json!({"type": "string", "pattern": NAME});
        json!({"name": name, "in": "path", "required": true, "schema": schema})
    });
    let mut all: Vec<Value> = in_path.collect();
    all.extend(route.query.map(|query| in_query(query, schemas)).unwrap_or_default());
    all
}

/// The members of a query's form, one parameter each.
fn in_query(form: FormSchema, schemas: &mut SchemaGenerator) -> Vec<Value> {
    let named = form(schemas);
    let reference = named.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
    let whole = reference
        .and_then(|name| schemas.definitions_mut().remove(name))
        .unwrap_or(Value::from(named.clone()));
    let members = whole.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let parameter = |(name, mut schema): (String, Value)| {
        let about = schema.as_object_mut().and_then(|schema| schema.remove("description"));
        json!({"name": name, "in": "query", "required": false, "description": about, "schema": without_null(schema)})
    };
    members.into_iter().map(parameter).collect()
}

/// A parameter that is not given is left out, never null.
fn without_null(mut schema: Value) -> Value {
    if let Some(kinds) = schema.get_mut("type")
        && let Some(list) = kinds.as_array_mut()
    {
        list.retain(|kind| kind != "null");
        if let [one] = list.as_slice() {
            *kinds = one.clone();
        }
    }
    match schema.get("anyOf").and_then(Value::as_array) {
        Some(choices) => choices.iter().find(|choice| choice["type"] != "null").cloned().unwrap_or_default(),
        None => schema,
    }
}
