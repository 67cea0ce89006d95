//! Memory boundaries: what an agent that has forgotten is told, and what is held.

use super::ISSUE;
use super::session::Session;
use serde_json::json;

const POLICY: &str = "version = 1\n[[rule]]\nmatch = \"cli:deploy\"\nclass = \"act\"\n";

fn start(session: &Session, source: &str) -> String {
    let told = session.tell(json!({"hook_event_name": "SessionStart", "source": source}));
    assert_eq!(told.code, Some(0), "{told:?}");
    match told.stdout.is_empty() {
        true => String::new(),
        false => told.json()["hookSpecificOutput"]["additionalContext"].as_str().unwrap().to_owned(),
    }
}

#[test]
fn an_act_that_was_forgotten_is_held_once_and_one_on_purpose_runs() {
    let session = Session::start();
    session.home.file("semel.toml", POLICY);
    for _ in 0..2 {
        session.shell("deploy web").ran();
    }
    assert_eq!(session.world().len(), 2, "twice on purpose");
    start(&session, "compact");
    let reason = session.shell("deploy web").denied();
    assert!(reason.contains("earlier in this run") && reason.contains("semel again ef_"), "{reason}");
    let again = reason.rsplit("run: ").next().unwrap().to_owned();
    session.shell(&again).ran();
    session.shell("deploy web").ran();
    assert_eq!(session.world().len(), 4, "behind the boundary it runs as ever");
}

#[test]
fn another_session_has_forgotten_nothing() {
    let mut session = Session::start();
    session.home.file("semel.toml", POLICY);
    session.shell("deploy web").ran();
    start(&session, "compact");
    session.name = "s2".to_owned();
    session.shell("deploy web").ran();
    assert_eq!(session.world().len(), 2);
}

#[test]
fn a_compacted_agent_is_told_doubts_first_and_then_the_newest() {
    let session = Session::start();
    session.shell("gh issue create --title first").ran();
    session.shell("gh issue create --title second").ran();
    session.ends("kill -9 $$");
    session.shell("gh issue create --title third").ran();
    let told = start(&session, "compact");
    let at = |text: &str| told.find(text).unwrap_or_else(|| panic!("{text} is missing in {told}"));
    assert!(at("third") < at("second") && at("second") < at("first"), "{told}");
    assert!(at("## In doubt") < at("## Done"), "{told}");
    assert_eq!(start(&session, "startup"), "");
}

#[test]
fn a_long_list_is_cut_at_its_old_end() {
    let session = Session::start();
    session.shell(ISSUE).ran();
    for number in 0..90 {
        let title = format!("{number}-{}", "x".repeat(80));
        session.home.semel(["run", "--run", "claude-s1", "--", "sh", "-c", ":", &title]);
    }
    let told = start(&session, "resume");
    assert!(told.chars().count() <= 9_000, "{}", told.chars().count());
    assert!(told.contains("89-xxx") && !told.contains(" 0-xxx") && told.contains("earlier ones"), "{told}");
}
