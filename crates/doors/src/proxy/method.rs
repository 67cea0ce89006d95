//! What a request may do: by its method, and by whatever else could make an upstream take it for another one.

use http::{HeaderMap, Method};

/// Headers by which frameworks let a request have another method than its own.
const OVERRIDES: [&str; 3] = ["x-http-method-override", "x-http-method", "x-method-override"];

/// The parameter by which they do, in a query or a form.
pub const PARAMETER: &str = "_method";

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
    for name in OVERRIDES {
        for value in headers.get_all(name) {
            named.push(method(&String::from_utf8_lossy(value.as_bytes()))?);
        }
    }
    if let Some(query) = query.filter(|query| query.contains(PARAMETER) || query.contains('%')) {
        for (name, value) in super::form::pairs(query) {
            if name == PARAMETER {
                named.push(method(&value)?);
            }
        }
    }
    Ok(named)
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
    }
}
