//! How far a success is believed that only the tool itself reports.

use crate::class::Class;
use crate::effect::Evidence;
use crate::json::Json;
use crate::policy::rule::Rule;

/// The members of a reply that says no more than that it worked.
const SAYS_ONLY_SUCCESS: [&str; 5] = ["success", "ok", "status", "message", "error"];

/// A bare `success: true` about something consequential is *accepted*, where its rule could ask whether it is true and
/// has not.
pub fn of_success(rule: &Rule, reply: impl FnOnce() -> Json) -> Evidence {
    let could_ask = rule.probe.is_some() || rule.confirm.is_some();
    match rule.class == Class::Consequential && could_ask && says_only_success(&reply()) {
        true => Evidence::Accepted,
        false => Evidence::Reported,
    }
}

fn says_only_success(reply: &Json) -> bool {
    let Some(members) = reply.as_object() else { return false };
    let is_true = |name: &str| reply.get(name).and_then(Json::as_bool) == Some(true);
    (is_true("success") || is_true("ok")) && members.iter().all(|(name, _)| SAYS_ONLY_SUCCESS.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;

    #[test]
    fn a_reply_that_names_something_says_more_than_that_it_worked() {
        for (reply, only) in [
            (r#"{"success":true}"#, true),
            (r#"{"ok":true,"message":"Email sent","error":null}"#, true),
            (r#"{"success":true,"id":"ch_1"}"#, false),
            (r#"{"success":"yes"}"#, false),
            (r#"{"success":false}"#, false),
            (r#"{"status":"sent"}"#, false),
            (r#"{}"#, false),
            (r#"[true]"#, false),
        ] {
            assert_eq!(says_only_success(&parse(reply).expect("JSON")), only, "{reply}");
        }
    }
}
