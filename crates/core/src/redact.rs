//! Redaction: takes secrets out of everything that is written, logged or shown.
//!
//! Names decide, and a few well-known shapes of text. It is a net, not a proof: a rule's `secret` paths are the means
//! for secrets that no name gives away.

mod cards;
pub mod members;
mod names;
mod parts;
mod patterns;
mod shapes;

pub use names::{REDACTED, is_secret_name, may_name_a_secret};
pub use parts::{MayHoldSecret, SecretParts};
pub use shapes::{action_without_shapes, without_shapes};

use crate::json::{Json, Path, parse};
use cards::without_cards;
use members::without_members;
use patterns::{IN_TEXT, TOKENS, hide_all, hide_in_word};
use std::borrow::Cow;

/// A copy fit to be seen.
pub fn redact(arguments: &Json, secret: &[Path]) -> Json {
    redacted(arguments, secret).into_owned()
}

/// The arguments fit to be seen; copied only if they must be changed, which is rare, and every call is looked at.
pub fn redacted<'a>(arguments: &'a Json, secret: &[Path]) -> Cow<'a, Json> {
    if secret.is_empty() && is_harmless(arguments) {
        return Cow::Borrowed(arguments);
    }
    let mut shown = arguments.clone();
    for path in secret {
        path.change_in(&mut shown, &mut |value| *value = Json::str(REDACTED));
    }
    redact_by_name(&mut shown);
    Cow::Owned(shown)
}

/// Whether nothing in it can be a secret. Says no where it is not sure.
fn is_harmless(json: &Json) -> bool {
    match json {
        Json::String(text) => is_harmless_text(text),
        // A flag may say what the word after it is.
        Json::Array(elements) => elements.iter().all(|element| match element {
            Json::String(text) => {
                !text.starts_with('-') && !may_name_a_secret(text) && is_harmless_text(text)
            }
            other => is_harmless(other),
        }),
        Json::Object(object) => {
            object.iter().all(|(name, value)| !is_secret_name(name) && is_harmless(value))
        }
        // A card's number that was written without quotes.
        Json::Number(number) => without_cards(number.text()).is_none(),
        Json::Null | Json::Bool(_) => true,
    }
}

fn is_harmless_text(text: &str) -> bool {
    !text.trim_start().starts_with(['{', '[']) && redact_text(text).is_none()
}

/// The values that redaction takes out of the arguments, so that an echo of them is not written either.
pub fn secret_values(arguments: &Json, secret_paths: &[Path]) -> Vec<String> {
    let mut values = Vec::new();
    match redacted(arguments, secret_paths) {
        Cow::Borrowed(_) => return values,
        Cow::Owned(shown) => collect(arguments, &shown, &mut values),
    }
    values.retain(|value| value.len() >= SECRET_BYTES_MIN);
    values
}

/// Shorter values would blank out half of an ordinary text.
const SECRET_BYTES_MIN: usize = 6;

fn collect(plain: &Json, redacted: &Json, values: &mut Vec<String>) {
    match (plain, redacted) {
        (Json::Array(plain), Json::Array(redacted)) => {
            plain.iter().zip(redacted).for_each(|(plain, redacted)| collect(plain, redacted, values));
        }
        (Json::Object(plain), Json::Object(redacted)) => {
            for (name, value) in plain.iter() {
                if let Some(other) = redacted.get(name) {
                    collect(value, other, values);
                }
            }
        }
        (Json::String(plain), Json::String(redacted)) if plain != redacted => {
            // The text at the marker's place, between the parts that both share.
            let Some((before, after)) = redacted.split_once(REDACTED) else { return };
            let rest = plain.strip_prefix(before).unwrap_or(plain);
            values.push(rest.strip_suffix(after).unwrap_or(rest).to_owned());
        }
        // A whole that was taken out: whatever text it holds.
        (Json::Array(elements), Json::String(_)) => {
            elements.iter().for_each(|element| collect(element, &Json::str(REDACTED), values));
        }
        (Json::Object(members), Json::String(_)) => {
            members.iter().for_each(|(_, value)| collect(value, &Json::str(REDACTED), values));
        }
        _ => {}
    }
}

fn redact_by_name(json: &mut Json) {
    match json {
        Json::String(text) => {
            if let Some(shown) = redact_embedded(text).or_else(|| redact_text(text)) {
                *text = shown;
            }
        }
        Json::Array(elements) => {
            redact_command_line(elements);
            elements.iter_mut().for_each(redact_by_name);
        }
        Json::Object(object) => {
            for (name, value) in object.iter_mut() {
                if is_secret_name(name) {
                    *value = Json::str(REDACTED);
                } else {
                    redact_by_name(value);
                }
            }
        }
        Json::Number(number) if without_cards(number.text()).is_some() => *json = Json::str(REDACTED),
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

/// JSON inside a string (`curl -d '{"password": …}'`, piped input), rewritten only if it held a secret.
fn redact_embedded(text: &str) -> Option<String> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let inner = parse(text).ok()?;
    let mut shown = inner.clone();
    redact_by_name(&mut shown);
    (shown != inner).then(|| shown.canonical())
}

/// `--token X`, `--password=X`, `-u user:pass`, `NAME=value`, `Authorization: …`: in any array of strings, since
/// command lines also travel inside arguments.
fn redact_command_line(elements: &mut [Json]) {
    let program = elements.first().and_then(Json::as_str).unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or_default().to_owned();
    let mut previous = String::new();
    for element in elements {
        let Json::String(word) = element else {
            previous.clear();
            continue;
        };
        let shown = hide_in_word(&program, &previous, word);
        previous.clone_from(word);
        if let Some(shown) = shown {
            *word = shown;
        }
    }
}

/// Secrets inside a longer text. `None`: there are none, as in most texts.
fn redact_text(text: &str) -> Option<String> {
    let find: [fn(&str) -> Option<String>; 4] = [
        |text| may_name_a_secret(text).then(|| without_members(text)).flatten(),
        |text| hide_all(TOKENS.iter().chain(&*IN_TEXT), text),
        without_shapes,
        without_cards,
    ];
    find.iter().fold(None, |shown: Option<String>, find| find(shown.as_deref().unwrap_or(text)).or(shown))
}

/// Passwords in URLs and bearer tokens, in a text of any kind. `None`: there are none.
pub fn redact_tokens(text: &str) -> Option<String> {
    hide_all(&*TOKENS, text).filter(|shown| shown != text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::tests::paths;
    use crate::json::tests::any_json;
    use proptest::prelude::*;

    fn shown(json: &str) -> String {
        redact(&parse(json).unwrap(), &[]).canonical()
    }

    fn command(arguments: &[&str]) -> Vec<String> {
        let argv = Json::Array(arguments.iter().map(|argument| Json::str(argument)).collect());
        let shown = redact(&Json::object([("argv", argv)]), &[]);
        shown
            .get("argv")
            .unwrap()
            .as_array()
            .unwrap()
            .iter()
            .map(|a| a.as_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn a_password_behind_a_name_goes_in_a_script_too() {
        let script = "curl -u me:hunter22 http://x.test && sort -u names";
        let shown = "curl -u me:[redacted] http://x.test && sort -u names";
        assert_eq!(command(&["bash", "-c", script])[2], shown);
        assert_eq!(command(&["mysql", "-phunter22"])[1], "-p[redacted]");
    }

    #[test]
    fn values_are_replaced_at_any_depth_and_by_path() {
        assert_eq!(
            shown(r#"{"args":{"to":"ann","auth":{"token":{"a":1}},"list":[{"password":null}]}}"#),
            r#"{"args":{"auth":{"token":"[redacted]"},"list":[{"password":"[redacted]"}],"to":"ann"}}"#
        );
        let json = parse(r#"{"args":{"pin":1234,"items":[{"ssn":"1"},{"ssn":"2"}]}}"#).unwrap();
        assert_eq!(
            redact(&json, &paths(&["args.pin", "args.items[*].ssn"])).canonical(),
            r#"{"args":{"items":[{"ssn":"[redacted]"},{"ssn":"[redacted]"}],"pin":"[redacted]"}}"#
        );
    }

    #[test]
    fn the_values_of_secrets_are_known_however_deep_they_lie() {
        let arguments = r#"{"credentials":{"user":"annabel","keys":["hunter22",{"a":"abcdefgh"}]},"note":"harmless","url":"?token=xyz123"}"#;
        let values = secret_values(&parse(arguments).unwrap(), &paths(&["note"]));
        assert_eq!(values, ["hunter22", "abcdefgh", "annabel", "harmless", "xyz123"]);
        assert_eq!(secret_values(&parse(r#"{"to":"annabel"}"#).unwrap(), &[]), Vec::<String>::new());
    }

    #[test]
    fn secrets_on_a_command_line_are_redacted() {
        for (arguments, expected) in [
            (vec!["x", "--token", "abc", "y"], vec!["x", "--token", "[redacted]", "y"]),
            (vec!["x", "--token", "--password", "p"], vec!["x", "--token", "--password", "[redacted]"]),
            (vec!["x", "--password=abc=d"], vec!["x", "--password=[redacted]"]),
            (vec!["curl", "-u", "ann:pw"], vec!["curl", "-u", "ann:[redacted]"]),
            (vec!["curl", "-uann:pw"], vec!["curl", "-uann:[redacted]"]),
            (vec!["x", "-u--token=\":pw"], vec!["x", "-u--token=[redacted]"]),
            (vec!["curl", "--user=ann:pw"], vec!["curl", "--user=ann:[redacted]"]),
            (vec!["git", "push", "-u", "origin"], vec!["git", "push", "-u", "origin"]),
            (
                vec!["curl", "-H", "Authorization: Basic eA=="],
                vec!["curl", "-H", "Authorization: [redacted]"],
            ),
            (vec!["curl", "-HX-Api-Key: k"], vec!["curl", "-HX-Api-Key: [redacted]"]),
            (vec!["curl", "--header=X-Api-Key: k"], vec!["curl", "--header=X-Api-Key: [redacted]"]),
            (vec!["env", "GITHUB_TOKEN=abc", "gh"], vec!["env", "GITHUB_TOKEN=[redacted]", "gh"]),
            (
                vec!["docker", "-e", "DB_PASSWORD=x", "-e", "A=b"],
                vec!["docker", "-e", "DB_PASSWORD=[redacted]", "-e", "A=b"],
            ),
            (vec!["x", "--max-tokens", "5"], vec!["x", "--max-tokens", "5"]),
            (vec!["mysql", "-phunter2", "-u", "ann"], vec!["mysql", "-p[redacted]", "-u", "ann"]),
            (
                vec!["/usr/bin/curl", "-b", "sid=1", "-d", "x"],
                vec!["/usr/bin/curl", "-b", "[redacted]", "-d", "x"],
            ),
            (vec!["mkdir", "-p", "a/b"], vec!["mkdir", "-p", "a/b"]),
            (
                vec!["curl", "-H", "Accept: */*", "http://h:80/t"],
                vec!["curl", "-H", "Accept: */*", "http://h:80/t"],
            ),
        ] {
            assert_eq!(command(&arguments), expected);
        }
    }

    #[test]
    fn secrets_inside_text_are_redacted() {
        for (text, expected) in [
            ("https://ann:pw@host/x", "https://ann:[redacted]@host/x"),
            (
                "git clone https://ann:p@w@host/x and https://b:c@d",
                "git clone https://ann:[redacted]@host/x and https://b:[redacted]@d",
            ),
            ("https://ann@host/x", "https://ann@host/x"),
            ("https://host/?a=1&api_key=abc&b=2#f", "https://host/?a=1&api_key=[redacted]&b=2#f"),
            ("curl -H 'Authorization: Bearer abc.def-123'", "curl -H 'Authorization: [redacted]'"),
            ("Bearer of bad news", "Bearer of bad news"),
            ("mail ann@host?", "mail ann@host?"),
            ("curl --token abc https://h", "curl --token [redacted] https://h"),
            ("PASSWORD='abc d' run", "PASSWORD='[redacted]' run"),
            ("curl -H 'Cookie: a=b; c=d' https://h", "curl -H 'Cookie: [redacted]' https://h"),
            ("echo 'Set-Cookie: sid=abc'", "echo 'Set-Cookie: [redacted]'"),
            ("run --password \"a b\" -x", "run --password \"[redacted]\" -x"),
            ("it's --token abc, isn't it", "it's --token [redacted] isn't it"),
            ("GITHUB_TOKEN=abc", "GITHUB_TOKEN=[redacted]"),
            ("password: a'b c\nnext: d", "password: [redacted]\nnext: d"),
            ("see the token list", "see the token list"),
            ("?token=a?b", "?token=[redacted]"),
            ("a=1&password=x y", "a=1&password=[redacted] y"),
            (r#"{ "user": "ann", "password": "pw" }"#, r#"{"password":"[redacted]","user":"ann"}"#),
            (r#"{ "user": "ann" }"#, r#"{ "user": "ann" }"#),
            ("pay 4242 4242 4242 4242 now", "pay [redacted] now"),
            (r#"{ "pan": 4242424242424242 }"#, r#"{"pan":"[redacted]"}"#),
            ("token=abc 4242424242424242", "token=[redacted] [redacted]"),
        ] {
            assert_eq!(redact(&Json::str(text), &[]).as_str(), Some(expected));
        }
    }

    proptest! {
        #[test]
        fn what_is_called_harmless_is_never_changed(
            json in any_json(), word in "(-|--)?[a-zA-Z=: /]{0,12}(token|Bearer |://|key=)?[a-z:@]{0,6}",
        ) {
            for json in [
                json.clone(),
                Json::object([(word.clone(), json)]),
                Json::Array(vec![Json::str("curl"), Json::str(&word), Json::str("hunter2")]),
                Json::str(&word),
            ] {
                if is_harmless(&json) {
                    let mut shown = json.clone();
                    redact_by_name(&mut shown);
                    prop_assert_eq!(shown, json);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic_and_twice_is_once(json in any_json(), text in "(--token|PASSWORD|-u|[a-z?&=:/@ \"'`\n-]){0,24}") {
            let json = Json::object([("a", json), ("argv", Json::Array(vec![Json::str("x"), Json::String(text)]))]);
            let once = redact(&json, &[]);
            prop_assert_eq!(redact(&once, &[]), once);
        }
    }
}
