//! The tools that a careful person would look with, on the listings of the servers that the packs are written for.

use super::*;
use semel_core::class::Class;
use semel_core::json::{Json, parse};
use semel_core::policy::rule::{Call, server_and_tool};
use semel_core::policy::{ActionFacts, Annotations, Policy, PolicyFile};
use serde_json::{Value, json};

const ASKED: &str = include_str!("../../../../core/tests/fixtures/pack-servers.txt");
const PUBLISHED: &str = include_str!("../../../../core/tests/fixtures/pack-servers-published.txt");

const FILES: &str = "[filesystem] @modelcontextprotocol/server-filesystem";
const OLD_GITHUB: &str = "[github] @modelcontextprotocol/server-github";
const GITHUB: &str = "[github] github/github-mcp-server";
const LINEAR: &str = "[linear] @tacticlaunch/mcp-linear";
const NOTION: &str = "[notion] @notionhq/notion-mcp-server";
const HOSTED_NOTION: &str = "[notion] mcp.notion.com";
const PLAYWRIGHT: &str = "[playwright]";
const RESEND: &str = "[resend]";
const SLACK: &str = "[slack] @modelcontextprotocol/server-slack";
const KOROTOVSKY: &str = "[slack] korotovsky/slack-mcp-server";
const STRIPE: &str = "[stripe] @stripe/mcp";

/// What a server of the fixtures lists, in the fixture's words: name, hints, arguments.
fn listed(server: &str) -> Tools {
    let all = [ASKED, PUBLISHED].concat();
    let lines = all.lines().skip_while(|line| !line.starts_with(server)).skip(1);
    let tools: Vec<Value> = lines
        .take_while(|line| !line.is_empty())
        .map(|line| {
            let mut parts = line.split('\t');
            let (name, hints) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            let arguments: Vec<&str> =
                parts.next().unwrap_or_default().split(' ').filter(|a| !a.is_empty()).collect();
            let required: Vec<&str> = arguments.iter().filter_map(|name| name.strip_suffix('*')).collect();
            let properties = arguments.iter().map(|name| (name.trim_end_matches('*').to_owned(), json!({})));
            let description = if name == "read_file" { "DEPRECATED: use read_text_file" } else { "" };
            let read_only = hints.contains('r').then(|| hints.contains("r+"));
            json!({"name": name, "description": description, "annotations": {"readOnlyHint": read_only},
                "inputSchema": {"properties": Value::Object(properties.collect()), "required": required}})
        })
        .collect();
    assert!(!tools.is_empty(), "{server} is not in the fixtures");
    let mut read = Tools::default();
    read.add_page(&json!({"tools": tools}).to_string());
    read
}

fn named(look_with: LookWith<'_>) -> &str {
    match look_with {
        LookWith::Tool(tool) => tool,
        LookWith::Nothing => "none",
        LookWith::NotKnown => "not known",
    }
}

/// With the arguments that the tool requires, and these.
fn looks_with(server: &str, tool: &str, more: &str, with_pack: bool) -> String {
    let tools = listed(server);
    let pack = server.trim_start_matches('[').split(']').next().unwrap_or_default();
    let text = if with_pack { format!("include = [\"pack:{pack}\"]\n") } else { "version = 1\n".into() };
    let policy = Policy::load(vec![PolicyFile { path: "semel.toml".into(), text }]).expect("a policy");
    let definition = tools.get(tool).unwrap_or_else(|| panic!("{server} has no {tool}"));
    let mut given: Vec<&str> = definition.required.iter().map(String::as_str).collect();
    given.extend(more.split(' ').filter(|name| !name.is_empty()));
    let values: Value =
        given.iter().map(|name| ((*name).to_owned(), json!("1"))).collect::<serde_json::Map<_, _>>().into();
    let arguments = parse(&json!({ "args": values }).to_string()).expect("arguments");
    let nothing = parse(r#"{"args":{}}"#).expect("arguments");
    let rule = |name: &str, arguments: &Json, annotations: Annotations| {
        let action = format!("mcp:{pack}/{name}");
        policy.rule_for(&ActionFacts { annotations, trusted: true, ..ActionFacts::new(&action, arguments) })
    };
    let action = format!("mcp:{pack}/{tool}");
    let own = rule(tool, &arguments, definition.annotations);
    let probe = match own.probe.as_ref().map(|probe| &probe.call) {
        Some(Call::Mcp { tool, .. }) => server_and_tool(tool, &action).map(|(_, tool)| tool),
        _ => None,
    };
    let called = Called { server: pack, tool, given: &given, probe };
    let is_read = |other: &Definition| rule(&other.name, &nothing, other.annotations).class == Class::Read;
    named(to_check(&tools, &called, is_read)).to_owned()
}

/// Server, tool, arguments beside the required ones, and the tool that shows what became of it.
const SEEN_WITH: &[(&str, &str, &str, &str)] = &[
    (FILES, "write_file", "", "read_text_file"),
    (FILES, "edit_file", "", "read_text_file"),
    (FILES, "create_directory", "", "list_directory"),
    (OLD_GITHUB, "create_issue", "", "list_issues"),
    (OLD_GITHUB, "update_issue", "", "get_issue"),
    (OLD_GITHUB, "create_branch", "", "none"),
    // The comments of pull requests are others.
    (OLD_GITHUB, "add_issue_comment", "", "none"),
    (OLD_GITHUB, "create_repository", "", "search_repositories"),
    (OLD_GITHUB, "create_pull_request", "", "list_pull_requests"),
    (OLD_GITHUB, "merge_pull_request", "", "get_pull_request"),
    (OLD_GITHUB, "create_pull_request_review", "", "get_pull_request_reviews"),
    (OLD_GITHUB, "create_or_update_file", "", "get_file_contents"),
    (GITHUB, "create_branch", "", "list_branches"),
    (GITHUB, "issue_write", "title", "list_issues"),
    (GITHUB, "update_issue_title", "", "issue_read"),
    (GITHUB, "create_gist", "", "list_gists"),
    (GITHUB, "update_gist", "", "get_gist"),
    (GITHUB, "star_repository", "", "list_starred_repositories"),
    (GITHUB, "merge_pull_request", "", "pull_request_read"),
    (LINEAR, "linear_createIssue", "", "linear_getIssues"),
    (LINEAR, "linear_createComment", "issueId", "linear_getComments"),
    (LINEAR, "linear_createProjectUpdate", "", "linear_getProjectUpdates"),
    (LINEAR, "linear_assignIssue", "", "linear_getIssueById"),
    (LINEAR, "linear_setIssuePriority", "", "linear_getIssueById"),
    (LINEAR, "linear_addIssueLabel", "", "linear_getIssueById"),
    (LINEAR, "linear_addIssueToCycle", "", "linear_getCycleIssues"),
    (LINEAR, "linear_removeIssueFromProject", "", "linear_getProjectIssues"),
    (LINEAR, "linear_addProjectMember", "", "linear_getProjectMembers"),
    (LINEAR, "linear_addUserToTeam", "", "linear_getTeamMemberships"),
    (LINEAR, "linear_createTeamLabel", "", "linear_getTeamLabels"),
    (LINEAR, "linear_createIssueFromTemplate", "", "linear_getIssues"),
    (LINEAR, "linear_createIssueRelation", "", "none"),
    (LINEAR, "linear_duplicateIssue", "", "linear_getIssues"),
    (LINEAR, "linear_createCustomerNeed", "", "linear_getCustomerNeeds"),
    (LINEAR, "linear_archiveProject", "", "linear_getProjectById"),
    (NOTION, "API-create-a-comment", "", "API-retrieve-a-comment"),
    (NOTION, "API-patch-page", "", "API-retrieve-a-page"),
    (NOTION, "API-update-page-markdown", "", "API-retrieve-page-markdown"),
    (NOTION, "API-patch-block-children", "", "API-get-block-children"),
    (NOTION, "API-delete-a-block", "", "API-retrieve-a-block"),
    (NOTION, "API-post-page", "", "none"),
    (HOSTED_NOTION, "notion-create-comment", "", "notion-get-comments"),
    (PLAYWRIGHT, "browser_click", "", "none"),
    (PLAYWRIGHT, "browser_type", "", "none"),
    (RESEND, "create-contact", "", "list-contacts"),
    (RESEND, "create-contact-import", "", "list-contact-imports"),
    (RESEND, "create-segment", "", "list-segments"),
    (RESEND, "add-contact-to-segment", "email", "list-contact-segments"),
    (RESEND, "create-automation", "", "get-automation"),
    (RESEND, "send-email", "", "list-emails"),
    (RESEND, "send-batch-emails", "", "list-emails"),
    (RESEND, "cancel-email", "", "get-email"),
    (RESEND, "create-api-key", "", "list-api-keys"),
    (RESEND, "add-suppression", "", "list-suppressions"),
    (RESEND, "verify-domain", "", "get-domain"),
    (RESEND, "update-contact-topics", "email", "list-contact-topics"),
    (SLACK, "slack_post_message", "", "slack_get_channel_history"),
    (SLACK, "slack_reply_to_thread", "", "slack_get_thread_replies"),
    (SLACK, "slack_add_reaction", "", "none"),
    (KOROTOVSKY, "conversations_add_message", "", "conversations_search_messages"),
    (KOROTOVSKY, "usergroups_create", "", "usergroups_list"),
    (STRIPE, "create_refund", "", "none"),
    (STRIPE, "create_payment_link", "", "none"),
    (STRIPE, "create_invoice", "", "list_invoices"),
    (STRIPE, "create_customer", "", "list_customers"),
    (STRIPE, "create_product", "", "list_products"),
    (STRIPE, "cancel_subscription", "", "list_subscriptions"),
    (STRIPE, "update_dispute", "", "list_disputes"),
];

#[test]
fn on_real_listings_a_careful_person_would_look_with_the_same_tool() {
    let wrong: Vec<String> = (SEEN_WITH.iter())
        .map(|(server, tool, more, expected)| (server, tool, expected, looks_with(server, tool, more, false)))
        .filter(|(.., expected, found)| *expected != found)
        .map(|(server, tool, expected, found)| format!("{server} {tool}: {found}, not {expected}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_the_rule_itself_asks_comes_first() {
    for (server, tool, expected) in [
        (SLACK, "slack_post_message", "slack_get_channel_history"),
        (SLACK, "slack_reply_to_thread", "slack_get_thread_replies"),
        (LINEAR, "linear_createIssue", "linear_searchIssues"),
        (RESEND, "send-broadcast", "get-broadcast"),
        (GITHUB, "add_issue_comment", "issue_read"),
    ] {
        assert_eq!(looks_with(server, tool, "teamId title", true), expected, "{tool}");
    }
    // A probe that the server does not list cannot be looked with.
    assert_eq!(looks_with(OLD_GITHUB, "create_branch", "", true), "none");
}

#[test]
fn made_up_listings_are_read_the_same_way() {
    for (names, expected) in [
        ("create_issue list_issues get_issue search_code", "list_issues"),
        ("add_issue_comment create_issue get_me list_issues get_issue_comments", "get_issue_comments"),
        ("send_message list_channels get_channel_history", "get_channel_history"),
        ("createTicket searchTickets", "searchTickets"),
        ("payments.charge payments.list", "payments.list"),
        ("issue_create issue_list issue_get", "issue_list"),
        ("charge listCharges getBalance", "listCharges"),
        ("charge fetch_payments", "none"),
        ("charge get_status", "none"),
        ("book_flight list_bookings search_flights", "list_bookings"),
        ("book_flight search_flights", "search_flights"),
        ("send_email list_email_templates list_emails", "list_emails"),
        ("send_mail list_folders", "none"),
        ("post_tweet get_timeline get_user_tweets", "get_user_tweets"),
        ("refund_payment list_payments list_refunds", "list_refunds"),
        ("upload_image read_image read_file", "read_image"),
        ("charge", "none"),
        ("charge list<charges>", "none"),
    ] {
        let listed: Vec<Value> = names.split(' ').map(|name| json!({"name": name})).collect();
        let mut tools = Tools::default();
        tools.add_page(&json!({"tools": listed}).to_string());
        let called = names.split(' ').next().unwrap_or_default();
        let called = Called { server: "x", tool: called, given: &[], probe: None };
        let reads = ["get", "list", "search", "read", "fetch", "issue_", "payments."];
        let is_read = |tool: &Definition| reads.iter().any(|verb| tool.name.starts_with(verb));
        assert_eq!(named(to_check(&tools, &called, is_read)), expected, "{names}");
    }
}

#[test]
fn of_a_server_that_lists_nothing_nothing_is_said() {
    let called = Called { server: "x", tool: "charge", given: &[], probe: Some("list_charges") };
    assert_eq!(to_check(&Tools::default(), &called, |_| true), LookWith::NotKnown);
}

#[test]
fn nobody_is_told_to_look_with_what_needs_an_id_that_is_not_known() {
    let tool = |name: &str, arguments: &[&str], required: bool| {
        let properties = serde_json::Map::from_iter(arguments.iter().map(|name| ((*name).into(), json!({}))));
        let required = if required { arguments } else { &[] };
        json!({"name": name, "inputSchema": {"properties": properties, "required": required}})
    };
    let of = |listed: &[Value], tool: &str, given: &[&str]| {
        let mut tools = Tools::default();
        tools.add_page(&json!({"tools": listed}).to_string());
        let called = Called { server: "x", tool, given, probe: None };
        find(&tools, &called, |tool| !tool.name.starts_with('c')).map(str::to_owned)
    };
    for required in [true, false] {
        let get = tool("get_ticket", &["id"], required);
        let all = [get.clone(), tool("list_tickets", &[], true), tool("create_ticket", &["title"], true)];
        assert_eq!(of(&all, "create_ticket", &["title"]).as_deref(), Some("list_tickets"));
        for id in ["id", "ticketId", "ticket_id"] {
            assert_eq!(of(&all, "close_ticket", &[id]).as_deref(), Some("get_ticket"), "{id}");
        }
        let alone = of(&[get], "create_ticket", &["title", "customer_id"]);
        assert_eq!(alone.is_none(), required, "one that does not say what it needs may still serve");
    }
    let search = [tool("get_ticket", &["id"], true), tool("search_tickets", &["query"], true)];
    assert_eq!(of(&search, "create_ticket", &["title"]).as_deref(), Some("search_tickets"));
}
