//! Credentials for questions over HTTP: an operator who gave a server its headers gave them for all of its origin.

use crate::http::target::Target;
use http::HeaderMap;
use semel_core::policy::template::encoded_path;

/// Scheme, host and port, as browsers compare them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlOrigin(String);

impl UrlOrigin {
    pub fn of(target: &Target) -> UrlOrigin {
        let uri = target.uri();
        let scheme = uri.scheme_str().unwrap_or_default();
        let port = uri.port_u16().unwrap_or(if target.is_tls() { 443 } else { 80 });
        UrlOrigin(format!("{scheme}://{}:{port}", target.host().trim_end_matches('.').to_ascii_lowercase()))
    }
}

/// The origins of configured servers.
#[derive(Debug, Clone, Default)]
pub struct Origins(Vec<KnownOrigin>);

#[derive(Debug, Clone)]
pub struct KnownOrigin {
    origin: UrlOrigin,
    target: Target,
    /// By what its actions call it, if it is an API.
    service: Option<String>,
    /// Whether its name may lead into the operator's own network.
    pub private: bool,
    /// The headers that are sent to it, or why they are not known: a variable that is not set.
    pub headers: Result<HeaderMap, String>,
}

/// The owner of an address, as far as it is known.
#[derive(Debug, Clone, Copy)]
pub enum OriginOwner<'a> {
    Unknown,
    Known(&'a KnownOrigin),
    /// Several accounts are there: the credential of another would do it to somebody else.
    Several {
        private: bool,
    },
}

impl Origins {
    pub fn add(
        &mut self,
        target: &Target,
        service: Option<&str>,
        private: bool,
        headers: Result<HeaderMap, String>,
    ) {
        let (origin, target, service) = (UrlOrigin::of(target), target.clone(), service.map(str::to_owned));
        self.0.push(KnownOrigin { origin, target, service, private, headers });
    }

    /// Where an address leads. Rules name an API as its actions do, wherever it really is; `own` is the upstream of
    /// the call that is asked about.
    pub fn lead(&self, target: Target, own: Option<&UrlOrigin>) -> Result<Target, String> {
        let origin = UrlOrigin::of(&target);
        if self.0.iter().any(|known| known.origin == origin) {
            return Ok(target);
        }
        let mut meant: Vec<&KnownOrigin> =
            self.0.iter().filter(|known| known.service.as_deref() == Some(target.authority())).collect();
        if meant.iter().any(|known| Some(&known.origin) == own) {
            meant.retain(|known| Some(&known.origin) == own);
        }
        let Some(one) = meant.first() else { return Ok(target) };
        let path = target.uri().path_and_query().map_or("/", |path| path.as_str());
        // Names of actions, and `{path}`, have what all of an upstream's paths begin with; others write the rest alone.
        let whole = meant.iter().filter_map(|known| Some((known.base(), below(path, known.base())?)));
        let parted = whole.max_by_key(|(base, _)| base.len());
        let one_base = meant.iter().all(|other| other.base() == one.base()).then(|| (one.base(), path));
        let one_origin = meant.iter().all(|other| other.origin == one.origin);
        let (true, Some((base, rest))) = (one_origin, parted.or(one_base)) else {
            return Err(format!(
                "several upstreams are {}, and none is that of the call",
                target.authority()
            ));
        };
        let scheme = one.target.uri().scheme_str().unwrap_or_default();
        let address = format!("{scheme}://{}{base}{rest}", one.target.authority());
        Target::parse(&address).map_err(|error| error.to_string())
    }

    /// Of several servers at one origin, the one whose path leads furthest.
    pub fn of(&self, target: &Target) -> OriginOwner<'_> {
        let origin = UrlOrigin::of(target);
        let path = target.uri().path();
        let shared = |known: &KnownOrigin| {
            let base = known.target.uri().path();
            if path.starts_with(base) { base.len() } else { 0 }
        };
        let here = || self.0.iter().filter(|known| known.origin == origin);
        let furthest = here().map(&shared).max();
        let nearest = || here().filter(|known| Some(shared(known)) == furthest);
        match nearest().next() {
            None => OriginOwner::Unknown,
            Some(one) if nearest().all(|other| other.headers == one.headers) => OriginOwner::Known(one),
            Some(_) => OriginOwner::Several { private: nearest().all(|known| known.private) },
        }
    }
}

impl KnownOrigin {
    /// The beginning of all of its paths.
    fn base(&self) -> &str {
        self.target.uri().path().trim_end_matches('/')
    }
}

/// The rest behind a beginning of whole segments.
fn below<'a>(path: &'a str, base: &str) -> Option<&'a str> {
    let ends = |rest: &&str| rest.is_empty() || rest.starts_with(['/', '?']);
    let behind = |begins: &str| path.strip_prefix(begins).filter(ends);
    behind(base).or_else(|| behind(&encoded_path(base)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> Target {
        Target::parse(url).expect("an address")
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let origin = |url: &str| UrlOrigin::of(&target(url));
        assert_eq!(origin("https://API.example.com/a"), origin("https://api.example.com:443/b?c=1"));
        assert_eq!(origin("http://a.example./"), origin("http://a.example:80/"));
        for other in ["http://api.example.com/", "https://api.example.com:444/", "https://example.com/"] {
            assert_ne!(origin("https://api.example.com/"), origin(other), "{other}");
        }
    }

    #[test]
    fn a_rule_names_an_api_as_its_actions_do() {
        let mut origins = Origins::default();
        let add = |origins: &mut Origins, url: &str, service: &str| {
            origins.add(&target(url), Some(service), false, Ok(HeaderMap::new()));
        };
        add(&mut origins, "http://127.0.0.1:9/base/", "api.stripe.com");
        let led = |origins: &Origins, url: &str, own: Option<&str>| {
            let own = own.map(|url| UrlOrigin::of(&target(url)));
            origins.lead(target(url), own.as_ref()).map(|target| target.uri().to_string())
        };
        let question = "https://api.stripe.com/v1/charges?customer=c";
        assert_eq!(led(&origins, question, None).unwrap(), "http://127.0.0.1:9/base/v1/charges?customer=c");
        let whole = "https://api.stripe.com/base/v1/charges?customer=c";
        assert_eq!(led(&origins, whole, None).unwrap(), "http://127.0.0.1:9/base/v1/charges?customer=c");
        let longer = "https://api.stripe.com/based";
        assert_eq!(led(&origins, longer, None).unwrap(), "http://127.0.0.1:9/base/based");
        assert_eq!(led(&origins, "https://other.example/a", None).unwrap(), "https://other.example/a");
        assert_eq!(led(&origins, "http://127.0.0.1:9/x", None).unwrap(), "http://127.0.0.1:9/x");
        add(&mut origins, "http://127.0.0.1:10", "api.stripe.com");
        assert!(led(&origins, question, None).is_err(), "nobody knows which account is meant");
        assert_eq!(
            led(&origins, question, Some("http://127.0.0.1:10")).unwrap(),
            "http://127.0.0.1:10/v1/charges?customer=c"
        );
    }

    #[test]
    fn two_apis_at_one_origin_are_told_apart_by_what_their_paths_begin_with() {
        let mut origins = Origins::default();
        for url in ["http://127.0.0.1:9/eu", "http://127.0.0.1:9/us/v1"] {
            origins.add(&target(url), Some("api.stripe.com"), false, Ok(HeaderMap::new()));
        }
        let own = UrlOrigin::of(&target("http://127.0.0.1:9"));
        for own in [Some(&own), None] {
            let led = |path: &str| {
                let led = origins.lead(target(&format!("https://api.stripe.com{path}")), own);
                led.map(|target| target.uri().to_string())
            };
            assert_eq!(led("/us/v1/charges").unwrap(), "http://127.0.0.1:9/us/v1/charges");
            assert_eq!(led("/eu/v1/charges?a=b").unwrap(), "http://127.0.0.1:9/eu/v1/charges?a=b");
            assert!(led("/v1/charges").is_err(), "nobody knows which of them is meant");
        }
    }

    #[test]
    fn of_two_servers_at_one_origin_the_nearer_one_is_meant() {
        let mut origins = Origins::default();
        for (url, credential) in [("https://x.example/a", "for-a"), ("https://x.example/b", "for-b")] {
            let headers = HeaderMap::from_iter([(http::header::AUTHORIZATION, credential.parse().unwrap())]);
            origins.add(&target(url), None, false, Ok(headers));
        }
        let sent = |url: &str| {
            let OriginOwner::Known(known) = origins.of(&target(url)) else { return None };
            known.headers.as_ref().ok()?.get("authorization").cloned()
        };
        assert_eq!(sent("https://x.example/b/1"), Some("for-b".parse().unwrap()));
        assert_eq!(sent("https://x.example/a?q=1"), Some("for-a".parse().unwrap()));
        assert_eq!(sent("https://y.example/a"), None);
        let other = HeaderMap::from_iter([(http::header::AUTHORIZATION, "for-c".parse().unwrap())]);
        origins.add(&target("https://x.example/a"), None, false, Ok(other));
        let several = origins.of(&target("https://x.example/a/1"));
        assert!(matches!(several, OriginOwner::Several { private: false }), "{several:?}");
        assert!(matches!(origins.of(&target("https://x.example/b/1")), OriginOwner::Known(_)));
    }
}
