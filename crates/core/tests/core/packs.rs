//! Every pack, held against what the real servers say of their tools: names, arguments, required ones and hints.
//! `cargo xtask packs` asks the servers again.

use semel_core::class::{Class, Tier};
use semel_core::json::{Json, Path, PathStep, parse};
use semel_core::policy::diagnostic::Severity;
use semel_core::policy::rule::{Inject, InjectInto, Rule, RuleCall, RuleOrigin, Rulings};
use semel_core::policy::{ActionFacts, Annotations, Policy, PolicyFile};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

const ASKED: &str = include_str!("../fixtures/pack-servers.txt");
const PUBLISHED: &str = include_str!("../fixtures/pack-servers-published.txt");

struct Tool {
    pack: String,
    server: String,
    name: String,
    annotations: Annotations,
    /// `None` where nobody published them.
    arguments: Option<Vec<Argument>>,
}

struct Argument {
    name: String,
    required: bool,
}

fn tools() -> Vec<Tool> {
    let mut tools = Vec::new();
    let (mut pack, mut server) = (String::new(), String::new());
    for line in ASKED.lines().chain(PUBLISHED.lines()) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some((name, rest)) = line.strip_prefix('[').and_then(|line| line.split_once("] ")) {
            (pack, server) = (name.to_owned(), rest.to_owned());
            continue;
        }
        let mut columns = line.split('\t');
        let (name, hints) = (columns.next().expect("a name"), columns.next().expect("hints"));
        let hint = |letter: char| {
            let at = hints.find(letter)?;
            Some(hints[at + 1..].starts_with('+'))
        };
        let arguments = match columns.next().unwrap_or_default() {
            "?" => None,
            arguments => Some(
                arguments
                    .split_whitespace()
                    .map(|argument| Argument {
                        name: argument.trim_end_matches('*').to_owned(),
                        required: argument.ends_with('*'),
                    })
                    .collect(),
            ),
        };
        tools.push(Tool {
            pack: pack.clone(),
            server: server.clone(),
            name: name.to_owned(),
            annotations: Annotations { read_only: hint('r'), idempotent: hint('i'), destructive: hint('d') },
            arguments,
        });
    }
    tools
}

/// Calls that rules with a condition tell apart. Every tool is also called without arguments.
const CALLS: &[(&str, &str)] = &[
    ("issue_write", r#"{"method": "create", "owner": "o", "repo": "r", "title": "t"}"#),
    ("issue_write", r#"{"method": "update", "issue_number": 1}"#),
    ("label_write", r#"{"method": "create"}"#),
    ("label_write", r#"{"method": "delete"}"#),
    ("projects_write", r#"{"method": "create_project"}"#),
    ("projects_write", r#"{"method": "update_project_item"}"#),
    ("manage-events", r#"{"action": "list"}"#),
    ("manage-events", r#"{"action": "create"}"#),
    ("send-email", r#"{"to": ["a@b.c"], "subject": "Re: hello"}"#),
    ("send-email", r#"{"to": ["a@b.c"], "subject": "Hello"}"#),
    ("save_issue", r#"{"id": "LIN-1", "title": "x"}"#),
    ("save_issue", r#"{"team": "t", "title": "x"}"#),
    ("linear_createIssue", r#"{"teamId": "t", "title": "x"}"#),
    ("linear_create_issue", r#"{"teamId": "t", "title": "x"}"#),
    ("linear_createIssue", r#"{"teamId": "t", "parentId": "p", "title": "x"}"#),
    ("linear_create_issue", r#"{"teamId": "t", "parentId": "p", "title": "x"}"#),
    ("API-post-page", r#"{"parent": {"page_id": "p"}, "properties": {}}"#),
    ("API-post-page", r#"{"parent": {"data_source_id": "d"}, "properties": {}}"#),
    ("edit_file", r#"{"dryRun": true}"#),
    ("edit_file", r#"{"dryRun": false}"#),
    ("browser_tabs", r#"{"action": "list"}"#),
    ("browser_tabs", r#"{"action": "close"}"#),
    ("browser_type", r#"{"target": "e1", "text": "x"}"#),
    ("browser_type", r#"{"target": "e1", "text": "x", "submit": true}"#),
    ("browser_type", r#"{"target": "e1", "text": "x", "slowly": true}"#),
    ("usergroups_me", r#"{"action": "list"}"#),
    ("usergroups_me", r#"{"action": "join", "usergroup_id": "S1"}"#),
    ("execute_sql", r#"{"sql": "SELECT 1"}"#),
    ("execute_sql", r#"{"sql": "DELETE FROM t"}"#),
    ("execute_sql", r#"{"sql": "DELETE FROM t; COMMIT"}"#),
    ("explain_query", r#"{"sql": "SELECT 1", "analyze": false}"#),
    ("explain_query", r#"{"sql": "SELECT 1", "analyze": true}"#),
    ("query", r#"{"sql": "SELECT 1"}"#),
    ("query", r#"{"sql": "DELETE FROM t"}"#),
];

fn policy(pack: &str) -> &'static Policy {
    static POLICIES: LazyLock<BTreeMap<String, Policy>> = LazyLock::new(|| {
        let packs: BTreeSet<String> = tools().into_iter().map(|tool| tool.pack).collect();
        packs.into_iter().map(|pack| (pack.clone(), load(&pack))).collect()
    });
    &POLICIES[pack]
}

fn load(pack: &str) -> Policy {
    let text = format!("include = [\"pack:{pack}\"]\n");
    Policy::load(vec![PolicyFile { path: "semel.toml".into(), text }])
        .unwrap_or_else(|found| panic!("{found}"))
}

fn rule(policy: &Policy, action: &str, arguments: &str) -> Rule {
    let arguments = parse(&format!("{{\"args\": {arguments}}}")).expect(arguments);
    Arc::unwrap_or_clone(policy.rule_for(&ActionFacts::new(action, &arguments)))
}

/// Every rule that some call of the tool gets, with that call.
fn rules(policy: &Policy, tool: &Tool) -> Vec<(&'static str, Rule)> {
    let calls = CALLS.iter().filter(|(name, _)| *name == tool.name).map(|(_, call)| *call);
    let action = format!("mcp:{}/{}", tool.pack, tool.name);
    calls.chain(["{}"]).map(|call| (call, rule(policy, &action, call))).collect()
}

/// The argument that a path begins in: `text` of `args.text`.
fn argument(path: &Path) -> Option<&str> {
    match path.steps() {
        [PathStep::Member(root), PathStep::Member(name), ..] if root == "args" => Some(name),
        _ => None,
    }
}

/// What any of the servers of a pack takes as arguments of a tool. `None` if one of them does not publish its own.
fn taken(tools: &[Tool], pack: &str, name: &str) -> Option<BTreeSet<String>> {
    let mut taken = BTreeSet::new();
    for tool in tools.iter().filter(|tool| tool.pack == pack && tool.name == name) {
        taken.extend(tool.arguments.as_ref()?.iter().map(|argument| argument.name.clone()));
    }
    Some(taken)
}

#[test]
fn every_path_of_a_rule_is_an_argument_of_the_tool_that_it_matches() {
    let tools = tools();
    let mut checked = 0;
    for tool in &tools {
        let Some(taken) = taken(&tools, &tool.pack, &tool.name) else { continue };
        for (call, rule) in rules(policy(&tool.pack), tool) {
            let sorting = &rule.sorting;
            // A rule for several tools may list content that only one of them has; a key has to be there.
            for path in &sorting.key {
                let name = argument(path).unwrap_or_else(|| panic!("{path} is no argument"));
                assert!(taken.contains(name), "{}/{} {call}: {path}", tool.pack, tool.name);
                checked += 1;
            }
            if let Some(Inject { into: InjectInto::Arg(name), valid_for, .. }) = &rule.inject {
                assert!(taken.contains(name), "{}/{}: the key goes into {name}", tool.pack, tool.name);
                assert!(valid_for.is_some(), "{}/{}: a key is honoured for a time", tool.pack, tool.name);
            }
        }
    }
    assert!(checked >= 40, "{checked}");
    for pack in tools.iter().map(|tool| &tool.pack).collect::<BTreeSet<_>>() {
        let all: BTreeSet<String> = tools
            .iter()
            .filter(|tool| tool.pack == *pack)
            .flat_map(|tool| tool.arguments.iter().flatten().map(|argument| argument.name.clone()))
            .collect();
        let hosted = tools.iter().any(|tool| tool.pack == *pack && tool.arguments.is_none());
        for tool in tools.iter().filter(|tool| tool.pack == *pack) {
            for (_, rule) in rules(policy(pack), tool) {
                let sorting = &rule.sorting;
                for path in sorting.content.iter().chain(&sorting.volatile) {
                    let name = argument(path).unwrap_or_else(|| panic!("{path} is no argument"));
                    assert!(all.contains(name) || hosted, "{pack}/{}: no tool takes {path}", tool.name);
                }
            }
        }
    }
}

#[test]
fn every_probe_asks_a_read_of_the_same_server_with_arguments_that_it_takes() {
    let tools = tools();
    let mut probes = BTreeSet::new();
    for tool in &tools {
        for (call, rule) in rules(policy(&tool.pack), tool) {
            let Some(probe) = rule.probe else { continue };
            let RuleCall::Mcp { tool: asked, args } = &probe.call else {
                panic!("{}: a probe by MCP", tool.name)
            };
            let asked = asked.strip_prefix("./").unwrap_or_else(|| panic!("{asked} is of another server"));
            let label = format!("{}/{} {call} asks {asked}", tool.pack, tool.name);
            probes.insert((tool.pack.clone(), tool.name.clone()));

            let askable: Vec<&Tool> =
                tools.iter().filter(|other| other.pack == tool.pack && other.name == asked).collect();
            assert!(!askable.is_empty(), "{label}: there is no such tool");
            let given: BTreeSet<&str> = args.iter().map(|(name, _)| name.as_str()).collect();
            let known = taken(&tools, &tool.pack, asked).unwrap_or_default();
            for other in &askable {
                for argument in other.arguments.iter().flatten().filter(|argument| argument.required) {
                    assert!(given.contains(argument.name.as_str()), "{label}: {} is required", argument.name);
                }
            }
            if !known.is_empty() {
                let unknown: Vec<_> = given.iter().filter(|name| !known.contains(**name)).collect();
                assert!(unknown.is_empty(), "{label}: {unknown:?}");
            }
            if let Some(taken) = taken(&tools, &tool.pack, &tool.name) {
                for place in args.iter().flat_map(|(_, template)| template.places()) {
                    let name = argument(place).unwrap_or_else(|| panic!("{label}: {place}"));
                    assert!(taken.contains(name), "{label}: {place}");
                }
            }
            let class = rules(policy(&tool.pack), askable[0]).pop().map(|(_, rule)| rule.class);
            assert_eq!(class, Some(Class::Read), "{label}: a question is a read");
        }
    }
    let count = |pack: &str| probes.iter().filter(|(of, _)| of == pack).count();
    let counts = ["github", "slack", "stripe", "notion", "filesystem", "linear", "resend"].map(count);
    assert_eq!(counts, [6, 2, 6, 2, 4, 5, 1], "{probes:?}");
}

/// Changes about which a pack says nothing on purpose, with the reason.
const LEFT_TO_THE_NAME: &[(&str, &str, &str)] = &[
    ("resend", "connect-to-editor", "a session of the editor; nothing leaves"),
    ("resend", "disconnect-from-editor", "a session of the editor; nothing leaves"),
    ("linear", "linear_auth_callback", "signing in"),
    ("linear", "linear_logoutAllSessions", "administration"),
    ("linear", "linear_logoutOtherSessions", "administration"),
    ("linear", "linear_logoutSession", "administration"),
    ("linear", "linear_rotateManagedOAuthApplicationSecret", "administration"),
    ("linear", "linear_rotateManagedOAuthApplicationWebhookSecret", "administration"),
    ("linear", "linear_rotateWebhookSecret", "administration"),
    ("linear", "linear_addAttachment", "Linear keeps one attachment for an address"),
    ("linear", "linear_generateOAuthApplicationSetup", "prints a text"),
    ("linear", "linear_generateOAuthAuthorizationUrl", "prints a text"),
];

#[test]
fn every_change_is_covered_by_its_pack_or_left_to_its_name_on_purpose() {
    let tools = tools();
    let (mut left, mut forgotten) = (BTreeSet::new(), Vec::new());
    for tool in &tools {
        for (call, rule) in rules(policy(&tool.pack), tool) {
            if rule.class != Class::Read && rule.origin == RuleOrigin::Default {
                let known = LEFT_TO_THE_NAME
                    .iter()
                    .any(|(pack, name, _)| (*pack, *name) == (tool.pack.as_str(), tool.name.as_str()));
                if !known {
                    forgotten.push(format!("{}/{} {call}", tool.pack, tool.name));
                }
                left.insert(tool.name.as_str());
            }
        }
    }
    assert!(forgotten.is_empty(), "no rule in their packs: {forgotten:#?}");
    for (pack, name, _) in LEFT_TO_THE_NAME {
        assert!(left.contains(name), "{pack}/{name} need not be listed");
    }
}

/// Calls that a pack takes for reads although the tool says that it may change something.
const HARMLESS_CALLS: &[(&str, &str)] = &[
    ("edit_file", r#"{"dryRun": true}"#),
    ("browser_tabs", r#"{"action": "list"}"#),
    ("usergroups_me", r#"{"action": "list"}"#),
];

#[test]
fn no_pack_takes_for_a_read_what_its_server_says_may_change_something() {
    let tools = tools();
    let mut said = 0;
    for tool in tools.iter().filter(|tool| tool.annotations.read_only == Some(false)) {
        said += 1;
        for (call, rule) in rules(policy(&tool.pack), tool) {
            let harmless = HARMLESS_CALLS.contains(&(tool.name.as_str(), call));
            assert_eq!(rule.class == Class::Read, harmless, "{} {}: {call}", tool.server, tool.name);
        }
    }
    assert!(said >= 200, "{said}");
}

/// What a server calls read-only and we do not: recordings and files begin, end and stay. The last has a verb in its
/// name that a server which is not trusted cannot talk away.
const NOT_READS_TO_US: &[&str] = &[
    "browser_pdf_save",
    "browser_start_recording",
    "browser_start_tracing",
    "browser_start_video",
    "browser_stop_recording",
    "browser_stop_tracing",
    "browser_stop_video",
    "browser_video_chapter",
    "browser_video_hide_actions",
    "browser_video_show_actions",
    "linear_generateOAuthApplicationSetup",
];

#[test]
fn what_a_server_says_only_looks_passes_through_but_for_what_is_listed() {
    let mut others = BTreeSet::new();
    for tool in tools().iter().filter(|tool| tool.annotations.read_only == Some(true)) {
        let action = format!("mcp:{}/{}", tool.pack, tool.name);
        let arguments = parse(r#"{"args": {}}"#).expect("arguments");
        let facts = ActionFacts { annotations: tool.annotations, ..ActionFacts::new(&action, &arguments) };
        if policy(&tool.pack).rule_for(&facts).class != Class::Read {
            others.insert(tool.name.clone());
        }
    }
    assert_eq!(others.iter().map(String::as_str).collect::<Vec<_>>(), NOT_READS_TO_US);
}

#[test]
fn servers_are_known_under_the_names_that_people_give_them() {
    for (pack, actions) in [
        (
            "github",
            "mcp:github/create_issue mcp:gh/create_issue mcp:GitHub/create_issue mcp:github-work/create_issue mcp:plugin_github_github/create_issue",
        ),
        (
            "slack",
            "mcp:slack/slack_post_message mcp:Slack/slack_post_message mcp:acme-slack/slack_post_message",
        ),
        ("stripe", "mcp:stripe/create_refund mcp:stripe-live/create_refund"),
        ("resend", "mcp:resend/send-email mcp:resend-mcp/send-email"),
        ("linear", "mcp:linear/create_issue mcp:claude_ai_Linear/create_issue"),
        ("notion", "mcp:notion/API-post-page mcp:notionApi/API-post-page mcp:notion/notion-create-pages"),
        ("filesystem", "mcp:filesystem/write_file mcp:fs/write_file mcp:files/write_file"),
        ("playwright", "mcp:playwright/browser_click mcp:browser/browser_click"),
        ("postgres", "mcp:postgres/query mcp:pg/query mcp:postgresql/query"),
    ] {
        let policy = policy(pack);
        for action in actions.split(' ') {
            let origin = rule(policy, action, "{}").origin;
            assert!(matches!(&origin, RuleOrigin::Pack { name, .. } if name == pack), "{action}: {origin}");
            let other = action.replacen(action.split(['/', ':']).nth(1).unwrap_or_default(), "weather", 1);
            assert_eq!(rule(policy, &other, "{}").origin, RuleOrigin::Default, "{other}");
        }
    }
}

#[test]
fn money_is_repeated_by_a_person_alone_and_its_errors_are_ambiguous() {
    use semel_core::policy::rule::{Again, Failure};
    let stripe = policy("stripe");
    for tool in [
        "create_refund",
        "create_invoice",
        "create_invoice_item",
        "create_payment_link",
        "finalize_invoice",
        "cancel_subscription",
        "update_subscription",
        "update_dispute",
        "stripe_api_write",
    ] {
        let rule = rule(stripe, &format!("mcp:stripe/{tool}"), "{}");
        assert_eq!(
            (rule.class, rule.again, rule.failure),
            (Class::Consequential, Again::Person, Failure::InDoubt),
            "{tool}"
        );
    }
    let broadcast = rule(policy("resend"), "mcp:resend/send-broadcast", "{}");
    assert_eq!((broadcast.again, broadcast.failure), (Again::Person, Failure::InDoubt));
}

/// What the probe of an action answers to a reply of the asked tool: yes, no, or that it cannot say.
fn answer(action: &str, args: &str, resp: &str) -> Option<bool> {
    let pack = action.split([':', '/']).nth(1).expect("a server");
    let probe = rule(policy(pack), action, args).probe.expect("a probe");
    let (args, resp) = (parse(args).expect(args), parse(resp).expect(resp));
    let attempt =
        parse(r#"{"started": "2026-05-04T10:00:30.250Z", "started_unix": 1777888830}"#).expect("facts");
    let variables = [("args", &args), ("resp", &resp), ("attempt", &attempt)];
    let found = probe.found.expect("an expression").eval_bool(&variables).ok();
    if found == Some(true) {
        let reply = probe.reply.expect("a reply").eval(&variables);
        assert!(reply.is_ok(), "a yes has a reply: {reply:?}");
    }
    found
}

/// `count` entries made before the attempt.
fn older(count: usize, entry: &str) -> String {
    vec![entry; count].join(",")
}

#[test]
fn a_probe_for_an_issue_says_no_only_of_a_list_that_reaches_back_far_enough() {
    let args = r#"{"owner": "o", "repo": "r", "title": "It is broken", "method": "create"}"#;
    for action in ["mcp:github/create_issue", "mcp:github/issue_write"] {
        let ask = |issues: &str| answer(action, args, &format!("{{\"issues\": [{issues}]}}"));
        let other = r#"{"title": "Other", "created_at": "2026-05-04T09:00:00Z"}"#;
        let newer = r#"{"title": "Other", "created_at": "2026-05-04T11:00:00Z"}"#;
        assert_eq!(ask(r#"{"title": "It is broken", "created_at": "2026-05-04T10:00:31Z"}"#), Some(true));
        assert_eq!(ask(r#"{"title": "It is broken", "created_at": "2026-05-04T10:00:30Z"}"#), Some(true));
        assert_eq!(
            ask(r#"{"title": "It is broken", "created_at": "2026-05-01T10:00:00Z"}"#),
            None,
            "not ours, or ours by another clock"
        );
        assert_eq!(ask(""), Some(false));
        assert_eq!(ask(other), Some(false));
        assert_eq!(ask(&older(100, other)), Some(false));
        assert_eq!(ask(&older(100, newer)), None, "a full page that ends before the attempt began");
        assert_eq!(answer(action, args, r#"{"text": "rate limit"}"#), None);
        assert_eq!(answer(action, args, "[]"), None);
    }
    for odd in ["It's broken", "a <b>", "caf\u{e9}", " x", "x ", "a & b", "a  b"] {
        let args = Json::object([("title", Json::str(odd))]).canonical();
        assert_eq!(
            answer("mcp:github/create_issue", &args, r#"{"issues": []}"#),
            None,
            "{odd:?} may be written otherwise"
        );
    }
}

#[test]
fn a_probe_for_a_pull_request_knows_it_by_its_branches() {
    let ask = |head: &str, pulls: &str| {
        let args =
            format!(r#"{{"owner": "o", "repo": "r", "head": "{head}", "base": "main", "title": "Fix it"}}"#);
        answer("mcp:github/create_pull_request", &args, &format!("[{pulls}]"))
    };
    let ours = r#"{"title": "Fix it", "head": {"ref": "fix"}, "created_at": "2026-05-04T10:00:31Z"}"#;
    let older_one = r#"{"title": "Fix it", "head": {"ref": "fix"}, "created_at": "2026-05-04T09:00:31Z"}"#;
    let other = r#"{"title": "Fix it", "head": {"ref": "docs"}, "created_at": "2026-05-04T10:00:31Z"}"#;
    assert_eq!(ask("fix", ours), Some(true));
    assert_eq!(ask("me:fix", ours), Some(true));
    assert_eq!(ask("fix", older_one), None);
    let of_another_fork =
        r#"{"title": "Typo", "head": {"ref": "fix"}, "created_at": "2026-05-04T10:00:31Z"}"#;
    assert_eq!(ask("fix", of_another_fork), None);
    assert_eq!(ask("fix", other), Some(false));
    assert_eq!(ask("fix", &older(100, other)), None, "a full page of newer ones");
}

#[test]
fn the_other_probes_of_github_answer_what_they_can_know() {
    let branch = |resp: &str| {
        answer("mcp:github/create_branch", r#"{"owner": "o", "repo": "r", "branch": "b"}"#, resp)
    };
    assert_eq!(branch(r#"[{"name": "main"}]"#), Some(false));
    assert_eq!(branch(r#"[{"name": "b"}]"#), None, "it may have been there before");
    assert_eq!(branch(&format!("[{}]", older(100, r#"{"name": "x"}"#))), None);

    let args = r#"{"owner": "o", "repo": "r", "issue_number": 1, "body": "Done in 1.2"}"#;
    let comment = |resp: &str| answer("mcp:github/add_issue_comment", args, resp);
    assert_eq!(comment(r#"[{"body": "Done in 1.2", "created_at": "2026-05-04T10:00:31Z"}]"#), Some(true));
    assert_eq!(comment(r#"[{"body": "Done in 1.2", "created_at": "2026-05-03T10:00:31Z"}]"#), None);
    assert_eq!(comment("[]"), Some(false));
    assert_eq!(
        comment(&format!("[{}]", older(100, r#"{"body": "+1", "created_at": "2026-05-03T10:00:31Z"}"#))),
        None
    );
    let quoted = r#"{"owner": "o", "repo": "r", "issue_number": 1, "body": "It's done"}"#;
    assert_eq!(answer("mcp:github/add_issue_comment", quoted, "[]"), None);

    let merge = |resp: &str| {
        answer("mcp:github/merge_pull_request", r#"{"owner": "o", "repo": "r", "pullNumber": 7}"#, resp)
    };
    assert_eq!(merge(r#"{"number": 7, "merged": true}"#), Some(true));
    assert_eq!(merge(r#"{"number": 7, "merged": false}"#), Some(false));
    assert_eq!(merge(r#"{"text": "not found"}"#), None);
}

#[test]
fn a_probe_for_a_message_says_no_only_if_no_bot_posted_since() {
    let args = r#"{"channel_id": "C1", "text": "deployed 1.2", "thread_ts": "1777880000.000100"}"#;
    for action in ["mcp:slack/slack_post_message", "mcp:slack/slack_reply_to_thread"] {
        let ask = |more: bool, messages: &str| {
            answer(
                action,
                args,
                &format!("{{\"ok\": true, \"has_more\": {more}, \"messages\": [{messages}]}}"),
            )
        };
        let ours = r#"{"text": "deployed 1.2", "ts": "1777888831.000200", "bot_id": "B1"}"#;
        let earlier = r#"{"text": "deployed 1.2", "ts": "1777888000.000200", "bot_id": "B1"}"#;
        let written_otherwise =
            r#"{"text": "deployed &lt;1.2&gt;", "ts": "1777888831.000200", "bot_id": "B1"}"#;
        let slow_clock = r#"{"text": "deployed 1.2", "ts": "1777888810.000200", "bot_id": "B1"}"#;
        let person = r#"{"text": "thanks", "ts": "1777888831.000200", "user": "U1"}"#;
        assert_eq!(ask(false, ours), Some(true));
        assert_eq!(ask(true, ours), Some(true));
        assert_eq!(ask(false, earlier), Some(false));
        assert_eq!(ask(false, person), Some(false));
        assert_eq!(ask(false, written_otherwise), None);
        assert_eq!(ask(false, slow_clock), None);
        assert_eq!(ask(true, person), None, "more than one page, and this one does not reach back");
        assert_eq!(answer(action, args, r#"{"ok": false, "error": "ratelimited"}"#), None);
    }
}

#[test]
fn the_probes_of_stripe_allow_for_clocks_that_differ() {
    let invoice = |resp: &str| answer("mcp:stripe/create_invoice", r#"{"customer": "cus_1"}"#, resp);
    assert_eq!(
        invoice(r#"[{"id": "in_1", "created": 1777888831, "status": "draft", "billing_reason": "manual"}]"#),
        Some(true)
    );
    assert_eq!(
        invoice(r#"[{"id": "in_1", "created": 1777888700, "status": "draft"}]"#),
        None,
        "within five minutes"
    );
    assert_eq!(invoice(r#"[{"id": "in_1", "created": 1777800000, "status": "draft"}]"#), Some(false));
    let renewal = r#"[{"id": "in_1", "created": 1777888831, "status": "draft", "billing_reason": "subscription_cycle"}]"#;
    assert_eq!(invoice(renewal), None, "made by a subscription");
    assert_eq!(invoice("[]"), Some(false));
    assert_eq!(invoice(&format!("[{}]", older(100, r#"{"created": 1777889000, "status": "paid"}"#))), None);
    assert_eq!(invoice(r#"{"text": "Failed to list invoices"}"#), None);

    let cancel = |resp: &str| answer("mcp:stripe/cancel_subscription", r#"{"subscription": "sub_1"}"#, resp);
    assert_eq!(cancel(r#"[{"id": "sub_1", "status": "canceled"}]"#), Some(true));
    assert_eq!(cancel(r#"[{"id": "sub_1", "status": "active"}]"#), Some(false));
    assert_eq!(cancel(r#"[{"id": "sub_2", "status": "canceled"}]"#), None, "it may be on another page");

    let finalize = |resp: &str| answer("mcp:stripe/finalize_invoice", r#"{"invoice": "in_1"}"#, resp);
    assert_eq!(finalize(r#"[{"id": "in_1", "status": "open"}]"#), Some(true));
    assert_eq!(finalize(r#"[{"id": "in_1", "status": "draft"}]"#), Some(false));
    assert_eq!(finalize(r#"[{"id": "in_2", "status": "open"}]"#), None, "it may be on another page");
    assert_eq!(finalize(r#"{"text": "Failed to list invoices"}"#), None);

    let coupon = |resp: &str| answer("mcp:stripe/create_coupon", r#"{"name": "May", "amount_off": 5}"#, resp);
    assert_eq!(coupon(r#"[{"id": "co_1", "name": "June", "amount_off": 5}]"#), Some(false));
    assert_eq!(coupon(r#"[{"id": "co_1", "name": "May", "amount_off": 5}]"#), None, "it may be an older one");
    assert_eq!(coupon(&format!("[{}]", older(100, r#"{"id": "co_1", "name": "June"}"#))), None);
    assert_eq!(coupon(r#"{"text": "Failed to list coupons"}"#), None);

    let product = |resp: &str| answer("mcp:stripe/create_product", r#"{"name": "Tea"}"#, resp);
    assert_eq!(product(r#"[{"name": "Tea", "created": 1777888831}]"#), Some(true));
    assert_eq!(product(r#"[{"name": "Tea", "created": 1700000000}]"#), Some(false));
    assert_eq!(product(r#"[{"name": "Cup", "created": 1777888831}]"#), None);
    let price = r#"{"product": "p", "unit_amount": 500, "currency": "eur"}"#;
    assert_eq!(
        answer(
            "mcp:stripe/create_price",
            price,
            r#"[{"unit_amount": 500, "currency": "eur", "created": 1777888831}]"#
        ),
        Some(true)
    );
    assert_eq!(answer("mcp:stripe/create_price", price, "[]"), Some(false));
}

#[test]
fn the_probes_of_notion_say_no_of_what_is_not_there_at_all() {
    let page = r#"{"parent": {"page_id": "p"}, "properties": {"title": [{"text": {"content": "Notes"}}]}}"#;
    let ask = |resp: &str| answer("mcp:notion/API-post-page", page, resp);
    let child = |title: &str, time: &str, more: bool| {
        format!(
            r#"{{"has_more": {more}, "results": [{{"type": "paragraph"}}, {{"type": "child_page", "child_page": {{"title": "{title}"}}, "created_time": "{time}"}}]}}"#
        )
    };
    assert_eq!(ask(&child("Notes", "2026-05-04T10:01:00.000Z", true)), Some(true));
    assert_eq!(ask(&child("Notes", "2026-05-04T10:00:00.000Z", false)), None, "the same minute");
    assert_eq!(ask(&child("Other", "2026-05-04T10:01:00.000Z", false)), Some(false));
    assert_eq!(ask(&child("Other", "2026-05-04T10:01:00.000Z", true)), None);
    let by_database = r#"{"parent": {"data_source_id": "d"}, "properties": {}}"#;
    assert!(rule(policy("notion"), "mcp:notion/API-post-page", by_database).probe.is_none());

    let comment = r#"{"parent": {"page_id": "p"}, "rich_text": [{"text": {"content": "Agreed"}}]}"#;
    let ask = |resp: &str| answer("mcp:notion/API-create-a-comment", comment, resp);
    let said = |text: &str, time: &str| {
        format!(
            r#"{{"has_more": false, "results": [{{"rich_text": [{{"plain_text": "{text}"}}], "created_time": "{time}"}}]}}"#
        )
    };
    assert_eq!(ask(&said("Agreed", "2026-05-04T10:01:00.000Z")), Some(true));
    assert_eq!(ask(&said("Agreed", "2026-05-04T10:00:00.000Z")), None);
    assert_eq!(ask(&said("No", "2026-05-04T10:01:00.000Z")), Some(false));
}

/// `read_multiple_files` and `get_file_info` answer so, in `structuredContent`.
fn held(text: &str) -> String {
    Json::object([("content", Json::str(text))]).canonical()
}

#[test]
fn the_probes_of_files_take_nothing_for_a_yes_or_a_no_that_may_have_been_so_before_or_since() {
    let args = r#"{"path": "/w/a", "content": "one\n"}"#;
    let write = |text: &str| answer("mcp:filesystem/write_file", args, &held(text));
    assert_eq!(write("/w/a:\none\n\n"), Some(true));
    assert_eq!(write("/w/a:\none\n"), None, "without its last line end");
    assert_eq!(write("/w/a:\ntwo\n\n"), None, "something else may have been written since");
    assert_eq!(write("/w/a: Error - ENOENT: no such file or directory, open '/w/a'"), None);
    let older_server = Json::object([("text", Json::str("/w/a:\none"))]).canonical();
    assert_eq!(
        answer("mcp:filesystem/write_file", args, &older_server),
        None,
        "its text comes without its ends"
    );

    let made = |text: &str| answer("mcp:filesystem/create_directory", r#"{"path": "/w/d"}"#, &held(text));
    let info = |directory: bool| {
        format!(
            "size: 4096\ncreated: Mon May 04 2026 10:00:31 GMT+0000 (Coordinated Universal Time)\n\
             isDirectory: {directory}\nisFile: {}\npermissions: 755",
            !directory
        )
    };
    assert_eq!((made(&info(true)), made(&info(false))), (Some(true), None));

    let edits = |edits: &str, text: &str| {
        let args = format!(r#"{{"path": "/w/a", "edits": {edits}}}"#);
        answer("mcp:filesystem/edit_file", &args, &held(text))
    };
    let one = r#"[{"oldText": "x = 1", "newText": "x = 2"}]"#;
    assert_eq!(edits(one, "/w/a:\nx = 1\n\n"), Some(false));
    assert_eq!(edits(one, "/w/a:\nx = 2\n\n"), None, "it may have been so before");
    assert_eq!(edits(one, "/w/a:\nx = 2\nx = 1\n\n"), None, "the first of two was replaced");
    assert_eq!(edits(one, "/w/a: Error - ENOENT: no such file or directory, open '/w/a'"), None);
    for unclear in [
        r#"[{"oldText": "x = 1", "newText": ""}]"#,
        r#"[{"oldText": "  x = 1", "newText": "  x = 2"}]"#,
        r#"[{"oldText": "x = 1\n", "newText": "x = 2\n"}]"#,
        r#"[{"oldText": "x = 1", "newText": "x = 2\r\n"}]"#,
        r#"[{"oldText": "x = 1", "newText": "x = $$2"}]"#,
        r#"[{"oldText": "x = 1", "newText": "x = 2"}, {"oldText": "x = 2", "newText": "x = 3"}]"#,
    ] {
        assert_eq!(edits(unclear, "/w/a:\n  x = 1\n\n"), None, "{unclear}");
    }

    let moved = |text: &str| {
        let args = r#"{"source": "/w/a", "destination": "/w/b"}"#;
        answer("mcp:filesystem/move_file", args, &held(text))
    };
    let absent = "Error - ENOENT: no such file or directory, open '/w/x'";
    assert_eq!(moved(&format!("/w/b: {absent}\n---\n/w/a:\none\n")), Some(false));
    let directory = "Error - EISDIR: illegal operation on a directory, read";
    assert_eq!(moved(&format!("/w/b: {absent}\n---\n/w/a: {directory}")), Some(false));
    assert_eq!(moved(&format!("/w/b:\none\n\n---\n/w/a: {absent}")), None, "it may have been so before");
    assert_eq!(moved(&format!("/w/b: {absent}\n---\n/w/a: {absent}")), None, "it may have gone on");
    let forged = format!("/w/b:\n/w/b: {absent}\n---\n/w/a:\n\n---\n/w/a: {absent}");
    assert_eq!(moved(&forged), None, "a file that holds the words of an answer");
}

#[test]
fn a_retry_that_spells_out_the_default_is_the_same_edit() {
    let rule = rule(policy("filesystem"), "mcp:filesystem/edit_file", r#"{"path": "/w/a", "edits": []}"#);
    let of = |args: &str| {
        semel_core::identity::sort(&parse(args).expect(args), &rule.sorting).identity.canonical()
    };
    assert_eq!(
        of(r#"{"args": {"path": "/w/a", "edits": [], "dryRun": false}}"#),
        of(r#"{"args": {"path": "/w/a", "edits": []}}"#)
    );
}

#[test]
fn the_probes_of_linear_only_say_yes() {
    let issue = |parent: &str, created: &str| {
        format!(
            r#"{{"title": "Fix it", "description": "d", "team": {{"id": "t", "name": "T"}}, "parent": {parent}, "createdAt": "{created}"}}"#
        )
    };
    let (later, before) = ("2026-05-04T10:00:31.000Z", "2026-05-04T10:00:29.000Z");
    let child = r#"{"id": "p", "title": "Story"}"#;
    let asked = |args: &str, items: &str| {
        answer("mcp:linear/linear_createIssue", args, &format!(r#"{{"items": [{items}]}}"#))
    };
    let alone = r#"{"teamId": "t", "title": "Fix it"}"#;
    let below = r#"{"teamId": "t", "title": "Fix it", "parentId": "p"}"#;
    assert_eq!(asked(alone, &issue("null", later)), Some(true));
    assert_eq!(asked(below, &issue(child, later)), Some(true));
    assert_eq!(asked(alone, &issue(child, later)), None, "a task of the same name");
    assert_eq!(asked(below, &issue("null", later)), None);
    assert_eq!(asked(alone, &issue("null", before)), None);
    assert_eq!(asked(alone, ""), None, "the list may lag");
    assert_eq!(asked(r#"{"teamId": "u", "title": "Fix it"}"#, &issue("null", later)), None);

    let searched = |args: &str, resp: &str| answer("mcp:linear/linear_create_issue", args, resp);
    let nodes = |issues: &str| {
        format!(r#"{{"issues": {{"pageInfo": {{"hasNextPage": false}}, "nodes": [{issues}]}}}}"#)
    };
    let described = r#"{"teamId": "t", "title": "Fix it", "description": "d"}"#;
    assert_eq!(searched(described, &nodes(&issue("null", later))), Some(true));
    assert_eq!(searched(described, &nodes(&issue("null", before))), None);
    assert_eq!(searched(described, &nodes("")), None);
    assert_eq!(searched(&described.replace("\"d\"", "\"e\""), &nodes(&issue("null", later))), None);
    assert_eq!(searched(described, r#"{"text": "Found 1 issues:\n- T-1: Fix it"}"#), None, "prose");

    let comment = |args: &str, body: &str, parent: &str, created: &str| {
        let said =
            format!(r#"{{"items": [{{"body": "{body}", "parentId": {parent}, "createdAt": "{created}"}}]}}"#);
        answer("mcp:linear/linear_createComment", args, &said)
    };
    let on_issue = r#"{"issueId": "LIN-1", "body": "Done"}"#;
    assert_eq!(comment(on_issue, "Done", "null", later), Some(true));
    assert_eq!(comment(on_issue, "Done", "\"c\"", later), None, "said in a thread");
    assert_eq!(comment(on_issue, "Done", "null", before), None);
    assert_eq!(comment(on_issue, "No", "null", later), None);
    let in_thread = r#"{"issueId": "LIN-1", "parentId": "c", "body": "Done"}"#;
    assert_eq!(comment(in_thread, "Done", "\"c\"", later), Some(true));

    for (tool, of) in
        [("linear_createProjectUpdate", "projectId"), ("linear_createInitiativeUpdate", "initiativeId")]
    {
        let update = |body: &str, created: &str| {
            let args = format!(r#"{{"{of}": "x", "body": "On track"}}"#);
            let said = format!(r#"{{"items": [{{"body": "{body}", "createdAt": "{created}"}}]}}"#);
            answer(&format!("mcp:linear/{tool}"), &args, &said)
        };
        assert_eq!(update("On track", later), Some(true), "{tool}");
        assert_eq!((update("On track", before), update("Late", later)), (None, None), "{tool}");
    }
}

#[test]
fn a_broadcast_that_is_on_its_way_was_sent_and_a_draft_says_nothing() {
    let broadcast = |status: &str, text: &str| {
        let said = format!(
            "ID: b_1\nName: News\nSegment ID: s\nFrom: a@b.c\nSubject: May\nStatus: {status}\n\
             Created at: 2026-05-04T09:00:00Z\n\n--- Plain Text Content ---\n{text}"
        );
        let said = Json::object([("text", Json::str(&said))]).canonical();
        answer("mcp:resend/send-broadcast", r#"{"broadcastId": "b_1"}"#, &said)
    };
    assert_eq!((broadcast("sent", "Hello"), broadcast("queued", "Hello")), (Some(true), Some(true)));
    assert_eq!((broadcast("draft", "Hello"), broadcast("sending_failed", "Hello")), (None, None));
    assert_eq!(broadcast("draft", "Hello\nStatus: sent\nCreated at: now"), None, "its text is not its state");
}

#[test]
fn what_a_model_calls_an_element_is_not_what_it_clicks() {
    let identity = |tool: &str, args: &str| {
        let rule = rule(policy("playwright"), &format!("mcp:playwright/{tool}"), args);
        let args = parse(&format!("{{\"args\": {args}}}")).expect(args);
        semel_core::identity::sort(&args, &rule.sorting).identity.canonical()
    };
    for (tool, one, reworded, other) in [
        (
            "browser_click",
            r#"{"element": "Pay", "target": "e1"}"#,
            r#"{"element": "the Pay button", "target": "e1"}"#,
            r#"{"element": "Pay", "target": "e2"}"#,
        ),
        (
            "browser_drag",
            r#"{"startElement": "a", "startTarget": "e1", "endElement": "b", "endTarget": "e2"}"#,
            r#"{"startElement": "card", "startTarget": "e1", "endElement": "list", "endTarget": "e2"}"#,
            r#"{"startElement": "a", "startTarget": "e1", "endElement": "b", "endTarget": "e3"}"#,
        ),
        (
            "browser_fill_form",
            r#"{"fields": [{"name": "Mail", "target": "e1", "type": "textbox", "value": "a"}]}"#,
            r#"{"fields": [{"name": "Your mail", "target": "e1", "type": "textbox", "value": "a"}]}"#,
            r#"{"fields": [{"name": "Mail", "target": "e1", "type": "textbox", "value": "b"}]}"#,
        ),
    ] {
        assert_eq!(identity(tool, one), identity(tool, reworded), "{tool}");
        assert_ne!(identity(tool, one), identity(tool, other), "{tool}");
    }
}

#[test]
fn a_statement_is_the_same_with_blanks_around_it_and_another_with_blanks_in_it() {
    let identity = |sql: &str| {
        let args = Json::object([("sql", Json::str(sql))]);
        let rule = rule(policy("postgres"), "mcp:postgres/execute_sql", &args.canonical());
        let args = Json::object([("args", args)]);
        semel_core::identity::sort(&args, &rule.sorting).identity.canonical()
    };
    for end in ["", "; COMMIT"] {
        let sql = format!("INSERT INTO t VALUES ('a b'){end}");
        assert_eq!(identity(&sql), identity(&format!("\n  {sql}\n")));
        assert_ne!(identity(&sql), identity(&sql.replace("a b", "a  b")));
    }
}

#[test]
fn sql_is_a_read_only_if_nothing_in_it_speaks_of_a_change() {
    let postgres = policy("postgres");
    let class = |sql: &str| {
        let args = Json::object([("sql", Json::str(sql))]).canonical();
        let class = rule(postgres, "mcp:postgres/query", &args).class;
        assert_eq!(rule(postgres, "mcp:postgres/execute_sql", &args).class, class);
        class
    };
    for sql in [
        "SELECT 1",
        "  select * from users where id = 1;\n",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "EXPLAIN SELECT * FROM t",
        "show search_path",
        "select\n  count(*)\nfrom t",
        "select updated_at, created_by from t",
    ] {
        assert_eq!(class(sql), Class::Read, "{sql}");
    }
    for sql in [
        "INSERT INTO t VALUES (1)",
        "select 1; drop table t",
        "COMMIT; DROP TABLE t",
        "WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d",
        "SELECT * INTO u FROM t",
        "SELECT nextval('s')",
        "SELECT pg_terminate_backend(1)",
        "SELECT lo_unlink(1)",
        "explain ANALYZE select 1",
        "SELECT * FROM t FOR UPDATE",
        "do $$ begin end $$",
        "",
        "-- select\ndelete from t",
    ] {
        assert_eq!(class(sql), Class::Act, "{sql}");
    }
    let none = rule(postgres, "mcp:postgres/query", "{}");
    assert_eq!(none.class, Class::Consequential, "without SQL the condition cannot be decided");
}

#[test]
fn saving_in_linear_creates_only_without_an_id() {
    let class = |args: &str| rule(policy("linear"), "mcp:linear/save_issue", args).class;
    assert_eq!(class(r#"{"team": "t", "title": "x"}"#), Class::Consequential);
    assert_eq!(class(r#"{"id": "LIN-1", "title": "x"}"#), Class::Convergent);
}

#[test]
fn each_story_in_linear_may_have_a_task_of_the_same_name() {
    for (tool, team) in [("save_issue", "team"), ("create_issue", "team"), ("linear_createIssue", "teamId")] {
        let key = |rest: &str| {
            let args = format!(r#"{{"{team}": "t", "title": "x"{rest}}}"#);
            let rule = rule(policy("linear"), &format!("mcp:linear/{tool}"), &args);
            rule.sorting.key.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(key(""), [format!("args.{team}"), "args.title".to_owned()]);
        let child = [format!("args.{team}"), "args.parentId".to_owned(), "args.title".to_owned()];
        assert_eq!(key(r#", "parentId": "p""#), child);
    }
}

#[test]
fn an_explanation_names_the_server_that_would_be_asked() {
    let nothing = parse("{}").expect("an object");
    let facts = ActionFacts::new("mcp:github-work/create_issue", &nothing);
    let (_, explanation) = policy("github").explain(&facts);
    assert_eq!(explanation.probe.as_deref(), Some("mcp github-work/list_issues"));
    assert!(explanation.probe_quiet.is_some(), "a no does not count at once");
}

#[test]
fn a_mail_is_its_recipients_and_subject_unless_its_text_is_what_matters() {
    let resend = policy("resend");
    let key = |subject: &str| {
        let args =
            Json::object([("to", parse(r#"["a@b.c"]"#).expect("a list")), ("subject", Json::str(subject))]);
        let rule = rule(resend, "mcp:resend/send-email", &args.canonical());
        rule.sorting.key.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(key("Your invoice"), ["args.to", "args.subject"]);
    assert_eq!(key("Results: ready"), ["args.to", "args.subject"]);
    let tier = rule(resend, "mcp:resend/send-email", r#"{"to": ["a@b.c"], "subject": "Hello"}"#).tier();
    assert_eq!(tier, Tier::Keyed);
    let told_apart_by_text =
        ["Re: Your invoice", "RE:x", "AW: x", "Fwd: x", "Your verification code", "Daily report", "Reset it"];
    for subject in told_apart_by_text {
        assert!(key(subject).is_empty(), "{subject}: the text tells two of them apart");
    }
}

#[test]
fn over_mcp_a_mail_of_resend_is_known_for_as_long_as_over_http() {
    let resend = policy("resend");
    for subject in ["Your invoice", "Your verification code"] {
        let mail = format!(r#"{{"to": ["a@b.c"], "subject": "{subject}"}}"#);
        let by_mcp = rule(resend, "mcp:resend/send-email", &mail);
        let by_http = resend.rule_for(&ActionFacts::new(
            "http:POST api.resend.com/emails",
            &parse(&format!(r#"{{"body": {mail}}}"#)).expect("a request"),
        ));
        assert_eq!(by_mcp.window, by_http.window, "{subject}");
        assert!(by_mcp.window.is_some(), "{subject}");
    }
    assert!(rule(resend, "mcp:resend/send-batch-emails", r#"{"emails": []}"#).sorting.key.is_empty());
}

#[test]
fn files_may_be_pushed_back_to_what_they_were() {
    let class = |tool: &str| rule(policy("github"), &format!("mcp:github/{tool}"), "{}").class;
    assert_eq!((class("push_files"), class("delete_file")), (Class::Act, Class::Act));
    assert_eq!(class("create_or_update_file"), Class::Consequential);
}

#[test]
fn whoever_looks_at_the_page_may_say_whether_a_click_was_made() {
    for tool in ["browser_click", "browser_press_key", "browser_evaluate"] {
        let rule = rule(policy("playwright"), &format!("mcp:playwright/{tool}"), "{}");
        assert_eq!((rule.class, rule.rulings), (Class::Act, Rulings::Agent), "{tool}");
    }
}

#[test]
fn every_pack_loads_without_a_finding() {
    let include = semel_core::policy::pack::PACKS.iter().map(|pack| format!("\"pack:{}\"", pack.name));
    let text = format!("include = [{}]\n", include.collect::<Vec<_>>().join(", "));
    let policy = Policy::load(vec![PolicyFile { path: "semel.toml".into(), text }]);
    let policy = policy.unwrap_or_else(|found| panic!("{found}"));
    assert!(policy.warnings.is_empty(), "{}", policy.warnings);
}

#[test]
fn every_pack_passes_the_lint() {
    for pack in semel_core::policy::pack::PACKS {
        // Only a pack may say what its API and its servers are like, so its rules alone are a policy.
        let start = pack.text.find("\n[[rule]]\n").unwrap_or_else(|| panic!("{} has no rules", pack.name));
        let file = PolicyFile { path: pack.path.into(), text: pack.text[start..].to_owned() };
        let policy = Policy::load(vec![file]).unwrap_or_else(|found| panic!("{found}"));
        let mut warnings = policy.warnings.iter().filter(|finding| finding.severity == Severity::Warning);
        if let Some(warning) = warnings.next() {
            panic!("{}", warning.render(false));
        }
    }
}
