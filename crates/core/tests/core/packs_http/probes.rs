//! Questions about lost answers: yes and no only where they are certain.

use super::{Api, Line, api, lines};
use semel_core::json::{Json, parse};
use semel_core::policy::rule::{Probe, RuleCall};
use semel_core::policy::template::Encoding;

const ATTEMPT: &str = r#"{"started": "2026-05-04T10:00:30.250Z", "started_unix": 1777888830}"#;

struct Asked {
    probe: Probe,
    arguments: Json,
}

impl Asked {
    fn about(api: &Api, line: &str, body: &str) -> Asked {
        let request = api.request(line, body, "");
        let probe = api.rule(&request).probe.unwrap_or_else(|| panic!("{line} has no probe"));
        Asked { probe, arguments: request.arguments }
    }

    fn url(&self) -> String {
        let RuleCall::Http { method, url, .. } = &self.probe.call else { panic!("a question over HTTP") };
        assert_eq!(method, "GET");
        url.render(&self.arguments, Encoding::Url).unwrap_or_else(|missing| format!("{missing}"))
    }

    /// Yes, no, or that it cannot say.
    fn says(&self, status: i64, resp: &str) -> Option<bool> {
        let (resp, attempt) = (parse(resp).expect(resp), parse(ATTEMPT).expect("facts"));
        let status = parse(&status.to_string()).expect("a number");
        let mut variables = vec![("resp", &resp), ("attempt", &attempt), ("status", &status)];
        variables.extend(self.arguments.as_object().into_iter().flat_map(|object| object.iter()));
        let found = self.probe.found.as_ref().expect("an expression").eval_bool(&variables).ok();
        if let (Some(true), Some(reply)) = (found, &self.probe.reply) {
            assert!(reply.eval(&variables).is_ok(), "a yes has a reply");
        }
        found
    }

    fn told(&self, resp: &str) -> Option<bool> {
        self.says(200, resp)
    }
}

#[test]
fn every_probe_over_http_asks_the_service_itself() {
    let mut asked = 0;
    for Line { preset, written, request, .. } in lines() {
        let rule = api(preset).rule(&request);
        let service = &api(preset).policy.upstreams["it"].service;
        for call in rule.probe.iter().map(|probe| &probe.call).chain(&rule.undo) {
            let RuleCall::Http { url, .. } = call else { panic!("{written} asks otherwise") };
            assert!(
                url.to_string().starts_with(&format!("https://{service}/")),
                "[{preset}] {written}: {url}"
            );
            asked += 1;
        }
    }
    assert!(asked >= 20, "{asked}");
}

#[test]
fn stripe_is_asked_for_the_customers_newest_charges() {
    let charge = Asked::about(api("stripe"), "POST /v1/charges", "amount=2000&currency=usd&customer=cus_1");
    assert_eq!(charge.url(), "https://api.stripe.com/v1/charges?customer=cus_1&limit=100");
    let list = |more: bool, entries: &str| format!(r#"{{"has_more": {more}, "data": [{entries}]}}"#);
    let entry = |amount: u32, created: u64, status: &str| {
        format!(
            r#"{{"id": "ch", "amount": {amount}, "currency": "usd", "created": {created}, "status": "{status}"}}"#
        )
    };
    let ours = entry(2000, 1777888831, "succeeded");
    assert_eq!(charge.told(&list(false, &ours)), Some(true));
    assert_eq!(charge.told(&list(false, "")), Some(false));
    assert_eq!(charge.told(&list(false, &entry(2000, 1777800000, "succeeded"))), Some(false), "older");
    assert_eq!(
        charge.told(&list(false, &entry(999, 1777888831, "succeeded"))),
        Some(false),
        "another amount"
    );
    assert_eq!(charge.told(&list(false, &format!("{ours},{ours}"))), None, "which of them?");
    assert_eq!(charge.told(&list(false, &entry(2000, 1777888831, "failed"))), None, "declined, perhaps ours");
    assert_eq!(charge.told(&list(false, &entry(2000, 1777888600, "succeeded"))), None, "by another clock");
    assert_eq!(charge.told(&list(false, &entry(2000, 1777899999, "succeeded"))), None, "hours later");
    assert_eq!(charge.told(&list(true, &entry(1, 1777888831, "succeeded"))), None, "there is more");
    assert_eq!(charge.told(&list(true, &entry(1, 1777800000, "succeeded"))), Some(false), "it reaches back");
    let upper = Asked::about(api("stripe"), "POST /v1/charges", "amount=2000&currency=USD&customer=cus_1");
    assert_eq!(upper.told(&list(false, &ours)), None, "Stripe writes currencies its own way");
    let order = "amount=2000&currency=usd&customer=cus_1&metadata[order]=1001";
    let order = Asked::about(api("stripe"), "POST /v1/charges", order);
    let of = |metadata: &str| {
        let entry = ours.replace(r#""id": "ch""#, &format!(r#""id": "ch", "metadata": {metadata}"#));
        order.told(&list(false, &entry))
    };
    assert_eq!(of(r#"{"order": "1001"}"#), Some(true));
    for other in [r#"{"order": "1002"}"#, "{}", r#"{"order": "1001", "line": "2"}"#] {
        assert_eq!(of(other), None, "another order: {other}");
    }
    let without = Asked::about(api("stripe"), "POST /v1/charges", "amount=2000&currency=usd&source=tok");
    assert!(without.url().contains("is not there"), "nothing to ask by");
}

#[test]
fn stripe_is_asked_for_payments_refunds_and_subscriptions_alike() {
    let stripe = api("stripe");
    let payment =
        Asked::about(stripe, "POST /v1/payment_intents", "amount=5&currency=eur&customer=c&confirm=true");
    let one = |status: &str| {
        format!(
            r#"{{"has_more": false, "data": [{{"amount": 5, "currency": "eur", "created": 1777888831, "status": "{status}"}}]}}"#
        )
    };
    assert_eq!(payment.told(&one("succeeded")), Some(true));
    assert_eq!(payment.told(&one("requires_payment_method")), None, "declined");

    let refund = Asked::about(stripe, "POST /v1/refunds", "payment_intent=pi_1");
    assert_eq!(refund.url(), "https://api.stripe.com/v1/refunds?payment_intent=pi_1&limit=100");
    assert_eq!(
        refund.told(
            r#"{"has_more": false, "data": [{"amount": 9, "created": 1777888831, "status": "succeeded"}]}"#
        ),
        Some(true)
    );
    assert_eq!(refund.told(r#"{"has_more": false, "data": []}"#), Some(false));

    let subscription = Asked::about(stripe, "POST /v1/subscriptions", "customer=c&items[0][price]=price_1");
    let of = |price: &str| {
        format!(
            r#"{{"has_more": false, "data": [{{"created": 1777888831, "status": "active", "items": {{"data": [{{"price": {{"id": "{price}"}}}}]}}}}]}}"#
        )
    };
    assert_eq!(subscription.told(&of("price_1")), Some(true));
    assert_eq!(subscription.told(&of("price_2")), Some(false));
}

#[test]
fn slack_says_no_only_if_nobody_said_anything_since() {
    for (body, url) in [
        (
            r#"{"channel": "C1", "text": "hi"}"#,
            "https://slack.com/api/conversations.history?channel=C1&limit=100",
        ),
        (
            r#"{"channel": "C1", "text": "hi", "thread_ts": "1.2"}"#,
            "https://slack.com/api/conversations.replies?channel=C1&ts=1.2&limit=1000",
        ),
    ] {
        let asked = Asked::about(api("slack"), "POST /api/chat.postMessage", body);
        assert_eq!(asked.url(), url);
        let told = |more: bool, messages: &str| {
            asked.told(&format!(r#"{{"ok": true, "has_more": {more}, "messages": [{messages}]}}"#))
        };
        assert_eq!(told(true, r#"{"text": "hi", "ts": "1777888831.000100", "bot_id": "B1"}"#), Some(true));
        assert_eq!(told(true, r#"{"text": "hi", "ts": "1777888831.000100"}"#), None, "a person's");
        assert_eq!(told(false, r#"{"text": "hi", "ts": "1777880000.000100"}"#), Some(false), "an older one");
        assert_eq!(told(false, ""), Some(false));
        assert_eq!(
            told(false, r#"{"text": "h&amp;i", "ts": "1777888831.000100"}"#),
            None,
            "written otherwise"
        );
        assert_eq!(told(true, r#"{"text": "x", "ts": "1777888831.000100"}"#), None, "there is more");
        assert_eq!(asked.told(r#"{"ok": false, "error": "not_in_channel"}"#), None);
    }
}

#[test]
fn github_is_asked_where_it_was_posted_to() {
    let github = api("github");
    let issue = Asked::about(github, "POST /repos/o/r/issues", r#"{"title": "It is broken"}"#);
    assert_eq!(
        issue.url(),
        "https://api.github.com/repos/o/r/issues?state=all&sort=created&direction=desc&per_page=100"
    );
    assert_eq!(
        issue.told(r#"[{"title": "It is broken", "created_at": "2026-05-04T10:00:31Z"}]"#),
        Some(true)
    );
    assert_eq!(issue.told(r#"[{"title": "It is broken", "created_at": "2026-05-01T10:00:31Z"}]"#), None);
    assert_eq!(issue.told("[]"), Some(false));
    let odd = Asked::about(github, "POST /repos/o/r/issues", r#"{"title": " It is broken"}"#);
    assert_eq!(odd.told("[]"), None, "it may be written otherwise");

    let pull =
        Asked::about(github, "POST /repos/o/r/pulls", r#"{"title": "t", "head": "me:fix", "base": "main"}"#);
    let of = |label: &str, base: &str, at: &str| {
        format!(
            r#"[{{"head": {{"ref": "fix", "label": "{label}"}}, "base": {{"ref": "{base}"}}, "created_at": "{at}"}}]"#
        )
    };
    assert_eq!(pull.told(&of("me:fix", "main", "2026-05-04T10:00:31Z")), Some(true));
    assert_eq!(pull.told(&of("you:fix", "main", "2026-05-04T10:00:31Z")), None);
    assert_eq!(pull.told("[]"), Some(false));

    let comment = Asked::about(github, "POST /repos/o/r/issues/1/comments", r#"{"body": "Done in 1.2"}"#);
    assert_eq!(comment.url(), "https://api.github.com/repos/o/r/issues/1/comments?per_page=100");
    assert_eq!(
        comment.told(r#"[{"body": "Done in 1.2", "created_at": "2026-05-04T10:00:31Z"}]"#),
        Some(true)
    );
    assert_eq!(comment.told(r#"[{"body": "Done in 1.2", "created_at": "2026-05-03T10:00:31Z"}]"#), None);
    assert_eq!(comment.told(r#"[{"body": "No", "created_at": "2026-05-04T10:00:31Z"}]"#), Some(false));
    let page = vec![r#"{"body": "+1", "created_at": "2026-05-03T10:00:31Z"}"#; 100].join(",");
    assert_eq!(comment.told(&format!("[{page}]")), None, "a full page of the oldest");

    let merge = Asked::about(github, "PUT /repos/o/r/pulls/7/merge", "{}");
    assert_eq!(merge.url(), "https://api.github.com/repos/o/r/pulls/7/merge");
    assert_eq!([merge.says(204, "null"), merge.says(404, "{}")], [Some(true), Some(false)]);
    assert_eq!(merge.says(200, "{}"), None);

    let release = Asked::about(github, "POST /repos/o/r/releases", r#"{"tag_name": "v1/x"}"#);
    assert_eq!(release.url(), "https://api.github.com/repos/o/r/releases/tags/v1%2Fx");
    assert_eq!(release.says(404, "{}"), Some(false));
    assert_eq!(release.told(r#"{"published_at": "2026-05-04T10:00:31Z"}"#), Some(true));
    assert_eq!(release.told(r#"{"published_at": "2026-05-01T10:00:31Z"}"#), None, "an older one");
    let draft = Asked::about(github, "POST /repos/o/r/releases", r#"{"tag_name": "v1", "draft": true}"#);
    assert_eq!(draft.says(404, "{}"), None, "a draft is not found by its tag");
}

#[test]
fn notion_says_no_of_what_is_not_there_at_all() {
    let page = r#"{"parent": {"page_id": "p"}, "properties": {"title": [{"text": {"content": "Notes"}}]}}"#;
    let page = Asked::about(api("notion"), "POST /v1/pages", page);
    assert_eq!(page.url(), "https://api.notion.com/v1/blocks/p/children?page_size=100");
    let child = |title: &str, time: &str, more: bool| {
        format!(
            r#"{{"has_more": {more}, "results": [{{"type": "child_page", "child_page": {{"title": "{title}"}}, "created_time": "{time}"}}]}}"#
        )
    };
    assert_eq!(page.told(&child("Notes", "2026-05-04T10:01:00.000Z", true)), Some(true));
    assert_eq!(page.told(&child("Notes", "2026-05-04T10:00:00.000Z", false)), None, "the same minute");
    assert_eq!(page.told(&child("Other", "2026-05-04T10:01:00.000Z", false)), Some(false));
    assert_eq!(page.told(&child("Other", "2026-05-04T10:01:00.000Z", true)), None);
    let comment = r#"{"parent": {"page_id": "p"}, "rich_text": [{"text": {"content": "Agreed"}}]}"#;
    let comment = Asked::about(api("notion"), "POST /v1/comments", comment);
    assert_eq!(comment.told(r#"{"has_more": false, "results": []}"#), Some(false));
}

#[test]
fn discord_is_asked_for_the_newest_messages_of_the_channel() {
    for body in [r#"{"content": "deployed 1.2"}"#, r#"{"content": "deployed 1.2", "enforce_nonce": true}"#] {
        let asked = Asked::about(api("discord"), "POST /api/v10/channels/1/messages", body);
        assert_eq!(asked.url(), "https://discord.com/api/v10/channels/1/messages?limit=100");
        let by = |author: &str, content: &str, time: &str| {
            format!(r#"{{"author": {author}, "content": "{content}", "timestamp": "{time}"}}"#)
        };
        let one = |content: &str, time: &str| by(r#"{"bot": true}"#, content, time);
        let page = |entry: String| format!("[{}]", vec![entry; 100].join(","));
        let (before, since) = ("2026-05-04T09:00:00.000000+00:00", "2026-05-04T10:00:31.123000+00:00");
        assert_eq!(asked.told(&format!("[{}]", one("deployed 1.2", since))), Some(true));
        assert_eq!(asked.told(&format!("[{}]", by("{}", "deployed 1.2", since))), None, "a person's");
        assert_eq!(asked.told(&format!("[{}]", one("deployed 1.2", before))), None, "an older one");
        assert_eq!(asked.told("[]"), Some(false));
        assert_eq!(asked.told(&page(one("x", before))), Some(false));
        assert_eq!(asked.told(&page(one("x", since))), None, "a full page of newer ones");
    }
    let odd = Asked::about(api("discord"), "POST /api/v10/channels/1/messages", r#"{"content": " hi"}"#);
    assert_eq!(odd.told("[]"), None, "it may be written otherwise");
}

#[test]
fn kubernetes_is_asked_for_the_name() {
    let job = Asked::about(
        api("kubernetes"),
        "POST /apis/batch/v1/namespaces/n/jobs",
        r#"{"metadata": {"name": "migrate"}}"#,
    );
    assert_eq!(job.url(), "https://kubernetes/apis/batch/v1/namespaces/n/jobs/migrate");
    assert_eq!(job.says(404, "{}"), Some(false));
    assert_eq!(job.told(r#"{"metadata": {"creationTimestamp": "2026-05-04T10:00:31Z"}}"#), Some(true));
    assert_eq!(job.told(r#"{"metadata": {"creationTimestamp": "2026-05-01T10:00:31Z"}}"#), None);
    let request = api("kubernetes").request(
        "POST /apis/batch/v1/namespaces/n/jobs",
        r#"{"metadata": {"generateName": "migrate-"}}"#,
        "",
    );
    assert!(api("kubernetes").rule(&request).probe.is_none(), "generateName has nothing to ask for");
}
