//! Whether the answer to a GraphQL mutation refuses. It comes with status 200 whatever became of it, and an error alone
//! says little: a mutation that was carried out answers `null` too, if a field of what it made cannot be shown.

use crate::json::{Json, Object};

/// Nobody can say from such an answer what was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unclear {
    #[error("it is no answer to a GraphQL mutation")]
    NoAnswer,
    #[error("it has errors that do not tell whether it was carried out")]
    Open,
    #[error("a part of it was refused, and another was not")]
    InPart,
}

/// What became of one field that the operation begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Done,
    Refused,
    Open,
}

/// Codes that speak of the server and not of the request: what it had done by then is not known.
const OPEN_CODES: [&str; 8] =
    ["INTERNAL", "TIMEOUT", "UNAVAILABLE", "ABORTED", "DOWNSTREAM", "GATEWAY", "NETWORK", "UNKNOWN"];

/// The same in words, for servers that give no code: GitHub tells of a timeout like that.
const OPEN_WORDS: [&str; 7] = [
    "something went wrong",
    "internal error",
    "internal server error",
    "timeout",
    "timed out",
    "unavailable",
    "bad gateway",
];

/// Members of a payload that are there whatever became of it.
const ALWAYS_THERE: [&str; 2] = ["__typename", "clientMutationId"];

/// `fields`: how many fields the operation begins with, where that is known.
pub fn refuses(fields: Option<usize>, answer: &Json) -> Result<bool, Unclear> {
    let members = answer.as_object().ok_or(Unclear::NoAnswer)?;
    let errors = errors(members)?;
    match members.get("data") {
        Some(Json::Object(data)) if !data.is_empty() => of_parts(fields, data, &errors),
        None | Some(Json::Null) if !errors.is_empty() => {
            let all_paths_are = |is: fn(&Error<'_>) -> bool| errors.iter().all(is);
            // Without a path it was refused before anything of it began. With one, a field that may not be null has
            // taken all of `data` with it, whatever the fields before it did.
            let nothing_began = all_paths_are(|error| error.path.is_empty())
                || fields == Some(1) && all_paths_are(|error| error.path.len() <= 1);
            let refused = nothing_began && !errors.iter().any(Error::leaves_it_open);
            if refused { Ok(true) } else { Err(Unclear::Open) }
        }
        _ => Err(Unclear::NoAnswer),
    }
}

/// Whether the body of an answer whose status refuses shows that something may have been carried out all the same.
pub fn contradicts_refusal(fields: Option<usize>, answer: &Json) -> bool {
    // Several operations at once have an answer each.
    if let Json::Array(answers) = answer {
        return answers.iter().any(|answer| contradicts_refusal(None, answer));
    }
    let Some(members) = answer.as_object() else { return false };
    let began = errors(members).is_ok_and(|errors| errors.iter().any(|error| !error.path.is_empty()));
    let data = members.get("data").and_then(Json::as_object);
    let shown = data.is_some_and(|data| data.iter().any(|(_, payload)| shows(payload)));
    (began || shown) && refuses(fields, answer) != Ok(true)
}

fn of_parts(fields: Option<usize>, data: &Object, errors: &[Error<'_>]) -> Result<bool, Unclear> {
    let mut parts: Vec<Part> = data.iter().map(|(name, payload)| of_part(name, payload, errors)).collect();
    // An error of a field that the answer does not have.
    let elsewhere = |error: &Error<'_>| error.field().is_some_and(|field| data.get(field).is_none());
    if errors.iter().any(elsewhere) {
        parts.push(Part::Open);
    }
    let all = |wanted: Part| parts.iter().all(|part| *part == wanted);
    // A field may be left out on purpose (`@skip`), and then the rest still says that something was done; but not that
    // nothing was.
    let whole = fields.is_none_or(|fields| data.len() >= fields);
    match () {
        () if all(Part::Done) => Ok(false),
        () if all(Part::Refused) && whole => Ok(true),
        () if all(Part::Refused) => Err(Unclear::Open),
        () if parts.contains(&Part::Open) => Err(Unclear::Open),
        () => Err(Unclear::InPart),
    }
}

fn of_part(name: &str, payload: &Json, errors: &[Error<'_>]) -> Part {
    let mut own = errors.iter().filter(|error| error.field() == Some(name)).peekable();
    match payload {
        // An error further down means that the field itself was carried out.
        Json::Null if own.peek().is_none() => Part::Open,
        Json::Null if own.all(|error| error.path.len() == 1 && !error.leaves_it_open()) => Part::Refused,
        Json::Null => Part::Open,
        Json::Object(members) if members.iter().any(|(name, list)| is_user_errors(name) && shows(list)) => {
            // What is there beside them may have been made, or have been there before.
            if shows(payload) { Part::Open } else { Part::Refused }
        }
        Json::Object(members) if members.get("success") == Some(&Json::Bool(false)) => Part::Open,
        Json::Object(_) if own.peek().is_some() && !shows(payload) => Part::Open,
        _ => Part::Done,
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

#[derive(Debug)]
struct Error<'a> {
    told: &'a Json,
    /// From the field that the operation begins with; empty: it is about the request.
    path: &'a [Json],
}

impl Error<'_> {
    fn field(&self) -> Option<&str> {
        self.path.first().map(|field| field.as_str().unwrap_or_default())
    }

    fn leaves_it_open(&self) -> bool {
        let extensions = self.told.get("extensions");
        let codes = [
            self.told.get("type"),
            self.told.get("code"),
            extensions.and_then(|extensions| extensions.get("code")),
            extensions.and_then(|extensions| extensions.get("type")),
        ];
        let has = |text: &str, words: &[&str]| words.iter().any(|word| text.contains(word));
        let mut codes = codes.into_iter().flatten().filter_map(Json::as_str);
        let message = self.told.get("message").and_then(Json::as_str).unwrap_or_default();
        codes.any(|code| has(&code.to_ascii_uppercase(), &OPEN_CODES))
            || has(&message.to_lowercase(), &OPEN_WORDS)
    }
}

fn errors(answer: &Object) -> Result<Vec<Error<'_>>, Unclear> {
    let told = match answer.get("errors") {
        None | Some(Json::Null) => return Ok(Vec::new()),
        Some(errors) => errors.as_array().ok_or(Unclear::NoAnswer)?,
    };
    let read = told.iter().map(|told| {
        let path = match told.get("path") {
            None | Some(Json::Null) => &[],
            Some(path) => path.as_array().ok_or(Unclear::NoAnswer)?,
        };
        Ok(Error { told, path })
    });
    read.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;

    const REFUSED: Result<bool, Unclear> = Ok(true);
    const DONE: Result<bool, Unclear> = Ok(false);
    const OPEN: Result<bool, Unclear> = Err(Unclear::Open);
    const IN_PART: Result<bool, Unclear> = Err(Unclear::InPart);
    const NO_ANSWER: Result<bool, Unclear> = Err(Unclear::NoAnswer);

    fn of(fields: Option<usize>, answer: &str) -> Result<bool, Unclear> {
        refuses(fields, &parse(answer).expect(answer))
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
            (r#"{"data": {"m": null}}"#, OPEN),
            // What the API found wrong with the input.
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
            assert_eq!(of(Some(1), answer), expected, "{answer}");
        }
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
            (r#"{"data": {"a": null, "b": null}, "errors": [{"path": ["b"]}]}"#.to_owned(), OPEN),
            // The first may have been carried out before the second took its answer away.
            (r#"{"data": null, "errors": [{"path": ["b"]}]}"#.to_owned(), OPEN),
            (r#"{"data": null, "errors": [{"message": "syntax"}]}"#.to_owned(), REFUSED),
        ] {
            assert_eq!(of(Some(2), &answer), expected, "{answer}");
            assert_eq!(of(None, &answer), expected, "{answer}");
        }
        let one_of_two = r#"{"data": {"a": null}, "errors": [{"path": ["a"]}]}"#;
        assert_eq!((of(Some(2), one_of_two), of(Some(1), one_of_two)), (OPEN, REFUSED));
        assert_eq!(of(Some(2), r#"{"data": {"a": {"id": 1}}}"#), DONE, "the other was left out on purpose");
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
            assert_eq!(contradicts_refusal(Some(1), &parse(answer).unwrap()), contradicts, "{answer}");
        }
        let second = parse(r#"{"errors": [{"path": ["b"]}], "data": null}"#).unwrap();
        assert!(contradicts_refusal(Some(2), &second), "the first may have been carried out");
    }
}
