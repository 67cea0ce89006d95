use super::{TOUCH, answer};
use crate::home::Home;

#[test]
fn a_repeat_of_class_act_runs_and_is_flagged() {
    let home = Home::new();
    assert!(answer(&home.run(&["--json"], TOUCH)).get("possible_repeat").is_none());
    assert_eq!(answer(&home.run(&["--json"], TOUCH))["possible_repeat"], true);
    let plain = home.run(&[], TOUCH);
    assert!(
        plain.stderr.contains("possible_repeat: the same call was done before, and this one ran too (ef_"),
        "{plain:?}"
    );
    assert_eq!(home.effects(), 3);
}

#[test]
fn a_repeat_of_a_consequential_action_is_answered_from_the_record() {
    let home = Home::new();
    for _ in 0..3 {
        assert_eq!(home.run(&["--class", "consequential"], TOUCH).stdout, "touched\n");
    }
    assert_eq!(home.effects(), 1);
}

#[test]
fn a_deliberate_repeat_runs_once_for_each_reason() {
    let home = Home::new();
    let class = ["--class", "consequential"];
    home.run(&class, TOUCH);
    for reason in ["first parcel", "first parcel", "second parcel", "first parcel"] {
        assert_eq!(home.run(&[&class[..], &["--again", reason]].concat(), TOUCH).code, Some(0));
    }
    assert_eq!(home.effects(), 3);
}

#[test]
fn a_key_used_for_something_else_is_drift_and_names_what_differs() {
    let home = Home::new();
    home.semel(["run", "--key", "k", "--", "sh", "-c", TOUCH, "a"]);
    let other = home.semel(["run", "--json", "--key", "k", "--", "sh", "-c", TOUCH, "b"]);
    assert_eq!(other.code, Some(123));
    let answer = other.json();
    assert_eq!(answer["code"], "drift");
    assert_eq!(answer["differing"], serde_json::json!(["argv[3]"]));
    assert_eq!(home.effects(), 1);
}

#[test]
fn the_working_directory_is_part_of_what_is_asked() {
    let home = Home::new();
    std::fs::create_dir(home.work().join("other")).expect("a directory");
    let args = ["run", "--class", "consequential", "--", "sh", "-c", "echo x >> $HOME/world"];
    home.semel(args);
    let mut elsewhere = home.command(args);
    elsewhere.current_dir(home.work().join("other")).output().expect("semel runs");
    let world = std::fs::read_to_string(home.work().join("../world")).expect("the world was changed");
    assert_eq!(world.lines().count(), 2);
}

#[test]
fn equal_calls_of_two_runs_are_two_effects_and_of_one_run_one() {
    let home = Home::new();
    for run in ["a", "a", "b"] {
        home.run(&["--class", "consequential", "--run", run], TOUCH);
    }
    assert_eq!(home.effects(), 2);
    // A key is the same in every run.
    for run in ["a", "b"] {
        home.run(&["--key", "k", "--run", run], TOUCH);
    }
    assert_eq!(home.effects(), 3);
}

#[test]
fn the_run_comes_from_the_environment_too() {
    let home = Home::new();
    let in_run = |name: &str, value: &str| {
        let args = ["run", "--json", "--class", "consequential", "--", "sh", "-c", TOUCH];
        let output = home.command(args).env(name, value).output().expect("semel runs");
        assert!(output.status.success());
    };
    in_run("SEMEL_RUN_ID", "r1");
    in_run("BAGGAGE", "other=1, semel.run_id=r1;ttl=5");
    assert_eq!(home.effects(), 1);
    in_run("SEMEL_RUN_ID", "r2");
    assert_eq!(home.effects(), 2);
}

#[test]
fn a_reworded_text_is_held_while_its_like_is_in_doubt_and_another_invoice_is_not() {
    let home = Home::new();
    let send = |to: &str, text: &str, script: &str| {
        let run = ["run", "--json", "--class", "consequential", "--"];
        home.semel([&run[..], &["sh", "-c", script, "send", to, "--text", text]].concat())
    };
    assert_eq!(send("bob", "please pay the bill", "kill -9 $$").code, Some(121));
    let reworded = send("bob", "kindly pay your bill", "kill -9 $$");
    assert_eq!(reworded.code, Some(121));
    assert_eq!(reworded.json()["differing"], serde_json::json!(["argv[6]"]));
    assert_eq!(reworded.json()["outcome"], "held");
    let another =
        home.semel(["run", "--class", "consequential", "--", "sh", "-c", TOUCH, "send", "eve", "please pay"]);
    assert_eq!(another.code, Some(0));
}
