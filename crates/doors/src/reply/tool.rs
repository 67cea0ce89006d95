//! A reply in the form of a tool's result.

use crate::redact::{MayHoldSecret, Secrets};
use crate::wire::members::{Members, quoted};
use semel_core::json::{self, Json};
use semel_core::redact::REDACTED;

/// The member for the end of a task, beside its handle's `result`: a response of its own.
pub const END: &str = "end";

/// A recorded response without these secrets, and all else to the byte. `None`: it is no such response.
pub fn scrubbed(reply: &str, secrets: &Secrets) -> Result<Option<String>, MayHoldSecret> {
    let Some(mut whole) = Members::parse(reply) else { return Ok(None) };
    if let Some(end) = whole.get(END) {
        let Some(kept) = scrubbed_response(end, secrets)? else { return Ok(None) };
        whole.set(END, kept);
    }
    Ok(scrub_response(&mut whole, secrets)?.then(|| whole.to_string()))
}

fn scrubbed_response(response: &str, secrets: &Secrets) -> Result<Option<String>, MayHoldSecret> {
    let Some(mut whole) = Members::parse(response) else { return Ok(None) };
    let is_one = whole.get(END).is_none() && scrub_response(&mut whole, secrets)?;
    Ok(is_one.then(|| whole.to_string()))
}

/// `false`: it is none.
fn scrub_response(whole: &mut Members<'_>, secrets: &Secrets) -> Result<bool, MayHoldSecret> {
    let mut found = false;
    for name in ["result", "error"] {
        if let Some(body) = whole.get(name) {
            let kept = secrets.out_of_result(body)?;
            whole.set(name, kept);
            found = true;
        }
    }
    Ok(found && whole.names().all(|name| ["result", "error", END].contains(&name)))
}

/// A reply that a probe or a person supplied, in the form of a tool's result.
pub fn encode(value: &Json, secrets: &Secrets) -> Vec<u8> {
    let clean = secrets.out_of_reply(value);
    let json = clean.unwrap_or_else(|MayHoldSecret| quoted(REDACTED));
    let value = json::parse(&json).unwrap_or(Json::Null);
    let text = value.as_str().map_or_else(|| json.clone(), str::to_owned);
    let structured = match value {
        Json::Object(_) => format!(r#","structuredContent":{json}"#),
        _ => String::new(),
    };
    format!(r#"{{"result":{{"content":[{{"type":"text","text":{}}}]{structured}}}}}"#, quoted(&text))
        .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use semel_core::policy::{ActionFacts, Policy};
    use std::sync::Arc;

    #[test]
    fn a_recorded_response_is_scrubbed_and_nothing_else_is_one() {
        let mut rule = Policy::default().rule_for(&ActionFacts::new("mcp:a/b", &Json::Null));
        Arc::make_mut(&mut rule).sorting.secret = vec![json::Path::parse("reply.pin").expect("a path")];
        let secrets = Secrets::of(&Json::Null, &rule);
        let scrubbed = |reply: &str| scrubbed(reply, &secrets).expect("it can be read");
        for plain in [r#"{"result":{ "a" : 1.0}}"#, r#"{"error":{"code":1}}"#] {
            assert_eq!(scrubbed(plain).as_deref(), Some(plain));
        }
        for secret in [
            r#"{"result":{"structuredContent":{"pin":4711}}}"#,
            r#"{"result":{"content":[{"type":"text","text":"{\"pin\":4711}"}]}}"#,
            r#"{"error":{"data":{"pin":4711}}}"#,
            r#"{"result":{"task":{"taskId":"t"}},"end":{"result":{"structuredContent":{"pin":4711}}}}"#,
        ] {
            let kept = scrubbed(secret).expect("it is a response");
            assert!(kept.contains(REDACTED) && !kept.contains("4711"), "{kept}");
        }
        for none in [
            "5",
            "{}",
            r#"{"other":{"pin":4711}}"#,
            r#"{"result":{},"other":{"pin":4711}}"#,
            r#"{"result":{},"end":{"result":{},"end":{"result":{}}}}"#,
            r#"{"result":{},"result":{"pin":4711}}"#,
        ] {
            assert_eq!(scrubbed(none), None, "{none}");
        }
    }
}
