//! Credentials for questions over HTTP: an operator who gave a server its headers gave them for all of its origin.

use crate::http::target::Target;
use http::HeaderMap;

/// Scheme, host and port, as browsers compare them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(String);

impl Origin {
    pub fn of(target: &Target) -> Origin {
        let uri = target.uri();
        let scheme = uri.scheme_str().unwrap_or_default();
        let port = uri.port_u16().unwrap_or(if target.is_tls() { 443 } else { 80 });
        Origin(format!("{scheme}://{}:{port}", target.host().trim_end_matches('.').to_ascii_lowercase()))
    }
}

/// The origins of configured servers.
#[derive(Debug, Clone, Default)]
pub struct Origins(Vec<Known>);

#[derive(Debug, Clone)]
pub struct Known {
    origin: Origin,
    path: String,
    /// Whether its name may lead into the operator's own network.
    pub private: bool,
    /// What is sent to it, or why that is not known: a variable that is not set.
    pub headers: Result<HeaderMap, String>,
}

impl Origins {
    pub fn add(&mut self, target: &Target, private: bool, headers: Result<HeaderMap, String>) {
        let path = target.uri().path().to_owned();
        self.0.push(Known { origin: Origin::of(target), path, private, headers });
    }

    /// What is known of an address. Of several servers at one origin, the one whose path leads furthest.
    pub fn of(&self, target: &Target) -> Option<&Known> {
        let origin = Origin::of(target);
        let path = target.uri().path();
        let mut best: Option<(usize, &Known)> = None;
        for known in self.0.iter().filter(|known| known.origin == origin) {
            let shared = if path.starts_with(&known.path) { known.path.len() } else { 0 };
            if best.is_none_or(|(longest, _)| shared > longest) {
                best = Some((shared, known));
            }
        }
        best.map(|(_, known)| known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> Target {
        Target::parse(url).expect("an address")
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let origin = |url: &str| Origin::of(&target(url));
        assert_eq!(origin("https://API.example.com/a"), origin("https://api.example.com:443/b?c=1"));
        assert_eq!(origin("http://a.example./"), origin("http://a.example:80/"));
        for other in ["http://api.example.com/", "https://api.example.com:444/", "https://example.com/"] {
            assert_ne!(origin("https://api.example.com/"), origin(other), "{other}");
        }
    }

    #[test]
    fn of_two_servers_at_one_origin_the_nearer_one_is_meant() {
        let mut origins = Origins::default();
        for (url, credential) in [("https://x.example/a", "for-a"), ("https://x.example/b", "for-b")] {
            let headers = HeaderMap::from_iter([(http::header::AUTHORIZATION, credential.parse().unwrap())]);
            origins.add(&target(url), false, Ok(headers));
        }
        let sent = |url: &str| {
            let headers = origins.of(&target(url)).and_then(|known| known.headers.as_ref().ok());
            headers.and_then(|headers| headers.get("authorization")).cloned()
        };
        assert_eq!(sent("https://x.example/b/1"), Some("for-b".parse().unwrap()));
        assert_eq!(sent("https://x.example/a?q=1"), Some("for-a".parse().unwrap()));
        assert_eq!(sent("https://y.example/a"), None);
    }
}
