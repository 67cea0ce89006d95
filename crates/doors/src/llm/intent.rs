//! From a request to the rule that holds for it and the intent that it is.

use super::asked::Asked;
use crate::caller::Caller;
use crate::proxy::Offer;
use semel_core::digest::Secret;
use semel_core::intent::{Ask, AskedBy, Intent, KeyMissing};
use semel_core::json::Path;
use semel_core::policy::rule::InjectInto;
use semel_core::policy::{ActionFacts, Policy, Rule};
use std::sync::LazyLock;

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

pub fn rule(policy: &Policy, asked: &Asked) -> Rule {
    let mut rule = policy.rule_for(&ActionFacts::new(asked.api.action(), &asked.arguments));
    // A rule's own key may name one of them.
    let unnamed = VOLATILE_PATHS.iter().filter(|path| !rule.sorting.key.contains(path)).cloned();
    let unnamed: Vec<Path> = unnamed.collect();
    rule.sorting.volatile.extend(unnamed);
    // Whoever asks a model sends a body that is the client's, and headers.
    rule.inject = rule.inject.filter(|inject| matches!(inject.into, InjectInto::Header(_)));
    rule
}

pub fn intent(
    asked: &Asked,
    rule: &Rule,
    offer: &Offer,
    caller: &Caller,
    secret: &Secret,
) -> Result<Intent, KeyMissing> {
    let ask = Ask {
        tenant: &caller.tenant,
        principal: &caller.principal,
        authority: &offer.authority,
        action: asked.api.action(),
        arguments: &asked.arguments,
        run: asked.run.clone(),
        key: asked.key.clone(),
        again: asked.again.clone(),
        asked_by: AskedBy::Agent,
        call_id: None,
        live_connection: false,
        serialize_by: None,
        // What an API refuses today it may grant tomorrow, and its refusal costs nothing.
        replay_refusals: false,
    };
    Intent::of(&ask, rule, secret)
}
