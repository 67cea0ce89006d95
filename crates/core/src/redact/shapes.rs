//! Secrets that are known by their shape: keys and tokens whose makers begin them all alike, so that leaks are found.

use super::REDACTED;
use std::borrow::Cow;

/// How they begin, and how many characters follow at least.
const BEGINNINGS: &[(&str, usize)] = &[
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("rk_live_", 16),
    ("rk_test_", 16),
    ("whsec_", 16),
    ("sk-proj-", 16),
    ("sk-ant-", 16),
    ("xoxb-", 16),
    ("xoxp-", 16),
    ("xoxa-", 16),
    ("xoxr-", 16),
    ("xapp-", 16),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("npm_", 30),
    ("pypi-", 30),
    ("hf_", 30),
    ("dop_v1_", 30),
    ("shpat_", 20),
    ("SG.", 30),
    ("eyJ", 40),
    ("hooks.slack.com/services/", 16),
    ("discord.com/api/webhooks/", 40),
    // The same behind an upstream, whose paths are written without its address.
    ("services/T", 36),
    ("api/webhooks/", 60),
];

/// The shortest whole: most texts are shorter, and every call is looked at.
const SHORTEST: usize = 20;

/// The text without them. `None`: there are none, as in most texts.
pub fn without_shapes(text: &str) -> Option<String> {
    let mut shown = String::new();
    let (mut from, mut at) = (0, 0);
    while let Some((begin, end)) = next_after(text, at) {
        shown.push_str(&text[from..begin]);
        shown.push_str(REDACTED);
        (from, at) = (end, end);
    }
    (from > 0).then(|| shown + &text[from..])
}

fn next_after(text: &str, at: usize) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let begins_word =
        |at: usize| at == 0 || !(bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    let last = bytes.len().checked_sub(SHORTEST)?;
    (at..=last).filter(|at| begins_word(*at)).find_map(|begin| {
        let rest = &bytes[begin..];
        if let Some(length) = bot_token(rest) {
            return Some((begin, begin + length));
        }
        let begins = |word: &str| word.as_bytes()[0] == rest[0] && rest.starts_with(word.as_bytes());
        let (beginning, least) = BEGINNINGS.iter().find(|(word, _)| begins(word))?;
        let of_token = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_-./".contains(*byte);
        let more = rest[beginning.len()..].iter().take_while(of_token).count();
        (more >= *least).then_some((begin, begin + beginning.len() + more))
    })
}

/// The length of a token of Telegram's, which stands in the path of every request: `bot123456:AAE…`.
fn bot_token(text: &[u8]) -> Option<usize> {
    let rest = text.strip_prefix(b"bot")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let secret = rest.get(digits..)?.strip_prefix(b":").filter(|_| digits >= 6)?;
    let of_secret = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_-".contains(*byte);
    let length = secret.iter().take_while(of_secret).count();
    (length >= 30).then_some("bot".len() + digits + ":".len() + length)
}

/// The name of an action without them. A host is none, whatever follows it.
pub fn action_without_shapes(action: &str) -> Cow<'_, str> {
    let place = action.strip_prefix("http:").and_then(|_| action.find('/'));
    let Some((before, path)) = place.map(|at| action.split_at(at + 1)) else { return Cow::Borrowed(action) };
    without_shapes(path).map_or(Cow::Borrowed(action), |path| Cow::Owned(format!("{before}{path}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_well_known_makers_are_taken_out_wherever_they_stand() {
        let tail = "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8S9t0-u1v2w3x4y5z6A7b8C9d0";
        for (beginning, _) in BEGINNINGS {
            let text = format!("say '{beginning}{tail}' and go");
            assert_eq!(without_shapes(&text).as_deref(), Some("say '[redacted]' and go"), "{beginning}");
        }
        let two = format!("ghp_{tail} AKIA{tail}");
        assert_eq!(without_shapes(&two).as_deref(), Some("[redacted] [redacted]"));
    }

    #[test]
    fn an_actions_name_keeps_its_host_and_loses_what_its_path_gives_away() {
        let secret = "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r";
        for (action, shown) in [
            (
                format!("http:POST api.telegram.org/bot12345678:{secret}/sendMessage"),
                "http:POST api.telegram.org/[redacted]/sendMessage",
            ),
            (
                format!("http:POST hooks.slack.com/services/T0123/B0123/{secret}"),
                "http:POST hooks.slack.com/[redacted]",
            ),
            ("http:POST api.stripe.com/v1/charges".to_owned(), "http:POST api.stripe.com/v1/charges"),
            ("http:GET x/bots/bot12:short".to_owned(), "http:GET x/bots/bot12:short"),
            (format!("mcp:s/{secret}"), &format!("mcp:s/{secret}")),
        ] {
            assert_eq!(action_without_shapes(&action), shown);
        }
    }

    #[test]
    fn none_is_shorter_than_the_shortest() {
        assert!(BEGINNINGS.iter().all(|(word, least)| word.len() + least >= SHORTEST));
    }

    #[test]
    fn other_words_stay() {
        for text in
            ["", "ghp_", "sk-proj-short", "AKIA", "task_live_0123456789abcdef0", "eyJust a word", "hf_é"]
        {
            assert_eq!(without_shapes(text), None, "{text}");
        }
    }
}
