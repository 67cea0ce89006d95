//! A listing over HTTP, page by page. It is whole or it is an error: half of one would make false successes of the other
//! half.

use super::Credentials;
use super::http::{address, content, exchange};
use super::origins::{Origins, UrlOrigin};
use super::pages::{has_next, is_last, linked, next_page};
use crate::http::target::Target;
use crate::wire::form::encoded;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use semel_core::json::{Json, Path, PathError};
use std::collections::HashSet;

/// A listing of a million rows, a hundred to a page.
pub const PAGES_MAX: usize = 10_000;
/// All pages are held in memory.
pub const BYTES_MAX: usize = 256 * 1024 * 1024;

/// How a page leads to the next one, where `Link: rel="next"` does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextPage {
    /// Its address stands in the body.
    Address(Path),
    /// A parameter of the address takes a value of the body. Of several values the last counts, such as the id of the
    /// last row.
    Parameter { name: String, value: Path },
}

impl NextPage {
    /// `links.next` is an address, `starting_after=data[*].id` a parameter.
    pub fn parse(text: &str) -> Result<NextPage, PathError> {
        Ok(match text.split_once('=') {
            Some((name, value)) => {
                NextPage::Parameter { name: name.trim().to_owned(), value: Path::parse(value.trim())? }
            }
            None => NextPage::Address(Path::parse(text.trim())?),
        })
    }
}

/// The bodies of all pages, in order. Within a runtime.
pub async fn read(url: &str, next: Option<&NextPage>, origins: &Origins) -> Result<Vec<Bytes>, String> {
    let (mut target, mut headers) = address(url, origins, Credentials::None)?;
    let origin = UrlOrigin::of(&target);
    let mut seen = HashSet::new();
    let mut pages = Vec::new();
    let mut bytes_left = BYTES_MAX;
    loop {
        let in_page = |why: String| format!("page {}: {why}", pages.len() + 1);
        if !seen.insert(target.uri().to_string()) {
            return Err(in_page("its address was an earlier page's too".to_owned()));
        }
        if pages.len() == PAGES_MAX {
            return Err(format!("it has more than {PAGES_MAX} pages"));
        }
        let asked = exchange("GET", target.clone(), headers, bytes_left).await;
        let (head, body) = asked.map_err(in_page)?;
        if head.status != StatusCode::OK {
            return Err(in_page(format!("{target} answered {}", head.status)));
        }
        let following = next_address(&target, &head.headers, &body, next).map_err(in_page)?;
        let Some(following) = following else {
            pages.push(body);
            return Ok(pages);
        };
        (target, headers) = address(&following, origins, Credentials::None).map_err(in_page)?;
        if UrlOrigin::of(&target) != origin {
            return Err(in_page(format!(
                "the next page is at {target}, and credentials stay where they are"
            )));
        }
        bytes_left -= body.len();
        pages.push(body);
    }
}

/// `None`: this is the last page.
fn next_address(
    at: &Target,
    headers: &HeaderMap,
    body: &[u8],
    next: Option<&NextPage>,
) -> Result<Option<String>, String> {
    let document = content(headers, body)?;
    // A link to the next page says more than the body.
    if is_last(&document) && !(next.is_none() && has_next(headers)) {
        return Ok(None);
    }
    let found = match next {
        Some(NextPage::Address(path)) => {
            last_value(&document, path).map(|to| resolve(at, &to)).transpose()?
        }
        Some(NextPage::Parameter { name, value }) => {
            last_value(&document, value).map(|value| with_parameter(at, name, &value))
        }
        None => linked(headers).map(|to| resolve(at, to)).transpose()?,
    };
    match (found, next_page(&document)) {
        (Some(found), _) => Ok(Some(found)),
        (None, Some(word)) => Err(format!(
            "there are more pages ({word}), and nothing says how to get them: --next PARAMETER=PATH, or --next PATH to an address"
        )),
        (None, None) if has_next(headers) => Err("it links to a next page that is not to be used".to_owned()),
        (None, None) => Ok(None),
    }
}

fn last_value(document: &Json, path: &Path) -> Option<String> {
    match path.find(document).pop()?.1 {
        Json::String(text) if !text.is_empty() => Some(text.clone()),
        Json::Number(number) => Some(number.text().to_owned()),
        _ => None,
    }
}

fn resolve(at: &Target, to: &str) -> Result<String, String> {
    let scheme = at.uri().scheme_str().unwrap_or_default();
    if to.starts_with("http://") || to.starts_with("https://") {
        Ok(to.to_owned())
    } else if to.starts_with("//") {
        Ok(format!("{scheme}:{to}"))
    } else if to.starts_with('/') {
        Ok(format!("{scheme}://{}{to}", at.authority()))
    } else if to.starts_with('?') {
        Ok(format!("{scheme}://{}{}{to}", at.authority(), at.uri().path()))
    } else {
        Err("what should be the address of the next page is none".to_owned())
    }
}

fn with_parameter(at: &Target, name: &str, value: &str) -> String {
    let written = encoded(name);
    let is_other = |pair: &&str| {
        let own = pair.split('=').next().unwrap_or_default();
        !pair.is_empty() && own != name && own != written
    };
    let query = at.uri().query().unwrap_or_default();
    let pair = format!("{written}={}", encoded(value));
    let pairs: Vec<&str> = query.split('&').filter(is_other).chain([pair.as_str()]).collect();
    let scheme = at.uri().scheme_str().unwrap_or_default();
    format!("{scheme}://{}{}?{}", at.authority(), at.uri().path(), pairs.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follow(next: Option<&str>, headers: &HeaderMap, body: &str) -> Result<Option<String>, String> {
        let at = Target::parse("https://api.example.com/v1/charges?limit=2&starting_after=ch_0").unwrap();
        let next = next.map(|text| NextPage::parse(text).unwrap());
        next_address(&at, headers, body.as_bytes(), next.as_ref())
    }

    #[test]
    fn a_page_leads_to_the_next_by_a_parameter_or_an_address_or_a_link() {
        let none = HeaderMap::new();
        let by = |next: &str, body: &str| follow(Some(next), &none, body).unwrap().unwrap_or_default();
        let rows = r#"{"data": [{"id": "ch_1"}, {"id": "ch 2"}], "has_more": true}"#;
        assert_eq!(
            by("starting_after=data[*].id", rows),
            "https://api.example.com/v1/charges?limit=2&starting_after=ch%202"
        );
        let last = r#"{"data": [{"id": "ch_3"}], "has_more": false}"#;
        assert_eq!(by("starting_after=data[*].id", last), "");
        assert_eq!(by("cursor=meta.next_cursor", r#"{"meta": {"next_cursor": ""}}"#), "");
        assert_eq!(
            by("links.next", r#"{"links": {"next": "/v1/c?p=2"}}"#),
            "https://api.example.com/v1/c?p=2"
        );
        assert_eq!(by("next", r#"{"next": "?page=2"}"#), "https://api.example.com/v1/charges?page=2");
        let link = "<https://api.example.com/v1/charges?page=2>; rel=\"next\"";
        let link = HeaderMap::from_iter([(http::header::LINK, link.parse().unwrap())]);
        assert_eq!(
            follow(None, &link, "[]").unwrap().as_deref(),
            Some("https://api.example.com/v1/charges?page=2")
        );
        assert!(follow(None, &link, r#"{"data": [], "has_more": false}"#).unwrap().is_some());
        assert_eq!(follow(None, &none, "[]"), Ok(None));
    }

    #[test]
    fn a_listing_that_goes_on_unseen_is_an_error() {
        let none = HeaderMap::new();
        for (next, body) in [
            (None, r#"{"data": [], "has_more": true}"#),
            (Some("cursor=misspelt"), r#"{"next_cursor": "c"}"#),
            (Some("next"), r#"{"next": "page two"}"#),
            (None, r#"{"page": 1, "total_pages": 3}"#),
        ] {
            assert!(follow(next, &none, body).is_err(), "{next:?} {body}");
        }
        let broken = HeaderMap::from_iter([(http::header::LINK, "rel=\"next\"".parse().unwrap())]);
        assert!(follow(None, &broken, "[]").is_err());
    }
}
