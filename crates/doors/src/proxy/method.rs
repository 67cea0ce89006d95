//! The methods of a request: its own, and by whatever else could make an upstream take it for another one.

use http::{HeaderMap, Method};

/// Names under which frameworks let a request have another method than its own: a header, a parameter of a query, a
/// field of a form. Some read `_` as `-`, and all of them read any case.
const NAMES: [&str; 7] = [
    "-method",
    "x-http-method-override",
    "x-http-method",
    "x-method-override",
    "x-method",
    "http-method-override",
    "method-override",
];

/// Headers by which some servers take a request for another address than its own.
const OTHER_PLACES: [&str; 3] = ["x-original-url", "x-rewrite-url", "x-override-url"];

/// The header by which a request leads elsewhere than its rule was chosen for.
pub fn leads_elsewhere(headers: &HeaderMap) -> Option<&'static str> {
    OTHER_PLACES.into_iter().find(|name| headers.keys().any(|known| known == name))
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the request says that its method is another one, and `{0}` is none")]
pub struct NoMethod(String);

/// Reads, as far as a method tells.
pub fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// The methods that a request names besides its own.
pub fn overrides(headers: &HeaderMap, query: Option<&str>) -> Result<Vec<Method>, NoMethod> {
    let mut named = Vec::new();
    for (_, value) in headers.iter().filter(|(name, _)| is_override(name.as_str())) {
        named.push(method(&String::from_utf8_lossy(value.as_bytes()))?);
    }
    if let Some(query) = query {
        for (_, value) in crate::wire::form::pairs(query).filter(|(name, _)| is_override(name)) {
            named.push(method(&value)?);
        }
    }
    Ok(named)
}

/// Whether a value under this name is another method for the request.
pub fn is_override(name: &str) -> bool {
    let plain = |byte: u8| if byte == b'_' { b'-' } else { byte.to_ascii_lowercase() };
    NAMES.iter().any(|known| known.len() == name.len() && name.bytes().map(plain).eq(known.bytes()))
}

/// Frameworks read it in any case.
pub fn method(text: &str) -> Result<Method, NoMethod> {
    let upper = text.trim().to_ascii_uppercase();
    Method::from_bytes(upper.as_bytes()).map_err(|_| NoMethod(text.chars().take(32).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_method_is_found_wherever_frameworks_look_for_it() {
        let mut headers = HeaderMap::new();
        assert_eq!(overrides(&headers, Some("a=1")), Ok(vec![]));
        headers.insert("x-http-method-override", "delete".parse().unwrap());
        assert_eq!(overrides(&headers, Some("_method=PUT")), Ok(vec![Method::DELETE, Method::PUT]));
        assert_eq!(overrides(&HeaderMap::new(), Some("%5fmethod=put")), Ok(vec![Method::PUT]));
        assert!(overrides(&HeaderMap::new(), Some("_method=a%20b")).is_err());
        for query in ["_METHOD=put", "_Method=Put", "X-HTTP-Method-Override=PUT", "x_http_method=put"] {
            assert_eq!(overrides(&HeaderMap::new(), Some(query)), Ok(vec![Method::PUT]), "{query}");
        }
        for name in [
            "HTTP-Method-Override",
            "X-HTTP-METHOD-OVERRIDE",
            "x_http_method_override",
            "X-Method-Override",
            "X-Method",
        ] {
            let name = http::HeaderName::from_bytes(name.as_bytes()).unwrap();
            let headers = HeaderMap::from_iter([(name, "PUT".parse().unwrap())]);
            assert_eq!(overrides(&headers, None), Ok(vec![Method::PUT]), "{headers:?}");
        }
        assert_eq!(overrides(&HeaderMap::new(), Some("method=put&payment_method=pm_1")), Ok(vec![]));
    }
}
