//! Whether an answer is one page of several: what is not on it may be on the next.

use http::{HeaderMap, header};
use semel_core::json::Json;

/// The header that leads to the next page, beside the words of an answer itself.
pub const LINK: &str = "Link: rel=\"next\"";

/// How deep in an answer its own words about itself stand. Items of a list may say anything.
const DEPTH_MAX: usize = 3;

/// Members by which APIs say that a list goes on, without their capitals and joints.
const MORE: [&str; 19] = [
    "hasmore",
    "hasnext",
    "hasnextpage",
    "moreresults",
    "nextcursor",
    "nextpagetoken",
    "nexttoken",
    "nextpage",
    "nextpageurl",
    "nexturl",
    "nextlink",
    "odata.nextlink",
    "nextmarker",
    "continuationtoken",
    "nextcontinuationtoken",
    "lastevaluatedkey",
    "istruncated",
    "truncated",
    "incompleteresults",
];

/// Of these, the ones that say it of the last page too.
const SAYS_WHETHER: [&str; 5] = ["hasmore", "hasnext", "hasnextpage", "moreresults", "istruncated"];

/// Members that speak of the page as a whole. A plain `next` among them leads to another one.
const ABOUT: [&str; 9] =
    ["links", "paging", "pagination", "meta", "metadata", "pageinfo", "page", "cursor", "cursors"];

/// The member by which an answer says that there is more, as it is written there.
pub fn next_page(answer: &Json) -> Option<String> {
    said_in(answer, false, 0)
}

fn said_in(json: &Json, about: bool, depth: usize) -> Option<String> {
    let members = json.as_object().filter(|_| depth <= DEPTH_MAX)?;
    for (name, value) in members.iter() {
        let plain = plain(name);
        let leads_on = plain == "next" && (about || is_place(value));
        if (MORE.contains(&plain.as_str()) || leads_on) && is_told(value) {
            return Some(name.to_owned());
        }
    }
    let number = |wanted: &[&str]| {
        let mut found = members.iter().filter(|(name, _)| wanted.contains(&plain(name).as_str()));
        found.find_map(|(name, value)| Some((name.to_owned(), value.canonical().parse::<f64>().ok()?)))
    };
    if let Some((name, pages)) = number(&["totalpages", "pagecount", "pages", "lastpage"]) {
        let here = number(&["page", "currentpage", "pagenumber"]).map_or(1.0, |(_, here)| here);
        if pages > here {
            return Some(name);
        }
    }
    members.iter().find_map(|(name, value)| {
        let about = about || ABOUT.contains(&plain(name).as_str());
        said_in(value, about, depth + 1)
    })
}

/// Whether an answer says itself that it is the last page.
pub fn is_last(answer: &Json) -> bool {
    next_page(answer).is_none() && denies(answer, 0)
}

fn denies(json: &Json, depth: usize) -> bool {
    let members = json.as_object().filter(|_| depth <= DEPTH_MAX);
    members.is_some_and(|members| {
        members.iter().any(|(name, value)| {
            (value.as_bool() == Some(false) && SAYS_WHETHER.contains(&plain(name).as_str()))
                || denies(value, depth + 1)
        })
    })
}

pub fn has_next(headers: &HeaderMap) -> bool {
    links(headers).any(|link| link.contains("rel=\"next\"") || link.contains("rel=next"))
}

/// The address of the next page in the headers.
pub fn linked(headers: &HeaderMap) -> Option<&str> {
    let is_next = |part: &&str| {
        let (_, about) = part.split_once('>').unwrap_or_default();
        let relation = about.split(';').filter_map(|about| about.split_once('='));
        let mut relations = relation.filter(|(name, _)| name.trim().eq_ignore_ascii_case("rel"));
        relations.any(|(_, words)| {
            words.trim_matches([' ', ',', '"']).split(' ').any(|word| word.eq_ignore_ascii_case("next"))
        })
    };
    // An address may hold commas; the bracket before the next one ends it.
    let mut parts = links(headers).flat_map(|link| link.split('<').skip(1));
    parts.find(is_next).and_then(|part| part.split('>').next())
}

fn links(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    headers.get_all(header::LINK).iter().filter_map(|link| link.to_str().ok())
}

/// `has_more`, `hasMore` and `HasMore` are one word.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric() || *c == '.').flat_map(char::to_lowercase).collect()
}

fn is_told(value: &Json) -> bool {
    match value {
        Json::Bool(more) => *more,
        Json::String(cursor) => !cursor.is_empty(),
        Json::Number(_) => true,
        Json::Object(link) => !link.is_empty(),
        Json::Null | Json::Array(_) => false,
    }
}

fn is_place(value: &Json) -> bool {
    value.as_str().is_some_and(|text| text.contains("://") || text.starts_with(['/', '?']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use semel_core::json::parse;

    #[test]
    fn a_list_that_next_page_says_so() {
        for (answer, word) in [
            (r#"{"data": [], "has_more": true}"#, "has_more"),
            (r#"{"items": [], "nextCursor": "abc"}"#, "nextCursor"),
            (r#"{"next": "https://x/?page=2"}"#, "next"),
            (r#"{"links": {"next": "/a?page=2"}}"#, "next"),
            (r#"{"_links": {"next": {"href": "/a?page=2"}}}"#, "next"),
            (r#"{"pagination": {"has_next": true}}"#, "has_next"),
            (r#"{"data": {"charges": {"pageInfo": {"hasNextPage": true}}}}"#, "hasNextPage"),
            (r#"{"meta": {"next_token": "t"}}"#, "next_token"),
            (r#"{"@odata.nextLink": "https://x"}"#, "@odata.nextLink"),
            (r#"{"IsTruncated": true}"#, "IsTruncated"),
            (r#"{"incomplete_results": true, "items": []}"#, "incomplete_results"),
            (r#"{"page": 1, "total_pages": 3}"#, "total_pages"),
            (r#"{"meta": {"pages": 2}}"#, "pages"),
            (r#"{"LastEvaluatedKey": {"id": {"S": "1"}}}"#, "LastEvaluatedKey"),
        ] {
            let found = next_page(&parse(answer).unwrap());
            assert_eq!(found.as_deref(), Some(word), "{answer}");
        }
        for whole in [
            r#"{"has_more": false, "next_cursor": "", "next": null, "nextPageToken": null}"#,
            r#"{"page": 3, "total_pages": 3}"#,
            r#"{"next": "monday"}"#,
            r#"{"items": [{"has_more": true, "next": "https://x"}]}"#,
            r#"[{"has_more": true}]"#,
            r#""text""#,
        ] {
            assert_eq!(next_page(&parse(whole).unwrap()), None, "{whole}");
        }
    }
    #[test]
    fn only_a_page_that_says_so_is_the_last() {
        let is_last = |answer: &str| is_last(&parse(answer).unwrap());
        assert!(is_last(r#"{"data": [], "has_more": false, "last_id": "x"}"#));
        assert!(is_last(r#"{"data": {"charges": {"pageInfo": {"hasNextPage": false}}}}"#));
        for goes_on in [
            r#"{"data": []}"#,
            r#"{"has_more": false, "next_cursor": "c"}"#,
            r#"{"incomplete_results": false}"#,
            r#"{"data": [{"has_more": false}]}"#,
        ] {
            assert!(!is_last(goes_on), "{goes_on}");
        }
    }

    #[test]
    fn a_link_leads_to_the_next_page() {
        let link = |value: &str| HeaderMap::from_iter([(header::LINK, value.parse().unwrap())]);
        let both = link(
            "<https://x/?page=1,2>; rel=\"prev\", <https://x/?page=3,4>; title=\"a\"; rel=\"last next\"",
        );
        assert_eq!(linked(&both), Some("https://x/?page=3,4"));
        assert!(has_next(&link("<https://x/?page=2>; rel=\"next\"")));
        let back = link("<https://x/?page=1>; rel=\"prev\"");
        assert!(!has_next(&back) && linked(&back).is_none());
        assert_eq!(linked(&link("rel=next")), None);
    }
}
