//! What the servers that the packs are written for answer when all goes well, when they are refused, and when nobody
//! can say, each as the real package writes it, and what it counts as under the pack's rule.

use bytes::Bytes;
use semel_core::json::parse;
use semel_core::policy::{ActionFacts, Policy, PolicyFile};
use semel_doors::mcp::classify::{AnswerMeaning, ReadContext, read};
use semel_doors::mcp::message::Message;
use serde_json::{Value, json};

use AnswerMeaning::{Ambiguous, Refused, Succeeded};

/// Asserts what each answer to the call counts as, where it must happen once.
fn counts(pack: &str, tool: &str, arguments: Value, answers: &[(Value, AnswerMeaning)]) {
    let text = format!("include = [\"pack:{pack}\"]\n");
    let policy = Policy::load(vec![PolicyFile { path: "semel.toml".into(), text }]).expect("the pack loads");
    let arguments = parse(&json!({ "args": arguments }).to_string()).expect("arguments");
    let rule = policy.rule_for(&ActionFacts::new(&format!("mcp:{pack}/{tool}"), &arguments));
    for (answer, expected) in answers {
        let mut response = json!({"jsonrpc": "2.0", "id": 1});
        for (member, value) in answer.as_object().expect("a result or an error") {
            response[member] = value.clone();
        }
        let message = Message::parse(Bytes::from(response.to_string())).expect("a message");
        let by = ReadContext { rule: &rule, must_happen_once: true, asked_for_task: false };
        let reading = read(&message, by);
        assert_eq!(reading.meaning, *expected, "{pack}/{tool}: {answer}: {}", reading.line);
    }
}

fn says(text: impl ToString) -> Value {
    json!({"result": {"content": [{"type": "text", "text": text.to_string()}]}})
}

fn marked(text: &str) -> Value {
    json!({"result": {"content": [{"type": "text", "text": text}], "isError": true}})
}

fn thrown(code: i64, message: &str) -> Value {
    json!({"error": {"code": code, "message": message}})
}

/// @modelcontextprotocol/server-slack 2025.4.25 catches everything; @zencoderai/slack-mcp-server 0.0.1 lets the SDK
/// mark it.
#[test]
fn slack() {
    let posted = json!({"ok": true, "channel": "C1", "ts": "1.2", "message": {"text": "Error: not found"}});
    let answers = [
        (says(posted), Succeeded),
        (says(json!({"ok": false, "error": "channel_not_found"})), Refused),
        (says(json!({"ok": false, "error": "invalid_auth"})), Refused),
        (says(json!({"ok": false, "error": "ratelimited"})), Refused),
        (says(json!({"error": "Missing required arguments: channel_id and text"})), Refused),
        (says(json!({"ok": false, "error": "internal_error"})), Ambiguous),
        (says(json!({"ok": false, "error": "service_unavailable"})), Ambiguous),
        (says(json!({"error": "fetch failed"})), Ambiguous),
        (says(json!({"error": "terminated"})), Ambiguous),
        (says(json!({"error": "Unexpected token '<', \"<html>502\"... is not valid JSON"})), Ambiguous),
        (marked("fetch failed"), Ambiguous),
        (marked("Unexpected token '<', \"<html>502\"... is not valid JSON"), Ambiguous),
    ];
    let message = json!({"channel_id": "C1", "text": "hello", "thread_ts": "1.2"});
    for tool in ["slack_post_message", "slack_reply_to_thread", "slack_add_reaction"] {
        counts("slack", tool, message.clone(), &answers);
    }
    // korotovsky/slack-mcp-server 1.3.0 posts, then reads what it has posted.
    let answers = [
        (says("MsgID,UserID,Text\n1.2,U1,Error: not found\n"), Succeeded),
        (marked("slack rate limit exceeded, retry after 30s"), Ambiguous),
        (marked("missing_scope"), Ambiguous),
        (marked("Post \"https://slack.com/api/chat.postMessage\": EOF"), Ambiguous),
    ];
    counts("slack", "conversations_add_message", json!({"channel_id": "C1"}), &answers);
}

/// @notionhq/notion-mcp-server 2.5.2: the API's own body after `"status": "error"`, which its status replaces.
#[test]
fn notion() {
    let error = |status: u16, code: &str, message: &str| {
        says(
            json!({"status": status, "object": "error", "code": code, "message": message, "request_id": "r"}),
        )
    };
    let title = json!({"title": [{"plain_text": "Error: fetch failed"}]});
    let answers = [
        (says(json!({"object": "page", "id": "p1", "properties": title})), Succeeded),
        (says(json!({"object": "list", "results": [], "has_more": false})), Succeeded),
        (error(400, "validation_error", "body failed validation: connection is not defined"), Refused),
        (error(401, "unauthorized", "API token is invalid."), Refused),
        (error(403, "restricted_resource", "Insufficient permissions for this endpoint."), Refused),
        (error(404, "object_not_found", "Could not find page with ID: p."), Refused),
        (error(409, "conflict_error", "Conflict occurred while saving."), Refused),
        (error(429, "rate_limited", "You have been rate limited."), Refused),
        (error(500, "internal_server_error", "Unexpected error occurred."), Ambiguous),
        (error(502, "bad_gateway", "Not found."), Ambiguous),
        (error(504, "gateway_timeout", "Notion has timed out."), Ambiguous),
        (says(json!({"status": "error", "data": "<html>502 Bad Gateway</html>"})), Ambiguous),
        (says(json!({"status": "error"})), Ambiguous),
        (thrown(-32603, "socket hang up"), Ambiguous),
        (thrown(-32603, "read ECONNRESET"), Ambiguous),
    ];
    for tool in [
        "API-post-page",
        "API-create-a-comment",
        "API-create-a-data-source",
        "API-patch-block-children",
        "API-update-page-markdown",
        "API-patch-page",
        "API-delete-a-block",
    ] {
        counts("notion", tool, json!({"parent": {"page_id": "p"}}), &answers);
    }
    counts("notion", "API-post-page", json!({"parent": {"data_source_id": "d"}}), &answers);
}

/// linear-mcp-server 0.1.0 writes an object where a text belongs; mcp-server-linear 1.6.0 throws;
/// @tacticlaunch/mcp-linear 1.4.3 marks.
#[test]
fn linear() {
    let error = |kind: &str, message: &str, details: Value| {
        let text = json!({"error": {"type": kind, "message": message, "details": details}});
        json!({"result": {"content": [{"type": "text", "text": text, "metadata": {"error": true}}]}})
    };
    let none = Value::Null;
    let referenced = "Entity not found: Team - Could not find referenced Team.";
    let answers = [
        (says("Created issue ENG-1: Error: fetch failed\nURL: https://linear.app/x/issue/ENG-1"), Succeeded),
        (says("Added comment to issue ENG-1\nURL: https://linear.app/x"), Succeeded),
        (error("VALIDATION_ERROR", "Invalid request parameters", json!([{"path": ["title"]}])), Refused),
        (error("API_ERROR", "Authentication required, not authenticated", json!({"status": 401})), Refused),
        (error("UNKNOWN_ERROR", referenced, none.clone()), Refused),
        (error("API_ERROR", "Linear API error: 502 Bad Gateway", json!({"status": 502})), Ambiguous),
        (error("UNKNOWN_ERROR", "Rate limit exceeded", none.clone()), Ambiguous),
        (error("UNKNOWN_ERROR", "fetch failed", none.clone()), Ambiguous),
        (error("UNKNOWN_ERROR", "Failed to create issue", none), Ambiguous),
        (says(json!({"issueCreate": {"success": true, "issue": {"title": "error"}}})), Succeeded),
        (
            thrown(
                -32603,
                "Failed to create issue: MCP error -32600: Not authenticated. Call linear_auth first.",
            ),
            Refused,
        ),
        (thrown(-32603, "Failed to create issue: GraphQL operation failed: fetch failed"), Ambiguous),
        (
            thrown(-32603, "Failed to create issue: GraphQL operation failed: GraphQL Error (Code: 503)"),
            Ambiguous,
        ),
    ];
    counts("linear", "linear_create_issue", json!({"teamId": "t", "title": "x"}), &answers);
    counts("linear", "linear_create_issue", json!({"teamId": "t", "title": "x", "parentId": "p"}), &answers);
    counts("linear", "linear_add_comment", json!({"issueId": "i", "body": "x"}), &answers);

    let made = json!({"id": "i", "identifier": "ENG-1", "title": "Error: fetch failed"});
    let made = json!({"result": {"content": [], "structuredContent": made, "isError": false}});
    let answers = [
        (made, Succeeded),
        (marked("Error: Entity not found: Team"), Refused),
        (marked("Error: Invalid arguments for linear_createIssue"), Refused),
        (marked("Error: Authentication required, not authenticated"), Refused),
        (marked("Error: fetch failed"), Ambiguous),
        (marked("Error: Unknown error"), Ambiguous),
    ];
    counts("linear", "linear_createIssue", json!({"teamId": "t", "title": "x"}), &answers);
}

/// postgres-mcp 0.3.0 under mcp 1.30, before PostgreSQL 15.
#[test]
fn postgres() {
    let answer = |text: &str| {
        let block = json!({"type": "text", "text": text, "annotations": null, "_meta": null});
        let content = json!([{"type": "text", "text": text}]);
        json!({"result": {"content": content, "structuredContent": {"result": [block]}, "isError": false}})
    };
    let key = "Error: duplicate key value violates unique constraint \"t_pkey\"\nDETAIL:  Key (id)=(1) already exists.";
    let table = [
        ("No results", Succeeded),
        ("[{'id': 2, 'note': 'Error: connection lost'}]", Succeeded),
        (key, Refused),
        ("Error: syntax error at or near \"selec\"\nLINE 1: selec\n        ^", Refused),
        ("Error: relation \"nope\" does not exist\nLINE 1: insert into nope", Refused),
        ("Error: canceling statement due to statement timeout", Refused),
        ("Error: Connection attempt failed: couldn't get a connection after 30.00 sec", Refused),
        ("Error: terminating connection due to administrator command", Ambiguous),
        ("Error: server closed the connection unexpectedly", Ambiguous),
        ("Error: consuming input failed: SSL SYSCALL error: EOF detected", Ambiguous),
    ];
    let structured: Vec<_> = table.iter().map(|(text, means)| (answer(text), means.clone())).collect();
    // Older SDKs of Python write no structure.
    let plain: Vec<_> = table.iter().map(|(text, means)| (says(text), means.clone())).collect();
    for answers in [structured, plain] {
        counts("postgres", "execute_sql", json!({"sql": "INSERT INTO t VALUES (1)"}), &answers);
        counts("postgres", "explain_query", json!({"sql": "SELECT 1", "analyze": true}), &answers);
    }
    let half = [(answer("No results"), Succeeded), (answer(key), Ambiguous)];
    for sql in
        ["INSERT INTO t VALUES (7); COMMIT; INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (7);\nend"]
    {
        counts("postgres", "execute_sql", json!({ "sql": sql }), &half);
    }
    // The reference server, 0.6.2.
    let answers = [
        (says("[\n  {\n    \"nextval\": \"1\"\n  }\n]"), Succeeded),
        (says("[]"), Succeeded),
        (thrown(-32603, "cannot execute INSERT in a read-only transaction"), Ambiguous),
        (thrown(-32603, "Connection terminated unexpectedly"), Ambiguous),
    ];
    counts("postgres", "query", json!({"sql": "INSERT INTO t VALUES (1)"}), &answers);
}

/// @stripe/mcp 0.2.5 with @stripe/agent-toolkit 0.7.11: `JSON.stringify` of an object, or of a sentence, in its quotes.
#[test]
fn stripe() {
    let failed = |text: &str| (says(json!(text)), Ambiguous);
    let made = || (says(json!({"id": "x_1", "name": "Failed to pay", "status": "draft"})), Succeeded);
    for (tool, arguments, sentence) in [
        ("create_refund", json!({"payment_intent": "pi_1"}), "Failed to create refund"),
        ("create_invoice", json!({"customer": "cus_1"}), "Failed to create invoice"),
        ("create_invoice_item", json!({}), "Failed to create invoice item"),
        ("create_payment_link", json!({}), "Failed to create payment link"),
        ("finalize_invoice", json!({"invoice": "in_1"}), "Failed to finalize invoice"),
        ("cancel_subscription", json!({"subscription": "sub_1"}), "Failed to cancel subscription"),
        ("update_subscription", json!({}), "Failed to update subscription"),
        ("update_dispute", json!({}), "Failed to update dispute"),
        ("create_product", json!({"name": "Tea"}), "Failed to create product"),
        ("create_price", json!({"product": "p"}), "Failed to create price"),
        ("create_customer", json!({"email": "a@b.c"}), "Failed to create customer"),
    ] {
        counts("stripe", tool, arguments, &[made(), failed(sentence)]);
    }
    let coupon = [
        made(),
        (says(json!("Failed to create coupon: Invalid currency: xyz.")), Refused),
        (says(json!("Failed to create coupon: Invalid API Key provided: sk_test_x")), Refused),
        failed("Failed to create coupon: An error occurred with our connection to Stripe."),
        failed("Failed to create coupon: Request aborted due to timeout being reached (80000ms)"),
    ];
    counts("stripe", "create_coupon", json!({}), &coupon);
}

/// resend-mcp 2.22.0 throws, and the SDK marks it.
#[test]
fn resend() {
    let refused = r#"Failed to create broadcast: {"statusCode":422,"name":"validation_error","message":"Invalid `from`"}"#;
    let many =
        r#"Failed to x: {"statusCode":429,"name":"rate_limit_exceeded","message":"Too many requests."}"#;
    let lost = r#"Failed to x: {"name":"application_error","statusCode":null,"message":"Unable to fetch data. The request could not be resolved."}"#;
    let broken =
        r#"Failed to x: {"statusCode":500,"name":"internal_server_error","message":"Internal server error"}"#;
    let answers = [
        (says("Broadcast created successfully! Error: none"), Succeeded),
        (marked(refused), Refused),
        (marked(many), Refused),
        (marked(lost), Ambiguous),
        (marked(broken), Ambiguous),
    ];
    for tool in ["create-broadcast", "manage-events", "create-webhook"] {
        counts("resend", tool, json!({"action": "create", "name": "n", "segmentId": "s"}), &answers);
    }
    // A mail that went out is worse than one that is looked up: here even a refusal is ambiguous.
    let mail = json!({"to": ["a@b.c"], "subject": "Hello"});
    let sent = says("Email sent successfully! {\"id\":\"e1\"}");
    counts(
        "resend",
        "send-email",
        mail,
        &[(sent, Succeeded), (marked(lost), Ambiguous), (marked(refused), Ambiguous)],
    );
}

/// github/github-mcp-server marks; @modelcontextprotocol/server-github 2025.4.8 throws.
#[test]
fn github() {
    let post = "failed to create issue: POST https://api.github.com/repos/o/r/issues";
    let mut answers = vec![
        (says(json!({"id": "1", "url": "https://github.com/o/r/issues/1"})), Succeeded),
        (says(json!({"number": 1, "title": "Error: fetch failed", "body": "error"})), Succeeded),
        (marked(&format!("{post}: 404 Not Found []")), Refused),
        (marked(&format!("{post}: 401 Bad credentials []")), Refused),
        (marked(&format!("{post}: 403 Resource not accessible by personal access token []")), Refused),
        (marked("failed to create issue: Validation Failed\nIssue.title (missing_field)"), Refused),
        (marked("failed to create issue: GitHub API rate limit exceeded. Retry after 5m0s."), Refused),
        (marked("missing required parameter: title"), Refused),
        (marked(&format!("{post}: 502 Server Error []")), Ambiguous),
        (marked(&format!("{post}: 503  []")), Ambiguous),
        (marked("failed to create issue: Post \"https://api.github.com/repos/o/r/issues\": EOF"), Ambiguous),
        (
            marked("failed to create issue: Post \"https://api.github.com/x\": context deadline exceeded"),
            Ambiguous,
        ),
    ];
    for (message, means) in [
        ("Validation Error: Validation Failed\nDetails: {\"message\":\"Validation Failed\"}", Refused),
        ("Not Found: Resource not found: Not Found", Refused),
        ("Authentication Failed: Bad credentials", Refused),
        ("Permission Denied: Resource not accessible", Refused),
        ("Rate Limit Exceeded: API rate limit exceeded\nResets at: 2026-01-01T00:00:00.000Z", Refused),
        ("GitHub API Error: Server Error", Ambiguous),
        ("GitHub API Error: GitHub API error", Ambiguous),
        ("fetch failed", Ambiguous),
    ] {
        answers.push((thrown(-32603, message), means));
    }
    let arguments = json!({"owner": "o", "repo": "r", "title": "t", "method": "create"});
    for tool in [
        "create_issue",
        "issue_write",
        "add_issue_comment",
        "create_pull_request",
        "push_files",
        "delete_file",
    ] {
        counts("github", tool, arguments.clone(), &answers);
    }
}

/// @modelcontextprotocol/server-filesystem 2026.8.31 throws, and the SDK marks it.
#[test]
fn filesystem() {
    let answers = [
        (says("Successfully wrote to /a/error.txt"), Succeeded),
        (says("```diff\n-Error: a\n+Error: b\n```"), Succeeded),
        (marked("Access denied - path outside allowed directories: /etc not in /a"), Refused),
        (marked("ENOENT: no such file or directory, open '/a/b'"), Refused),
        (marked("Could not find exact match for edit:\nfoo"), Refused),
        (marked("Destination already exists: /a/b"), Refused),
    ];
    for tool in ["edit_file", "write_file", "move_file", "create_directory"] {
        counts("filesystem", tool, json!({"path": "/a/b"}), &answers);
    }
}

/// @playwright/mcp 0.0.83 marks what a page did not let it do.
#[test]
fn playwright() {
    let console =
        "### Ran Playwright code\n```js\nawait page.click();\n```\n### Events\n- [ERROR] fetch failed";
    let answers = [
        (says(console), Succeeded),
        (marked("### Error\nError: Ref e9 not found in the current page snapshot."), Refused),
        (marked("### Error\nTimeoutError: locator.click: Timeout 5000ms exceeded."), Ambiguous),
        (marked("### Error\nError: page.goto: net::ERR_CONNECTION_RESET"), Ambiguous),
    ];
    counts("playwright", "browser_click", json!({"target": "e1"}), &answers);
}
