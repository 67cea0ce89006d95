//! Which headers belong to one connection only, and are not given on.

use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue};

/// Headers that speak about one connection (RFC 9110, section 7.6.1), and those that a connection writes itself.
const HOP_BY_HOP: [HeaderName; 10] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::CONTENT_LENGTH,
    HeaderName::from_static("keep-alive"),
    // No standard has it, and old clients send it to what they take for a proxy.
    HeaderName::from_static("proxy-connection"),
];

/// Takes out what must not be given on: the above, and whatever `Connection` names.
pub fn end_to_end(headers: &mut HeaderMap) {
    without_named(headers);
    for name in &HOP_BY_HOP {
        remove(headers, name);
    }
}

/// Takes out what `Connection` names.
pub fn without_named(headers: &mut HeaderMap) {
    if has(headers, &header::CONNECTION) {
        let named: Vec<HeaderName> = named(headers).collect();
        for name in named {
            headers.remove(name);
        }
    }
}

/// The headers that `Connection` names.
pub fn named(headers: &HeaderMap) -> impl Iterator<Item = HeaderName> {
    all(headers, "connection")
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(',').map(str::trim))
        // Mostly it is one of these, and names nothing else.
        .filter(|word| !["close", "keep-alive"].iter().any(|known| known.eq_ignore_ascii_case(word)))
        .filter_map(|name| name.parse().ok())
}

/// Takes one out that is mostly not there.
pub fn remove(headers: &mut HeaderMap, name: &HeaderName) {
    if has(headers, name) {
        headers.remove(name);
    }
}

/// The values under a name that is mostly not there. It is written in lower case.
pub fn all<'h>(headers: &'h HeaderMap, name: &str) -> impl Iterator<Item = &'h HeaderValue> {
    headers.iter().filter(move |(known, _)| known.as_str() == name).map(|(_, value)| value)
}

/// Messages have a handful of headers: to look at all of them takes less than to hash a name.
fn has(headers: &HeaderMap, name: &HeaderName) -> bool {
    headers.keys().any(|known| known == name)
}

/// As they come, values are slices of what a connection has read, and keep all of that as long as they live. What is
/// held for long is given bytes of its own.
pub fn unshare(headers: &mut HeaderMap) {
    for value in headers.values_mut() {
        let mut own = HeaderValue::from_bytes(value.as_bytes()).unwrap_or_else(|_| value.clone());
        own.set_sensitive(value.is_sensitive());
        *value = own;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_connection_says_of_itself_is_not_given_on() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Secret"),
            ("x-secret", "1"),
            ("keep-alive", "timeout=5"),
            ("transfer-encoding", "chunked"),
            ("mcp-session-id", "s"),
            ("x-unknown", "2"),
        ] {
            headers.insert(HeaderName::from_static(name), value.parse().unwrap());
        }
        end_to_end(&mut headers);
        let mut left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["mcp-session-id", "x-unknown"]);
    }
}
