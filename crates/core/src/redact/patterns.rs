//! Secrets inside text and on command lines, as tables of patterns.
//!
//! A pattern costs more to compile than all the rest of a short command, and most commands hold nothing for it. Each is
//! compiled when the first text comes that it could find something in.

use super::names::{REDACTED, is_secret_name, may_name_a_secret};
use regex::Regex;
use std::cell::LazyCell;
use std::sync::LazyLock;

/// One way of writing a secret.
pub struct SecretPattern {
    in_text: InText,
    /// Stands before the secret. Its group `name`, if it has one, must be the name of a secret.
    before: LazyRegex,
    /// The secret, where `before` ends: the first group, or all of it. It is looked for only behind a secret name and
    /// then passed over, so that no text is read twice.
    secret: LazyRegex,
}

/// What is in each text that a pattern finds something in.
enum InText {
    /// The name of a secret: the pattern has the group `name`.
    SecretName,
    /// One of these, as it is written here.
    OneOf(&'static [&'static str]),
}
use InText::{OneOf, SecretName};

type LazyRegex = LazyLock<Regex, Box<dyn FnOnce() -> Regex + Send>>;

/// Neither of these reaches over a quote, so that JSON stays JSON.
pub static TOKENS: LazyLock<Vec<SecretPattern>> = LazyLock::new(|| {
    table(&[
        // `https://user:pass@host`
        (OneOf(&["@"]), r#"://[^/?#"'\s:]*:"#, r#"([^/?#"'\s]*)@"#),
        // Shorter than any token: "Bearer of" is English.
        (OneOf(&["Bearer "]), "Bearer ", "[A-Za-z0-9._~+/=-]{8,}"),
    ])
});

/// The rest of a word in a script, or of its quotes, or of the line if they do not end. Words are told apart by white
/// space alone: a script is not parsed.
const WORD: &str = r#"["'`]+(.+?)(?:["'`]+\s|["'`]*(?m:$))|([^\s"'`]\S*?)["'`]*(?:\s|$)"#;

/// In a text of any kind, also one that is a script for a shell.
pub static IN_TEXT: LazyLock<Vec<SecretPattern>> = LazyLock::new(|| {
    table(&[
        // `?api_key=x&…`
        (SecretName, r#"[?&](?<name>[^=?&#"'\s]+)="#, r#"["']*([^&#"'\s]+)"#),
        // `Cookie: a=b; c=d`, to the end of its quotes or of its line.
        (SecretName, r#"(?:^|[\s'"`:])(?<name>[^\s:/]+):+[ \t]+"#, r#"(.+?)(?:["'`]+\s|["'`]*(?m:$))"#),
        // `--token x`
        (SecretName, r#"(?:^|[\s'"`])(?<name>-[^\s=:]*)\s+"#, WORD),
        // `PASSWORD=x`, `--password=x`, `Authorization:x`
        (SecretName, r#"(?:^|[\s'"`;(])(?<name>[^\s=:;(?&]+)[=:]+"#, WORD),
        // `-u user:pass`
        (
            USER,
            r#"(?:^|[\s'"`])(?:-[uU]|--user|--proxy-user)(?:=|\s+)["'`]*(?:[^\s:'"`-][^\s:'"`]*)?:"#,
            WORD,
        ),
    ])
});

const ALL: &str = "(?s:.+)";

/// `-u`, `-U`, `--user`, `--proxy-user`
const USER: InText = OneOf(&["-u", "-U"]);

/// In `program NUL word NUL word`, where the last word may be a secret.
static ON_COMMAND_LINE: LazyLock<Vec<SecretPattern>> = LazyLock::new(|| {
    table(&[
        // `--token x`
        (SecretName, r"\x00(?<name>-[^\x00=:\s]*)\x00", ALL),
        // Flags of known programs, whose letters say nothing by themselves.
        (
            OneOf(&["curl\0", "sshpass\0", "docker\0", "podman\0"]),
            r"^(?:curl\x00(?:-b|--cookie|-E|--key|--oauth2-bearer)|(?:sshpass|docker|podman)\x00-p)\x00",
            ALL,
        ),
        (
            OneOf(&["mysql", "mariadb\0", "sshpass\0", "curl\0"]),
            r"^(?:(?:mysql|mysqldump|mysqladmin|mariadb|sshpass)\x00[^\x00]*\x00-p|curl\x00[^\x00]*\x00-b)",
            ALL,
        ),
        // `-u user:pass`, `-uuser:pass`, `--user=user:pass`
        (USER, r"\x00(?:-[uU]|--user|--proxy-user)\x00(?:[^\x00:-][^\x00:]*)?:", ALL),
        (USER, r"^[^\x00]*\x00[^\x00]*\x00(?:-u|--user=|--proxy-user=)[^:]*:", ALL),
        // `NAME=value`, `--flag=value` and `Header: value`, and a header behind a flag.
        (SecretName, r"^[^\x00]*\x00[^\x00]*\x00(?<name>[^=:\s]+)[=:]\s*", ALL),
        (SecretName, r"^[^\x00]*\x00[^\x00]*\x00(?:-H|-[^=:\s]*=)(?<name>[^=:\s]+)[=:]\s*", ALL),
    ])
});

fn table(rows: &[(InText, &'static str, &'static str)]) -> Vec<SecretPattern> {
    fn regex(pattern: &str) -> Regex {
        Regex::new(pattern).expect("every pattern is tested")
    }
    let row = |(in_text, before, secret): &(InText, &'static str, &'static str)| {
        let (before, secret) = (*before, *secret);
        SecretPattern {
            in_text: match in_text {
                SecretName => SecretName,
                OneOf(parts) => OneOf(parts),
            },
            before: LazyLock::new(Box::new(move || regex(before))),
            secret: LazyLock::new(Box::new(move || regex(&format!(r"\A(?:{secret})")))),
        }
    };
    rows.iter().map(row).collect()
}

impl InText {
    fn may_be_in(&self, text: &str, names_a_secret: impl Fn() -> bool) -> bool {
        match self {
            SecretName => names_a_secret(),
            OneOf(parts) => parts.iter().any(|part| text.contains(part)),
        }
    }
}

impl SecretPattern {
    /// The text without such secrets. `None`: there are none, as in most texts.
    fn hide(&self, text: &str) -> Option<String> {
        let mut shown = String::new();
        let (mut from, mut at) = (0, 0);
        while let Some(found) = self.before.captures_at(text, at) {
            let end = found.get(0).map_or(text.len(), |before| before.end());
            let name = found.name("name");
            at = name.map_or(end, |name| name.end());
            if name.is_some_and(|name| !is_secret_name(name.as_str())) {
                continue;
            }
            let Some(groups) = self.secret.captures(&text[end..]) else { continue };
            let Some(secret) = groups.iter().skip(1).flatten().next().or(groups.get(0)) else { continue };
            // After `--token --password x` the last one counts.
            let is_next_word = name.is_some() && !text[at..end].contains(['=', ':']);
            if is_next_word && is_secret_flag(secret.as_str()) {
                continue;
            }
            shown.push_str(&text[from..end + secret.start()]);
            shown.push_str(REDACTED);
            from = end + secret.end();
            at = from;
        }
        (from > 0).then(|| shown + &text[from..])
    }
}

fn is_secret_flag(text: &str) -> bool {
    let ends = |c: char| matches!(c, '=' | ':') || c.is_whitespace();
    text.starts_with('-') && !text.contains(ends) && is_secret_name(text)
}

/// The text without what any of the patterns finds.
pub fn hide_all<'a>(patterns: impl IntoIterator<Item = &'a SecretPattern>, text: &str) -> Option<String> {
    // Looked up once: to take secrets out makes no names.
    let names_a_secret = LazyCell::new(|| may_name_a_secret(text));
    patterns
        .into_iter()
        .filter(|pattern| pattern.in_text.may_be_in(text, || *names_a_secret))
        .fold(None, |shown: Option<String>, pattern| pattern.hide(shown.as_deref().unwrap_or(text)).or(shown))
}

/// A word of a command line without its secret.
pub fn hide_in_word(program: &str, previous: &str, word: &str) -> Option<String> {
    let before = format!("{}\0{}\0", program.replace('\0', " "), previous.replace('\0', " "));
    let line = format!("{before}{word}");
    let hidden = hide_all(&*ON_COMMAND_LINE, &line)?;
    hidden.strip_prefix(&before).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn patterns() -> impl Iterator<Item = &'static SecretPattern> {
        TOKENS.iter().chain(&*IN_TEXT).chain(&*ON_COMMAND_LINE)
    }

    #[test]
    fn a_text_without_secrets_compiles_no_pattern() {
        // Other tests compile those of the tables.
        let own = table(&[(SecretName, "(?<name>[a-z]+)=", ALL), (USER, "-u ", ALL)]);
        assert_eq!(hide_all(&own, "./deploy.sh web 1.8.2 --region eu"), None);
        assert!(own.iter().all(|pattern| LazyLock::get(&pattern.before).is_none()));
        assert_eq!(hide_all(&own, "token=abc").as_deref(), Some("token=[redacted]"));
    }

    proptest! {
        #[test]
        fn no_pattern_finds_anything_that_it_does_not_look_for(
            text in "(curl|docker|mysql|x)?(\0|://|Bearer |--token|PASSWORD|-u|-U|--user|-p|-b|[a-z?&=:/@ \"'`\n-]){0,16}",
        ) {
            for pattern in patterns() {
                prop_assert_eq!(hide_all([pattern], &text), pattern.hide(&text));
            }
        }
    }
}
