//! The class of an action that no rule speaks about, and the reason in words.
//!
//! Taking a write for a read is the one costly mistake here, so a name makes a read only when nothing in it
//! speaks against it. Everything that is not recognised is *act*.

#[rustfmt::skip]
mod tables;

use crate::class::Class;
use crate::words::words;
use tables::*;

/// An upstream's hints about its own tool. It need not be honest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Annotations {
    pub read_only: Option<bool>,
    pub idempotent: Option<bool>,
    pub destructive: Option<bool>,
}

/// The line of a command's help that is its `read_only`: true for commands, too, that hand on what is guarded elsewhere.
pub const SAFE_TO_REPEAT: &str = "Safe to repeat.";

/// The class, and because of what.
pub fn class(action: &str, annotations: Annotations, trusted: bool) -> (Class, String) {
    let (door, name) = action.split_once(':').unwrap_or(("", action));
    match door {
        // A request says it of itself where it is a question in a language that has no other way to change anything.
        "http" if trusted && annotations.read_only == Some(true) => {
            (Class::Read, "what it asks for changes nothing".to_owned())
        }
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
    let (method, place) = name.split_once(' ').unwrap_or((name, ""));
    let class = match method {
        "GET" | "HEAD" | "OPTIONS" => Class::Read,
        "PUT" | "DELETE" => Class::Convergent,
        "POST" => return by_path(place.split_once('/').map_or("", |(_, path)| path)),
        _ => Class::Act,
    };
    (class, format!("the method is {method}"))
}

/// A POST, by the last segment of its path: by its verbs as a tool is, else by the thing that it makes one more of.
fn by_path(path: &str) -> (Class, String) {
    let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let last = FORMATS.iter().find_map(|format| last.strip_suffix(format)).unwrap_or(last);
    let words = words(cut(last));
    let verb = |verb: &str| format!("the last segment of its path has the verb `{verb}`");
    if words.iter().any(|word| is_of_an_id(word)) {
        return (Class::Act, "its path ends with an id".to_owned());
    }
    if words.iter().any(|word| word == "webhook" || word == "webhooks") {
        return (Class::Act, "its path ends with webhooks".to_owned());
    }
    if let Some((found, true)) = write_verb(&words) {
        return (Class::Consequential, verb(found));
    }
    let (thing, before) =
        words.split_last().map_or(("", &[][..]), |(thing, before)| (thing.as_str(), before));
    let is_thing = is_thing(thing, &[]);
    // `call` is a thing at the end, though it is a verb elsewhere.
    let said = if is_thing { before } else { &words[..] };
    let read = || said.iter().find(|word| has(READ, word));
    match write_verb(said).map(|(found, _)| found).or_else(|| read().map(String::as_str)) {
        Some(found) => (Class::Act, verb(found)),
        None if is_thing => (Class::Consequential, format!("its path ends with `{thing}`")),
        None => (Class::Act, "the method is POST, and its path says no more".to_owned()),
    }
}

/// Digits make an id (`8f3`, `ch_1A2b`, a UUID), but for the version of a call (`v2`).
fn is_of_an_id(word: &str) -> bool {
    let is_version = word.strip_prefix('v').is_some_and(|number| number.parse::<u32>().is_ok());
    word.bytes().any(|byte| byte.is_ascii_digit()) && !is_version
}

fn by_tool(server: &str, tool: &str, annotations: Annotations, trusted: bool) -> (Class, String) {
    let words = words(cut(tool));
    let write = write_verb(&words);
    if annotations.read_only == Some(true) {
        match write {
            // A server that is not trusted can vouch for a name that may be a question, not against one that says
            // otherwise.
            Some(_) if !trusted && !may_ask(&words) => {}
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

/// The things that a tool's name speaks of, in the singular: `create_charges` and `listCharge` share `charge`. Many verbs
/// are things as well; in front of something else they are verbs.
pub fn things(server: &str, tool: &str) -> Vec<String> {
    let of_server = words(server);
    let words = words(cut(tool));
    let begins = words.iter().position(|word| !of_server.contains(word)).unwrap_or(0);
    let is_verb = |at: usize, word: &str| {
        let leads = at == 0 && words.len() > begins + 1;
        [READ, CONSEQUENTIAL, CHANGE, CONJUNCTIONS].iter().any(|table| has(table, word))
            || leads && [WEAK, CHANGE_LEADING, CHANGE_OR_THING].iter().any(|table| has(table, word))
    };
    let things = words[begins..].iter().enumerate().filter(|(at, word)| !is_verb(*at, word));
    things.filter(|(_, word)| !has(NO_THING, word)).map(|(_, word)| singular(word)).collect()
}

/// English plurals, as far as two names need to meet.
fn singular(word: &str) -> String {
    match (word.strip_suffix("ies"), word.strip_suffix("es"), word.strip_suffix('s')) {
        (Some(stem), ..) => format!("{stem}y"),
        (_, Some(stem), _)
            if stem.ends_with(['s', 'x', 'z']) || stem.ends_with("ch") || stem.ends_with("sh") =>
        {
            stem.to_owned()
        }
        (.., Some(stem)) if !stem.ends_with('s') => stem.to_owned(),
        _ => word.to_owned(),
    }
}

/// Longer names are cut: a verb stands near the front.
fn cut(name: &str) -> &str {
    const CHARS_MAX: usize = 200;
    name.char_indices().nth(CHARS_MAX).map_or(name, |(end, _)| &name[..end])
}

/// The read verb that the name begins with, past the server's own name (`slack/slack_list_channels`) and `API`. Each
/// clause needs one: in `compare_and_…` a verb that no table knows might do anything.
fn leading_read_verb<'a>(server: &str, name: &'a [String]) -> Option<&'a str> {
    let mut server = words(server);
    server.push("api".to_owned());
    let first = name.iter().position(|word| !server.contains(word) || has(READ, word))?;
    let name = &name[first..];
    let reads = clauses(name).all(|clause| clause.first().is_some_and(|verb| has(READ, verb)));
    reads.then_some(name[0].as_str())
}

/// Whether the name may be a question about a thing whose word is a verb as well: `refund_status`, `comment_list`.
/// `update_status` and `post_status` are none.
fn may_ask(name: &[String]) -> bool {
    let changes =
        |word: &String| [CONSEQUENTIAL, CHANGE, CHANGE_OR_THING, CONJUNCTIONS].iter().any(|t| has(t, word));
    match name {
        [first, .., last] => is_thing(first, STARTED) && has(ASKS, last) && !name.iter().any(changes),
        _ => false,
    }
}

fn has(table: &[&str], word: &str) -> bool {
    table.contains(&word)
}

/// Whether the word is one of `THINGS` or of `more`, singular or plural.
fn is_thing(word: &str, more: &[&str]) -> bool {
    let is = |word: &str| has(THINGS, word) || has(more, word);
    is(word) || word.strip_suffix('s').is_some_and(is)
}

fn clauses(words: &[String]) -> impl Iterator<Item = &[String]> {
    words.split(|word| has(CONJUNCTIONS, word))
}

/// The first word that speaks of a change, and whether it is a consequential one.
fn write_verb(words: &[String]) -> Option<(&str, bool)> {
    let mut change = None;
    for clause in clauses(words) {
        let (mut has_verb, mut has_change) = (false, false);
        for (at, word) in clause.iter().enumerate() {
            // After a verb the same words are nouns: `get_order`, `delete_send`. So they are before one.
            let leads = !has_verb && !is_before_verb(&clause[at..]);
            let is_program = || word == "launch" && clause.iter().any(|word| has(PROGRAMS, word));
            let consequential = (has(CONSEQUENTIAL, word) && !has_change)
                || (has(CONSEQUENTIAL_LEADING, word) && leads && !is_program())
                || (has(WEAK, word)
                    && !has_verb
                    && clause[at + 1..].iter().any(|word| is_thing(word, STARTED)));
            if consequential {
                return Some((word, true));
            }
            has_change |= has(CHANGE, word)
                || (has(CHANGE_LEADING, word) && leads)
                || (has(CHANGE_OR_THING, word) && (!has_verb || has(READ, &clause[at - 1])));
            change = change.or(has_change.then_some((word.as_str(), false)));
            has_verb |= has_change || has(READ, word);
        }
    }
    change
}

/// Whether a plain verb comes right after the first word, or at the end. Any further in, it may be the second thing that
/// the tool does: `charge_customer_get_receipt`.
fn is_before_verb(clause: &[String]) -> bool {
    matches!(clause, [_, next, ..] if has(PLAIN_VERBS, next))
        || matches!(clause, [_, .., last] if has(PLAIN_VERBS, last))
}

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
                 API-get-block-children get_import_status search_and_fetch get_project_update \
                 get_image_set get_domain_claim analyze_costs wait_for_new_message get_broadcast",
            ),
            (
                Class::Consequential,
                "create_issue send_message post_message send-email charge_card create_payment_intent \
                 book_flight get_or_create_customer fetch_and_send refund_payment \
                 conversations_send_message slack_post_message create_pull_request publish_page sendEmail \
                 createRefund API-post-page add_and_send transfer_funds reply_to_thread order_pizza \
                 get_and_book issue_create invite_user schedule_meeting create_or_update_file message_user \
                 submit_order process_refund execute_trade finalize_invoice place_order \
                 run_pipeline rerun_workflow add_comment add_issue_comment reinvite_member \
                 duplicate_campaign make_call launch_campaign forward_email email_forward \
                 refund_status comment_list capture_screenshot share_list order_create \
                 charge_customer_get_receipt post_message_get_link",
            ),
            (
                Class::Act,
                "update_page delete_file write_file browser_click query execute_sql issue_write \
                 move_file edit_file browser_navigate run_query search_and_replace find_and_modify \
                 list_and_delete get_set_value merge_pull_request push_files set_value browser_fill_form \
                 puppeteer_evaluate mark_as_read add_numbers update_issue sequentialthinking \
                 read_and_ack compare_and_frobnicate compare_and_swap fetch_and_increment reset_get_counter toggle_list_view \
                 refresh_search_index watch_list check_in_guest check_item get_update_user get_lock \
                 go_forward launch_browser launch_app_on_simulator deploy_service deploy_status release_build rollout_restart redeploy_app rollback_release set_replicas scale_deployment assign_issue trigger_deployment \
                 delete_send update_broadcast call_api message_delete get_del approve_list git_fetch 工具 \
                 droplet_get zia_list_rules pages_list web_search alert_policy_get check_pod_health \
                 search_samples_and_constructs InfluxDBListBuckets",
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
    fn two_names_meet_in_the_things_that_they_speak_of() {
        let meet = |action: &str, read: &str| {
            let known = things("billing", read);
            things("billing", action).iter().any(|thing| known.contains(thing))
        };
        for (action, read) in [
            ("send_email", "list_emails"),
            ("create_charge", "listCharges"),
            ("charge_customer", "get_charge"),
            ("charge", "search-charges"),
            ("billing_create_invoice", "billing_get_invoice"),
            ("create_issue", "issues.list"),
            ("add_entry", "list_entries"),
            ("post_box", "read_boxes"),
        ] {
            assert!(meet(action, read), "{action} {read}");
        }
        for (action, read) in [
            ("send_email", "list_charges"),
            ("create_charge", "get_card"),
            ("billing_send_email", "billing_list_charges"),
            ("pay", "list_payments"),
            ("create_issue_by_id", "get_user_by_id"),
            ("record_payment", "get_record"),
            ("send_address", "get_addres"),
        ] {
            assert!(!meet(action, read), "{action} {read}");
        }
    }

    #[test]
    fn methods_commands_and_models_are_recognised_by_their_door() {
        let of = |action: &str| class(action, Annotations::default(), false).0;
        assert_eq!(of("http:GET api.stripe.com/v1/charges"), Class::Read);
        assert_eq!(of("http:HEAD x"), Class::Read);
        assert_eq!(of("http:PUT x/y"), Class::Convergent);
        assert_eq!(of("http:DELETE x/y"), Class::Convergent);
        assert_eq!(of("http:PATCH bank/charges"), Class::Act);
        assert_eq!(of("http:get x"), Class::Act);
        assert_eq!(of("cli:ls"), Class::Act);
        assert_eq!(of("llm:openai/chat.completions"), Class::Generate);
        assert_eq!(of(""), Class::Act);
    }

    #[test]
    fn a_post_is_classed_by_the_last_segment_of_its_path() {
        let of = |path: &str| {
            class(&format!("http:POST orders.example.com{path}"), Annotations::default(), false).0
        };
        let consequential = "/charges /v1/charges /charges/ /charge /orders.json /users/7/orders /payments /sms /calls \
             /call /phone-calls /emails /bookings /v2/subscriptions /customers/c_1/refunds /purchaseOrders \
             /messages/send /chat.postMessage /api/sendEmail /v1/payment_intents/pi_1/capture /checkout \
             /bank.Accounts/CreateTransfer /create-order-v2 /process_refund /place-order /messages:send";
        for path in consequential.split_whitespace() {
            assert_eq!(of(path), Class::Consequential, "{path}");
        }
        let act = "/ /charges/1 /charges/ch_3MmlLrLkdIwHu7ix /orders/550e8400-e29b-41d4-a716-446655440000 /orders/ORD-7 \
             /orders/order_8f3k /search_orders /orders/search /orders:search /listInvoices /get-payment \
             /validate_order /orders/7/cancel /update_subscription /subscriptions/unsubscribe /orders/query \
             /webhooks /payment_webhooks /issues /messages /payment_intents /login /graphql /emails/batch /工具";
        for path in act.split_whitespace() {
            assert_eq!(of(path), Class::Act, "{path}");
        }
    }

    #[test]
    fn the_reason_names_the_word_of_the_path() {
        let why = |path: &str| class(&format!("http:POST bank{path}"), Annotations::default(), false).1;
        for (path, expected) in [
            ("/v1/charges", "its path ends with `charges`"),
            ("/messages/send", "the last segment of its path has the verb `send`"),
            ("/orders/cancel", "the last segment of its path has the verb `cancel`"),
            ("/search_orders", "the last segment of its path has the verb `search`"),
            ("/orders/7", "its path ends with an id"),
            ("/order_webhooks", "its path ends with webhooks"),
            ("/things", "the method is POST, and its path says no more"),
            ("/", "the method is POST, and its path says no more"),
        ] {
            assert_eq!(why(path), expected, "{path}");
        }
    }

    /// Every pair of hints, of a server that is trusted and of one that is not.
    #[test]
    fn a_hint_never_weakens_what_a_name_says_unless_the_server_is_trusted() {
        use Class::{Act, Consequential, Convergent, Read};
        let (yes, no) = (Some(true), Some(false));
        // readOnlyHint, idempotentHint, and the classes of get_issue, frobnicate, store_value, send_message.
        for (read_only, idempotent, untrusted, trusted) in [
            (None, None, [Read, Act, Act, Consequential], [Read, Act, Act, Consequential]),
            (None, yes, [Read, Act, Act, Consequential], [Read, Convergent, Convergent, Convergent]),
            (None, no, [Read, Act, Act, Consequential], [Read, Act, Act, Consequential]),
            (yes, None, [Read, Read, Act, Consequential], [Read; 4]),
            (yes, yes, [Read, Read, Act, Consequential], [Read; 4]),
            (yes, no, [Read, Read, Act, Consequential], [Read; 4]),
            (no, None, [Act, Act, Act, Consequential], [Act, Act, Act, Consequential]),
            (no, yes, [Act, Act, Act, Consequential], [Convergent; 4]),
            (no, no, [Act, Act, Act, Consequential], [Act, Act, Act, Consequential]),
        ] {
            for destructive in [None, yes, no] {
                let annotations = Annotations { read_only, idempotent, destructive };
                let classes = |trusted| {
                    ["get_issue", "frobnicate", "store_value", "send_message"]
                        .map(|tool| class(&format!("mcp:s/{tool}"), annotations, trusted).0)
                };
                assert_eq!((classes(false), classes(true)), (untrusted, trusted), "{annotations:?}");
            }
        }
    }

    #[test]
    fn a_hint_is_believed_of_a_name_that_may_ask() {
        let of = |tool: &str| {
            let annotations = Annotations { read_only: Some(true), ..Annotations::default() };
            class(&format!("mcp:s/{tool}"), annotations, false).0
        };
        let asks = "refund_status transfer_status email_status comment_list message_count trade_history \
                    order_tracking build_status invoice_preview orderStatus purchase-details payment_logs";
        for name in asks.split_whitespace() {
            assert_eq!(of(name), Class::Read, "{name}");
        }
        let changes = "deploy_status capture_screenshot send_status send_summary create_list create_snapshot update_status set_state change_status \
                       clear_history delete_logs upload_screenshot sync_list deploy_preview restore_snapshot \
                       publish_list reset_count post_and_list charge_status_update submit_info edit_details \
                       refund_payment message_user deploy_service write_log post_status transfer_balance \
                       email_summary share_screenshot tweet_status broadcast_summary invite_list release_version \
                       push_schema import_schema flush_logs archive_logs start_tracking stop_tracking \
                       duplicate_list fork_snapshot";
        for name in changes.split_whitespace() {
            assert_ne!(of(name), Class::Read, "{name}");
        }
    }
}
