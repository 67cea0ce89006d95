//! Disks that are full, read-only or damaged, output without end, and signals: the real binary, judged by the world.

use crate::scene::{Mounted, Scene, Started, children, now, private_directory, say, signal, sleep, until};
use rustix::process::Signal;
use semel_testkit::history::{Saw, Standing};
use semel_testkit::semel_process::{ProcessAnswer, RunCall};
use semel_testkit::world;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

fn asked(key: &str) -> RunCall<'_> {
    RunCall { key, json: true, wait: Some("5s"), ..RunCall::default() }
}

/// A scene whose ledger lies on a small filesystem of its own.
fn scene_on_small_disk() -> (Scene, Mounted) {
    let directory = private_directory();
    let state = directory.path().join("state");
    fs::create_dir(&state).expect("there is room");
    let mounted = Mounted::new("none", &state, &["-t", "tmpfs", "-o", "size=2m,mode=0700"]);
    // Bindings are dropped last first: the filesystem goes before the directory that it is mounted in.
    (Scene::with_ledger_in(directory, state), mounted.expect("only root may mount"))
}

/// Takes the last free byte.
const FILL: &str = "cat /dev/zero";

fn fill(state: &Path) {
    let file = fs::File::create(state.join("filler")).expect("a name takes no room");
    let full = Command::new("cat").arg("/dev/zero").stdout(file).stderr(Stdio::null()).status();
    assert!(!full.expect("cat starts").success(), "the disk is not full");
}

fn make_room(state: &Path) {
    fs::remove_file(state.join("filler")).expect("it was filled");
}

fn body_of(scene: &Scene, key: &str) -> Saw {
    let log = scene.world.log().expect("the world's log can be read");
    Saw::Success { body: world::body(&log[key][0].id) }
}

fn assert_nothing_ran(scene: &Scene, key: &str, answered: &ProcessAnswer) {
    assert!(matches!(answered.saw, Saw::Unavailable { .. }), "{answered:?}");
    assert_eq!((answered.code(), scene.changes(key)), (Some(125), 0), "{answered:?}");
}

#[test]
#[ignore = "mounts filesystems: run it as root with --ignored"]
fn a_disk_that_is_full_at_the_claim_sends_nothing() {
    let (scene, _mounted) = scene_on_small_disk();
    let before = scene.call(&asked("before"));
    fill(&scene.process.state);
    assert_nothing_ran(&scene, "k", &scene.call(&asked("k")));
    let replayed = scene.call(&asked("before"));
    assert_eq!((&replayed.saw, scene.changes("before")), (&before.saw, 1), "{replayed:?}");
    make_room(&scene.process.state);
    assert_eq!(scene.call(&asked("k")).saw, body_of(&scene, "k"));
    assert_eq!(scene.changes("k"), 1);
}

#[test]
#[ignore = "mounts filesystems: run it as root with --ignored"]
fn a_disk_that_is_full_before_the_ledger_exists_sends_nothing() {
    let (scene, _mounted) = scene_on_small_disk();
    fill(&scene.process.state);
    assert_nothing_ran(&scene, "k", &scene.call(&asked("k")));
    make_room(&scene.process.state);
    assert_eq!(scene.call(&asked("k")).saw, body_of(&scene, "k"));
}

#[test]
#[ignore = "mounts filesystems: run it as root with --ignored"]
fn a_disk_that_is_full_at_the_settlement_leaves_a_doubt_and_loses_nothing() {
    let (scene, _mounted) = scene_on_small_disk();
    let before = scene.call(&asked("before"));
    // The command itself takes the room that its settlement needs.
    let script = format!("{FILL} > {}/filler 2>/dev/null; exec \"$@\"", scene.process.state.display());
    let call =
        || ProcessAnswer::of(scene.process.shell(&asked("k"), &script).output().expect("semel starts"), true);
    let first = call();
    assert_eq!((&first.saw, first.code(), scene.changes("k")), (&Saw::InDoubt, Some(121), 1), "{first:?}");
    // Even with the disk still full it is not taken for unseen.
    let held = call();
    assert_eq!((&held.saw, scene.changes("k")), (&Saw::InDoubt, 1), "{held:?}");
    make_room(&scene.process.state);
    let second = call();
    assert_eq!((&second.saw, second.code(), scene.changes("k")), (&Saw::InDoubt, Some(121), 1), "{second:?}");
    assert_eq!(scene.call(&asked("before")).saw, before.saw);
}

#[test]
#[ignore = "mounts filesystems: run it as root with --ignored"]
fn a_disk_that_has_room_again_in_time_takes_the_settlement() {
    let (scene, _mounted) = scene_on_small_disk();
    scene.call(&asked("before"));
    let filler = scene.process.state.join("filler");
    let script = format!("{FILL} > {}/filler 2>/dev/null; exec \"$@\"", scene.process.state.display());
    let started = Started::new(scene.process.shell(&asked("k"), &script));
    until("the command has run", || scene.changes("k") == 1);
    sleep(Duration::from_millis(500));
    fs::remove_file(filler).expect("it was filled");
    let first = started.finish(true);
    assert_eq!((&first.saw, scene.changes("k")), (&body_of(&scene, "k"), 1), "{first:?}");
}

#[test]
#[ignore = "mounts filesystems: run it as root with --ignored"]
fn a_read_only_disk_sends_nothing() {
    let (scene, mounted) = scene_on_small_disk();
    let before = scene.call(&asked("before"));
    mounted.remount("remount,ro");
    assert_nothing_ran(&scene, "k", &scene.call(&asked("k")));
    let again = scene.call(&asked("before"));
    assert_eq!(scene.changes("before"), 1, "{again:?}");
    mounted.remount("remount,rw");
    assert_eq!(scene.call(&asked("before")).saw, before.saw);
    assert_eq!(scene.call(&asked("k")).saw, body_of(&scene, "k"));
}

/// Enough calls that the WAL has been folded into the database file at least once.
fn filled_ledger() -> Scene {
    let scene = Scene::new();
    for number in 0..40 {
        let key = format!("filler-{number}");
        scene.call(&asked(&key));
    }
    let answered = scene.call(&asked("k"));
    assert_eq!(answered.saw, body_of(&scene, "k"), "{answered:?}");
    scene
}

#[test]
fn a_damaged_ledger_sends_nothing() {
    type Harm = fn(&mut Vec<u8>);
    let harms: &[(&str, Harm)] = &[
        ("its header is garbage", |bytes| bytes[..100].fill(0xa5)),
        ("it is some other file", |bytes| *bytes = b"Dear diary, today I was no database.\n".repeat(200)),
        ("it is cut in half", |bytes| bytes.truncate(bytes.len() / 2)),
        ("it is cut within its first page", |bytes| bytes.truncate(1_000)),
        ("every page begins with garbage", |bytes| {
            bytes.chunks_mut(4_096).skip(1).for_each(|page| page[..16].fill(0xff));
        }),
        ("all pages but the first are zeroed", |bytes| bytes[4_096..].fill(0)),
        ("all pages but the first are noise", |bytes| {
            let mut random = semel_testkit::random::Random::new(7);
            bytes[4_096..].iter_mut().for_each(|byte| *byte = random.draw() as u8);
        }),
    ];
    let scene = filled_ledger();
    let ledger = scene.process.ledger();
    fold(&ledger);
    let sound = fs::read(&ledger).expect("the ledger can be read");
    for (what, harm) in harms {
        let mut bytes = sound.clone();
        harm(&mut bytes);
        replace(&ledger, &bytes);
        let known = scene.call(&asked("k"));
        assert!(matches!(known.saw, Saw::Unavailable { .. }), "{what}: {known:?}");
        assert_eq!((known.code(), scene.changes("k")), (Some(125), 1), "{what}: {known:?}");
        let unknown = scene.call(&asked("new"));
        assert_eq!(scene.changes("new"), 0, "{what}: {unknown:?}");
        assert_eq!(unknown.code(), Some(125), "{what}: {unknown:?}");
    }
    replace(&ledger, &sound);
    assert_eq!(scene.call(&asked("k")).saw, body_of(&scene, "k"));
}

#[test]
fn a_ledger_that_is_gone_holds_what_it_may_have_forgotten() {
    for emptied in [true, false] {
        let scene = filled_ledger();
        let ledger = scene.process.ledger();
        fold(&ledger);
        match emptied {
            true => replace(&ledger, &[]),
            false => fs::remove_file(&ledger).expect("it was there"),
        }
        let answered = scene.call(&asked("k"));
        assert_eq!((&answered.saw, scene.changes("k")), (&Saw::InDoubt, 1), "{answered:?}");
    }
}

/// Moves all that stands in the WAL into the database file, and empties the WAL.
fn fold(ledger: &Path) {
    let connection = rusqlite::Connection::open(ledger).expect("it is a database");
    let folded = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
    assert_eq!(folded.expect("it can be folded"), 0, "somebody else uses the ledger");
}

fn replace(ledger: &Path, bytes: &[u8]) {
    for beside in ["ledger.db-wal", "ledger.db-shm"] {
        let _was_not_there = fs::remove_file(ledger.with_file_name(beside));
    }
    fs::write(ledger, bytes).expect("there is room");
}

/// Of the whole `semel` process, at its highest.
const MEMORY_KIB_MAX: u64 = 64 * 1024;

#[test]
fn a_hundred_megabytes_of_output_fit_into_little_memory() {
    const OUTPUT: &str = "100000000";
    for json in [false, true] {
        let scene = Scene::new();
        let ask = RunCall { touch: &["--output-bytes", OUTPUT], json, ..asked("k") };
        let mut command = scene.process.command(&ask);
        let passed = scene.directory.path().join("passed");
        command.stdout(fs::File::create(&passed).expect("there is room"));
        let started = Started::new(command);
        let mut peak = 0;
        let process = started.id();
        let began = now();
        while let Some(highest) = peak_kib(process) {
            peak = peak.max(highest);
            assert!(began.elapsed() < Duration::from_secs(120), "it does not end");
            sleep(Duration::from_millis(5));
        }
        let answered = started.finish(false);
        say(format_args!("100 MB of output: {peak} KiB at most (json: {json})"));
        assert!(peak > 0 && peak < MEMORY_KIB_MAX, "{peak} KiB");
        assert_eq!((answered.code(), scene.changes("k")), (Some(0), 1), "{answered:?}");
        if !json {
            let length = fs::metadata(&passed).expect("it was passed on").len();
            assert!(length > 100_000_000, "only {length} bytes were passed on");
        }
        let replayed = scene.call(&RunCall { json: true, ..ask });
        assert_eq!((replayed.code(), scene.changes("k")), (Some(0), 1), "{replayed:?}");
        let reason = replayed.object["reason"].as_str().unwrap_or_default();
        assert!(reason.contains("was not kept"), "{replayed:?}");
        assert_eq!(scene.process.standing(&ask).expect("semel starts"), Ok(Standing::Applied));
    }
}

/// `None` once it has ended.
fn peak_kib(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn a_paused_owner_is_doubted_and_its_late_success_resolves_the_doubt() {
    let scene = Scene::new();
    let ask = RunCall { timeout: Some("1s"), touch: &["--linger-ms", "300"], ..asked("k") };
    let owner = Started::new(scene.process.command(&ask));
    until("the world has changed", || scene.changes("k") == 1);
    assert!(signal(owner.id(), Signal::STOP), "the owner ended too early");
    let early = scene.call(&RunCall { wait: Some("0s"), ..ask.clone() });
    assert!(matches!(early.saw, Saw::InFlight | Saw::InDoubt), "{early:?}");
    let late = scene.call(&RunCall { wait: Some("5s"), ..ask.clone() });
    assert_eq!((&late.saw, late.code(), scene.changes("k")), (&Saw::InDoubt, Some(121), 1), "{late:?}");
    assert!(signal(owner.id(), Signal::CONT), "the owner is gone");
    let own = owner.finish(true);
    assert_eq!(own.saw, body_of(&scene, "k"), "{own:?}");
    let replayed = scene.call(&ask);
    assert_eq!((&replayed.saw, scene.changes("k")), (&own.saw, 1), "{replayed:?}");
}

#[test]
fn a_paused_owner_keeps_a_probe_from_believing_that_nothing_happened() {
    let scene = Scene::new();
    // It naps before it touches the world, so that the probe finds nothing while the command can still act.
    let ask = RunCall {
        timeout: Some("1s"),
        probe_quiet: Some("100ms"),
        touch: &["--nap-ms", "400"],
        wait: Some("2s"),
        ..asked("k")
    };
    let owner = Started::new(scene.process.command(&ask));
    until("the command has started", || !children(owner.id()).is_empty());
    let command = children(owner.id())[0];
    assert!(signal(owner.id(), Signal::STOP) && signal(command, Signal::STOP), "they ended too early");
    let held = scene.call(&ask);
    assert_eq!((&held.saw, scene.changes("k")), (&Saw::InDoubt, 0), "{held:?}");
    assert!(signal(command, Signal::CONT), "the command is gone");
    until("the command has acted", || scene.changes("k") == 1);
    let found = scene.call(&ask);
    assert_eq!((&found.saw, scene.changes("k")), (&body_of(&scene, "k"), 1), "{found:?}");
    assert!(signal(owner.id(), Signal::CONT), "the owner is gone");
    assert_eq!(owner.finish(true).saw, found.saw);
    assert_eq!((scene.call(&ask).saw, scene.changes("k")), (found.saw, 1));
}

/// Nobody but the refused attempt ever sent, so the doubt that its lateness made must not outlive any sender's time.
#[test]
fn a_refusal_that_comes_after_the_deadline_does_not_leave_a_lasting_doubt() {
    let scene = Scene::new();
    let ask = RunCall {
        timeout: Some("1s"),
        probe_quiet: Some("100ms"),
        touch: &["--mode", "refuse", "--nap-ms", "300"],
        ..asked("k")
    };
    let owner = Started::new(scene.process.command(&ask));
    until("the command has started", || !children(owner.id()).is_empty());
    assert!(signal(owner.id(), Signal::STOP), "the owner ended too early");
    sleep(Duration::from_millis(1_200));
    let held = scene.call(&RunCall { wait: Some("0s"), ..ask.clone() });
    assert_eq!(held.saw, Saw::InDoubt, "{held:?}");
    assert!(signal(owner.id(), Signal::CONT), "the owner is gone");
    owner.finish(true);
    let later = scene.call(&RunCall { wait: Some("20s"), ..ask });
    assert_eq!((&later.saw, scene.changes("k")), (&Saw::NotApplied { attempt: Some(2) }, 0), "{later:?}");
}

#[test]
fn sigterm_reaches_the_command_and_its_end_is_settled() {
    let scene = Scene::new();
    let ask = asked("k");
    // It takes the signal as a reason to finish what it has begun.
    let script = "trap 'exec \"$@\"' TERM; echo ready > /dev/null; while :; do sleep 0.02; done";
    let started = Started::new(scene.process.shell(&ask, script));
    until("the command has started", || {
        children(started.id()).iter().any(|shell| !children(*shell).is_empty())
    });
    assert!(signal(started.id(), Signal::TERM), "it ended too early");
    let answered = started.finish(true);
    assert_eq!((&answered.saw, scene.changes("k")), (&body_of(&scene, "k"), 1), "{answered:?}");
    let mut again = scene.process.shell(&ask, script);
    let replayed = ProcessAnswer::of(again.output().expect("semel starts"), true);
    assert_eq!((replayed.saw, scene.changes("k")), (answered.saw, 1));
}

#[test]
fn a_command_that_dies_of_a_forwarded_sigterm_is_settled_as_a_doubt() {
    let scene = Scene::new();
    let ask = RunCall { touch: &["--linger-ms", "20000"], ..asked("k") };
    let started = Started::new(scene.process.command(&ask));
    until("the world has changed", || scene.changes("k") == 1);
    assert!(signal(started.id(), Signal::TERM), "it ended too early");
    let answered = started.finish(true);
    assert_eq!((&answered.saw, answered.code()), (&Saw::InDoubt, Some(121)), "{answered:?}");
    assert!(answered.object.to_string().contains("signal 15"), "{answered:?}");
    let again = scene.call(&ask);
    assert_eq!((again.saw, scene.changes("k")), (Saw::InDoubt, 1));
}

#[test]
fn a_lost_answer_is_held_and_a_probe_finds_it() {
    let scene = Scene::new();
    let ask = RunCall { touch: &["--mode", "lose"], ..asked("k") };
    let lost = scene.call(&ask);
    assert_eq!((&lost.saw, lost.code(), scene.changes("k")), (&Saw::InDoubt, Some(121), 1), "{lost:?}");
    assert_eq!((scene.call(&ask).saw, scene.changes("k")), (Saw::InDoubt, 1));
    let found = scene.call(&RunCall { probe_quiet: Some("100ms"), ..ask });
    assert_eq!((&found.saw, scene.changes("k")), (&body_of(&scene, "k"), 1), "{found:?}");
    assert_eq!(scene.world.count("k").expect("the world answers"), 1);
}

#[test]
fn a_refusal_changes_nothing_and_may_be_tried_again() {
    let scene = Scene::new();
    let refused = scene.call(&RunCall { touch: &["--mode", "refuse"], ..asked("k") });
    assert_eq!(
        (&refused.saw, refused.code()),
        (&Saw::NotApplied { attempt: Some(1) }, Some(3)),
        "{refused:?}"
    );
    let corrected = scene.call(&asked("k"));
    assert_eq!((&corrected.saw, scene.changes("k")), (&body_of(&scene, "k"), 1), "{corrected:?}");
}

#[test]
fn a_hundred_callers_of_one_key_make_one_change() {
    let scene = Scene::new();
    let ask = RunCall { wait: Some("60s"), touch: &["--delay-ms", "200"], ..asked("k") };
    let callers: Vec<Started> = (0..100).map(|_| Started::new(scene.process.command(&ask))).collect();
    let answers: Vec<ProcessAnswer> = callers.into_iter().map(|caller| caller.finish(true)).collect();
    let truth = body_of(&scene, "k");
    assert!(answers.iter().all(|answered| answered.saw == truth), "{answers:?}");
    let ran = answers.iter().filter(|answered| answered.object["outcome"] == "ran").count();
    assert_eq!((ran, scene.changes("k")), (1, 1));
}

#[test]
fn a_reused_key_for_something_else_never_runs() {
    let scene = Scene::new();
    scene.call(&asked("k"));
    let drifted = scene.call(&RunCall { touch: &["--delay-ms", "1"], ..asked("k") });
    assert_eq!((drifted.code(), scene.changes("k")), (Some(123), 1), "{drifted:?}");
    let doubtful = RunCall { touch: &["--mode", "lose"], ..asked("d") };
    assert_eq!(scene.call(&doubtful).saw, Saw::InDoubt);
    let drifted = scene.call(&asked("d"));
    assert_eq!((drifted.code(), scene.changes("d")), (Some(123), 1), "{drifted:?}");
}

#[test]
fn a_young_ledger_without_its_wal_holds_what_it_may_have_forgotten() {
    let scene = Scene::new();
    scene.call(&asked("k"));
    for beside in ["ledger.db-wal", "ledger.db-shm"] {
        fs::remove_file(scene.process.state.join(beside)).expect("it was there");
    }
    let answered = scene.call(&asked("k"));
    assert_eq!((&answered.saw, scene.changes("k")), (&Saw::InDoubt, 1), "{answered:?}");
}
