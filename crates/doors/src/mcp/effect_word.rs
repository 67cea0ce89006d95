//! The effect of a success, in one word.

use super::message::{Message, text};
use super::result::value;
use crate::wire::members::Members;
use semel_core::answer::EffectWord;
use semel_core::json::Json;
use semel_core::policy::rule::{EffectWording, Rule};
use semel_core::words::words as words_of;

/// From the rule, else from what the tool itself says, else from its name.
pub fn effect_word(answer: &Message, rule: &Rule, tool: &str) -> EffectWord {
    if let Some(EffectWording::Word(word)) = &rule.effect {
        return *word;
    }
    let result = answer.body.as_ref().and_then(|body| Members::parse(text(body))).unwrap_or_default();
    of_reply(&value(&result), rule, tool)
}

/// The same of a reply as rules see it.
pub fn of_reply(reply: &Json, rule: &Rule, tool: &str) -> EffectWord {
    let said = match &rule.effect {
        Some(EffectWording::Word(word)) => Some(*word),
        Some(EffectWording::Expression(expression)) => {
            let said = expression.eval(&[("reply", reply)]).ok();
            said.and_then(|said| EffectWord::parse(said.as_str()?))
        }
        None => reply.get("effect").and_then(Json::as_str).and_then(EffectWord::parse),
    };
    said.unwrap_or_else(|| by_verb(tool))
}

/// The same without an answer to read.
pub fn by_name(rule: &Rule, tool: &str) -> EffectWord {
    match &rule.effect {
        Some(EffectWording::Word(word)) => *word,
        _ => by_verb(tool),
    }
}

fn by_verb(tool: &str) -> EffectWord {
    let words = words_of(tool);
    // `unpublish` is no publication and `address` no addition: words begin with their verb, and short ones are it.
    let is = |word: &str, verb: &str| if verb.len() > 3 { word.starts_with(verb) } else { word == verb };
    let says = |verbs: &[&str]| verbs.iter().any(|verb| words.iter().any(|word| is(word, verb)));
    let posts = says(&["post"]) && says(&["message"]);
    if posts || says(&["send", "resend", "publish", "notify", "reply", "email"]) {
        EffectWord::Sent
    } else if says(&["delete", "remove", "destroy"]) {
        EffectWord::Deleted
    } else if says(&["create", "add", "insert", "charge", "book", "order", "new"]) {
        EffectWord::Created
    } else {
        EffectWord::Updated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verb_tells_what_nobody_else_does() {
        assert_eq!(by_verb("send_mail"), EffectWord::Sent);
        assert_eq!(by_verb("deleteIssue"), EffectWord::Deleted);
        assert_eq!(by_verb("create_issue"), EffectWord::Created);
        assert_eq!(by_verb("merge"), EffectWord::Updated);
        assert_eq!(by_verb("slack_post_message"), EffectWord::Sent);
        assert_eq!(by_verb("unpublish_page"), EffectWord::Updated);
        assert_eq!(by_verb("update_address"), EffectWord::Updated);
        assert_eq!(by_verb("renew_domain"), EffectWord::Updated);
    }
}
