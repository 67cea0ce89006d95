//! `POST /api/v1/effects/ID/undo`.

use super::id;
use crate::api::client::{ApiClient, charge, token};
use crate::home::Home;
use crate::serve::served::{Served, TOKEN};
use semel_testkit::http::{RouteReply, RoutedApi};
use serde_json::{Value, json};

fn why() -> Value {
    json!({"reason": "wrong order"})
}

#[test]
fn what_a_client_did_itself_is_taken_back_once() {
    let (home, bank) = (Home::new(), RoutedApi::start());
    bank.tell("DELETE /charges/ch_7", [RouteReply::json(200, "{}")]);
    let policy = format!(
        "[[rule]]\nmatch = \"fn:charge\"\nclass = \"consequential\"\n\
         [rule.undo]\nhttp = \"DELETE {}/charges/{{reply.id}}\"\n",
        bank.url()
    );
    let served = Served::start(&home, &policy);
    let admin = ApiClient::new(&served.address, TOKEN);
    let claim = admin.claim(json!({"run": "r1", "action": "fn:charge", "arguments": {"customer": "ann"}}));
    let settled = admin.settle(&claim, "applied", json!({"id": "ch_7"}));
    assert_eq!(settled.status, 200, "{settled:?}");
    let effect = id(&settled.json());
    let cancelled = admin.post("/runs/r1/cancel", json!({})).json();
    let call = format!("http DELETE {}/charges/ch_7", bank.url());
    assert_eq!(cancelled["undo"], json!([{"effect_id": effect, "call": call}]), "{cancelled}");
    let dry = admin.post(&format!("/effects/{effect}/undo"), json!({"reason": "r", "dry_run": true}));
    assert_eq!((dry.status, &dry.json()["would"], bank.effects()), (200, &json!("run"), 0), "{dry:?}");
    let undone = admin.post(&format!("/effects/{effect}/undo"), why());
    assert_eq!((undone.status, &undone.json()["outcome"]), (200, &json!("ran")), "{undone:?}");
    let again = admin.post(&format!("/effects/{effect}/undo"), why());
    assert_eq!((again.status, &again.json()["outcome"]), (200, &json!("replayed")), "{again:?}");
    assert_eq!((id(&again.json()), bank.effects()), (id(&undone.json()), 1));
    let shown = admin.get(&format!("/effects/{effect}")).json();
    assert_eq!(shown["undone"]["by"], undone.json()["effect_id"], "{shown}");
    let refund = admin.get(&format!("/effects/{}", id(&undone.json()))).json();
    assert_eq!(refund["undoes"]["effect_id"], json!(effect), "{refund}");
}

#[test]
fn what_cannot_be_taken_back_is_a_problem() {
    let home = Home::new();
    let served = Served::start(&home, "");
    let admin = ApiClient::new(&served.address, TOKEN);
    let claim = admin.claim(charge("ann"));
    let effect = claim["effect_id"].as_str().expect("an id").to_owned();
    let undo = |expected: (u16, &str)| {
        let answer = admin.post(&format!("/effects/{effect}/undo"), why());
        assert_eq!(
            (answer.status, answer.json()["code"].as_str()),
            (expected.0, Some(expected.1)),
            "{answer:?}"
        );
    };
    undo((409, "in_flight"));
    assert_eq!(admin.settle(&claim, "in_doubt", Value::Null).json()["code"], "in_doubt");
    undo((423, "in_doubt"));
    admin.post(&format!("/effects/{effect}/resolve"), json!({"verdict": "applied", "reason": "seen"}));
    undo((409, "cannot_undo"));
    assert_eq!(admin.post("/effects/ef_00000000000000000000000007/undo", why()).status, 404);
    assert_eq!(admin.post(&format!("/effects/{effect}/undo"), json!({})).status, 400, "a reason is needed");
}

#[test]
fn an_agent_or_another_tenant_takes_nothing_back() {
    let home = Home::new();
    let served = Served::start(&home, "");
    let effect = ApiClient::new(&served.address, TOKEN).claim(charge("ann"))["effect_id"].clone();
    let path = format!("/effects/{}/undo", effect.as_str().expect("an id"));
    let (agent, other) = (token(&home, "agent", "local", "a"), token(&home, "operator", "other", "o"));
    assert_eq!(ApiClient::new(&served.address, &agent).post(&path, why()).status, 403);
    assert_eq!(ApiClient::new(&served.address, &other).post(&path, why()).status, 404);
}

#[test]
fn no_request_starts_a_command() {
    let till = super::Till::new();
    let charge = till.charged("7");
    let policy = std::fs::read_to_string(till.home.work().join("semel.toml")).expect("a policy");
    let served = Served::start(&till.home, &policy);
    let admin = ApiClient::new(&served.address, TOKEN);
    let held = admin.post(&format!("/effects/{charge}/undo"), why());
    assert_eq!((held.status, &held.json()["code"]), (403, &json!("held_for_person")), "{held:?}");
    let human = held.json()["human_next_step"].as_str().map(str::to_owned);
    assert_eq!(human, Some(format!("semel ledger show {charge}")));
    assert_eq!(till.refunds(), 0);
}
