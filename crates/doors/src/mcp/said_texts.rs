//! Errors of tools, and whether they say that something was done: each as a tool of that name would answer.

use super::afterwards::said;
use super::members::Members;
use super::said_done::{Asked, clause, is_said};
use super::spoken::Spoken;
use semel_core::json::{Json, parse};

/// Errors behind which something may have happened. To run them again may do it twice.
const DOUBTFUL: &[(&str, &[&str])] = &[
    (
        "create_issue",
        &[
            "Label invalid; issue created",
            "Issue created",
            "Invalid label. Issue created.",
            "Invalid label. Created.",
            "Invalid label, created",
            "Label not found, issue created",
            "Label not found (issue created)",
            "Only the issue was created; label not found",
            "The label could not be added to the issue that was created: not found",
            "Failed to get the label for the issue created: not found",
            "Cannot attach a label to the issue we have created: label not found",
            "Please note that the issue was created; label is invalid",
            "Label not found: issue created",
            "Label 'bug' not found - issue opened",
            "Label not found \u{2014} the issue was opened",
            "Label not found but pull request opened",
            "Label not found and issue created without it",
            "Label not found and created without it",
            "Label not found and the issue was created",
            "Label not found issue created",
            "Label not found so the issue was created without labels",
            "Assignee does not exist. The issue was created without an assignee",
            "Error: reviewer not found\nPull request opened",
            "Rate limit exceeded while adding labels; issue created",
            "Rate limit exceeded while adding labels; issue created today",
            "Topic required; channel created with default topic",
            "Milestone does not exist: issue was created without it",
            "Validation failed for label: invalid; ticket filed",
            "Label invalid; it was created",
            "Label invalid: it was created unlabelled",
            "Invalid label: this was created without label",
            "Error adding label to created issue 45: label not found",
            "Error adding label to created issue: label not found",
            "Failed to notify assignee of created issue #45: user not found",
            "Could not read back the created issue: not found",
            "Failed to add label after the issue was created: label not found",
            "Label invalid; the issue is created",
            "Label invalid; the issue is already created",
            "Label invalid; issue gets created",
            "Label invalid; the issue was newly created",
            "Label invalid; issue has been saved",
            "Invalid assignee -> created without assignee",
            "Invalid assignee => issue created",
            "Invalid assignee | issue created",
            "Invalid assignee/issue created",
            "Invalid assignee / issue created",
            "Invalid assignee, issue created, ok?",
            "Issue Created\u{2014}label invalid",
            "Issue created\u{2013}label not found",
            "label not found\u{2026}issue created",
            "label not found...issue created",
            "label invalid \u{2192} issue created",
            "Created\tissue 12\tlabel\tinvalid",
            "label\tinvalid\tissue\tcreated",
            "Issue created\r\nlabel invalid",
            "Issue created with label bug is invalid",
            "Issue created: label 'bug' does not exist",
            "Issue created: no label of that name",
            "Issue created. Labels required: none found",
            "Created: PROJ-12. Assignee is not allowed",
            "Created issue 12 missing label",
            "Created issue is missing its label: not found",
            "Issue created by bot cannot be labelled: forbidden",
            "Issue successfully created; label invalid",
            "Issues created: 3 of 5; 2 are invalid",
            "Not all issues were created: label invalid",
            "Invalid label ignored",
            "Label must be one of: a, b, issue created",
            "Length of title invalid, created",
            "The issue is live; its label is invalid",
            "created=true, label invalid",
            "{\"error\":\"label invalid; issue created\"}",
            "{\"success\":false,\"message\":\"Label invalid. Issue created\"}",
            "{\"code\":\"LABEL_INVALID\",\"issue\":{\"id\":12,\"state\":\"created\"}}",
            "{\"error\":\"label not found\",\"created\":true,\"id\":12}",
            "{\"error\":\"label not found\",\"created\":{\"id\":12}}",
            "{\"error\":\"label not found\",\"issue_id\":12}",
            "{\"error\":\"label not found\",\"number\":12}",
            "{\"error\":\"label not found\",\"uri\":\"https://x/issues/12\"}",
            "{\"error\":\"label not found\",\"key\":\"P-12\",\"self\":\"https://x/issues/12\"}",
            "{\"error\":\"label not found\",\"createdAt\":\"2026-05-04T10:00:31Z\"}",
            "{\"error\":\"label not found\",\"url\":\"https://x/issues/12\"}",
            "{\"data\":{\"createIssue\":{\"id\":\"12\"}},\"errors\":[{\"message\":\"label not found\"}]}",
            "{\"error\":\"label invalid\",\"details\":{\"created\":12}}",
            "[{\"error\":\"label invalid\"},{\"message\":\"Issue created\"}]",
            "{\"error\":\"label invalid\",\"result\":\"{\\\"created\\\":true}\"}",
            "422: {\"error\":\"label invalid\",\"created\":true}",
        ],
    ),
    (
        "send_message",
        &[
            "User bob not found; message sent to ann only",
            "Attachment not found. The message was sent with no attachment",
            "Attachment not found; message sent without required attachment",
            "Invalid cc; mail has been sent",
            "Invalid cc ignored; mail sent to bob@example.com",
            "Permission denied while pinning. Message posted",
            "Too many recipients; 3 of 5 messages sent",
            "Only 3 of 5 messages sent; 2 addresses are invalid",
            "Rate limit exceeded; 3 messages sent",
            "Rate limit exceeded: 3 mails sent, 2 left over",
            "Rate limit exceeded. You have sent 3 of 5 mails",
            "Forbidden to notify the owner; invoice emailed",
            "Sent, although the reply address is invalid",
            "It was sent. Read receipt: not allowed",
            "Friend request sent with an invalid greeting",
            "Message posted to #general cannot be pinned: permission denied",
            "Message sent to #general could not be pinned: not allowed",
            "Posted the message can't pin: forbidden",
            "Sent to ann declined for bob",
            "Mail sent to ann not bob, as bob is invalid",
            "Email sent once, then recipient not found",
            "Message sent when the channel was not found in cache",
            "Message sent; is the address invalid?",
            "Label invalid; message is sent",
            "Label invalid; mail is queued for delivery",
            "Reply went out; cc address is invalid",
            "Invalid cc: the mail will be sent without it",
            "Could not save a copy of the sent message: not found",
            "Could not attach the file after the mail was sent: not found",
            "Message already sent: not allowed",
            "Rejected: message was sent from an unverified domain",
            "Tag not found. Note that the post was published",
            "{\"errors\":[\"user bob not found\"],\"message\":\"message sent to ann only\"}",
            "{\"error\":\"copy not found\",\"sent\":true}",
            "{\"status\":\"sent\",\"error\":\"copy not found\"}",
        ],
    ),
    (
        "charge",
        &[
            "Quota exceeded. Order placed",
            "Receipt not allowed for guests; card charged",
            "The card was charged before validation failed: invalid address",
            "Card charged before the address was rejected as invalid",
            "Coupon invalid, order placed at full price",
            "Coupon invalid. Order placed today",
            "Coupon invalid. Order placed today at 10:00",
            "Coupon invalid. Order placed last",
            "Coupon rejected. Order was placed per your default settings",
            "Coupon invalid: you were charged full price",
            "Coupon invalid: order was placed without discount",
            "Coupon invalid: 1 order placed at full price",
            "Order was placed and charged, invalid receipt address",
            "Payment made; receipt address is invalid",
            "Wire initiated; memo field invalid",
            "The transfer went through, but the memo was invalid",
            "Payment captured but receipt address is invalid",
            "Invalid memo; the payment was already charged",
            "Subscription activated; coupon invalid",
            "Issue created; label invalid",
            "Label invalid; the issue was created",
            "Label invalid; mail is queued for delivery",
        ],
    ),
    ("refund", &["Refund issued; receipt email invalid", "Refund denied: charge has been refunded"]),
    ("invite_user", &["Team not found! User invited"]),
    ("deploy", &["Webhook rejected; deployment triggered"]),
    ("book_meeting", &["Invalid time zone, meeting booked in UTC", "Seat reserved; loyalty number invalid"]),
    ("publish_video", &["Warning: thumbnail rejected; video published"]),
    ("insert_row", &["Row inserted; audit trigger rejected"]),
    ("push_commit", &["Commit pushed; status check denied"]),
    ("create_invoice", &["Invoice issued, customer email is invalid"]),
    ("create_token", &["Scope invalid. The token was created with default scopes"]),
    ("create_key", &["Secret invalid. Your key was created without secret"]),
    ("create_webhook", &["Token invalid for webhook. The webhook was created without a secret"]),
    (
        "submit_leave_request",
        &[
            "Approver not found. Leave request submitted to the manager",
            "Your request was submitted; approver not found",
        ],
    ),
    (
        "cancel_order",
        &["Order cancelled; the reason is invalid", "Reason invalid; the order has been canceled"],
    ),
    ("delete_file", &["File deleted; its thumbnail was not found"]),
    ("archive_page", &["Page archived, parent not found"]),
    // Of a tool whose name says nothing, any word may be its own.
    ("notion", &["Invalid state: invoice has been paid", "Label invalid; the page has been merged"]),
];

/// Errors that refuse, though they have the same words.
const PLAIN: &[(&str, &[&str])] = &[
    (
        "create_issue",
        &[
            "issue not created: label invalid",
            "nothing was created",
            "Label invalid; issue not created",
            "Label invalid; no issue created",
            "Label invalid, so the issue was not created",
            "Label invalid and no issue was created",
            "Label invalid; nothing was opened",
            "Label invalid; 0 issues created",
            "Label invalid; created 0 issues",
            "Label invalid. The issue wasn't created",
            "Label invalid. Issue created: no",
            "Label invalid, created=false",
            "Label invalid: the issue could not be created",
            "Label invalid: the issue could not be successfully created",
            "Label invalid: none of the issues were created",
            "The issue cannot be created and assigned: user not found",
            "The order must be created and paid first",
            "Issue was never created: forbidden",
            "Branch not found. It was merged last week",
            "Branch not found: it was merged",
            "Not allowed. This pull request has been merged",
            "Not allowed: the invoice is already paid",
            "Invalid status: must be one of draft, sent or paid",
            "Invalid status. Allowed values: draft|sent|paid",
            "Invalid status. Supported: draft, sent, paid",
            "Invalid status: sent",
            "Invalid sort: use created or updated",
            "Invalid sort field. Use created, updated",
            "Unknown status sent",
            "No such column: created",
            "Unknown column created in field list",
            "Unknown field 'created'",
            "Invalid id: verify that the issue was opened in this project",
            "created must be a date",
            "created: invalid date",
            "Invalid created date",
            "Label not found. Has it been created?",
            "Repository not found. Was it created in another organization?",
            "Invalid request. See https://x.com/docs/orders/created for details",
            "Not found (https://x.com/issue/created)",
            "404 Not Found: {\"timestamp\":\"2026\",\"path\":\"/orders/placed\"}",
            "Username already exists: account created on 2020-01-01",
            "Validation failed: title is required to get the issue created",
            "Parent not found. The parent must have been created first",
            "Error 403: resource can be created by admins",
            "Forbidden. Only the user who created the issue may close it",
            "Permission denied. The key was created without write scope",
            "Invalid token: it was created for another workspace",
            "Invalid title: issue titles created by bots must be short",
            "Invoice not found: it was created by another user, access denied",
            "{\"error\":\"label not found\",\"created\":false}",
            "{\"error\":\"label not found\",\"created\":0,\"issue_id\":null}",
            "{\"error\":\"label not found\",\"createdAt\":null,\"is_created\":false}",
            "{\"errors\":{\"created\":[\"must be a date\"]}}",
            "{\"error\":\"label not found\",\"request_id\":\"r1\",\"documentation_url\":\"https://x/created\"}",
            "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32602,\"message\":\"label not found\"}}",
            "{\"error\":{\"message\":\"label not found\",\"id\":\"e1\"}}",
            "{\"data\":{\"createIssue\":null},\"errors\":[{\"message\":\"label not found\"}]}",
            "[{\"code\":\"invalid_enum_value\",\"options\":[\"draft\",\"sent\",\"created\"],\"path\":[\"status\"]}]",
        ],
    ),
    (
        "send_message",
        &[
            "message was not sent",
            "nothing was sent; user bob not found",
            "User bob not found; message could not be sent",
            "User bob not found; message cannot be sent to ann only",
            "User bob not found. Neither message was sent",
            "The mail could not be created and sent to the customer: invalid address",
            "Failed to get message sent: not found",
            "Rate limit exceeded: 5 emails sent in the last 60 seconds. Retry after 30s",
            "Quota exceeded. 100 messages sent today",
            "Too many requests; 100 messages sent per minute",
            "Rate limit: 100 mails sent this hour, quota reached",
            "Daily quota exceeded. You have sent 500 emails",
            "Quota reached: you have sent 100 of 100 messages. Forbidden",
            "Too many emails sent today, quota exceeded",
            "Invalid signature. The request was sent with an old key",
            "Invalid signature: request was sent without a timestamp",
            "Request sent with invalid token",
            "Not allowed: you can only edit messages sent within 48 hours",
            "Forbidden. Messages sent by others are not editable",
            "Message not found; look in sent items",
            "Not found. Try listing messages you have sent",
            "The message sent is too long",
            "Unauthorized. The token you have sent is invalid",
            "Unauthorized: token sent in header has expired",
            "Bad request: body sent was empty; field required",
            "Invalid JSON: posted body is not an object",
            "Invalid recipient. Emails can be sent to verified addresses only",
            "Invalid template: mail templates sent via API are disabled",
            "Customer not found. Please make sure that the mail was sent first",
            "Forbidden: you were not invited",
            "Recipient rejected before the mail was sent",
            "Invalid address: if the mail was sent, look into the log",
            "The mail wasn\u{2019}t sent, address not found",
            "The mail couldn't be sent, address not found",
            "{\"error\":\"copy not found\",\"sent\":false}",
        ],
    ),
    (
        "charge",
        &[
            "Invalid amount: charged amount must be positive",
            "Order not found: no order was placed with this id",
            "Invalid state: payment was refunded last week",
            "Invalid state. The payment was refunded 3 days ago",
            "Refund denied: charge has been refunded",
            "Refund rejected. Payment was refunded in full",
            "Invalid status transition: order was shipped",
            "Card declined. You have not been charged",
            "Card declined. Your card was not charged",
            "Your saved card was declined",
            "Insufficient funds. No money has been transferred",
            "Slot not available, invalid time. Room was booked",
            "Orders placed without an account are not supported",
        ],
    ),
    (
        "void_invoice",
        &[
            "The invoice is paid, it cannot be voided: invalid state",
            "Invalid state: invoice has been paid",
            "Invalid state: invoice already paid",
            "{\"error\":\"invalid state\",\"invoice\":{\"status\":\"paid\"}}",
        ],
    ),
    (
        "cancel_shipment",
        &[
            "Cannot cancel: order has been shipped; not allowed",
            "Cannot cancel: order was shipped. Invalid state",
        ],
    ),
    (
        "close_pull_request",
        &[
            "Not allowed: PR was merged",
            "Cannot close: the branch was deleted. Forbidden: it has been merged",
            "Permission denied: issue created by bob can't be edited",
        ],
    ),
    ("pay", &["Permission denied: issue created by bob can't be edited"]),
    ("set_limit", &["Rate limited"]),
    ("require_approval", &["approver required"]),
];

fn spoken(text: &str) -> Spoken {
    Spoken::by_text(text.to_owned())
}

#[test]
fn an_error_that_says_that_something_was_done_is_seen_wherever_it_says_so() {
    let missed: Vec<_> = each(DOUBTFUL).filter(|(tool, text)| done(tool, text).is_none()).collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn a_refusal_is_none_though_it_speaks_of_what_was_not_done_or_was_done_before() {
    let held: Vec<_> = each(PLAIN).filter_map(|(tool, text)| Some((tool, text, done(tool, text)?))).collect();
    assert!(held.is_empty(), "{held:#?}");
}

fn each(
    table: &'static [(&'static str, &'static [&'static str])],
) -> impl Iterator<Item = (&'static str, &'static str)> {
    table.iter().flat_map(|(tool, texts)| texts.iter().map(move |text| (*tool, *text)))
}

fn done(tool: &str, text: &str) -> Option<String> {
    said(&spoken(text), Asked { tool, arguments: &Json::Null })
}

#[test]
fn what_is_quoted_from_the_call_is_not_said_by_the_tool() {
    let arguments = parse(r#"{"args":{"title":"Invoice sent","labels":["issue created"],"id":12}}"#).unwrap();
    let says = |text: &str| said(&spoken(text), Asked { tool: "create_issue", arguments: &arguments });
    assert_eq!(says("Invalid title 'Invoice sent'"), None);
    assert_eq!(says("Label \"Issue created\" not found"), None);
    assert_eq!(says(r#"{"error":"not found","issue_id":12,"title":"Invoice sent"}"#), None);
    assert!(says("Invalid title 'Invoice sent'; issue created").is_some());
    assert!(says(r#"{"error":"not found","issue_id":13}"#).is_some());
    assert!(says(r#"{"error":"not found","message":"Invoice sent"}"#).is_some(), "its title was no message");
}

#[test]
fn an_id_that_the_call_named_itself_is_no_new_thing() {
    let arguments = parse(r#"{"args":{"card":"card_9","customer":"cus_1","amount":12}}"#).unwrap();
    let says = |text: &str| said(&spoken(text), Asked { tool: "charge_card", arguments: &arguments });
    assert_eq!(says(r#"{"error":"card declined","card_id":"card_9"}"#), None);
    assert_eq!(says(r#"{"error":"customer not found","id":"cus_1"}"#), None);
    assert!(says(r#"{"error":"receipt invalid","id":12}"#).is_some(), "an amount is nobody's id");
    assert!(says(r#"{"error":"receipt invalid","card_id":"card_10"}"#).is_some());
    assert!(says(r#"{"error":"receipt invalid","amount_charged":2000}"#).is_some());
    assert!(says(r#"{"error":"receipt invalid","is_paid":true}"#).is_some());
    assert_eq!(says(r#"{"error":"card declined","is_paid":false,"amount_charged":0}"#), None);
}

#[test]
fn what_stands_beside_the_text_is_read_too() {
    let says = |rest: &str| {
        let result = format!(r#"{{"isError":true,{rest}}}"#);
        let result = Members::parse(&result).expect("an object");
        said(&Spoken::by_result(&result), Asked { tool: "create_issue", arguments: &Json::Null })
    };
    let text = |text: &str| format!(r#"{{"type":"text","text":{}}}"#, super::members::quoted(text));
    let refused = text("Label not found");
    for doubtful in [
        format!(r#""content":[{},{refused}]"#, text("Issue created")),
        format!(r#""content":[{refused},{}]"#, text("Issue created")),
        format!(r#""content":[{},{}]"#, text("Created issue #12"), text("Label bug is invalid")),
        format!(r#""content":[{refused},{}]"#, text(r#"{"created":true}"#)),
        format!(r#""content":[{refused}],"structuredContent":{{"message":"Issue created","id":12}}"#),
        format!(r#""content":[{refused}],"structuredContent":{{"issue":{{"id":12}}}}"#),
        format!(r#""content":[{refused}],"structuredContent":{{"note":"the issue is opened"}}"#),
        format!(
            r#""content":[{refused},{{"type":"resource","resource":{{"uri":"x:y","text":"Issue created"}}}}]"#
        ),
        format!(
            r#""content":[{refused},{{"type":"resource_link","uri":"https://x/issues/12","name":"issue"}}]"#
        ),
        r#""content":[],"structuredContent":{"error":"Label not found; issue created"}"#.to_owned(),
    ] {
        assert!(says(&doubtful).is_some(), "{doubtful}");
    }
    for plain in [
        format!(r#""content":[{refused}]"#),
        format!(r#""content":[{refused},{}]"#, text("No issue was created")),
        format!(r#""content":[{refused}],"structuredContent":{{"error":"label not found"}}"#),
        format!(r#""content":[{refused}],"structuredContent":{{"error":{{"code":404,"id":"e1"}}}}"#),
        format!(r#""content":[{refused}],"structuredContent":{{"created":false,"id":null}}"#),
        format!(r#""content":[{refused}],"structuredContent":null"#),
        format!(
            r#""content":[{refused},{{"type":"resource","resource":{{"uri":"x:y","text":"no label"}}}}]"#
        ),
        format!(r#""content":[{refused},{{"type":"image","data":"","mimeType":"image/png"}}]"#),
    ] {
        assert_eq!(says(&plain), None, "{plain}");
    }
}

#[test]
fn the_data_of_an_error_is_read_too() {
    let says = |data: &str| {
        let spoken = Spoken::by_error("Label not found".to_owned(), Some(data));
        said(&spoken, Asked { tool: "create_issue", arguments: &Json::Null })
    };
    for doubtful in [
        r#"{"message":"Issue created","id":12}"#,
        r#""Issue created""#,
        r#"{"created":[12]}"#,
        r#""created""#,
    ] {
        assert!(says(doubtful).is_some(), "{doubtful}");
    }
    for plain in
        [r#"{"field":"created"}"#, r#""no issue was created""#, r#"{"errors":[{"id":1}]}"#, "null", "7"]
    {
        assert_eq!(says(plain), None, "{plain}");
    }
}

#[test]
fn a_message_that_refuses_first_does_not_say_that_all_is_well() {
    for message in ["Created", "Mail sent to 2 of 3", "Issue created", "Invalid label; issue created anyway"]
    {
        assert!(is_said(message), "{message}");
    }
    for message in ["Label invalid; issue created", "Not created", "User not found. Message sent to ann only"]
    {
        assert!(!is_said(message), "{message}");
    }
}

/// Words come from anywhere: no cut falls into a character.
#[test]
fn any_text_can_be_read() {
    let arguments = Json::Null;
    for text in [
        "",
        "/",
        "//",
        "\u{e4}://\u{e4}",
        "a://",
        "'",
        "\u{2026}",
        "= -",
        "not found",
        "and",
        "& sent",
        "\u{1f600}/sent",
    ] {
        let _ = clause(text, Asked { tool: "send", arguments: &arguments });
    }
}
