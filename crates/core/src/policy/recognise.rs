//! The class of an action that no rule speaks about, and the reason in words.
//!
//! Taking a write for a read is the one costly mistake here, so a name makes a read only when nothing in it
//! speaks against it. Everything that is not recognised is *act*.

use crate::class::Class;

/// What an upstream says about a tool of its own: hints from a party that need not be honest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Annotations {
    pub read_only: Option<bool>,
    pub idempotent: Option<bool>,
    pub destructive: Option<bool>,
}

/// The class, and because of what.
pub fn class(action: &str, annotations: Annotations, trusted: bool) -> (Class, String) {
    let (door, name) = action.split_once(':').unwrap_or(("", action));
    match door {
        "http" => by_method(name),
        "llm" => (Class::Generate, "it is a model call".to_owned()),
        "cli" => (Class::Act, "it is a command without a rule".to_owned()),
        "mcp" => {
            let (server, tool) = name.split_once('/').unwrap_or(("", name));
            by_tool(server, tool, annotations, trusted)
        }
        _ => by_tool("", name, annotations, trusted),
    }
}

fn by_method(name: &str) -> (Class, String) {
    let method = name.split(' ').next().unwrap_or_default();
    let class = match method {
        "GET" | "HEAD" | "OPTIONS" => Class::Read,
        "PUT" | "DELETE" => Class::Convergent,
        _ => Class::Act,
    };
    (class, format!("the method is {method}"))
}

fn by_tool(server: &str, tool: &str, annotations: Annotations, trusted: bool) -> (Class, String) {
    let words = words(tool);
    let write = write_verb(&words);
    if annotations.read_only == Some(true) {
        match write {
            // A server that is not trusted can vouch for a neutral name, not against a name that says otherwise.
            Some(_) if !trusted => {}
            _ => return (Class::Read, "the tool says readOnlyHint: true".to_owned()),
        }
    } else if annotations.read_only.is_none()
        && write.is_none()
        && let Some(verb) = leading_read_verb(server, &words)
    {
        return (Class::Read, format!("its name begins with the read verb `{verb}`"));
    }
    if trusted && annotations.idempotent == Some(true) {
        return (
            Class::Convergent,
            "the tool says idempotentHint: true, and its server is trusted".to_owned(),
        );
    }
    match write {
        Some((verb, true)) => (Class::Consequential, format!("its name has the verb `{verb}`")),
        Some((verb, false)) => (Class::Act, format!("its name has the verb `{verb}`")),
        None if annotations.read_only == Some(false) => {
            (Class::Act, "the tool says readOnlyHint: false".to_owned())
        }
        None => (Class::Act, "nothing in its name says what it does".to_owned()),
    }
}

/// `create_issue`, `create-issue`, `create.issue`, `createIssue` and `createHTTPIssue` alike, in lower case.
fn words(name: &str) -> Vec<String> {
    /// Longer names are cut: a verb stands near the front.
    const CHARS_MAX: usize = 200;
    let characters: Vec<char> = name.chars().take(CHARS_MAX).collect();
    let mut words = vec![String::new()];
    for (i, &character) in characters.iter().enumerate() {
        if !character.is_alphanumeric() {
            words.push(String::new());
            continue;
        }
        let after_lower = i > 0 && (characters[i - 1].is_lowercase() || characters[i - 1].is_ascii_digit());
        let ends_acronym = i > 0
            && characters[i - 1].is_uppercase()
            && characters.get(i + 1).is_some_and(|next| next.is_lowercase());
        if character.is_uppercase() && (after_lower || ends_acronym) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.extend(character.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// A prefix that only repeats the server's name (`slack/slack_list_channels`), or is `API`, is not counted as the
/// leading word.
fn leading_read_verb<'a>(server: &str, name: &'a [String]) -> Option<&'a str> {
    let mut server = words(server);
    server.push("api".to_owned());
    let verb = name.iter().find(|word| !server.contains(word) || READ.contains(&word.as_str()))?;
    // `compare_and_…`: a second verb that no table knows might do anything.
    let second_is_unknown = name
        .windows(2)
        .any(|pair| CONJUNCTIONS.contains(&pair[0].as_str()) && !READ.contains(&pair[1].as_str()));
    (READ.contains(&verb.as_str()) && !second_is_unknown).then_some(verb.as_str())
}

/// The first word that speaks of a change, and whether it is a consequential one.
fn write_verb(words: &[String]) -> Option<(&str, bool)> {
    let mut spoken = false;
    let mut change = None;
    for word in words {
        let word = word.as_str();
        if CONSEQUENTIAL.contains(&word) || (!spoken && CONSEQUENTIAL_LEADING.contains(&word)) {
            return Some((word, true));
        }
        if CHANGE.contains(&word) || (!spoken && CHANGE_LEADING.contains(&word)) {
            change = change.or(Some((word, false)));
            spoken = true;
        }
        // After a verb the same words are nouns: `get_order`, `list_message`, until `and` begins another verb.
        spoken |= READ.contains(&word);
        if CONJUNCTIONS.contains(&word) {
            spoken = false;
        }
    }
    change
}

const CONJUNCTIONS: [&str; 3] = ["and", "or", "then"];

const READ: &[&str] = &[
    "get", "list", "search", "find", "read", "fetch", "describe", "show", "view", "lookup", "count",
    "inspect", "explain", "retrieve", "whoami", "status", "is", "has", "peek", "stat", "diff", "compare",
    "preview", "browse",
];

/// Money, messages, publications, creations, bookings, deployments: verbs wherever they stand.
const CONSEQUENTIAL: &[&str] = &[
    "create",
    "send",
    "resend",
    "publish",
    "deploy",
    "redeploy",
    "pay",
    "buy",
    "sell",
    "purchase",
    "withdraw",
    "donate",
    "subscribe",
    "notify",
    "broadcast",
    "announce",
    "submit",
    "launch",
    "provision",
    "rollout",
    "tweet",
    "dispatch",
    "debit",
    "enroll",
    "hire",
    "repay",
];

/// The same, but these are nouns too, and count as verbs only where no other verb came before.
const CONSEQUENTIAL_LEADING: &[&str] = &[
    "charge", "refund", "transfer", "order", "book", "reserve", "post", "message", "email", "mail",
    "comment", "reply", "invoice", "bill", "release", "share", "invite", "schedule", "payout", "checkout",
    "wire", "deposit", "capture", "trade", "forward", "sms", "alert", "call",
];

/// Changes whose repetition is seldom dear: they keep a name from being a read.
const CHANGE: &[&str] = &[
    "accept",
    "ack",
    "acknowledge",
    "activate",
    "add",
    "append",
    "apply",
    "approve",
    "archive",
    "assign",
    "attach",
    "cancel",
    "claim",
    "clear",
    "click",
    "close",
    "complete",
    "configure",
    "consume",
    "copy",
    "deactivate",
    "decline",
    "decrement",
    "delete",
    "destroy",
    "detach",
    "disable",
    "drop",
    "edit",
    "enable",
    "evict",
    "exchange",
    "execute",
    "fill",
    "increment",
    "insert",
    "install",
    "invoke",
    "kill",
    "lock",
    "mark",
    "migrate",
    "modify",
    "move",
    "mutate",
    "overwrite",
    "pop",
    "press",
    "purge",
    "put",
    "reboot",
    "register",
    "reject",
    "remove",
    "rename",
    "replace",
    "rerun",
    "reset",
    "restart",
    "restore",
    "revert",
    "revoke",
    "rollback",
    "rotate",
    "save",
    "set",
    "suspend",
    "swap",
    "sync",
    "terminate",
    "toggle",
    "trigger",
    "truncate",
    "undo",
    "uninstall",
    "unlock",
    "unpublish",
    "unsubscribe",
    "update",
    "upgrade",
    "upload",
    "upsert",
    "write",
];

/// The same, where a noun is as likely later in the name.
const CHANGE_LEADING: &[&str] = &[
    "ban", "block", "build", "change", "commit", "download", "drag", "drain", "export", "flush", "follow",
    "fork", "grant", "hover", "import", "join", "label", "leave", "like", "log", "merge", "mute", "navigate",
    "open", "patch", "pause", "pin", "process", "push", "record", "resume", "retry", "run", "scale",
    "select", "star", "start", "stop", "store", "tag", "type", "vote",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn named(tool: &str) -> Class {
        class(&format!("mcp:server/{tool}"), Annotations::default(), false).0
    }

    #[test]
    fn names_of_real_tools_have_the_class_that_a_person_would_say() {
        let table = [
            (
                Class::Read,
                "get_issue list_charges search_code get_file_contents list_commits get_me read_file \
                 list_directory search_files get_order getMessage list-emails find_customer describe_table \
                 get_release get_post read_text_file fetch show_invoice get_comment list_pull_requests \
                 searchIssues get_transfer whoami list_open_issues \
                 API-get-block-children get_import_status search_and_fetch",
            ),
            (
                Class::Consequential,
                "create_issue send_message post_message send-email charge_card create_payment_intent \
                 deploy_service book_flight get_or_create_customer fetch_and_send refund_payment \
                 conversations_send_message slack_post_message create_pull_request publish_page sendEmail \
                 createRefund API-post-page add_and_send transfer_funds reply_to_thread order_pizza \
                 get_and_book issue_create invite_user schedule_meeting create_or_update_file message_user \
                 submit_order release_build",
            ),
            (
                Class::Act,
                "update_page delete_file write_file browser_click query execute_sql issue_write \
                 move_file edit_file browser_navigate run_query search_and_replace find_and_modify \
                 list_and_delete get_set_value merge_pull_request push_files set_value browser_fill_form \
                 puppeteer_evaluate mark_as_read add_numbers update_issue sequentialthinking \
                 read_and_ack compare_and_frobnicate compare_and_swap fetch_and_increment reset_get_counter toggle_list_view 工具",
            ),
        ];
        for (expected, names) in table {
            for name in names.split_whitespace() {
                assert_eq!(named(name), expected, "{name}");
            }
        }
    }

    #[test]
    fn a_prefix_that_repeats_the_server_is_passed_over() {
        let of = |action: &str| class(action, Annotations::default(), false).0;
        assert_eq!(of("mcp:slack/slack_list_channels"), Class::Read);
        assert_eq!(of("mcp:other/slack_list_channels"), Class::Act);
        assert_eq!(of("mcp:send-list/list_send"), Class::Consequential);
        assert_eq!(of("fn:charge"), Class::Consequential);
        assert_eq!(of("fn:getCustomer"), Class::Read);
    }

    #[test]
    fn methods_commands_and_models_are_recognised_by_their_door() {
        let of = |action: &str| class(action, Annotations::default(), false).0;
        assert_eq!(of("http:GET api.stripe.com/v1/charges"), Class::Read);
        assert_eq!(of("http:HEAD x"), Class::Read);
        assert_eq!(of("http:PUT x/y"), Class::Convergent);
        assert_eq!(of("http:DELETE x/y"), Class::Convergent);
        assert_eq!(of("http:POST api.stripe.com/v1/charges"), Class::Act);
        assert_eq!(of("http:get x"), Class::Act);
        assert_eq!(of("cli:ls"), Class::Act);
        assert_eq!(of("llm:openai/chat.completions"), Class::Generate);
        assert_eq!(of(""), Class::Act);
    }

    #[test]
    fn hints_can_add_protection_always_and_take_it_away_only_as_far_as_trusted() {
        let hint = |tool: &str, read_only, idempotent, trusted| {
            let annotations = Annotations { read_only, idempotent, destructive: None };
            class(&format!("mcp:s/{tool}"), annotations, trusted).0
        };
        assert_eq!(hint("get_issue", Some(false), None, true), Class::Act);
        assert_eq!(hint("browser_snapshot", Some(true), None, false), Class::Read);
        assert_eq!(hint("send_message", Some(true), None, false), Class::Consequential);
        assert_eq!(hint("send_message", Some(true), None, true), Class::Read);
        assert_eq!(hint("store_value", None, Some(true), false), Class::Act);
        assert_eq!(hint("store_value", None, Some(true), true), Class::Convergent);
    }

    #[test]
    fn words_are_found_however_they_are_joined() {
        assert_eq!(words("createHTTPIssue_v2-now.x"), ["create", "http", "issue", "v2", "now", "x"]);
        assert_eq!(words("__"), Vec::<String>::new());
    }
}
