//! An OpenAPI document: how it is read, and where its paths begin.

use serde_json::Value;

/// Values in a YAML document. The largest public APIs have under a million.
const YAML_VALUES_MAX: usize = 4_000_000;

#[derive(Debug, thiserror::Error)]
pub enum BadOpenApi {
    #[error("it is no JSON ({json}) and no YAML ({})", .yaml.without_snippet())]
    Unreadable { json: serde_json::Error, yaml: Box<serde_saphyr::Error> },
    #[error("it is no OpenAPI document: it has no `paths`")]
    NoPaths,
}

/// Reads a document, from JSON or else from YAML.
pub fn parse(text: &str) -> Result<Value, BadOpenApi> {
    let document = serde_json::from_str(text).or_else(|json| {
        let budget = serde_saphyr::budget! { max_nodes: YAML_VALUES_MAX, max_events: 2 * YAML_VALUES_MAX };
        let options = serde_saphyr::options! { budget: budget };
        serde_saphyr::from_str_with_options::<Value>(text, options)
            .map_err(|yaml| BadOpenApi::Unreadable { json, yaml: Box::new(yaml) })
    })?;
    if document["paths"].is_object() { Ok(document) } else { Err(BadOpenApi::NoPaths) }
}

/// The address before all paths, where the document has one that can be called as it stands.
pub fn address(document: &Value) -> Option<String> {
    let server = document["servers"][0]["url"].as_str().map(str::to_owned);
    // Version 2 writes it in parts.
    let in_parts = || {
        let base = document["basePath"].as_str().unwrap_or_default();
        Some(format!("https://{}{base}", document["host"].as_str()?))
    };
    let address = server.or_else(in_parts)?.trim_end_matches('/').to_owned();
    (address.contains("://") && !address.contains('{')).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_and_json_are_the_same_document() {
        let yaml = "openapi: 3.1.0\nservers:\n  - url: https://bank.example/v1/\npaths:\n  /charges:\n    post: {}\n";
        let json = r#"{"openapi":"3.1.0","servers":[{"url":"https://bank.example/v1/"}],"paths":{"/charges":{"post":{}}}}"#;
        let document = parse(yaml).expect("YAML");
        assert_eq!(document, parse(json).expect("JSON"));
        assert_eq!(address(&document).as_deref(), Some("https://bank.example/v1"));
    }

    #[test]
    fn other_documents_are_refused_in_words() {
        for bad in ["", "paths: [", "{", "just words", "[1, 2]", "a: *nobody", "\u{0}"] {
            let error = parse(bad).expect_err(bad).to_string();
            assert!(error.starts_with("it is no"), "{bad}: {error}");
        }
        let bomb = (1..40).fold("a0: &a0 [x, x]\n".to_owned(), |text, n| {
            format!("{text}a{n}: &a{n} [*a{p}, *a{p}, *a{p}, *a{p}]\n", p = n - 1)
        });
        assert!(parse(&bomb).is_err(), "aliases do not multiply without end");
    }

    #[test]
    fn an_address_with_gaps_is_none() {
        for (document, expected) in [
            (r#"{"servers":[{"url":"/v3"}]}"#, None),
            (r#"{"servers":[{"url":"https://{region}.example"}]}"#, None),
            (r#"{"host":"bank.example","basePath":"/v2"}"#, Some("https://bank.example/v2")),
            ("{}", None),
        ] {
            let document: Value = serde_json::from_str(document).expect("JSON");
            assert_eq!(address(&document).as_deref(), expected, "{document}");
        }
    }
}
