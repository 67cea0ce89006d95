//! Names that call their value a secret: `X-Api-Key`, `clientSecret`, `GITHUB_TOKEN`.

use crate::words::words;
use regex::Regex;
use std::sync::LazyLock;

/// Stands where a secret stood.
pub const REDACTED: &str = "[redacted]";

/// Over the words of a name in lower case, joined by spaces. `token` has no plural on purpose: `max_tokens` is a
/// setting. `pwd` alone is a directory; at the end of `MYSQL_PWD` it is a password.
const SECRET_NAME: &str = concat!(
    "(?:^| )(?:authorization|bearer|cookies?|jwt|[^ ]*password|passwords|[^ ]*passwd|passphrase|passcode|t?otp",
    "|secrets?|token|credentials?|apikeys?|accesskey|privatekey|cv[cv]2?|sig|signature",
    "|(?:api|access|private) keys?|(?:auth|account|application|fastly|functions|subscription|virtual) key",
    ")(?: |$)| pwd$"
);

/// Each of those names holds one of these. Most texts hold none, and every call is looked at.
fn parts_from(first: u8) -> &'static [&'static str] {
    match first {
        b'a' => &["auth"],
        b'b' => &["bear"],
        b'c' => &["cook", "cred", "cvc", "cvv"],
        b'j' => &["jwt"],
        b'k' => &["key"],
        b'o' => &["otp"],
        b'p' => &["pass", "pwd"],
        b's' => &["secr", "sig"],
        b't' => &["toke"],
        _ => &[],
    }
}

fn parts() -> Vec<&'static str> {
    (b'a'..=b'z').flat_map(parts_from).copied().collect()
}

pub fn is_secret_name(name: &str) -> bool {
    static NAME: LazyLock<Regex> = LazyLock::new(|| Regex::new(SECRET_NAME).expect("it is tested"));
    may_name_a_secret(name) && NAME.is_match(&words(name).join(" "))
}

/// Whether the text may hold such a name at all.
pub fn may_name_a_secret(text: &str) -> bool {
    static MAY: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(&format!("(?i-u:{})", parts().join("|"))).expect("it is tested"));
    if text.len() > SHORT_BYTES { MAY.is_match(text) } else { short_may_name_a_secret(text.as_bytes()) }
}

/// Up to here, looking takes less time than compiling a pattern that would look faster.
const SHORT_BYTES: usize = 1024;

fn short_may_name_a_secret(text: &[u8]) -> bool {
    text.iter().enumerate().any(|(at, first)| {
        parts_from(first.to_ascii_lowercase()).iter().any(|part| {
            text[at..].get(..part.len()).is_some_and(|found| found.eq_ignore_ascii_case(part.as_bytes()))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_text_and_a_long_one_are_looked_at_alike() {
        let filler = "x".repeat(SHORT_BYTES);
        for part in parts().iter().map(|part| part.to_uppercase()) {
            assert!(may_name_a_secret(&format!(".{part}")) && may_name_a_secret(&format!("{filler}.{part}")));
            let cut = &part[1..];
            assert_eq!(may_name_a_secret(cut), may_name_a_secret(&format!("{filler}{cut}")), "{cut}");
        }
        assert!(!may_name_a_secret("./deploy.sh web 1.8.2") && !may_name_a_secret(""));
    }

    #[test]
    fn names_that_say_secret_are_redacted() {
        let secret = "authorization Authorization Proxy-Authorization cookie Set-Cookie password db_passwd secret \
             clientSecret client_secret token GITHUB_TOKEN accessToken api_key apikey api-key X-Api-Key APIKey \
             access_key AWS_SECRET_ACCESS_KEY privateKey credentials X-JWT bearer otp totp_code passcode api_keys \
             accessKeys PGPASSWORD MYSQL_PWD card_cvc cvv2 fastly-key x-functions-key";
        for name in secret.split_whitespace() {
            assert!(is_secret_name(name), "{name}");
        }
        let other = "max_tokens option keys author keyboard idempotency_key tokenizer secretary forbearance key \
             customer pwd signal";
        for name in other.split_whitespace() {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
