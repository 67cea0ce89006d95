//! How a command ended, by each source.

use super::ISSUE;
use super::session::Session;
use crate::home::Ran;
use serde_json::json;

#[test]
fn a_lost_answer_is_a_doubt_and_its_repeat_is_denied() {
    let session = Session::start();
    session.ends("echo 'Post: context deadline exceeded (timeout)' >&2; exit 1");
    session.shell(ISSUE).ran();
    assert_eq!(session.states(), ["in_doubt"]);
    session.ends_well();
    let reason = session.shell(ISSUE).denied();
    assert!(reason.contains("Safe to retry: no"), "{reason}");
    assert_eq!(session.world().len(), 1);
}

#[test]
fn a_killed_client_leaves_a_doubt_and_no_second_issue() {
    let session = Session::start();
    let line = session.ask("toolu_1", ISSUE).unwrap();
    session.ends("kill -9 $PPID; exit 1");
    assert_eq!(Ran::of(session.bash(&line).output().unwrap()).code, None);
    let reason = session.shell(ISSUE).denied();
    assert!(reason.contains("has not reported its end"), "{reason}");
    assert_eq!(session.world().len(), 1);
}

#[test]
fn an_end_in_the_background_counts_when_it_comes() {
    let session = Session::start();
    let line = session.ask("toolu_1", ISSUE).unwrap();
    session.ends("while [ ! -f go ]; do sleep 0.05; done");
    let child = session.spawn(&line);
    semel_testkit::wait_until("the command acts", || session.world().len() == 1);
    let timed_out = json!({
        "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": "toolu_1", "tool_input": {"command": line},
        "tool_response": {"stdout": "", "stderr": "", "interrupted": false, "backgroundTaskId": "b1", "timedOutAfterMs": 1000},
    });
    assert_eq!(session.tell(timed_out).code, Some(0));
    assert_eq!(session.states(), ["in_flight"], "a timeout is no success");
    assert!(session.shell(ISSUE).denied().contains("Safe to retry: wait"));
    session.home.file("go", "");
    assert!(child.wait_with_output().unwrap().status.success());
    assert_eq!(session.states(), ["applied"]);
    assert_eq!(session.world().len(), 1);
}

#[test]
fn a_failure_behind_the_command_takes_no_success_back() {
    let session = Session::start();
    let (_, ran, _) = session.shell(&format!("{ISSUE} && false")).ran();
    assert_eq!(ran.code, Some(1));
    assert_eq!(session.states(), ["applied"]);
}

#[test]
fn the_transcript_tells_an_end_that_no_event_told() {
    let session = Session::start();
    session.ends("exit 4");
    let line = session.ask("toolu_1", "git status && gh release create v1").unwrap();
    assert_eq!(Ran::of(session.bash(&line).output().unwrap()).code, Some(4));
    assert_eq!(session.states(), ["in_flight"]);
    let entry = json!({"type": "user", "message": {"content": [
        {"type": "tool_result", "tool_use_id": "toolu_1", "is_error": true, "content": "Exit code 4\nunknown tag"}]}});
    let transcript = session.home.file("transcript.jsonl", &format!("{entry}\n"));
    let told = session.tell(json!({"hook_event_name": "Stop", "transcript_path": transcript}));
    assert_eq!(told.code, Some(0), "{told:?}");
    assert_eq!(
        session.states(),
        ["in_doubt"],
        "an exit code of its own proves nothing of a consequential command"
    );
}

#[test]
fn a_success_whose_output_never_reached_the_model_is_shown_to_it() {
    let session = Session::start();
    let line = session.ask("toolu_1", ISSUE).unwrap();
    assert_eq!(Ran::of(session.bash(&line).output().unwrap()).code, Some(0));
    // Esc: no event follows.
    let reason = session.shell(ISSUE).denied();
    assert!(reason.contains("This is a success"), "{reason}");
    assert_eq!(session.world().len(), 1);
}

#[test]
fn a_hook_that_takes_the_bracket_away_is_found_out() {
    let session = Session::start();
    session.ask("toolu_1", ISSUE).unwrap();
    let ran = Ran::of(session.bash(ISSUE).output().unwrap());
    let after = session.answered("toolu_1", ISSUE, &ran);
    assert!(after["additionalContext"].as_str().unwrap().contains("without its guard"), "{after}");
    assert_eq!(session.states(), ["applied"]);
    let (line, _, after) = session.shell(ISSUE).ran();
    assert_eq!(line, "true", "{after}");
    assert_eq!(session.world().len(), 1);
}
