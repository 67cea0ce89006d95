use super::client_of;
use crate::house::{Home, House, TOKEN};
use semel_doors::api::{BASE, routes};
use std::collections::BTreeSet;

#[test]
fn the_document_has_every_route_and_no_other() {
    let home = Home::new();
    let house = House::start(&home, "");
    let admin = client_of(&house, TOKEN);
    let document = admin.get("/openapi.json").json();
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().expect("paths");
    let written: BTreeSet<(String, String)> = (paths.iter())
        .flat_map(|(path, operations)| {
            let methods = operations.as_object().expect("operations").keys();
            methods.map(move |method| (path.clone(), method.to_ascii_uppercase()))
        })
        .collect();
    let routed: BTreeSet<(String, String)> =
        routes().iter().map(|route| (format!("{BASE}{}", route.path), route.method.to_string())).collect();
    assert_eq!(written, routed);
    for route in routes() {
        let path = format!("{BASE}{}", route.path);
        let responses = &document["paths"][path][route.method.as_str().to_ascii_lowercase()]["responses"];
        let named: BTreeSet<String> = responses.as_object().expect("responses").keys().cloned().collect();
        let said = route.statuses().into_iter().map(|status| status.as_str().to_owned());
        assert_eq!(named, said.chain(["default".to_owned()]).collect(), "{route:?}");
    }
    // The router itself knows these and no other methods.
    for path in paths.keys() {
        let asked = path.replace(BASE, "").replace("{id}", "x").replace("{run}", "x");
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            let answer = admin.ask(method, &asked, "Content-Type: application/json\r\n", "{}");
            let known = written.contains(&(path.clone(), method.to_owned()));
            assert_eq!(answer.status != 405, known, "{method} {path}: {answer:?}");
        }
    }
    let operations = || paths.values().flat_map(|path| path.as_object().expect("operations").values());
    let ids: BTreeSet<String> = operations().map(|operation| operation["operationId"].to_string()).collect();
    assert_eq!(ids.len(), routed.len(), "every operation has a name of its own");
    for operation in operations() {
        let text = operation.to_string();
        for (place, _) in text.match_indices("#/components/schemas/") {
            let name = text[place..].trim_start_matches("#/components/schemas/").split('"').next().unwrap();
            assert!(document["components"]["schemas"].get(name).is_some(), "{name} is described");
        }
    }
}
