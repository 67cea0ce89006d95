//! Secrets that are known by their shape: keys and tokens whose makers begin them all alike, so that leaks are found.

use super::names::REDACTED;
use regex::{NoExpand, Regex};
use std::borrow::Cow;
use std::sync::LazyLock;

static SHAPE: LazyLock<Regex> = LazyLock::new(|| {
    /// The beginnings, and how many characters follow at least.
    const BEGINNINGS: [(&str, usize); 7] = [
        ("glpat-|[sr]k_(?:live|test)_|whsec_|sk-(?:proj|ant)-|xox[bpar]-|xapp-|AKIA|ASIA", 16),
        ("hooks[.]slack[.]com/services/", 16),
        ("gh[pousr]_|github_pat_|shpat_", 20),
        ("AIza|npm_|pypi-|hf_|dop_v1_|SG[.]", 30),
        ("eyJ|discord[.]com/api/webhooks/", 40),
        // The same behind an upstream, whose paths are written without its address.
        ("services/T", 36),
        ("api/webhooks/", 60),
    ];
    // Telegram's stands in the path of every request.
    const BOT: &str = "bot[0-9]{6,}:[A-Za-z0-9_-]{30,}";
    let shapes = BEGINNINGS.map(|(beginning, least)| format!("(?:{beginning})[A-Za-z0-9_./-]{{{least},}}"));
    Regex::new(&format!(r"(?-u:\b)(?:{BOT}|{})", shapes.join("|"))).expect("it is tested")
});

/// The shortest of them: `AKIA` and what follows.
const SHAPE_BYTES_MIN: usize = 20;

/// One of these is in each of them, and in few other texts: not in `tests/right/services`.
const PARTS: [&str; 37] = [
    "k_live_",
    "k_test_",
    "glpat-",
    "whsec_",
    "sk-proj-",
    "sk-ant-",
    "xox",
    "xapp-",
    "AKIA",
    "ASIA",
    "slack.com/services/",
    "services/T",
    "api/webhooks/",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "shpat_",
    "AIza",
    "npm_",
    "pypi-",
    "hf_",
    "dop_v1_",
    "SG.",
    "eyJ",
    "bot0",
    "bot1",
    "bot2",
    "bot3",
    "bot4",
    "bot5",
    "bot6",
    "bot7",
    "bot8",
    "bot9",
];

/// Whether it may hold one at all: most texts do not, and the pattern costs more to compile than a short command.
fn may_hold_one(text: &str) -> bool {
    let is_inside = |byte: &u8| byte.is_ascii_alphanumeric() || b"_./:-".contains(byte);
    text.as_bytes().split(|byte| !is_inside(byte)).any(|word| word.len() >= SHAPE_BYTES_MIN)
        && PARTS.iter().any(|part| text.contains(part))
}

/// The text without them. `None`: there are none, as in most texts.
pub fn without_shapes(text: &str) -> Option<String> {
    if !may_hold_one(text) {
        return None;
    }
    match SHAPE.replace_all(text, NoExpand(REDACTED)) {
        Cow::Borrowed(_) => None,
        Cow::Owned(shown) => Some(shown),
    }
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
    use proptest::prelude::*;

    #[test]
    fn keys_of_well_known_makers_are_taken_out_wherever_they_stand() {
        let tail = "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8S9t0-u1v2w3x4y5z6A7b8C9d0";
        let beginnings = "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- sk_live_ sk_test_ rk_live_ rk_test_ whsec_ \
             sk-proj- sk-ant- xoxb- xoxp- xoxa- xoxr- xapp- AKIA ASIA AIza npm_ pypi- hf_ dop_v1_ shpat_ SG. eyJ \
             hooks.slack.com/services/ discord.com/api/webhooks/ services/T api/webhooks/";
        for beginning in beginnings.split_whitespace() {
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

    proptest! {
        #[test]
        fn none_is_passed_over(
            beginning in "(glpat-|[sr]k_(live|test)_|whsec_|sk-(proj|ant)-|xox[bpar]-|xapp-|AKIA|ASIA|gh[pousr]_|github_pat_|shpat_|AIza|npm_|pypi-|hf_|dop_v1_|SG[.]|eyJ|hooks[.]slack[.]com/services/|services/T|api/webhooks/|bot[0-9]{6}:)",
            rest in "[A-Za-z0-9_./-]{10,64}",
        ) {
            let text = format!("say {beginning}{rest}!");
            prop_assert_eq!(SHAPE.is_match(&text), without_shapes(&text).is_some());
        }
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
