//! A file that grows is told about once, and its history is not.

use semel_detect::audit::finding::FindingLevel;
use semel_detect::audit::follow::Follower;
use semel_detect::audit::run::AuditOptions;
use semel_detect::judge::Judge;
use std::fs::OpenOptions;
use std::io::Write;

fn charge(n: u32, answer: Option<&str>) -> String {
    let call = format!(
        r#"{{"type":"assistant","sessionId":"s","timestamp":"2026-03-01T09:00:{n:02}Z","message":{{"id":"m{n}","content":[{{"type":"tool_use","id":"t{n}","name":"mcp__billing__create_charge","input":{{"customer":"c","amount":5}}}}]}}}}"#
    );
    let answer = answer.map(|answer| {
        format!(
            r#"{{"type":"user","sessionId":"s","timestamp":"2026-03-01T09:00:{n:02}Z","message":{{"content":[{{"type":"tool_result","tool_use_id":"t{n}","content":"{answer}"}}]}}}}"#
        )
    });
    [Some(call), answer].into_iter().flatten().map(|line| line + "\n").collect()
}

#[test]
fn a_duplicate_is_told_once_when_it_happens() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("s.jsonl");
    let append = |text: &str| {
        let mut file = OpenOptions::new().create(true).append(true).open(&path).expect("writable");
        file.write_all(text.as_bytes()).expect("writable");
    };
    let judge = Judge::new(Vec::new()).expect("the packs load");
    let options = AuditOptions::default();
    let mut follower = Follower::new(&judge, &options);
    let mut look = || follower.look(&[directory.path().to_owned()]);

    append(&(charge(1, Some("charged ch_1a")) + &charge(2, Some("charged ch_2a"))));
    assert_eq!(look().len(), 0, "that was before anybody watched");
    assert_eq!(look().len(), 0);
    let third = charge(3, Some("charged ch_3a"));
    let (begun, rest) = third.split_at(40);
    append(begun);
    assert_eq!(look().len(), 0, "half a line says nothing");
    append(rest);
    let found = look();
    assert_eq!(
        found.iter().map(|finding| (finding.level, finding.calls.len())).collect::<Vec<_>>(),
        [(FindingLevel::Proven, 3)]
    );
    assert_eq!(look().len(), 0, "once");
}

#[test]
fn a_call_without_an_answer_counts_as_soon_as_the_model_goes_on() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("s.jsonl");
    std::fs::write(&path, charge(1, None)).expect("writable");
    let judge = Judge::new(Vec::new()).expect("the packs load");
    let options = AuditOptions::default();
    let mut follower = Follower::new(&judge, &options);
    assert_eq!(follower.look(std::slice::from_ref(&path)).len(), 0);
    std::fs::write(&path, charge(1, None) + &charge(2, Some("charged ch_2a"))).expect("writable");
    let found = follower.look(&[path]);
    assert_eq!(found.iter().map(|finding| finding.level).collect::<Vec<_>>(), [FindingLevel::Likely]);
}

#[test]
fn a_file_that_begins_anew_is_read_from_its_beginning() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("s.jsonl");
    let judge = Judge::new(Vec::new()).expect("the packs load");
    let options = AuditOptions::default();
    let mut follower = Follower::new(&judge, &options);
    let note = "{\"type\":\"note\",\"sessionId\":\"s\"}\n";
    std::fs::write(&path, note.repeat(100)).expect("writable");
    follower.look(std::slice::from_ref(&path));
    std::fs::write(&path, charge(1, Some("charged ch_1a")) + &charge(2, Some("charged ch_2a")))
        .expect("writable");
    assert_eq!(follower.look(&[path]).len(), 1);
}
