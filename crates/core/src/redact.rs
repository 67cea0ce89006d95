//! Redaction: what must never be written, logged or shown, taken out before anything is.
//!
//! Names decide, and a few well-known shapes of text. It is a net, not a proof: a rule's `secret` paths are the means
//! for what no name gives away.

mod cards;
pub mod members;
mod shapes;

pub use shapes::{action_without_shapes, without_shapes};

use crate::json::{Json, Path, parse};
use cards::without_cards;
use members::without_members;
use std::borrow::Cow;

pub const REDACTED: &str = "[redacted]";

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
            Json::String(text) => !text.starts_with('-') && is_harmless_text(text),
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
            // What stands where the marker stands, between the parts that both share.
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

/// Words that make a name secret. Singular on purpose: `max_tokens` is a setting.
const WORDS: [&str; 27] = [
    "authorization",
    "bearer",
    "cookie",
    "cookies",
    "jwt",
    "password",
    "passwords",
    "passwd",
    "passphrase",
    "passcode",
    "otp",
    "totp",
    "secret",
    "secrets",
    "token",
    "apikey",
    "apikeys",
    "credential",
    "credentials",
    "accesskey",
    "privatekey",
    "cvc",
    "cvv",
    "cvc2",
    "cvv2",
    "sig",
    "signature",
];
const PAIRS: [(&str, &str); 13] = [
    ("api", "key"),
    ("api", "keys"),
    ("access", "key"),
    ("access", "keys"),
    ("private", "key"),
    ("private", "keys"),
    ("auth", "key"),
    ("account", "key"),
    ("application", "key"),
    ("fastly", "key"),
    ("functions", "key"),
    ("subscription", "key"),
    ("virtual", "key"),
];

/// Whether one of the words of a name says that its value is a secret: `X-Api-Key`, `clientSecret`, `GITHUB_TOKEN`.
pub fn is_secret_name(name: &str) -> bool {
    if !may_name_a_secret(name) {
        return false;
    }
    let words = words_of(name);
    // `PGPASSWORD`; of `MYSQL_PWD` the last word, which alone is a directory.
    let password = |word: &String| word.ends_with("password") || word.ends_with("passwd");
    words.iter().any(|word| WORDS.contains(&word.as_str()) || password(word))
        || matches!(&words[..], [_, .., last] if last == "pwd")
        || words.windows(2).any(|pair| PAIRS.contains(&(pair[0].as_str(), pair[1].as_str())))
}

/// Whether the text holds the beginning of any of the words at all. Most texts do not, and every call is looked at.
pub fn may_name_a_secret(text: &str) -> bool {
    let begins = |from: &[u8]| {
        let word: &[u8] = match from[0].to_ascii_lowercase() {
            b'a' => b"auth",
            b'b' => b"bear",
            b'c' => {
                return [&b"cook"[..], b"cred", b"cvc", b"cvv"].iter().any(|word| begins_with(from, word));
            }
            b'j' => b"jwt",
            b'k' => b"key",
            b'o' => b"otp",
            b'p' => return begins_with(from, b"pass") || begins_with(from, b"pwd"),
            b's' => return begins_with(from, b"secr") || begins_with(from, b"sig"),
            b't' => return begins_with(from, b"toke") || begins_with(from, b"totp"),
            _ => return false,
        };
        begins_with(from, word)
    };
    let bytes = text.as_bytes();
    (0..bytes.len()).any(|at| begins(&bytes[at..]))
}

fn begins_with(text: &[u8], word: &[u8]) -> bool {
    text.get(..word.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(word))
}

/// `clientSecret`, `client-secret` and `CLIENT_SECRET` are two words each; `APIKey` too.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let characters: Vec<char> = name.chars().collect();
    for (i, character) in characters.iter().enumerate() {
        let after_lower = i > 0 && (characters[i - 1].is_lowercase() || characters[i - 1].is_ascii_digit());
        let before_lower = characters.get(i + 1).is_some_and(|next| next.is_lowercase());
        let after_upper = i > 0 && characters[i - 1].is_uppercase();
        let begins_word = character.is_uppercase() && (after_lower || after_upper && before_lower);
        if begins_word || !character.is_alphanumeric() {
            words.push(String::new());
        }
        if character.is_alphanumeric() {
            words.last_mut().expect("there is always a last word").extend(character.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// `--token X`, `--password=X`, `-u user:pass`, `NAME=value`, `Authorization: …`: in any array of strings, since
/// command lines also travel inside arguments.
fn redact_command_line(elements: &mut [Json]) {
    let mut after = After::Nothing;
    let program = elements.first().and_then(Json::as_str).unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or_default().to_owned();
    for element in elements {
        let Json::String(text) = element else {
            after = After::Nothing;
            continue;
        };
        match std::mem::replace(&mut after, After::Nothing) {
            // After `--token --password x` it is still the last that matters.
            After::SecretFlag if is_secret_flag(text) => after = After::SecretFlag,
            After::SecretFlag => *text = REDACTED.to_owned(),
            After::UserFlag if !text.starts_with('-') => *text = redact_password(text),
            _ if takes_secret(&program, text) => after = After::SecretFlag,
            _ if glued_secret(&program, text) => *text = format!("{}{REDACTED}", &text[..2]),
            _ => (after, *text) = redact_argument(text),
        }
    }
}

/// Short flags of known programs whose next word is a secret. Their letters say nothing by themselves.
fn takes_secret(program: &str, flag: &str) -> bool {
    matches!(
        (program, flag),
        ("curl", "-b" | "--cookie" | "-E" | "--key" | "--oauth2-bearer")
            | ("sshpass", "-p")
            | ("docker" | "podman", "-p")
    )
}

/// The same, with the secret in the same word.
fn glued_secret(program: &str, text: &str) -> bool {
    let flag = match program {
        "mysql" | "mysqldump" | "mysqladmin" | "mariadb" | "sshpass" => "-p",
        "curl" => "-b",
        _ => return false,
    };
    text.len() > 2 && text.starts_with(flag) && text != REDACTED
}

/// Flags whose next word is a name and a password.
const USER_FLAGS: [&str; 4] = ["-u", "--user", "--proxy-user", "-U"];

enum After {
    Nothing,
    SecretFlag,
    UserFlag,
}

fn redact_argument(text: &str) -> (After, String) {
    if USER_FLAGS.contains(&text) {
        return (After::UserFlag, text.to_owned());
    }
    if is_secret_flag(text) {
        return (After::SecretFlag, text.to_owned());
    }
    if let Some(glued) = text.strip_prefix("-u").filter(|rest| rest.contains(':')) {
        return (After::Nothing, format!("-u{}", redact_password(glued)));
    }
    (After::Nothing, redact_named_value(text).unwrap_or_else(|| text.to_owned()))
}

fn is_secret_flag(text: &str) -> bool {
    text.starts_with('-') && !text.contains(['=', ':', ' ']) && is_secret_name(text)
}

/// `NAME=value`, `--flag=value` and `Header: value`, also a header behind a flag: `--header=Authorization: …`.
fn redact_named_value(text: &str) -> Option<String> {
    let at = text.find(['=', ':'])?;
    let (name, value) = (&text[..at], &text[at + 1..]);
    if value.is_empty() || name.contains(char::is_whitespace) {
        return None;
    }
    if text.as_bytes()[at] == b':' {
        // A colon also stands in URLs and times, whose "names" are no secrets. `-HAuthorization: x` is curl's.
        let secret = is_secret_name(name) || name.strip_prefix("-H").is_some_and(is_secret_name);
        return secret.then(|| format!("{name}: {REDACTED}"));
    }
    if is_secret_name(name) {
        return Some(format!("{name}={REDACTED}"));
    }
    if matches!(name, "--user" | "--proxy-user") {
        return Some(format!("{name}={}", redact_password(value)));
    }
    name.starts_with('-').then(|| redact_named_value(value)).flatten().map(|value| format!("{name}={value}"))
}

/// `user:pass`; without a colon it is a name alone.
fn redact_password(text: &str) -> String {
    text.split_once(':').map_or_else(|| text.to_owned(), |(user, _)| format!("{user}:{REDACTED}"))
}

/// Secrets inside a longer text: passwords in URLs, secret parameters of queries and forms, bearer tokens, and what a
/// script for a shell says on its own command lines. `None`: nothing in it can be a secret, as in most texts.
fn redact_text(text: &str) -> Option<String> {
    let mut shown = redact_named_text(text);
    for find in [without_shapes, without_cards] {
        shown = find(shown.as_deref().unwrap_or(text)).or(shown);
    }
    shown
}

fn redact_named_text(text: &str) -> Option<String> {
    // A single character is looked for much faster than a text, and most texts have neither.
    let has_url = text.contains(':') && text.contains("://");
    let has_bearer = text.contains('B') && text.contains("Bearer ");
    let has_name = may_name_a_secret(text);
    let has_user = text.contains('-') && USER_FLAGS.iter().any(|flag| text.contains(flag));
    if !has_url && !has_bearer && !has_name && !has_user {
        return None;
    }
    let mut text = if has_url { redact_user_info(text) } else { text.to_owned() };
    if has_name {
        text = without_members(&text).unwrap_or(text);
        text = redact_parameters(&text);
    }
    if (has_name || has_user) && text.contains(char::is_whitespace) {
        text = redact_script(&text);
    }
    Some(if text.contains("Bearer ") { redact_bearer(&text) } else { text })
}

/// Passwords in URLs and bearer tokens, in a text of any kind: neither reaches over a quote, so that JSON stays JSON.
/// `None`: there are none.
pub fn redact_tokens(text: &str) -> Option<String> {
    let has_url = text.contains("://") && text.contains('@');
    let has_bearer = text.contains("Bearer ");
    if !has_url && !has_bearer {
        return None;
    }
    let shown = if has_url { redact_user_info(text) } else { text.to_owned() };
    let shown = if has_bearer { redact_bearer(&shown) } else { shown };
    (shown != text).then_some(shown)
}

/// `curl --token X`, `PASSWORD=x cmd` and `-H "Cookie: x"` inside one argument, as in `sh -c`. Words are told apart by
/// white space alone: a script is not parsed, and what looks like a secret is one.
fn redact_script(text: &str) -> String {
    const QUOTES: [char; 3] = ['\'', '"', '`'];
    let mut shown = String::with_capacity(text.len());
    let mut hiding = Hiding::Nothing;
    for piece in text.split_inclusive(char::is_whitespace) {
        let word = piece.trim_end_matches(char::is_whitespace);
        let space = &piece[word.len()..];
        let plain = word.trim_start_matches(QUOTES);
        let opening = &word[..word.len() - plain.len()];
        let closing = &plain[plain.trim_end_matches(QUOTES).len()..];
        let body = &plain[..plain.len() - closing.len()];
        match std::mem::replace(&mut hiding, Hiding::Nothing) {
            _ if word.is_empty() => hiding = Hiding::Nothing,
            Hiding::Value if is_secret_flag(body) => hiding = Hiding::Value,
            Hiding::Value => {
                shown.push_str(&format!("{opening}{REDACTED}{closing}{space}"));
                continue;
            }
            // Such a value goes to the end of its quotes or of its line.
            Hiding::Quoted => {
                if closing.is_empty() && !space.contains('\n') {
                    hiding = Hiding::Quoted;
                } else {
                    shown.push_str(&format!("{closing}{space}"));
                }
                continue;
            }
            Hiding::Password => {
                shown.push_str(&format!("{opening}{}{closing}{space}", redact_password(body)));
                continue;
            }
            Hiding::Nothing if is_secret_flag(body) => hiding = Hiding::Value,
            Hiding::Nothing if USER_FLAGS.contains(&body) => hiding = Hiding::Password,
            Hiding::Nothing => {
                if let Some(name) =
                    body.strip_suffix(':').filter(|name| is_secret_name(name) && !name.contains('/'))
                {
                    shown.push_str(&format!("{opening}{name}: {REDACTED}{closing}"));
                    if closing.is_empty() && !space.contains('\n') {
                        hiding = Hiding::Quoted;
                    } else {
                        shown.push_str(space);
                    }
                    continue;
                }
                if let Some(redacted) = redact_named_value(body).filter(|_| !body.ends_with(REDACTED)) {
                    let quoted = body.split_once('=').is_some_and(|(_, value)| value.starts_with(QUOTES));
                    if quoted && closing.is_empty() && !space.contains('\n') {
                        shown.push_str(&format!("{opening}{redacted}"));
                        hiding = Hiding::Quoted;
                    } else {
                        shown.push_str(&format!("{opening}{redacted}{closing}{space}"));
                    }
                    continue;
                }
            }
        }
        shown.push_str(piece);
    }
    shown
}

enum Hiding {
    Nothing,
    /// The next word.
    Value,
    /// What stands behind a name in the next word.
    Password,
    /// All words up to a closing quote.
    Quoted,
}

fn redact_user_info(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        shown.push_str(before);
        let end = after.find(|c: char| matches!(c, '/' | '?' | '#' | '"' | '\'') || c.is_whitespace());
        let (authority, beyond) = after.split_at(end.unwrap_or(after.len()));
        match authority.rsplit_once('@') {
            Some((user_info, host)) => shown.push_str(&format!("{}@{host}", redact_password(user_info))),
            None => shown.push_str(authority),
        }
        rest = beyond;
    }
    shown + rest
}

fn redact_parameters(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['?', '&']) {
        let (before, after) = rest.split_at(at + 1);
        shown.push_str(before);
        rest = after;
        // The value is looked for only behind a secret name, and then passed over: no text is read twice.
        let Some(equals) = after.find(|c: char| "=?&#\"'".contains(c) || c.is_whitespace()) else { break };
        let (name, value) = after.split_at(equals);
        if let Some(value) = value.strip_prefix('=').filter(|_| is_secret_name(name)) {
            let end = value.find(|c: char| matches!(c, '&' | '#' | '"' | '\'') || c.is_whitespace());
            shown.push_str(&format!("{name}={REDACTED}"));
            rest = &value[end.unwrap_or(value.len())..];
        }
    }
    shown + rest
}

fn redact_bearer(text: &str) -> String {
    /// Shorter than any token: "Bearer of" is English.
    const TOKEN_BYTES_MIN: usize = 8;
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("Bearer ") {
        let (before, after) = rest.split_at(at + "Bearer ".len());
        shown.push_str(before);
        let end = after.find(|c: char| !(c.is_ascii_alphanumeric() || "-._~+/=".contains(c)));
        let (token, beyond) = after.split_at(end.unwrap_or(after.len()));
        shown.push_str(if token.len() >= TOKEN_BYTES_MIN { REDACTED } else { token });
        rest = beyond;
    }
    shown + rest
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
    fn names_that_say_secret_are_redacted() {
        for name in [
            "authorization",
            "Authorization",
            "Proxy-Authorization",
            "cookie",
            "Set-Cookie",
            "password",
            "db_passwd",
            "secret",
            "clientSecret",
            "client_secret",
            "token",
            "GITHUB_TOKEN",
            "accessToken",
            "api_key",
            "apikey",
            "api-key",
            "X-Api-Key",
            "APIKey",
            "access_key",
            "AWS_SECRET_ACCESS_KEY",
            "privateKey",
            "credentials",
            "X-JWT",
            "bearer",
            "otp",
            "totp_code",
            "passcode",
            "api_keys",
            "accessKeys",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "max_tokens",
            "option",
            "keys",
            "author",
            "keyboard",
            "idempotency_key",
            "tokenizer",
            "secretary",
            "forbearance",
            "key",
            "customer",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
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
            ("PASSWORD='abc d' run", "PASSWORD=[redacted]' run"),
            ("curl -H 'Cookie: a=b; c=d' https://h", "curl -H 'Cookie: [redacted]' https://h"),
            ("echo 'Set-Cookie: sid=abc'", "echo 'Set-Cookie: [redacted]'"),
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
        fn nothing_makes_it_panic_and_twice_is_once(json in any_json(), text in "[a-z?&=:/@ \"'-]{0,40}") {
            let json = Json::object([("a", json), ("argv", Json::Array(vec![Json::str("x"), Json::String(text)]))]);
            let once = redact(&json, &[]);
            prop_assert_eq!(redact(&once, &[]), once);
        }
    }
}
