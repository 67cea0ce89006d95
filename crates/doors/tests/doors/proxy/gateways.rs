//! APIs that a preset knows, behind a gateway that has them below a path of its own.

use super::stage::{FORM, JSON, Stage, ask_of, became};
use semel_testkit::http::ApiAct;
use serde_json::json;

const CHARGE: &str = "amount=2000&currency=usd&customer=cus_1";
const POD: &str = r#"{"metadata": {"name": "p"}}"#;

#[test]
fn three_keys_are_one_charge_behind_a_gateway() {
    for (path, charges, called) in [
        ("/gw", "/v1/charges", "/gw/v1/charges"),
        ("/gw/v1", "/charges", "/gw/v1/charges"),
        ("/v1", "/charges", "/v1/charges"),
    ] {
        let stage = Stage::known_below("stripe", &[("api", path)]);
        let charge = |key: &str| {
            let headers = format!("{FORM}Idempotency-Key: {key}\r\n");
            stage.send("POST", charges, &headers, CHARGE)
        };
        let charged = charge("a");
        let became_of_all: Vec<String> =
            [charged.clone(), charge("b"), charge("c")].iter().map(|answer| became(answer).1).collect();
        assert_eq!(
            (became_of_all, stage.api.effects()),
            (["ran", "replayed", "replayed"].map(str::to_owned).to_vec(), 1),
            "{path}"
        );
        assert_eq!(stage.api.last().line(), format!("POST {called} HTTP/1.1"));
        let effect = charged.header("semel-effect-id").expect("an effect");
        let shown = stage.house.effect(effect);
        assert_eq!(shown["action"], format!("http:POST api.stripe.com{called}"));
        let undone = stage.house.rule(&format!("/effects/{effect}/undo"), &json!({"reason": "a test"}));
        assert_eq!(undone.status, 200, "{undone:?}");
        let refunds = called.replace("charges", "refunds");
        assert_eq!(stage.api.last().line(), format!("POST {refunds} HTTP/1.1"), "{path}");
    }
}

#[test]
fn a_name_is_looked_up_and_deleted_where_the_cluster_is() {
    let stage = Stage::known_below("kubernetes", &[("api", "/k8s/c1")]);
    let pods = "/api/v1/namespaces/n/pods";
    let pod = r#"{"metadata": {"name": "p", "creationTimestamp": "2999-01-01T00:00:00Z"}}"#;
    stage.api.shows("/k8s/c1/api/v1/namespaces/n/pods/p", pod);
    stage.api.next(ApiAct::Vanish);
    let created = stage.send("POST", pods, JSON, POD);
    assert_eq!(became(&created).1, "ran", "{created:?}");
    assert_eq!(created.header("semel-evidence"), Some("probed"));
    assert_eq!(stage.api.effects(), 1, "it is there, so it is not created again");
    let effect = created.header("semel-effect-id").expect("an effect");
    let undone = stage.house.rule(&format!("/effects/{effect}/undo"), &json!({"reason": "a test"}));
    assert_eq!(undone.status, 200, "{undone:?}");
    assert_eq!(stage.api.last().line(), "DELETE /k8s/c1/api/v1/namespaces/n/pods/p HTTP/1.1");
}

#[test]
fn what_only_asks_passes_behind_a_gateway_too() {
    let stage = Stage::known_below("kubernetes", &[("api", "/k8s/c1")]);
    let review = stage.send("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", JSON, "{}");
    assert_eq!(became(&review).1, "none", "{review:?}");
}

#[test]
fn two_accounts_that_differ_in_their_path_alone_are_two_places() {
    let stage = Stage::known_below("stripe", &[("eu", "/eu"), ("us", "/us")]);
    let charge = |name: &str, key: &str| {
        let headers = format!("{FORM}Idempotency-Key: {key}\r\n");
        became(&ask_of(&stage.house, name, ("POST", "/v1/charges"), &headers, CHARGE).answer()).1
    };
    assert_eq!([charge("eu", "a"), charge("us", "a")], ["ran", "ran"]);
    assert_eq!([charge("eu", "b"), charge("us", "b")], ["replayed", "replayed"]);
    assert_eq!(stage.api.effects(), 2);
}

/// Whether it stands in another upstream or was written into the same one in between.
#[test]
fn a_slash_more_in_its_url_makes_no_other_place() {
    let stage = Stage::known_below("stripe", &[("one", "/gw"), ("two", "/gw/"), ("three", "/gw//")]);
    for (name, expected) in [("one", "ran"), ("two", "replayed"), ("three", "replayed")] {
        let headers = format!("{FORM}Idempotency-Key: order-1001\r\n");
        let charged = ask_of(&stage.house, name, ("POST", "/v1/charges"), &headers, CHARGE).answer();
        assert_eq!(became(&charged).1, expected, "{name}: {charged:?}");
    }
    assert_eq!(stage.api.effects(), 1);
}

#[test]
fn what_was_lost_is_asked_for_below_the_path_of_its_own_account() {
    let stage = Stage::known_below("kubernetes", &[("one", "/one"), ("two", "/two")]);
    let pod = r#"{"metadata": {"name": "p", "creationTimestamp": "2999-01-01T00:00:00Z"}}"#;
    for name in ["one", "two"] {
        let pods = format!("/{name}/api/v1/namespaces/n/pods");
        stage.api.shows(&format!("{pods}/p"), pod);
        stage.api.next(ApiAct::Vanish);
        let line = ("POST", "/api/v1/namespaces/n/pods");
        let created = ask_of(&stage.house, name, line, JSON, POD).answer();
        assert_eq!(created.header("semel-evidence"), Some("probed"), "{created:?}");
        assert_eq!(stage.api.last().line(), format!("GET {pods}/p HTTP/1.1"));
    }
    assert_eq!(stage.api.effects(), 2);
}
