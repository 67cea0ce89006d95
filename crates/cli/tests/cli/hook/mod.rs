//! The hook of a coding agent's client, told the events that the client tells.

mod ending;
mod memory;
mod session;

use session::Session;

const ISSUE: &str = "gh issue create --title 'Login fails' --body 'On Safari.'";

#[test]
fn a_line_with_nothing_to_guard_passes_and_opens_no_ledger() {
    let session = Session::start();
    for line in ["ls | wc -l", "git status && git log", "gh issue list --state open", "echo 'git push'"] {
        assert_eq!(session.ask("toolu_1", line).as_deref(), Ok(line));
    }
    assert!(!session.home.state().join("ledger.db").exists());
}

#[test]
fn a_guarded_command_runs_once_and_its_repeat_shows_the_record() {
    let session = Session::start();
    let (line, ran, after) = session.shell(ISSUE).ran();
    assert!(
        line.starts_with("semel began ") && line.contains(&format!(" && {ISSUE} && semel ended ")),
        "{line}"
    );
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "https://example.com/issue/1\n"));
    assert!(after.is_null());

    let (line, ran, after) = session.shell(ISSUE).ran();
    assert_eq!((line.as_str(), ran.stdout.as_str()), ("true", ""));
    assert_eq!(after["updatedToolOutput"]["stdout"], "https://example.com/issue/1\n");
    assert_eq!(after["updatedToolOutput"]["interrupted"], false, "in the form of the tool");
    assert_eq!(session.world().len(), 1);
    assert_eq!(session.states(), ["applied"]);
}

#[test]
fn semel_again_repeats_on_purpose_and_the_same_again_does_not() {
    let session = Session::start();
    session.shell(ISSUE).ran();
    let list = session.home.json(["ledger", "list"]);
    let id = list["items"][0]["effect_id"].as_str().unwrap();
    let again = format!("semel again {id} -- {ISSUE}");
    let (line, ran, _) = session.shell(&again).ran();
    assert!(
        !line.contains("semel again") && line.contains(ISSUE),
        "the client's permission check sees the command: {line}"
    );
    assert_eq!(ran.code, Some(0));
    assert_eq!(session.world().len(), 2);
    session.shell(&again);
    assert_eq!(session.world().len(), 2);
}

#[test]
fn what_stands_around_the_command_is_unchanged() {
    let session = Session::start();
    let (_, ran, _) = session.shell(&format!("export A=1 && cd /tmp && {ISSUE} && echo \"$A $PWD\"")).ran();
    assert_eq!(ran.stdout, "https://example.com/issue/1\n1 /tmp\n");
    session.ends("exit 7");
    let (_, ran, _) = session.shell("echo hi && gh issue create --title other && echo never").ran();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(7), "hi\n"));
}

#[test]
fn one_directory_is_not_another() {
    let session = Session::start();
    for name in ["a", "b"] {
        std::fs::create_dir(session.home.work().join(name)).unwrap();
    }
    let publish = |directory: &str| session.shell(&format!("cd {directory} && gh release create v1"));
    publish("a").ran();
    let (_, ran, _) = publish("b").ran();
    assert_eq!(ran.code, Some(0));
    let (_, ran, _) = publish("a").ran();
    assert_ne!(ran.code, Some(0), "the claim is made where the command runs");
    assert!(ran.stderr.contains("Not run again"), "{ran:?}");
    assert_eq!(session.world().len(), 2);
}

#[test]
fn a_line_that_hides_the_end_of_a_command_is_denied_with_the_way_out() {
    let session = Session::start();
    let lines = [
        "gh issue create --title a | tail -1",
        "gh issue create --title a; echo done",
        "for i in 1 2; do gh issue create -t $i; done",
    ];
    for line in lines {
        let reason = session.shell(line).denied();
        assert!(reason.contains("Not run.") && reason.contains("by itself"), "{line}: {reason}");
    }
    assert_eq!(session.world(), Vec::<String>::new());
}

#[test]
fn words_that_only_the_shell_knows_are_never_answered_from_the_record() {
    let session = Session::start();
    session.home.file("title", "one");
    let line = "gh issue create --title \"$(cat title)\"";
    session.shell(line).ran();
    let reason = session.shell(line).denied();
    assert!(reason.contains("semel again ef_"), "{reason}");
    assert_eq!(session.world().len(), 1);
}

#[test]
fn a_convergent_command_runs_as_often_as_it_is_wanted_and_is_listed() {
    let session = Session::start();
    for _ in 0..3 {
        session.shell("git push origin main").ran();
    }
    assert_eq!(session.world().len(), 3);
    assert_eq!(session.states().len(), 3);
}

#[test]
fn two_at_the_same_moment_meet_at_the_claim() {
    let session = Session::start();
    session.ends("sleep 1");
    let lines =
        ["toolu_a", "toolu_b"].map(|call| session.ask(call, ISSUE).expect("nothing speaks against it"));
    let children = lines.map(|line| session.spawn(&line));
    let codes = children.map(|child| child.wait_with_output().expect("it ends").status.code());
    assert_eq!(session.world().len(), 1, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| **code == Some(0)).count(), 1, "{codes:?}");
}

#[test]
fn a_bracket_that_comes_back_from_the_model_is_read_through() {
    let session = Session::start();
    let first = session.ask("toolu_1", ISSUE).unwrap();
    let second = session.ask("toolu_2", &first).unwrap();
    assert_eq!(second.matches("semel began").count(), 1, "{second}");
}

#[test]
fn garbage_is_denied_by_exit_code_and_nothing_is_recorded() {
    let session = Session::start();
    for garbage in ["", "{", "[]", "{\"hook_event_name\": 7}"] {
        let told = session.home.semel_reading(["hook"], garbage.as_bytes());
        assert_eq!(told.code, Some(2), "{told:?}");
        assert!(told.stderr.contains("Safe to retry: yes"), "{told:?}");
    }
    assert!(!session.home.state().join("ledger.db").exists());
}

#[test]
fn a_command_of_ten_megabytes_is_judged() {
    let session = Session::start();
    let body = "x".repeat(10 * 1024 * 1024);
    assert!(session.ask("toolu_1", &format!("echo '{body}'")).is_ok());
    let told = session.ask("toolu_2", &format!("gh issue create --body '{body}'"));
    assert!(told.is_ok_and(|line| line.starts_with("semel began ")));
}

#[test]
fn without_its_ledger_a_guarded_command_is_denied_and_others_pass() {
    let session = Session::start();
    std::fs::write(session.home.state(), "a file in its place").unwrap();
    let reason = session.shell(ISSUE).denied();
    assert!(reason.contains("Safe to retry: yes"), "{reason}");
    session.shell("ls").ran();
    assert_eq!(session.world(), Vec::<String>::new());
}

#[test]
fn in_observe_mode_nothing_is_changed() {
    let session = Session::start();
    session.home.file("semel.toml", "version = 1\nmode = \"observe\"\n");
    for _ in 0..2 {
        let (line, ..) = session.shell(ISSUE).ran();
        assert_eq!(line, ISSUE);
    }
    session.shell("gh issue create --title a | tail -1").ran();
}
