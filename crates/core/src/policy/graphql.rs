//! Whether the answer to a GraphQL mutation refuses. It comes with status 200 whatever became of it, and an error alone
//! says little: a mutation that was carried out answers `null` too, if a field of what it made cannot be shown.

use crate::json::{Json, Object};
use crate::judgement::error_text;

/// Nobody can say from such an answer what was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GraphqlUnclear {
    #[error("it is no answer to a GraphQL mutation")]
    NoAnswer,
    #[error("it has errors that do not tell whether it was carried out")]
    Open,
    #[error("a part of it was refused, and another was not")]
    InPart,
}

/// The parts of a request by which its answer is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GraphqlRequest {
    /// Nothing that is known: a form in parts, a document where none is looked for, no GraphQL at all.
    Unknown,
    /// A document, whose answer has so many fields. `only_asks`: whatever part of it is carried out changes nothing.
    Document { only_asks: bool, fields: usize },
    /// A document by its digest alone: the server may not have its text.
    ByDigest,
    /// Several at once, which are answered in their order.
    Several(Vec<GraphqlRequest>),
}

impl GraphqlRequest {
    pub fn only_asks(&self) -> bool {
        match self {
            GraphqlRequest::Unknown | GraphqlRequest::ByDigest => false,
            GraphqlRequest::Document { only_asks, .. } => *only_asks,
            GraphqlRequest::Several(all) => !all.is_empty() && all.iter().all(GraphqlRequest::only_asks),
        }
    }

    fn fields(&self) -> Option<usize> {
        match self {
            GraphqlRequest::Document { fields, .. } => Some(*fields),
            GraphqlRequest::Unknown | GraphqlRequest::ByDigest | GraphqlRequest::Several(_) => None,
        }
    }
}

/// The outcome of one top-level field of the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldOutcome {
    Done,
    Refused,
    Open,
}

/// Codes that speak of the server and not of the request: what it had done by then is not known.
const OPEN_CODES: [&str; 11] = [
    "INTERNAL",
    "TIMEOUT",
    "UNAVAILABLE",
    "ABORTED",
    "DOWNSTREAM",
    "GATEWAY",
    "NETWORK",
    "UNKNOWN",
    // Hasura, of an action's webhook; AppSync, of a function, and of a template that may be the one for its answer.
    "UNEXPECTED",
    "UNHANDLED",
    "MAPPINGTEMPLATE",
];

/// The same in words, for servers that give no code, beside what everybody says when something breaks: GitHub tells of
/// a timeout like that.
const OPEN_WORDS: &[&str] = &[
    "something went wrong",
    "internal error",
    "internal server error",
    "internal system error",
    "unexpected error",
    "unexpected execution error",
    "unknown error",
    "unhandled",
    "uncaught",
    "http exception",
    "timeout",
    "unavailable",
    "status code 5",
    "status 5",
    // Go, of a request that a field made: `Post "https://…": EOF`.
    "\": eof",
    // A field that was carried out, and had nothing to say where it must say something.
    "cannot return null",
    "returned a null value",
    "element is null which the schema does not allow",
];

/// Members of a payload that are there whatever became of it.
const ALWAYS_THERE: [&str; 2] = ["__typename", "clientMutationId"];

/// The code and words of a server that has no document of a digest, or takes none. Nothing was carried out,
/// and clients send the text next.
const NO_SUCH_DOCUMENT: [&str; 4] = [
    "PERSISTED_QUERY_NOT_FOUND",
    "PERSISTED_QUERY_NOT_SUPPORTED",
    "PersistedQueryNotFound",
    "PersistedQueryNotSupported",
];

/// Whether the answer to a request refuses all that it asked for.
pub fn refuses(asked: &GraphqlRequest, answer: &Json) -> Result<bool, GraphqlUnclear> {
    match (asked, answer) {
        (GraphqlRequest::Several(_) | GraphqlRequest::Unknown, Json::Array(answers))
            if are_for(asked, answers) =>
        {
            let told: Vec<_> =
                changes(asked, answers).map(|(asked, answer)| one_refuses(asked, answer)).collect();
            let all = |wanted: bool| told.iter().all(|told| *told == Ok(wanted));
            match () {
                () if all(false) => Ok(false),
                () if all(true) => Ok(true),
                () if told.contains(&Err(GraphqlUnclear::Open)) => Err(GraphqlUnclear::Open),
                () if told.contains(&Err(GraphqlUnclear::NoAnswer)) => Err(GraphqlUnclear::NoAnswer),
                () => Err(GraphqlUnclear::InPart),
            }
        }
        _ => one_refuses(asked, answer),
    }
}

/// Whether so many answers are for what was asked.
fn are_for(asked: &GraphqlRequest, answers: &[Json]) -> bool {
    match asked {
        GraphqlRequest::Several(all) => all.len() == answers.len(),
        GraphqlRequest::Unknown => !answers.is_empty(),
        GraphqlRequest::Document { .. } | GraphqlRequest::ByDigest => false,
    }
}

/// Each answer with what it is for, but for those to mere questions.
fn changes<'a>(
    asked: &'a GraphqlRequest,
    answers: &'a [Json],
) -> impl Iterator<Item = (&'a GraphqlRequest, &'a Json)> {
    let each = match asked {
        GraphqlRequest::Several(all) if all.len() == answers.len() => all.as_slice(),
        _ => &[],
    };
    let asked = each.iter().chain(std::iter::repeat(&GraphqlRequest::Unknown));
    asked.zip(answers).filter(|(asked, _)| !asked.only_asks())
}

fn one_refuses(asked: &GraphqlRequest, answer: &Json) -> Result<bool, GraphqlUnclear> {
    let fields = asked.fields();
    let members = answer.as_object().ok_or(GraphqlUnclear::NoAnswer)?;
    let errors = errors(members)?;
    match members.get("data") {
        Some(Json::Object(data)) if !data.is_empty() => of_parts(fields, data, &errors),
        None | Some(Json::Null) if !errors.is_empty() => {
            let all_paths_are = |is: fn(&GraphqlError<'_>) -> bool| errors.iter().all(is);
            // Without a path it was refused before anything of it began. With one, a field that may not be null has
            // taken all of `data` with it, whatever the fields before it did.
            let nothing_began = all_paths_are(|error| error.path.is_empty())
                || fields == Some(1) && all_paths_are(|error| error.path.len() <= 1);
            let refused = nothing_began && !errors.iter().any(GraphqlError::leaves_it_open);
            if refused { Ok(true) } else { Err(GraphqlUnclear::Open) }
        }
        _ => Err(GraphqlUnclear::NoAnswer),
    }
}

/// Whether the body of an answer whose status refuses shows that something may have been carried out all the same.
pub fn contradicts_refusal(asked: &GraphqlRequest, answer: &Json) -> bool {
    match answer {
        // Several operations at once have an answer each.
        Json::Array(answers) => {
            changes(asked, answers).any(|(asked, answer)| one_contradicts_refusal(asked, answer))
        }
        _ => one_contradicts_refusal(asked, answer),
    }
}

fn one_contradicts_refusal(asked: &GraphqlRequest, answer: &Json) -> bool {
    let Some(members) = answer.as_object() else { return false };
    let began = errors(members).is_ok_and(|errors| errors.iter().any(|error| !error.path.is_empty()));
    let data = members.get("data").and_then(Json::as_object);
    let shown = data.is_some_and(|data| data.iter().any(|(_, payload)| shows(payload)));
    (began || shown) && one_refuses(asked, answer) != Ok(true)
}

/// Whether a server did nothing because it has no document of the digest that it was given: the same request comes
/// again with the text, and its refusal must not answer that one.
pub fn wants_the_text(asked: &GraphqlRequest, answer: impl FnOnce() -> Json) -> bool {
    match asked {
        GraphqlRequest::ByDigest => has_no_document(&answer()),
        GraphqlRequest::Several(all) if all.contains(&GraphqlRequest::ByDigest) => {
            let answer = answer();
            let answers = answer.as_array().unwrap_or_default();
            let wants = |(asked, answer): (&GraphqlRequest, &Json)| {
                *asked == GraphqlRequest::ByDigest && has_no_document(answer)
            };
            changes(asked, answers).any(wants) && refuses(asked, &answer) == Ok(true)
        }
        _ => false,
    }
}

fn has_no_document(answer: &Json) -> bool {
    let Some(members) = answer.as_object() else { return false };
    let nothing = matches!(members.get("data"), None | Some(Json::Null));
    let says_so = |error: &GraphqlError<'_>| {
        let message = error.message().trim();
        error.path.is_empty() && error.codes().chain([message]).any(|text| NO_SUCH_DOCUMENT.contains(&text))
    };
    nothing && errors(members).is_ok_and(|errors| !errors.is_empty() && errors.iter().all(says_so))
}

fn of_parts(
    fields: Option<usize>,
    data: &Object,
    errors: &[GraphqlError<'_>],
) -> Result<bool, GraphqlUnclear> {
    let mut parts: Vec<FieldOutcome> =
        data.iter().map(|(name, payload)| of_part(name, payload, errors)).collect();
    // An error of a field that the answer does not have.
    let elsewhere = |error: &GraphqlError<'_>| error.field().is_some_and(|field| data.get(field).is_none());
    if errors.iter().any(elsewhere) {
        parts.push(FieldOutcome::Open);
    }
    let all = |wanted: FieldOutcome| parts.iter().all(|part| *part == wanted);
    // A field may be left out on purpose (`@skip`), and then the rest still says that something was done; but not that
    // nothing was.
    let whole = fields.is_none_or(|fields| data.len() >= fields);
    match () {
        () if all(FieldOutcome::Done) => Ok(false),
        () if all(FieldOutcome::Refused) && whole => Ok(true),
        () if all(FieldOutcome::Refused) => Err(GraphqlUnclear::Open),
        () if parts.contains(&FieldOutcome::Open) => Err(GraphqlUnclear::Open),
        () => Err(GraphqlUnclear::InPart),
    }
}

fn of_part(name: &str, payload: &Json, errors: &[GraphqlError<'_>]) -> FieldOutcome {
    let mut own = errors.iter().filter(|error| error.field() == Some(name)).peekable();
    match payload {
        // A field that may be null answers so on its own account, unless an error does not say what it is about.
        Json::Null if own.peek().is_none() => {
            if errors.iter().any(|error| error.path.is_empty()) {
                FieldOutcome::Open
            } else {
                FieldOutcome::Done
            }
        }
        // An error further down means that the field itself was carried out.
        Json::Null if own.all(|error| error.path.len() == 1 && !error.leaves_it_open()) => {
            FieldOutcome::Refused
        }
        Json::Null => FieldOutcome::Open,
        Json::Object(members) if members.iter().any(|(name, list)| is_user_errors(name) && shows(list)) => {
            // Data beside them may have been made, or have been there before.
            if shows(payload) { FieldOutcome::Open } else { FieldOutcome::Refused }
        }
        Json::Object(members) if members.get("success") == Some(&Json::Bool(false)) => FieldOutcome::Open,
        Json::Object(_) if own.peek().is_some() && !shows(payload) => FieldOutcome::Open,
        _ => FieldOutcome::Done,
    }
}

/// Whether there is anything in it, beside what is there in any case and what tells of errors.
fn shows(payload: &Json) -> bool {
    match payload {
        Json::Null => false,
        Json::Array(items) => !items.is_empty(),
        Json::Object(members) => members.iter().any(|(name, value)| {
            !ALWAYS_THERE.contains(&name) && !is_user_errors(name) && !is_nothing(value)
        }),
        _ => true,
    }
}

fn is_nothing(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// `userErrors`, `orderCancelUserErrors`: where an API tells what it found wrong with the input.
fn is_user_errors(name: &str) -> bool {
    name == "userErrors" || name.ends_with("UserErrors")
}

/// Where servers write a code, in an error or in its `extensions`: `errorType` is AppSync's, `classification` that of
/// graphql-java.
const CODES: [&str; 4] = ["type", "code", "errorType", "classification"];

#[derive(Debug)]
struct GraphqlError<'a> {
    told: &'a Json,
    /// From the field that the operation begins with; empty: it is about the request.
    path: &'a [Json],
}

impl GraphqlError<'_> {
    fn field(&self) -> Option<&str> {
        self.path.first().map(|field| field.as_str().unwrap_or_default())
    }

    fn codes(&self) -> impl Iterator<Item = &str> {
        let extensions = self.told.get("extensions");
        let places = [Some(self.told), extensions].into_iter().flatten();
        places.flat_map(|place| CODES.iter().filter_map(|name| place.get(name)?.as_str()))
    }

    fn message(&self) -> &str {
        self.told.get("message").and_then(Json::as_str).unwrap_or_default()
    }

    fn leaves_it_open(&self) -> bool {
        let has = |text: &str, words: &[&str]| words.iter().any(|word| text.contains(word));
        if self.codes().any(|code| has(&code.to_ascii_uppercase(), &OPEN_CODES)) {
            return true;
        }
        let message = without_names(&self.message().to_lowercase());
        if has(&message, OPEN_WORDS) || error_text::lost(&message).is_some() {
            return true;
        }
        // Before a field begins, the document is spoken of, where a list of things is a connection.
        let name = if self.path.is_empty() { "connection" } else { "" };
        error_text::broke(&message.replace(name, "")).is_some()
    }
}

/// A message without the names that it quotes from the request: `field 'timeout'` tells of no timeout, and neither does
/// what was perhaps meant instead.
fn without_names(message: &str) -> String {
    const NAMED: [&str; 5] = ["field", "argument", "variable", "parameter", "type"];
    let is_quoted_name = |word: &str| {
        let word = word.trim_end_matches(['.', ',', ';', ':', '?', '!']);
        let inside =
            ['\'', '"', '`'].iter().find_map(|quote| word.strip_prefix(*quote)?.strip_suffix(*quote));
        inside.is_some_and(|name| name.chars().all(|c| c.is_alphanumeric() || "_.$[]!".contains(c)))
    };
    let mut before = "";
    let message = message.split("did you mean").next().unwrap_or_default();
    let said = message.split_whitespace().filter(|word| {
        let is_name = NAMED.contains(&before.trim_end_matches(':')) && is_quoted_name(word);
        before = word;
        !is_name
    });
    said.collect::<Vec<_>>().join(" ")
}

fn errors(answer: &Object) -> Result<Vec<GraphqlError<'_>>, GraphqlUnclear> {
    let told = match answer.get("errors") {
        None | Some(Json::Null) => return Ok(Vec::new()),
        Some(errors) => errors.as_array().ok_or(GraphqlUnclear::NoAnswer)?,
    };
    let read = told.iter().map(|told| {
        let path = match told.get("path") {
            None | Some(Json::Null) => &[],
            Some(path) => path.as_array().ok_or(GraphqlUnclear::NoAnswer)?,
        };
        let path = if leads_through_the_document(answer, told, path) { &[] } else { path };
        Ok(GraphqlError { told, path })
    });
    read.collect()
}

/// Some servers tell with a path where in the document they found a fault, before anything of it began: it starts with
/// the operation, and not with a field.
fn leads_through_the_document(answer: &Object, told: &Json, path: &[Json]) -> bool {
    let first = path.first().and_then(Json::as_str).unwrap_or_default();
    let starts = first.split(' ').next().unwrap_or_default();
    answer.get("data").is_none()
        && told.get("locations").is_some()
        && ["mutation", "fragment"].contains(&starts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;

    const REFUSED: Result<bool, GraphqlUnclear> = Ok(true);
    const DONE: Result<bool, GraphqlUnclear> = Ok(false);
    const OPEN: Result<bool, GraphqlUnclear> = Err(GraphqlUnclear::Open);
    const IN_PART: Result<bool, GraphqlUnclear> = Err(GraphqlUnclear::InPart);
    const NO_ANSWER: Result<bool, GraphqlUnclear> = Err(GraphqlUnclear::NoAnswer);

    fn document(fields: usize) -> GraphqlRequest {
        GraphqlRequest::Document { only_asks: false, fields }
    }

    fn of(asked: &GraphqlRequest, answer: &str) -> Result<bool, GraphqlUnclear> {
        refuses(asked, &parse(answer).expect(answer))
    }

    #[test]
    fn an_answer_refuses_only_where_nothing_can_have_happened() {
        for (answer, expected) in [
            // Before anything began: no path.
            (r#"{"errors": [{"message": "Field 'x' does not exist"}]}"#, REFUSED),
            (r#"{"errors": [{"message": "no", "path": null}], "data": null}"#, REFUSED),
            (r#"{"errors": [{"extensions": {"code": "THROTTLED"}}]}"#, REFUSED),
            (r#"{"errors": [{"extensions": {"code": "INTERNAL_SERVER_ERROR"}}]}"#, OPEN),
            (r#"{"errors": [{"type": "SERVICE_UNAVAILABLE"}], "data": null}"#, OPEN),
            (r#"{"errors": [{"extensions": {"type": "lock timeout"}}], "data": null}"#, OPEN),
            (r#"{"errors": [{"message": "Something went wrong while executing your query."}]}"#, OPEN),
            // A word that is a name in the request.
            (r#"{"errors": [{"message": "Field 'timeout' is not defined by type PayInput"}]}"#, REFUSED),
            (
                r#"{"errors": [{"message": "Unknown argument \"timeout\" on field \"Mutation.pay\"."}]}"#,
                REFUSED,
            ),
            (r#"{"errors": [{"message": "Variable \"$timeout\" got invalid value 1"}]}"#, REFUSED),
            (r#"{"errors": [{"message": "The bank said 'timeout'"}]}"#, OPEN),
            (r#"{"errors": [{"message": "field 'pay': timeout"}]}"#, OPEN),
            (r#"{"errors": [{"message": "Unknown type \"Pa\". Did you mean \"Timeout\"?"}]}"#, REFUSED),
            (
                r#"{"errors": [{"message": "Paginate the `issues` connection by `first` or `last`"}]}"#,
                REFUSED,
            ),
            (r#"{"errors": [{"message": "Connection reset by peer"}]}"#, OPEN),
            // A path through the document, and one through what was made.
            (r#"{"errors": [{"path": ["mutation P", "m", "x"], "locations": []}]}"#, REFUSED),
            (r#"{"errors": [{"path": ["mutation", "m", "x"], "locations": []}], "data": null}"#, OPEN),
            (r#"{"errors": [{"path": ["mutation", "m", "x"]}]}"#, OPEN),
            // The field itself.
            (r#"{"errors": [{"path": ["m"], "type": "NOT_FOUND"}], "data": {"m": null}}"#, REFUSED),
            (r#"{"errors": [{"path": ["m"]}], "data": null}"#, REFUSED),
            (r#"{"errors": [{"path": ["m"]}]}"#, REFUSED),
            (r#"{"errors": [{"path": ["m"], "message": "Timeout on it"}], "data": {"m": null}}"#, OPEN),
            // A field of what was made.
            (r#"{"errors": [{"path": ["m", "issue", "team"]}], "data": null}"#, OPEN),
            (r#"{"errors": [{"path": ["m", "issue"]}], "data": {"m": null}}"#, OPEN),
            (r#"{"errors": [{"path": ["m"]}, {"path": ["m", 0]}], "data": {"m": null}}"#, OPEN),
            (r#"{"errors": [{"path": ["m", "issue"]}], "data": {"m": {"issue": null}}}"#, OPEN),
            (r#"{"errors": [{"path": ["m", "a"]}], "data": {"m": {"id": 1, "a": null}}}"#, DONE),
            // Nobody says what the error is about.
            (r#"{"errors": [{"message": "no"}], "data": {"m": null}}"#, OPEN),
            (r#"{"errors": [{"path": ["n"]}], "data": {"m": {"id": 1}}}"#, OPEN),
            (r#"{"errors": [{"message": "deprecated"}], "data": {"m": {"id": 1}}}"#, DONE),
            // A field that may be null.
            (r#"{"data": {"m": null}}"#, DONE),
            (r#"{"data": {"m": null}, "errors": []}"#, DONE),
            // Faults that the API found in the input.
            (r#"{"data": {"m": {"order": null, "userErrors": [{"message": "no"}]}}}"#, REFUSED),
            (r#"{"data": {"m": {"userErrors": [{"message": "no"}], "__typename": "P"}}}"#, REFUSED),
            (r#"{"data": {"m": {"job": null, "orderCancelUserErrors": [{"code": "X"}]}}}"#, REFUSED),
            (r#"{"data": {"m": {"order": {"id": 1}, "userErrors": [{"message": "no"}]}}}"#, OPEN),
            (r#"{"data": {"m": {"order": {"id": 1}, "userErrors": []}}}"#, DONE),
            (r#"{"data": {"m": {"userErrors": []}}}"#, DONE),
            (r#"{"data": {"m": {"success": false}}}"#, OPEN),
            (r#"{"data": {"m": {"success": true}}, "errors": []}"#, DONE),
            (r#"{"data": {"m": true}}"#, DONE),
            // No answer.
            (r#"{"data": null}"#, NO_ANSWER),
            (r#"{"data": {}}"#, NO_ANSWER),
            (r#"{"errors": {"message": "no"}}"#, NO_ANSWER),
            (r#"{"errors": [{"path": "m"}]}"#, NO_ANSWER),
            (r#"{"text": "<html>"}"#, NO_ANSWER),
            (r#"[{"data": {"m": {"id": 1}}}]"#, NO_ANSWER),
        ] {
            assert_eq!(of(&document(1), answer), expected, "{answer}");
        }
    }

    #[test]
    fn an_error_of_a_field_that_broke_does_not_refuse() {
        let of_a_field = |error: &str| {
            let answer = format!(r#"{{"errors": [{{"path": ["pay"], {error}}}], "data": {{"pay": null}}}}"#);
            (of(&document(1), &answer), of(&GraphqlRequest::Unknown, &answer))
        };
        for broke in [
            "internal system error",
            "Unexpected Execution Error",
            "context deadline exceeded",
            "socket hang up",
            "Exception while fetching data (/pay) : Connection reset",
            "Exception while fetching data (/pay) : Read timed out",
            "Cannot read properties of undefined (reading 'id')",
            "Cannot return null for non-nullable field Mutation.pay.",
            "An unexpected error occurred.",
            "Request failed with status code 503",
            "Post \\\"https://bank/pay\\\": EOF",
            "connect: no connection to the bank",
            "'NoneType' object has no attribute 'id'",
            "runtime error: invalid memory address or nil pointer dereference",
        ] {
            assert_eq!(of_a_field(&format!(r#""message": "{broke}""#)), (OPEN, OPEN), "{broke}");
        }
        for code in [
            r#""errorType": "Lambda:Unhandled""#,
            r#""errorType": "MappingTemplate""#,
            r#""message": "x", "extensions": {"classification": "INTERNAL_ERROR"}"#,
            r#""message": "x", "extensions": {"errorType": "UNAVAILABLE"}"#,
        ] {
            assert_eq!(of_a_field(code), (OPEN, OPEN), "{code}");
        }
        for no in [
            r#""message": "no such order", "extensions": {"code": "NOT_FOUND"}"#,
            r#""message": "Exception while fetching data (/pay) : insufficient funds""#,
            r#""message": "at most 500 may be paid""#,
            r#""message": "declined", "errorType": "Lambda:Declined""#,
            r#""message": "declined", "extensions": {"classification": {"type": "TIMEOUT"}}"#,
        ] {
            assert_eq!(of_a_field(no), (REFUSED, REFUSED), "{no}");
        }
        let webhook =
            r#"{"message": "http exception when calling webhook", "extensions": {"code": "unexpected"}}"#;
        assert_eq!(of(&document(1), &format!(r#"{{"errors": [{webhook}]}}"#)), OPEN);
    }

    #[test]
    fn of_several_fields_each_has_to_be_refused() {
        let no = r#"{"order": null, "userErrors": [{"message": "no"}]}"#;
        let yes = r#"{"order": {"id": 1}, "userErrors": []}"#;
        for (answer, expected) in [
            (format!(r#"{{"data": {{"a": {no}, "b": {no}}}}}"#), REFUSED),
            (format!(r#"{{"data": {{"a": {yes}, "b": {yes}}}}}"#), DONE),
            (format!(r#"{{"data": {{"a": {yes}, "b": {no}}}}}"#), IN_PART),
            (format!(r#"{{"data": {{"a": {no}, "b": null}}, "errors": [{{"path": ["b"]}}]}}"#), REFUSED),
            (format!(r#"{{"data": {{"a": {yes}, "b": null}}, "errors": [{{"path": ["b"]}}]}}"#), IN_PART),
            (r#"{"data": {"a": null, "b": null}, "errors": [{"path": ["b"]}]}"#.to_owned(), IN_PART),
            (r#"{"data": {"a": null, "b": null}, "errors": [{"message": "no"}]}"#.to_owned(), OPEN),
            (r#"{"data": {"a": null, "b": null}}"#.to_owned(), DONE),
            // The first may have been carried out before the second took its answer away.
            (r#"{"data": null, "errors": [{"path": ["b"]}]}"#.to_owned(), OPEN),
            (r#"{"data": null, "errors": [{"message": "syntax"}]}"#.to_owned(), REFUSED),
        ] {
            assert_eq!(of(&document(2), &answer), expected, "{answer}");
            assert_eq!(of(&GraphqlRequest::Unknown, &answer), expected, "{answer}");
        }
        let one_of_two = r#"{"data": {"a": null}, "errors": [{"path": ["a"]}]}"#;
        assert_eq!((of(&document(2), one_of_two), of(&document(1), one_of_two)), (OPEN, REFUSED));
        assert_eq!(
            of(&document(2), r#"{"data": {"a": {"id": 1}}}"#),
            DONE,
            "the other was left out on purpose"
        );
    }

    #[test]
    fn a_status_that_refuses_is_believed_unless_the_body_shows_something() {
        for (answer, contradicts) in [
            (r#"{"message": "Bad credentials"}"#, false),
            (r#"{"text": "<html>"}"#, false),
            (r#"{"errors": [{"path": ["m"]}], "data": null}"#, false),
            (r#"{"errors": [{"path": ["m"]}], "data": {"m": null}}"#, false),
            (r#"{"errors": [{"path": ["m", "issue"]}], "data": null}"#, true),
            (r#"{"errors": [{"path": ["b"]}], "data": {"a": {"id": 1}, "b": null}}"#, true),
            (r#"[{"data": {"m": {"id": 1}}}, {"errors": [{"message": "no"}]}]"#, true),
            (r#"[{"errors": [{"message": "no"}]}, {"errors": [{"message": "no"}]}]"#, false),
        ] {
            assert_eq!(contradicts_refusal(&document(1), &parse(answer).unwrap()), contradicts, "{answer}");
        }
        let second = parse(r#"{"errors": [{"path": ["b"]}], "data": null}"#).unwrap();
        assert!(contradicts_refusal(&document(2), &second), "the first may have been carried out");
    }

    fn several(all: impl IntoIterator<Item = GraphqlRequest>) -> GraphqlRequest {
        GraphqlRequest::Several(all.into_iter().collect())
    }

    const QUESTION: GraphqlRequest = GraphqlRequest::Document { only_asks: true, fields: 1 };

    #[test]
    fn of_several_operations_each_has_to_be_refused_but_for_mere_questions() {
        let (yes, no) = (r#"{"data": {"m": {"id": 1}}}"#, r#"{"errors": [{"message": "no"}]}"#);
        let open = r#"{"errors": [{"message": "timed out"}]}"#;
        let two = several([document(1), document(1)]);
        for (answer, expected) in [
            (format!("[{yes}, {yes}]"), DONE),
            (format!("[{no}, {no}]"), REFUSED),
            (format!("[{yes}, {no}]"), IN_PART),
            (format!("[{no}, {open}]"), OPEN),
            (format!("[{yes}, {open}]"), OPEN),
            (format!("[{no}, 7]"), NO_ANSWER),
            // All of it together.
            (no.to_owned(), REFUSED),
        ] {
            assert_eq!(of(&two, &answer), expected, "{answer}");
            assert_eq!(of(&GraphqlRequest::Unknown, &answer), expected, "{answer}");
        }
        assert_eq!(of(&two, &format!("[{no}]")), NO_ANSWER, "one answer is missing");
        let beside = several([QUESTION, document(1)]);
        assert_eq!(of(&beside, &format!("[{yes}, {no}]")), REFUSED);
        assert_eq!(of(&beside, &format!("[{no}, {yes}]")), DONE);
        let contradicts =
            |asked: &GraphqlRequest, answer: &str| contradicts_refusal(asked, &parse(answer).unwrap());
        assert!(!contradicts(&beside, &format!("[{yes}, {no}]")), "the question was answered");
        for asked in [&beside, &two, &GraphqlRequest::Unknown, &GraphqlRequest::ByDigest] {
            assert!(contradicts(asked, &format!("[{no}, {yes}]")), "{asked:?}");
            assert!(!contradicts(asked, &format!("[{no}, {no}]")), "{asked:?}");
        }
        assert!(contradicts(&beside, &format!("[{yes}]")), "nobody knows for what it is");
        assert!(several([QUESTION, QUESTION]).only_asks());
        assert!(!beside.only_asks() && !several([]).only_asks());
    }

    #[test]
    fn a_server_that_has_no_document_of_a_digest_wants_its_text() {
        let wants =
            |asked: &GraphqlRequest, answer: &str| wants_the_text(asked, || parse(answer).expect(answer));
        let misses = r#"{"errors": [{"message": "PersistedQueryNotFound"}]}"#;
        for answer in [
            misses,
            r#"{"errors": [{"message": "x", "extensions": {"code": "PERSISTED_QUERY_NOT_FOUND"}}], "data": null}"#,
            r#"{"errors": [{"extensions": {"code": "PERSISTED_QUERY_NOT_SUPPORTED"}}]}"#,
        ] {
            assert!(wants(&GraphqlRequest::ByDigest, answer), "{answer}");
            assert!(!wants(&document(1), answer) && !wants(&GraphqlRequest::Unknown, answer), "{answer}");
        }
        for answer in [
            r#"{"errors": [{"message": "no such order"}]}"#,
            r#"{"errors": [{"message": "PersistedQueryNotFound"}, {"message": "no"}]}"#,
            r#"{"errors": [{"message": "PersistedQueryNotFound", "path": ["pay"]}]}"#,
            r#"{"errors": [{"message": "PersistedQueryNotFound"}], "data": {"pay": {"id": 1}}}"#,
            r#"{"errors": []}"#,
            r#"{"data": {"pay": {"id": 1}}}"#,
            "[]",
        ] {
            assert!(!wants(&GraphqlRequest::ByDigest, answer), "{answer}");
        }
        let two = several([GraphqlRequest::ByDigest, GraphqlRequest::ByDigest]);
        assert!(wants(&two, &format!("[{misses}, {misses}]")));
        assert!(wants(&two, &format!(r#"[{misses}, {{"errors": [{{"message": "no"}}]}}]"#)));
        assert!(!wants(&two, &format!(r#"[{misses}, {{"data": {{"pay": {{"id": 1}}}}}}]"#)), "one was done");
    }
}
