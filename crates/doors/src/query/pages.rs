//! Whether an answer is one page of several: what is not on it may be on the next.

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
}
