//! `semel key`: the idempotency key of an action with its arguments.

use crate::args::KeyArgs;
use crate::context::Context;
use crate::output::Hinted;
use anyhow::Context as _;
use semel_core::identity::{self, IntentDigest};
use semel_core::json::{self, Json, TEXT_BYTES_MAX};
use semel_core::policy::{ActionFacts, call_arguments};
use std::io::Read;
use std::process::ExitCode;

pub fn run(context: &Context, args: &KeyArgs) -> anyhow::Result<ExitCode> {
    let action = action(&args.action)?;
    let arguments = arguments(action, &args.args)?;
    let rule = context.policy()?.rule_for(&ActionFacts::new(action, &arguments));
    let sorted = identity::sort(&arguments, &rule.sorting);
    if !sorted.missing_key_paths.is_empty() {
        let missing: Vec<String> = sorted.missing_key_paths.iter().map(ToString::to_string).collect();
        let what = format!(
            "the rule {} identifies {action} by {}, which is not there",
            rule.origin,
            missing.join(", ")
        );
        if rule.key_required {
            return Err(Hinted::error(what, format!("semel policy explain {action} --args JSON")));
        }
        context.output.say(format_args!("{what}; all arguments count instead"));
    }
    let digest = IntentDigest::of(action, &sorted.identity);
    if context.output.json {
        context.output.document(&serde_json::json!({
            "idempotency_key": digest.idempotency_key(),
            "intent_digest": digest,
            "action": action,
            "rule": rule.origin.to_string(),
        }));
    } else {
        context.output.data(digest.idempotency_key());
    }
    Ok(ExitCode::SUCCESS)
}

/// An action's name says which door it is for.
pub fn action(text: &str) -> anyhow::Result<&str> {
    match text.split_once(':') {
        Some((door, rest)) if !door.is_empty() && !rest.is_empty() => Ok(text),
        _ => Err(Hinted::error(
            format!("{text} is not the full name of an action"),
            "such as mcp:github/create_issue, cli:kubectl or fn:charge",
        )),
    }
}

/// Arguments as rules see them, from a text or from standard input.
pub fn arguments(action: &str, text: &str) -> anyhow::Result<Json> {
    let parsed = if text == "-" {
        let mut bytes = Vec::new();
        std::io::stdin()
            .lock()
            .take(TEXT_BYTES_MAX as u64 + 1)
            .read_to_end(&mut bytes)
            .context("standard input")?;
        json::parse_bytes(&bytes)
    } else {
        json::parse(text)
    };
    let value = parsed.context("--args is not JSON that can be told apart exactly")?;
    Ok(call_arguments::rooted(action, value))
}
