//! GraphQL documents, as far as a door must understand them: does it change anything, which fields, and where does a
//! key go. What cannot be read is not taken for a read.

mod document;
mod operation;
mod tokens;

pub use operation::{Graphql, GraphqlOperation, KeyEdit, UnreadableDocument};

use document::read;
use operation::DESCRIBED;
use semel_core::digest::Digest;
use semel_core::json::Json;
use semel_core::policy::graphql::GraphqlRequest;

/// The members of a body for GraphQL. With any other member it may be a request of another kind, and does not only ask.
const MEMBERS: [&str; 4] = ["query", "variables", "operationName", "extensions"];

/// Names by which a URL may name a document that a server keeps, in lower case and without marks.
const NAMES_A_DOCUMENT: [&str; 9] = [
    "id",
    "documentid",
    "docid",
    "queryid",
    "operationid",
    "hash",
    "sha256hash",
    "documenthash",
    "persistedquery",
];

/// Reads a body that is sent to a place for GraphQL. `None`: it is an ordinary body.
pub fn of(path: &str, url_query: Option<&str>, body: &Json) -> Result<Option<Graphql>, UnreadableDocument> {
    let Some(members) = body.as_object().filter(|_| is_graphql(path)) else { return Ok(None) };
    let Some(document) = members.get("query").and_then(Json::as_str) else { return Ok(None) };
    let foreign = members.iter().any(|(name, _)| !MEMBERS.contains(&name));
    let read = match members.get("operationName") {
        None | Some(Json::Null) => read(document, None),
        Some(name) => name.as_str().and_then(|name| read(document, Some(name))),
    };
    let Some(mut read) = read else {
        return if foreign { Ok(None) } else { Err(UnreadableDocument) };
    };
    if DESCRIBED.iter().any(|name| members.get(name).is_some()) {
        return Ok(None);
    }
    if read.operation != GraphqlOperation::Mutation && names_another(members.get("extensions"), document) {
        // An upstream that goes by the digest carries out what nobody sees here.
        return Ok(None);
    }
    read.only_asks &= !foreign && !url_has_a_say(url_query);
    Ok(Some(read))
}

/// The question by which the answer to a body is read: a document, one by its digest, or several of them at once.
pub fn asked(path: &str, url_query: Option<&str>, body: &Json) -> GraphqlRequest {
    let one = |body: &Json| match of(path, url_query, body) {
        Ok(Some(graphql)) => graphql.asked(),
        Ok(None) if digest(body).is_some() && !has_text(body) => GraphqlRequest::ByDigest,
        Ok(None) | Err(UnreadableDocument) => GraphqlRequest::Unknown,
    };
    match body {
        _ if !is_graphql(path) => GraphqlRequest::Unknown,
        Json::Array(all) => GraphqlRequest::Several(all.iter().map(one).collect()),
        body => one(body),
    }
}

fn has_text(body: &Json) -> bool {
    !matches!(body.get("query"), None | Some(Json::Null))
}

/// The digest that names the document of a body, be its text there or not. One that is not the text's own names
/// nothing, and beside members of another kind of API it may mean anything.
pub fn named_by_digest<'a>(path: &str, body: &'a Json) -> Option<&'a str> {
    let members = body.as_object().filter(|_| is_graphql(path))?;
    let digest = digest(body).filter(|_| members.iter().all(|(name, _)| MEMBERS.contains(&name)))?;
    let known = Digest::parse(digest).filter(|known| known.to_string() == digest)?;
    let is_of = |text: &Json| text.as_str().is_some_and(|text| Digest::plain(text.as_bytes()) == known);
    (!has_text(body) || members.get("query").is_some_and(is_of)).then_some(digest)
}

fn digest(body: &Json) -> Option<&str> {
    body.get("extensions")?.get("persistedQuery")?.get("sha256Hash")?.as_str()
}

/// Reads a body that is a document and nothing else.
pub fn of_text(url_query: Option<&str>, document: &str) -> Result<Graphql, UnreadableDocument> {
    let mut read = read(document, None).ok_or(UnreadableDocument)?;
    read.only_asks &= !url_has_a_say(url_query);
    Ok(read)
}

/// Whether a digest stands beside a text that is not the text's own: which of them counts, the upstream decides.
fn names_another(extensions: Option<&Json>, text: &str) -> bool {
    let read;
    let extensions = match extensions {
        // In a form and in a URL it is a text.
        Some(Json::String(written)) => {
            read = semel_core::json::parse(written).ok();
            read.as_ref().unwrap_or(&Json::Bool(true))
        }
        Some(extensions) => extensions,
        None => return false,
    };
    match extensions {
        Json::Null => false,
        Json::Object(members) => match members.get("persistedQuery") {
            None | Some(Json::Null) => false,
            Some(named) => {
                let digest = named.get("sha256Hash").and_then(Json::as_str);
                digest != Some(Digest::plain(text.as_bytes()).to_string().as_str())
            }
        },
        _ => true,
    }
}

/// Some servers merge both, and nobody says whose word counts.
fn url_has_a_say(url_query: Option<&str>) -> bool {
    let known =
        |name: &str| NAMES_A_DOCUMENT.contains(&name) || MEMBERS.iter().any(|member| is(name, member));
    url_query.is_some_and(|query| crate::wire::form::pairs(query).any(|(name, _)| known(&plain(&name))))
}

/// A name as the most lenient reader takes it: `doc_id` is `docId`, and `query[]` is `query`.
fn plain(name: &str) -> String {
    let name = name.split('[').next().unwrap_or_default();
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

fn is(plain: &str, member: &str) -> bool {
    plain.eq_ignore_ascii_case(member)
}

/// A query that a URL carries: whether it certainly only asks. Without a text it does: GraphQL lets no GET change
/// anything, and by GET and a digest clients ask for what caches may keep.
pub fn url_only_asks(path: &str, url_query: Option<&str>) -> bool {
    let Some(url_query) = url_query.filter(|_| is_graphql(path)) else { return true };
    let given: Vec<_> =
        crate::wire::form::pairs(url_query).map(|(name, value)| (plain(&name), value)).collect();
    let named = || given.iter().any(|(name, _)| NAMES_A_DOCUMENT.contains(&name.as_str()));
    let mut documents = given.iter().filter(|(name, _)| is(name, "query"));
    documents.all(|(_, document)| {
        let mut extensions = given.iter().filter(|(name, _)| is(name, "extensions"));
        read(document, None).is_some_and(|read| read.only_asks)
            && !named()
            && !extensions.any(|(_, written)| names_another(Some(&Json::str(written)), document))
    })
}

/// `/graphql`, `/api/graphql`, `/admin/api/2026-10/graphql.json`.
pub fn is_graphql(path: &str) -> bool {
    let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let stem = last.split('.').next().unwrap_or_default();
    stem.eq_ignore_ascii_case("graphql") || stem.eq_ignore_ascii_case("gql")
}

#[cfg(test)]
mod tests {
    use super::*;
    use semel_core::json::parse;

    fn asks(document: &str) -> Option<bool> {
        read(document, None).map(|read| read.only_asks)
    }

    #[test]
    fn only_a_document_without_a_mutation_is_a_read() {
        for question in [
            "{ me { name } }",
            "query { me }",
            "query Q($a: [Int!] = [1, 2]) @live { me(a: $a, b: {c: \"mutation {\"}) { id } }",
            "# mutation { x }\nquery { me }",
            "query { text(s: \"\"\"mutation { \\\"\"\" } \"\"\") }",
            "query A { a } query B { b } fragment F on T { mutation }",
            "\u{feff}query { mutation }",
            "query mutation { a }",
            "query { a ...F ... on T @x { b } ... { c } } fragment F on T { d }",
            "subscription { a }",
            "query A { a } subscription B { b }",
        ] {
            assert_eq!(asks(question), Some(true), "{question}");
        }
        for change in [
            "mutation { pay }",
            "query A { a } mutation B { b }",
            "subscription A { a } mutation B { b }",
            "{ a } mutation { b }",
            "query { text(s: \"\"\"\"\"\") } mutation { b }",
            "query { a(s: \"\\\"\") } mutation { b }",
        ] {
            assert_eq!(asks(change), Some(false), "{change}");
        }
        for unclear in [
            "",
            "mutations { a }",
            "{ a",
            "query { a(s: \"open) }",
            "{ a } }",
            "query ) {",
            "cats",
            "{ a(] }",
        ] {
            assert_eq!(asks(unclear), None, "{unclear}");
        }
    }

    #[test]
    fn fragments_are_what_they_stand_for() {
        let fields = |document: &str| {
            let read = read(document, None)?;
            Some(read.fields.into_iter().map(|field| field.name).collect::<Vec<_>>().join(" "))
        };
        for (document, expected) in [
            ("mutation { ...F } fragment F on Mutation { pay { id } }", Some("pay")),
            ("fragment F on M { ...G a } mutation { ...F b } fragment G on M { c }", Some("c a b")),
            ("mutation { ... { pay ... on M { book } } ... @include(if: true) { c } }", Some("pay book c")),
            ("mutation { ...Unknown }", None),
            ("mutation { ...F } fragment F on M { ...F }", None),
            ("mutation { ... on M }", None),
        ] {
            assert_eq!(fields(document).as_deref(), expected, "{document}");
        }
        let deep = format!("mutation {{ {} a {} }}", "... {".repeat(100_000), "}".repeat(100_000));
        assert_eq!(fields(&deep), None);
        let many = "fragment A on M { ...B ...B } fragment B on M { ...C ...C } fragment C on M { ...A a }";
        assert_eq!(fields(&format!("mutation {{ ...A }} {many}")), None);
    }

    #[test]
    fn a_key_goes_only_where_nothing_else_stands() {
        let takes = |document: &str, variables: &str| {
            let variables = (!variables.is_empty()).then(|| parse(variables).unwrap());
            read(document, None).unwrap().takes_key("i", variables.as_ref())
        };
        let own = "mutation($k: ID!) { pay @i(key: $k) }";
        assert!(takes("mutation { pay }", "null") && takes("mutation { pay @i(key: \"k\") }", "[]"));
        assert!(takes(own, "{}") && takes(own, ""));
        for unfit in ["null", "[]", "\"k\""] {
            assert!(!takes(own, unfit), "{unfit}");
        }
        assert!(!takes("mutation($o: ID!) { refund(order: $o) @i(key: $o) }", "{}"));
        assert!(!takes("mutation { ...F } fragment F on M { pay }", "{}"));
        assert!(!takes("mutation { pay book }", "{}"));
    }

    #[test]
    fn which_operation_was_asked_for_is_told_where_there_are_several() {
        let told = |document: &str| {
            let mut body = parse("{}").unwrap();
            read(document, Some("A")).unwrap().describe(&mut body);
            body.get("selected").cloned()
        };
        assert_eq!(told("mutation A { a }"), None);
        assert_eq!(told("mutation A { a(id: 1) } mutation B { a(id: 2) }"), Some(Json::str("A")));
    }

    #[test]
    fn the_named_operation_counts() {
        let document = "query A { a } mutation B { b c }";
        let read = |name| read(document, name);
        assert!(read(Some("A")).unwrap().only_asks);
        let change = read(Some("B")).unwrap();
        assert!(!change.only_asks);
        let names: Vec<&str> = change.fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!((change.operation, names), (GraphqlOperation::Mutation, vec!["b", "c"]));
        assert_eq!(read(Some("C")), None);
    }

    #[test]
    fn only_a_body_that_can_be_nothing_else_is_graphql() {
        let of = |path: &str, query: Option<&str>, body: &str| super::of(path, query, &parse(body).unwrap());
        let only_asks = |path: &str, query: Option<&str>, body: &str| {
            of(path, query, body).map(|read| read.map(|read| read.only_asks))
        };
        let body = r#"{"query":"{ me }","variables":{}}"#;
        assert_eq!(only_asks("/graphql", None, body), Ok(Some(true)));
        assert_eq!(only_asks("/admin/api/2026-10/graphql.json", None, body), Ok(Some(true)));
        assert_eq!(only_asks("/graphql", Some("query=mutation{a}"), body), Ok(Some(false)));
        assert_eq!(of("/v1/charges", None, body), Ok(None));
        for ordinary in [
            r#"[{"query":"{ me }"}]"#,
            r#"{"query":"cats","amount":1}"#,
            r#"{"query":"{ me }","fields":["me"]}"#,
            r#"{"query":7}"#,
        ] {
            assert_eq!(of("/graphql", None, ordinary), Ok(None), "{ordinary}");
        }
        assert!(
            url_only_asks("/graphql", Some("query=%7Bme%7D")) && url_only_asks("/x", Some("query=mutation"))
        );
        assert!(!url_only_asks("/graphql", Some("query=mutation%7Ba%7D")));
    }

    #[test]
    fn a_question_beside_the_digest_of_something_else_may_be_anything() {
        let (question, change) = ("{ me }", "mutation { pay }");
        let digest = |text: &str| Digest::plain(text.as_bytes()).to_string();
        let extensions =
            |digest: &str| format!(r#"{{"persistedQuery":{{"version":1,"sha256Hash":"{digest}"}}}}"#);
        let read = |query: &str, extensions: &str| {
            let body = parse(&format!(r#"{{"query":"{query}","extensions":{extensions}}}"#)).unwrap();
            let told = super::of("/graphql", None, &body).unwrap().map(|read| read.operation);
            (told, asked("/graphql", None, &body).only_asks())
        };
        for own in [extensions(&digest(question)), "{}".into(), "null".into(), r#"{"a":1}"#.into()] {
            assert_eq!(read(question, &own), (Some(GraphqlOperation::Query), true), "{own}");
        }
        for other in [
            extensions(&digest(change)),
            extensions(&digest(question).to_uppercase()),
            r#"{"persistedQuery":{}}"#.into(),
            r#"{"persistedQuery":7}"#.into(),
            r#""{\"persistedQuery\":{}}""#.into(),
            "7".into(),
        ] {
            assert_eq!(read(question, &other), (None, false), "{other}");
            assert_eq!(read(change, &other), (Some(GraphqlOperation::Mutation), false), "{other}");
        }
        let url_asks = |given: &[(&str, &str)]| {
            let escaped = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
            let pairs = given.iter().map(|(name, value)| format!("{}={}", escaped(name), escaped(value)));
            let encoded = pairs.collect::<Vec<_>>().join("&");
            url_only_asks("/graphql", Some(&encoded))
        };
        let (own, other) = (extensions(&digest(question)), extensions(&digest(change)));
        assert!(url_asks(&[("extensions", &other), ("variables", "{}")]), "no GET changes anything");
        assert!(url_asks(&[("documentId", "x")]));
        assert!(url_asks(&[("query", question), ("extensions", &own), ("op", "Me")]));
        assert!(!url_asks(&[("query", question), ("extensions", &other)]));
        assert!(!url_asks(&[("extensions", &own), ("query", change)]));
        assert!(!url_asks(&[("query", question), ("documentId", "x")]));
        assert!(!url_asks(&[("query[]", change)]) && !url_asks(&[("Query", change)]));
        let body = parse(&format!(r#"{{"query":"{question}"}}"#)).unwrap();
        for beside in ["id=x", "documentId=x", "doc_id=x", "extensions=%7B%7D", "Query=x", "query[]=x"] {
            assert!(!asked("/graphql", Some(beside), &body).only_asks(), "{beside}");
        }
        assert!(asked("/graphql", Some("op=Me&version=1"), &body).only_asks());
    }

    #[test]
    fn several_only_ask_if_each_of_them_does() {
        let asked = |body: &str| asked("/graphql", None, &parse(body).unwrap());
        assert!(asked(r#"[{"query":"{ me }"},{"query":"query Q { you }","variables":{}}]"#).only_asks());
        for change in [
            r#"[]"#,
            r#"[{"query":"{ me }"},{"query":"mutation { pay }"}]"#,
            r#"[{"query":"{ me }"},{"query":"{ me }","amount":1}]"#,
            r#"[{"query":"{ me }"},{"extensions":{"persistedQuery":{"sha256Hash":"x"}}}]"#,
            r#"[{"query":"{ me }"},{"query":"{ broken"}]"#,
            r#"[{"query":"{ me }"},[{"query":"{ me }"}]]"#,
            r#"[{"query":"{ me }"},7]"#,
        ] {
            assert!(!asked(change).only_asks(), "{change}");
        }
        let body = parse(r#"[{"query":"{ me }"}]"#).unwrap();
        assert!(!super::asked("/graphql", Some("query=mutation{a}"), &body).only_asks());
        assert_eq!(super::asked("/charges", None, &body), GraphqlRequest::Unknown);
    }

    #[test]
    fn fields_that_are_answered_as_one_count_once() {
        let fields = |document: &str| read(document, None).unwrap().asked();
        let so_many = |fields| GraphqlRequest::Document { only_asks: false, fields };
        assert_eq!(fields("mutation { p: pay(a: 1) { id } p: pay(a: 1) { name } }"), so_many(1));
        assert_eq!(fields("mutation { a: pay b: pay }"), so_many(2));
        assert_eq!(fields("mutation { pay ...F } fragment F on M { pay book }"), so_many(2));
    }

    #[test]
    fn a_digest_names_a_document_with_its_text_and_without() {
        let text = "mutation { pay }";
        let own = Digest::plain(text.as_bytes()).to_string();
        let body = |query: &str, digest: &str| {
            parse(&format!(
                r#"{{{query}"extensions":{{"persistedQuery":{{"version":1,"sha256Hash":"{digest}"}}}}}}"#
            ))
            .unwrap()
        };
        let whole = body(&format!(r#""query":"{text}","#), &own);
        let named = [body("", &own), body(r#""query":null,"#, &own), whole];
        for (at, body) in named.iter().enumerate() {
            assert_eq!(named_by_digest("/graphql", body), Some(own.as_str()), "{at}");
            assert_eq!(named_by_digest("/charges", body), None);
        }
        let asked = named.map(|body| asked("/graphql", None, &body));
        let by_text = GraphqlRequest::Document { only_asks: false, fields: 1 };
        assert_eq!(asked, [GraphqlRequest::ByDigest, GraphqlRequest::ByDigest, by_text]);
        for unnamed in [
            body(r#""query":"mutation { refund }","#, &own),
            body(r#""query":7,"#, &own),
            body(r#""fields":["pay"],"#, &own),
            body("", &own.to_uppercase()),
            body("", "a"),
        ] {
            assert_eq!(named_by_digest("/graphql", &unnamed), None, "{}", unnamed.canonical());
        }
    }

    #[test]
    fn rules_see_what_a_document_does() {
        for body in [
            r#"{"query":"mutation { a: issueCreate(input: {}) { id } }"}"#,
            r#"{"query":"mutation { issueCreate }","id":"beside what belongs there"}"#,
        ] {
            let mut body = parse(body).unwrap();
            super::of("/graphql", None, &body).unwrap().unwrap().describe(&mut body);
            assert_eq!(body.get("operation"), Some(&Json::str("mutation")));
            assert_eq!(body.get("fields").unwrap().canonical(), r#"["issueCreate"]"#);
        }
    }

    #[test]
    fn what_no_rule_could_be_held_against_is_not_taken() {
        let nested = format!("mutation {{ {} pay {} }}", "... {".repeat(40), "}".repeat(40));
        for document in [nested.as_str(), "mutation { ...Unknown }", "cats", ""] {
            let body = Json::object([("query", Json::str(document))]);
            assert_eq!(super::of("/graphql", None, &body), Err(UnreadableDocument), "{document}");
        }
        for named in [Json::Bool(true), Json::str("Other")] {
            let body = Json::object([("query", Json::str("mutation A { pay }")), ("operationName", named)]);
            assert_eq!(super::of("/graphql", None, &body), Err(UnreadableDocument));
        }
    }

    #[test]
    fn a_key_goes_to_the_one_field_of_a_mutation() {
        let edit =
            |document: &str| read(document, None).and_then(|read| read.with_key(document, "idempotent", "k"));
        let document = |text: &str| Some(KeyEdit::Document(text.to_owned()));
        assert_eq!(
            edit("mutation M($i: I!) { refund(input: $i) @include(if: true) { id } }"),
            document(
                "mutation M($i: I!) { refund(input: $i) @idempotent(key: \"k\") @include(if: true) { id } }"
            )
        );
        assert_eq!(
            edit("mutation { r: refund @idempotent(scope: [1], key: \"old\") { id } }"),
            document("mutation { r: refund @idempotent(scope: [1], key: \"k\") { id } }")
        );
        assert_eq!(edit("mutation { refund @idempotent(key: $v) }"), Some(KeyEdit::Variable("v".into())));
        for none in ["mutation { a b }", "query { a }", "mutation { ...F } fragment F on M { a }"] {
            assert_eq!(edit(none), None, "{none}");
        }
        let read = read("mutation($v: S) { refund @idempotent(key: $v) }", None).unwrap();
        let variables = Json::object([("v", Json::str("mine"))]);
        assert_eq!(read.key("idempotent", variables.as_object()), Some("mine".to_owned()));
        assert_eq!(read.key("other", variables.as_object()), None);
    }
}
