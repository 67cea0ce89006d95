//! Where a request goes: the upstream's address and the request's own path, byte for byte; and the name of that place.
//!
//! A path that two readers could take for two places is refused: a rule would be asked about one and the upstream would
//! act on the other.

use http::Uri;
use http::uri::PathAndQuery;
use std::borrow::Cow;

/// The part of `/p/NAME/REST` that names the upstream, and the rest with its query.
pub fn split(path_and_query: &str) -> Option<(&str, &str)> {
    let after = path_and_query.strip_prefix("/p/")?;
    let slash = after.find('/')?;
    Some((&after[..slash], &after[slash..]))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadPath {
    #[error("the path has a segment of dots")]
    Dots,
    #[error("the path has an encoded slash, a backslash or a control character")]
    Hidden,
    #[error("the path has a percent sign without two hexadecimal digits")]
    Percent,
    #[error("the path is no path")]
    Malformed,
}

/// One place at an upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamPath {
    /// The address of the request to the upstream.
    pub uri: Uri,
    /// Decoded, with the path that all of the upstream's paths begin with: what rules speak of. There is no slash at
    /// its end and no `;parameter` in it, because most servers take it for the same place with and without.
    pub path: String,
    /// The same with its `;parameters`, if it has any: they may say what is done there.
    pub with_parameters: Option<String>,
}

impl UpstreamPath {
    /// `base` has no slash at its end; `rest` begins with one.
    pub fn at(base: &str, rest: &str) -> Result<UpstreamPath, BadPath> {
        let (path, _) = rest.split_once('?').unwrap_or((rest, ""));
        let decoded = decode(path)?;
        let whole = match base {
            "" => Cow::Borrowed(rest),
            base => Cow::Owned(format!("{base}{rest}")),
        };
        let whole = PathAndQuery::try_from(whole.as_ref()).map_err(|_| BadPath::Malformed)?;
        let own = |decoded: &str| {
            let mut own = String::with_capacity(base.len() + decoded.len());
            own.push_str(base);
            own.push_str(decoded);
            let end = own.trim_end_matches('/').len().max(1);
            own.truncate(end);
            own
        };
        let with_parameters = decoded.with_parameters.as_deref().map(own);
        Ok(UpstreamPath { uri: Uri::from(whole), path: own(&decoded.path), with_parameters })
    }
}

struct DecodedPath<'a> {
    path: Cow<'a, str>,
    with_parameters: Option<String>,
}

/// The path as text, each segment decoded and no slash twice. Bytes that are no text stay encoded, and apart from
/// texts.
fn decode(path: &str) -> Result<DecodedPath<'_>, BadPath> {
    let bytes = path.as_bytes();
    let odd = |byte: &u8| matches!(byte, b'%' | b'\\' | b';' | 0..=b' ' | 0x7f);
    let plain = !bytes.iter().any(odd) && !path.contains("//") && !path.contains("/.");
    if plain {
        return Ok(DecodedPath { path: Cow::Borrowed(path), with_parameters: None });
    }
    let mut decoded = String::with_capacity(path.len());
    let mut with_parameters = String::with_capacity(path.len());
    for segment in path.split('/').skip(1) {
        let segment = decode_segment(segment)?;
        let name = segment.split(';').next().unwrap_or_default();
        if matches!(name, "." | "..") {
            return Err(BadPath::Dots);
        }
        for (whole, part) in [(&mut decoded, name), (&mut with_parameters, segment.as_str())] {
            // Many servers take two slashes for one.
            if !whole.ends_with('/') {
                whole.push('/');
            }
            whole.push_str(part);
        }
    }
    let with_parameters = with_parameters.contains(';').then_some(with_parameters);
    Ok(DecodedPath { path: Cow::Owned(decoded), with_parameters })
}

fn decode_segment(segment: &str) -> Result<String, BadPath> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let (byte, after) = match (first, after) {
            (b'%', [high, low, after @ ..]) => (hex(*high)? << 4 | hex(*low)?, after),
            (b'%', _) => return Err(BadPath::Percent),
            (byte, after) => (byte, after),
        };
        if matches!(byte, b'/' | b'\\' | 0..=0x1f | 0x7f) {
            return Err(BadPath::Hidden);
        }
        bytes.push(byte);
        rest = after;
    }
    Ok(crate::wire::form::text_of(bytes))
}

fn hex(digit: u8) -> Result<u8, BadPath> {
    (digit as char).to_digit(16).map(|value| value as u8).ok_or(BadPath::Percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(base: &str, rest: &str) -> Result<(String, String), BadPath> {
        UpstreamPath::at(base, rest).map(|place| (place.uri.to_string(), place.path))
    }

    #[test]
    fn a_request_names_an_upstream_and_a_place() {
        assert_eq!(split("/p/stripe/v1/charges?a=1"), Some(("stripe", "/v1/charges?a=1")));
        assert_eq!(split("/p/stripe/"), Some(("stripe", "/")));
        assert_eq!((split("/p/stripe"), split("/q/stripe/x")), (None, None));
    }

    #[test]
    fn the_upstream_gets_the_bytes_and_rules_get_the_text() {
        let own = |rest: &str| at("", rest).unwrap();
        assert_eq!(own("/v1/charges?x=%2F"), ("/v1/charges?x=%2F".into(), "/v1/charges".into()));
        assert_eq!(own("/a%20b/%C3%BC"), ("/a%20b/%C3%BC".into(), "/a b/ü".into()));
        assert_eq!(own("/a//b"), ("/a//b".into(), "/a/b".into()));
        assert_eq!(own("/%ff"), ("/%ff".into(), "/\u{FFFD}%FF".into()));
        assert_eq!(own("/%25ff"), ("/%25ff".into(), "/%ff".into()));
        assert_eq!(own("/"), ("/".into(), "/".into()));
        assert_eq!(own("/v1/charges/"), ("/v1/charges/".into(), "/v1/charges".into()));
        assert_eq!(own("/v1/charges//?a"), ("/v1/charges//?a".into(), "/v1/charges".into()));
        assert_eq!(own("/v1;a=1/charges;x=1"), ("/v1;a=1/charges;x=1".into(), "/v1/charges".into()));
        assert_eq!(own("/v1/charges%3Bx"), ("/v1/charges%3Bx".into(), "/v1/charges".into()));
        assert_eq!(own("/a/;x/b"), ("/a/;x/b".into(), "/a/b".into()));
        assert_eq!(at("/v1", "/").unwrap(), ("/v1/".into(), "/v1".into()));
        assert_eq!(own("/.well-known/x.json"), ("/.well-known/x.json".into(), "/.well-known/x.json".into()));
        assert_eq!(at("/v1", "/charges?q").unwrap(), ("/v1/charges?q".into(), "/v1/charges".into()));
    }

    /// Rules match the name alone, so that each spelling of a place has to come to one name here.
    #[test]
    fn all_spellings_of_a_place_have_one_name() {
        for spelling in [
            "/v1/charges",
            "/v1/charges/",
            "/v1/charges//",
            "//v1///charges",
            "/%761/charges",
            "/v%31/%63%68arges",
            "/v1/charges%3Bx",
            "/v1/charges;a=1;b",
            "/v1;a/charges/;b",
            "/v1/charges?a=/v1/refunds",
        ] {
            for base in ["", "/gw"] {
                let place = UpstreamPath::at(base, spelling).unwrap();
                assert_eq!(place.path, format!("{base}/v1/charges"), "{spelling}");
            }
        }
        for other in ["/v1/Charges", "/v1/charges.json", "/v1/charges.", "/v1/charges/1", "/v1/%2563harges"] {
            assert_ne!(UpstreamPath::at("", other).unwrap().path, "/v1/charges", "{other}");
        }
    }

    #[test]
    fn parameters_of_a_path_are_told_beside_it() {
        let told = |rest: &str| UpstreamPath::at("/v1", rest).unwrap().with_parameters;
        assert_eq!(told("/charges/"), None);
        assert_eq!(told("/charges;id=1/").as_deref(), Some("/v1/charges;id=1"));
        assert_ne!(told("/charges;id=1"), told("/charges;id=2"));
    }

    #[test]
    fn what_could_be_read_as_another_place_is_refused() {
        for dots in ["/..", "/a/../b", "/.", "/%2e%2E/b", "/a/.%2e", "/..;/b", "/.;x=1/b"] {
            assert_eq!(at("", dots), Err(BadPath::Dots), "{dots}");
        }
        for hidden in ["/a%2fb", "/a%2Fb", "/a%5cb", "/a\\b", "/a%00", "/a%0d%0a", "/%7f"] {
            assert_eq!(at("", hidden), Err(BadPath::Hidden), "{hidden}");
        }
        for percent in ["/a%", "/a%2", "/a%zz"] {
            assert_eq!(at("", percent), Err(BadPath::Percent), "{percent}");
        }
    }
}
