//! From a request to the rule that holds for it and the intent that it is.

use super::request::ModelRequest;
use crate::caller::Caller;
use semel_core::digest::{Digest, Secret};
use semel_core::intent::{Ask, AskedBy, Intent, KeyMissing};
use semel_core::json::{Json, Path};
use semel_core::policy::{ActionFacts, Policy, Rule};
use std::sync::{Arc, LazyLock};

/// Members of a request that may change from one try to the next without its being another request.
const VOLATILE: [&str; 12] = [
    // The form of the answer, which is converted.
    "args.stream",
    "args.stream_options",
    // Agents fall back to a smaller answer when a stream has failed.
    "args.max_tokens",
    "args.max_completion_tokens",
    "args.max_output_tokens",
    // Labels: who asks, for whom, in which session. They are seen in reports and not by the model.
    "args.metadata",
    "args.client_metadata",
    "args.user",
    "args.safety_identifier",
    // Hints to caches.
    "args.prompt_cache_key",
    "args.prompt_cache_retention",
    "args.prompt_cache_options",
];

static VOLATILE_PATHS: LazyLock<Vec<Path>> =
    LazyLock::new(|| VOLATILE.iter().map(|path| Path::parse(path).expect("it is written above")).collect());

pub fn rule(policy: &Policy, request: &ModelRequest, arguments: &Json) -> Arc<Rule> {
    policy.rule_for(&ActionFacts::new(request.api.action(), arguments))
}

pub fn intent(
    request: &ModelRequest,
    arguments: &Json,
    rule: &Rule,
    authority: &str,
    caller: &Caller,
    secret: &Secret,
) -> Result<Intent, KeyMissing> {
    let mut rule = rule.clone();
    // A rule's own key may name one of them.
    let unnamed = VOLATILE_PATHS.iter().filter(|path| !rule.sorting.key.contains(path)).cloned();
    let unnamed: Vec<Path> = unnamed.collect();
    rule.sorting.volatile.extend(unnamed);
    let arguments = match rule.sorting.normalize.is_empty() {
        true => &shortened(arguments),
        // A rule that looks into texts gets them.
        false => arguments,
    };
    let ask = Ask {
        tenant: &caller.tenant,
        principal: &caller.principal,
        authority,
        action: request.api.action(),
        arguments,
        run: request.run.clone(),
        key: request.key.clone(),
        again: request.again.clone(),
        asked_by: AskedBy::Agent,
        call_id: None,
        live_connection: false,
        serialize_by: None,
        // An API may grant tomorrow a request that it refuses today, and its refusal costs nothing.
        replay_refusals: false,
    };
    Intent::of(&ask, &rule, secret)
}

/// A longer text stands for itself as its digest: a conversation of megabytes is then read once, and not for each of
/// the keys and marks that are made of it; and the ledger shows less of it.
const TEXT_BYTES_MAX: usize = 1024;

/// How a text begins that stands for another.
const DIGEST: &str = "sha256:";

fn shortened(json: &Json) -> Json {
    match json {
        // A text that looks like a digest has one of its own, or it would be the text that it is the digest of.
        Json::String(text) if text.len() > TEXT_BYTES_MAX || text.starts_with(DIGEST) => {
            Json::String(format!("{DIGEST}{}:{}", Digest::of(&[text.as_bytes()]), text.len()))
        }
        Json::Array(elements) => Json::Array(elements.iter().map(shortened).collect()),
        Json::Object(members) => {
            Json::Object(members.iter().map(|(name, value)| (name.to_owned(), shortened(value))).collect())
        }
        short => short.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use semel_core::json::parse;

    fn shortened_text(json: &str) -> String {
        shortened(&parse(json).expect("JSON")).canonical()
    }

    #[test]
    fn a_long_text_stands_for_itself_and_for_no_other() {
        let of = |text: &str| shortened_text(&format!(r#"{{"a":[{{"b":"{text}","c":1.0}}]}}"#));
        assert_eq!(of("short"), r#"{"a":[{"b":"short","c":1}]}"#);
        let (long, other) = ("x".repeat(TEXT_BYTES_MAX + 1), "x".repeat(TEXT_BYTES_MAX + 2));
        assert!(of(&long).len() < 200 && of(&long) == of(&long) && of(&long) != of(&other));
        assert!(of(&"x".repeat(TEXT_BYTES_MAX)).len() > TEXT_BYTES_MAX);
        let digest = format!("sha256:{}:{}", Digest::of(&[long.as_bytes()]), long.len());
        assert!(of(&long).contains(&digest) && !of(&digest).contains(&digest), "{}", of(&digest));
    }
}
