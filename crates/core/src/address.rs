//! Addresses of upstreams, as an operator writes them. The policy check and the connection read them alike.

use http::Uri;
use std::net::IpAddr;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    #[error("it is no address: {0}")]
    Malformed(String),
    #[error("an address begins with http:// or https://")]
    Scheme,
    #[error("an address with a user name or password would be written down in too many places")]
    UserInfo,
    #[error("its host looks like a number in disguise; write it in its usual form")]
    Disguised,
}

/// An error quotes nothing: a mistyped address may hold a password anywhere.
pub fn parse(text: &str) -> Result<Uri, Invalid> {
    // Parts that the type for addresses would quietly drop or read in its own way are refused first.
    if text.contains('#') {
        return Err(Invalid::Malformed("a fragment (#) means nothing to a server".into()));
    }
    let uri: Uri =
        text.parse().map_err(|error: http::uri::InvalidUri| Invalid::Malformed(error.to_string()))?;
    match uri.scheme_str() {
        Some("http" | "https") => {}
        _ => return Err(Invalid::Scheme),
    }
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    if authority.contains('@') {
        return Err(Invalid::UserInfo);
    }
    let host = host(&uri);
    if host.is_empty() {
        return Err(Invalid::Malformed("it names no host".into()));
    }
    let last_label = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    let number = last_label.starts_with(|first: char| first.is_ascii_digit());
    if number && host.parse::<IpAddr>().is_err() {
        return Err(Invalid::Disguised);
    }
    Ok(uri)
}

/// The name or the number, without brackets.
pub fn host(uri: &Uri) -> &str {
    uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_http_addresses_are_taken() {
        for good in [
            "http://localhost:3000/mcp",
            "https://mcp.example.com/v1?x=1",
            "http://[::1]:9/",
            "http://10.0.0.1",
        ] {
            assert!(parse(good).is_ok(), "{good}");
        }
        for bad in [
            "ftp://a/",
            "mcp.example.com",
            "/mcp",
            "https://user:pass@example.com/",
            "https://user@example.com/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://127.1/",
            "http://0177.0.0.1/",
            "http://exämple.com/",
            "https://a/#b",
            "",
            "http://",
            "file:///etc/passwd",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
