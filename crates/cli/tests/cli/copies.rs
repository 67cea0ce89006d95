//! A ledger that is copied, backed up and restored: every call happens once, in all of its places together.

use crate::home::{Home, Ran};
use rustix::process::{Pid, Signal, kill_process};
use semel_testkit::etcd_cluster::EtcdCluster;
use semel_testkit::postgres_server::PostgresServer;
use semel_testkit::redis_server::RedisServer;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// More than a copy writes at once, of rows.
const KEYS: usize = 23;

impl Home {
    /// With this ledger, by the environment.
    fn on(&self, ledger: &str, args: &[&str]) -> Ran {
        Ran::of(self.command(args).env("SEMEL_LEDGER", ledger).output().expect("semel starts"))
    }

    fn on_json(&self, ledger: &str, args: &[&str]) -> Value {
        let ran = self.on(ledger, &[&["--json"], args].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.json()
    }

    /// A call under a key, which leaves a line in the world and answers with its key.
    fn charge(&self, ledger: &str, key: &str) -> Ran {
        self.on(
            ledger,
            &["run", "--key", key, "--", "sh", "-c", &format!("echo {key} >> world; echo did {key}")],
        )
    }

    fn charged(&self) -> usize {
        fs::read_to_string(self.work().join("world")).unwrap_or_default().lines().count()
    }

    fn meddle_with(&self, file: &Path, sql: &str) {
        let script = "import sqlite3,sys; c=sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit()";
        let mut python = Command::new("python3");
        python.args(["-c", script]).arg(file).arg(sql);
        assert!(python.status().expect("python starts").success());
    }

    fn ledger(&self) -> String {
        self.state().join("ledger.db").to_string_lossy().into_owned()
    }

    fn place(&self, name: &str) -> String {
        self.path().join(name).join("ledger.db").to_string_lossy().into_owned()
    }

    fn copy_failing_at(&self, from: &str, to: &str, failpoint: &str) -> Ran {
        let mut command = self.command(["ledger", "copy", from, to]);
        let ran = Ran::of(command.env("SEMEL_FAILPOINTS", failpoint).output().expect("semel starts"));
        assert!(ran.stderr.contains("failpoint"), "it was reached: {ran:?}");
        ran
    }
}

/// A call that has happened and does not end.
struct Slow(Child);

impl Slow {
    const CALL: [&str; 7] =
        ["run", "--key", "slow", "--", "sh", "-c", "echo $$ > slow.pid; echo slow >> world; exec sleep 60"];

    fn start(home: &Home) -> Slow {
        let mut command = home.command(Slow::CALL);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("semel starts");
        home.wait_until("it is at work", || home.charged() == KEYS + 5);
        Slow(child)
    }

    /// With its command, so that its holder is known to be dead.
    fn kill(mut self, home: &Home) {
        let command = fs::read_to_string(home.work().join("slow.pid")).expect("it is at work");
        let killed = Command::new("kill").args(["-9", &self.0.id().to_string(), command.trim()]).status();
        assert!(killed.expect("kill starts").success());
        self.0.wait().expect("it is our child");
        let doubts =
            || home.json(["ledger", "list", "--state", "in_doubt"])["items"].as_array().map(Vec::len);
        home.wait_until("it is in doubt", || doubts() == Some(2));
    }
}

/// A ledger with all that one can hold.
fn filled() -> Home {
    let home = Home::new();
    let ledger = home.ledger();
    for n in 0..KEYS {
        assert_eq!(home.charge(&ledger, &format!("k{n}")).code, Some(0));
    }
    let large = [
        "run",
        "--key",
        "large",
        "--",
        "sh",
        "-c",
        "echo large >> world; head -c 5000 /dev/zero | tr '\\0' x",
    ];
    assert_eq!(home.on(&ledger, &large).stdout.len(), 5_000);
    for why in ["second", "third"] {
        let again = ["run", "--again", why, "--", "sh", "-c", "echo again >> world"];
        assert_eq!(home.on(&ledger, &again).code, Some(0));
    }
    home.doubt("doubt");
    let in_run = ["run", "--run", "r", "--key", "in-run", "--", "sh", "-c", "echo in-run >> world"];
    assert_eq!(home.on(&ledger, &in_run).code, Some(0));
    home.json(["cancel", "r"]);
    assert_eq!(home.on(&ledger, &["run", "--run", "r", "--key", "late", "--", "true"]).code, Some(120));
    home
}

/// Everything that was done answers from this ledger, and nothing happens again.
fn replays(home: &Home, ledger: &str) {
    let before = home.charged();
    for n in 0..KEYS {
        let replayed = home.charge(ledger, &format!("k{n}"));
        assert_eq!((replayed.code, replayed.stdout), (Some(0), format!("did k{n}\n")), "{ledger}");
    }
    let large = [
        "run",
        "--key",
        "large",
        "--",
        "sh",
        "-c",
        "echo large >> world; head -c 5000 /dev/zero | tr '\\0' x",
    ];
    assert_eq!(home.on(ledger, &large).stdout, "x".repeat(5_000), "{ledger}");
    for why in ["second", "third"] {
        let again = ["run", "--json", "--again", why, "--", "sh", "-c", "echo again >> world"];
        assert_eq!(home.on(ledger, &again).json()["outcome"], "replayed", "{ledger}");
    }
    let doubt = home.on(ledger, &["run", "--key", "doubt", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(doubt.code, Some(121), "{ledger}: {doubt:?}");
    let late =
        home.on(ledger, &["run", "--run", "r", "--key", "late", "--", "sh", "-c", "echo late >> world"]);
    assert_eq!(late.code, Some(120), "{ledger}: {late:?}");
    let cancelled = home.on_json(ledger, &["cancel", "r"]);
    assert!(!cancelled["prevented"].as_array().expect("a list").is_empty(), "{ledger}: {cancelled}");
    assert_eq!(home.charged(), before, "{ledger}");
}

#[test]
fn a_ledger_goes_round_all_engines_and_every_call_happens_once() {
    let postgres = PostgresServer::start(&[]);
    let redis = RedisServer::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let etcd = EtcdCluster::start(1);
    let home = filled();
    let places = [
        home.ledger(),
        postgres.url("copied"),
        redis.url(),
        format!("etcd://{}", etcd.places()),
        home.place("back"),
    ];
    for pair in places.windows(2) {
        let [from, to] = pair else { unreachable!("pairs") };
        let copied = home.json(["ledger", "copy", from, to]);
        assert_eq!((&copied["verified"], &copied["effect"]), (&true.into(), &"created".into()), "{copied}");
        assert!(copied["copied"]["replies"]["count"].as_u64() > Some(KEYS as u64), "{copied}");
        replays(&home, to);
        let fresh = format!("new-{}", home.charged());
        assert_eq!(home.charge(to, &fresh).code, Some(0), "it goes on there");
        assert_eq!(home.charge(to, &fresh).stdout, format!("did {fresh}\n"));
        let again = home.json(["ledger", "copy", from, to]);
        assert_eq!(again["effect"], "noop", "{again}");
    }
    let last = &places[4];
    let doctor = home.on(last, &["doctor", "--full"]);
    assert_eq!(doctor.code, Some(0), "{doctor:?}");
    assert_eq!(home.charged(), KEYS + 1 + 2 + 1 + 4);
    // The secret came along, and nobody else can read it.
    let secret = Path::new(last).with_extension("secret");
    assert_eq!(fs::metadata(secret).expect("it is there").permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_copy_that_is_killed_goes_on_and_nothing_comes_twice() {
    let home = filled();
    let from = home.ledger();
    let world = home.charged();
    for (number, failpoint) in [
        "found.after_tables=abort",
        "found.after_secret=abort",
        "copy.before_commit=abort@1",
        "copy.after_commit=abort@1",
        "copy.before_commit=abort@3",
        "copy.after_commit=abort@3",
        "copy.after_commit=abort@5",
        "copy.before_commit=abort@7",
        "copy.before_finish=abort",
    ]
    .into_iter()
    .enumerate()
    {
        let to = home.place(&format!("to-{number}"));
        assert_eq!(home.copy_failing_at(&from, &to, failpoint).code, None, "{failpoint}");
        // Before its first commit it is no copy yet, and has nothing.
        if failpoint.starts_with("copy") && failpoint != "copy.before_commit=abort@1" {
            for args in [&["run", "--key", "k0", "--", "true"][..], &["ledger"]] {
                let refused = home.on(&to, args);
                assert!(matches!(refused.code, Some(2 | 125)), "{failpoint}: {refused:?}");
                assert!(refused.stderr.contains("is an unfinished copy of"), "{failpoint}: {refused:?}");
            }
            let other = home.semel(["ledger", "copy", &home.place("to-0"), &to]);
            assert_eq!(other.code, Some(2), "of another ledger: {other:?}");
        }
        let copied = home.json(["ledger", "copy", &from, &to]);
        assert_eq!(copied["verified"], true, "{failpoint}");
        let lists =
            |ledger: &str| home.on_json(ledger, &["ledger", "list", "--limit", "1000"])["items"].clone();
        assert_eq!(lists(&to), lists(&from), "{failpoint}");
        let lines =
            |ledger: &str| home.on(ledger, &["ledger", "tail", "--no-follow", "-n", "9999", "--json"]).stdout;
        assert_eq!(lines(&to), lines(&from), "{failpoint}");
    }
    replays(&home, &home.place("to-5"));
    assert_eq!(home.charged(), world);
}

#[test]
fn a_copy_to_a_server_that_is_killed_goes_on() {
    let postgres = PostgresServer::start(&[]);
    let etcd = EtcdCluster::start(1);
    let home = filled();
    for to in [postgres.url("killed"), format!("etcd://{}", etcd.places())] {
        for failpoint in
            ["copy.after_commit=abort@2", "copy.before_commit=abort@2", "copy.before_finish=abort"]
        {
            assert_eq!(home.copy_failing_at(&home.ledger(), &to, failpoint).code, None, "{failpoint}");
            let refused = home.on(&to, &["run", "--key", "k0", "--", "true"]);
            assert!(refused.stderr.contains("is an unfinished copy of"), "{refused:?}");
        }
        let copied = home.json(["ledger", "copy", &home.ledger(), &to]);
        assert_eq!((&copied["resumed"], &copied["verified"]), (&true.into(), &true.into()));
        replays(&home, &to);
    }
}

#[test]
fn a_copy_of_a_ledger_that_went_on_is_not_called_complete() {
    let home = Home::new();
    let (from, to) = (home.ledger(), home.place("to"));
    assert_eq!(home.charge(&from, "k0").code, Some(0));
    for _ in 0..2 {
        assert_eq!(home.semel(["ledger", "copy", &from, &to]).code, Some(0));
    }
    assert_eq!(home.charge(&from, "k1").code, Some(0));
    let refused = home.semel(["ledger", "copy", &from, &to]);
    assert!(refused.code == Some(2) && refused.stderr.contains("went on after it was copied"), "{refused:?}");
}

#[test]
fn a_wrong_bit_in_a_copy_is_found_out_and_nobody_uses_it() {
    let home = filled();
    for (number, (sql, what)) in [
        (
            "update effect set fixed = cast(substr(fixed, 1, length(fixed) - 1) || x'00' as blob) where id = 7",
            "effects",
        ),
        ("update effect set ordinal = 2 where id = 7", "effects"),
        ("delete from effect where id = 9", "effects"),
        ("update reply set body = x'00' where id = (select max(id) from reply)", "replies"),
        ("update delivery set mark = x'00' where id = (select max(id) from delivery)", "effects"),
        (
            "update outcome set reply = x'00' where id = (select max(id) from outcome where reply not null)",
            "replies",
        ),
        ("update journal set data = '{}' where id = 11", "lines of the journal"),
        ("delete from journal where id = (select max(id) from journal)", "lines of the journal"),
        ("update cell set body = x'0000' where key = (select max(key) from cell where key < x'ff')", "cells"),
        ("delete from cell where key = (select min(key) from cell)", "cells"),
    ]
    .into_iter()
    .enumerate()
    {
        let to = home.place(&format!("bad-{number}"));
        home.copy_failing_at(&home.ledger(), &to, "copy.before_finish=abort");
        home.meddle_with(Path::new(&to), sql);
        let found = home.semel(["ledger", "copy", &home.ledger(), &to]);
        assert_eq!(found.code, Some(2), "{sql}: {found:?}");
        assert!(found.stderr.contains(&format!("their {what} differ")), "{sql}: {found:?}");
        let refused = home.on(&to, &["run", "--key", "k0", "--", "true"]);
        assert!(refused.stderr.contains("is an unfinished copy of"), "{sql}: {refused:?}");
    }
}

#[test]
fn a_ledger_that_goes_on_meanwhile_is_not_copied() {
    let home = filled();
    let (from, to) = (home.ledger(), home.place("to"));
    let slow = Slow::start(&home);
    let refused = home.semel(["ledger", "copy", &from, &to]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("1 call is in flight"), "{refused:?}");
    let would = home.json(["ledger", "copy", &from, &home.place("dry"), "--dry-run"]);
    assert_eq!(would["in_flight"].as_array().map(Vec::len), Some(1), "{would}");
    assert!(!Path::new(&home.place("dry")).exists());
    slow.kill(&home);
    home.copy_failing_at(&from, &to, "copy.before_finish=abort");
    assert_eq!(home.charge(&from, "meanwhile").code, Some(0));
    let found = home.semel(["ledger", "copy", &from, &to]);
    assert_eq!(found.code, Some(2), "{found:?}");
    assert!(found.stderr.contains("the ledger was used during the copy"), "{found:?}");
    let anew = home.place("anew");
    home.json(["ledger", "copy", &from, &anew]);
    assert_eq!(home.on(&anew, &Slow::CALL).code, Some(121), "nobody knows whether it happened");
    replays(&home, &anew);
}

#[test]
fn a_place_that_is_not_empty_is_refused() {
    let home = filled();
    let (from, other) = (home.ledger(), home.place("other"));
    assert_eq!(home.charge(&other, "mine").code, Some(0));
    let refused = home.semel(["ledger", "copy", &from, &other]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("another ledger stands in the place"), "{refused:?}");
    assert_eq!(home.semel(["ledger", "copy", &from, &from]).code, Some(2));
    let redis = RedisServer::start(&[]);
    let mistyped = home.semel(["ledger", "copy", &redis.url(), &home.place("x")]);
    assert!(mistyped.stderr.contains("is empty; is it the right one?"), "{mistyped:?}");
    assert_eq!(home.semel(["ledger", "copy", &home.place("nothing"), &home.place("x")]).code, Some(2));
    let in_the_open = home.semel(["ledger", "copy", &from, "postgres://me:s3cret@h/d"]);
    assert!(
        in_the_open.stderr.contains("env:NAME") && !in_the_open.stderr.contains("s3cret"),
        "{in_the_open:?}"
    );
    let mut command = home.command(["ledger", "copy", &from, "env:NEW"]);
    let by_variable = command.env("NEW", home.place("by-variable")).output().expect("semel starts");
    assert!(by_variable.status.success(), "{by_variable:?}");
}

#[test]
fn a_backup_is_one_moment_that_nobody_writes_to() {
    let home = filled();
    let backup = home.path().join("backups/monday.db");
    let name = backup.to_str().expect("a name");
    let would = home.json(["ledger", "backup", name, "--dry-run"]);
    assert_eq!((&would["effect"], backup.exists()), (&"would_create".into(), false));
    let made = home.json(["ledger", "backup", name, "--idempotency-key", "monday"]);
    assert_eq!(made["effect"], "created", "{made}");
    for file in [backup.clone(), backup.with_extension("secret")] {
        assert_eq!(fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o600);
    }
    let beside = fs::read_dir(backup.parent().expect("a directory")).expect("readable").count();
    assert_eq!(beside, 2, "nothing else is left");
    assert_eq!(home.json(["ledger", "backup", name, "--idempotency-key", "monday"])["effect"], "noop");
    let there = home.semel(["ledger", "backup", name]);
    assert_eq!(there.code, Some(2), "{there:?}");
    let listed = home.on_json(name, &["ledger", "list", "--limit", "1000"]);
    assert_eq!(listed, home.json(["ledger", "list", "--limit", "1000"]));
    let world = home.charged();
    let refused = home.charge(name, "unseen");
    assert_eq!((refused.code, home.charged()), (Some(125), world), "{refused:?}");
}

#[test]
fn a_restored_backup_holds_what_came_after_it_and_lists_what_to_look_at() {
    let home = filled();
    let backup = home.path().join("monday.db");
    let name = backup.to_str().expect("a name");
    let slow = Slow::start(&home);
    home.json(["ledger", "backup", name]);
    let restore = ["ledger", "restore", name, "--replace", "--idempotency-key", "tuesday"];
    let busy = home.semel(restore);
    assert!(busy.stderr.contains("1 call is in flight"), "{busy:?}");
    slow.kill(&home);
    assert_eq!(home.charge(&home.ledger(), "after").code, Some(0));
    let world = home.charged();
    let refused = home.semel(["ledger", "restore", name]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("--replace"), "{refused:?}");
    let mut killed = home.command(restore);
    let killed =
        Ran::of(killed.env("SEMEL_FAILPOINTS", "copy.after_commit=abort@3").output().expect("it starts"));
    assert_eq!(killed.code, None, "{killed:?}");
    assert_eq!(home.charge(&home.ledger(), "after").stdout, "did after\n", "the old one is still there");
    let restored = home.json(restore);
    assert_eq!((&restored["in_doubt"]["count"], &restored["was_in_flight"]["count"]), (&1.into(), &1.into()));
    assert_eq!(restored["effect"], "created", "{restored}");
    assert!(restored["quarantined_until"].is_string() && restored["backup_from"].is_string(), "{restored}");
    assert_eq!(home.json(restore)["effect"], "noop");
    assert_eq!(home.json(["ledger", "quarantine"])["number"], 2);
    assert_eq!(home.charge(&home.ledger(), "after").code, Some(121), "the backup does not know it");
    assert_eq!(home.on(&home.ledger(), &Slow::CALL).code, Some(121));
    replays(&home, &home.ledger());
    assert_eq!(home.charged(), world);
    let aside = home.state_files().into_iter().find(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("ledger.db.replaced-")
            && !name.contains("secret")
            && !name.ends_with("-wal")
            && !name.ends_with("-shm")
    });
    let aside = aside.expect("the old ledger is kept");
    assert_eq!(home.charge(aside.to_str().expect("a name"), "after").stdout, "did after\n");
}

#[test]
fn a_restore_that_is_killed_leaves_the_old_ledger_or_one_that_knows_of_its_loss() {
    let points = [
        ("found.after_tables", true),
        ("copy.before_commit", true),
        ("copy.after_commit", true),
        ("copy.before_finish", false),
        ("restore.after_aside", true),
        ("restore.after_aside", false),
        ("restore.after_secret", true),
        ("restore.after_secret", false),
    ];
    // A ledger whose secret was changed since has another one than its backup.
    for (point, rotated, is_used) in
        points.into_iter().flat_map(|(point, is_used)| [(point, false, is_used), (point, true, is_used)])
    {
        let (home, case) = (Home::new(), format!("{point}, rotated: {rotated}, used: {is_used}"));
        let (ledger, backup) = (home.ledger(), home.path().join("monday.db"));
        let name = backup.to_str().expect("a name");
        assert_eq!(home.charge(&ledger, "before").code, Some(0));
        home.json(["ledger", "backup", name]);
        if rotated {
            home.json(["ledger", "rotate-secret", "--replace", "--reason", "leaked"]);
            home.json(["ledger", "end-quarantine"]);
        }
        assert_eq!(home.charge(&ledger, "after").code, Some(0));
        let restore = ["ledger", "restore", name, "--replace"];
        let mut command = home.command(restore);
        let killed = command.env("SEMEL_FAILPOINTS", format!("{point}=abort")).output().expect("it starts");
        assert_eq!(killed.status.code(), None, "{case}: {killed:?}");
        if is_used {
            let again = home.charge(&ledger, "after");
            let expected = if point.starts_with("restore") { 121 } else { 0 };
            assert_eq!((again.code, home.charged()), (Some(expected), 2), "{case}: {again:?}");
        }
        home.json(restore);
        assert_eq!(home.charge(&ledger, "before").stdout, "did before\n", "{case}");
        assert_eq!((home.charge(&ledger, "after").code, home.charged()), (Some(121), 2), "{case}");
        let left = home.state_files().into_iter().find(|file| file.to_string_lossy().contains("restoring"));
        assert_eq!(left, None, "{case}");
    }
}

#[test]
fn a_ledger_that_is_used_while_another_is_restored_stays() {
    let home = Home::new();
    let (ledger, backup) = (home.ledger(), home.path().join("monday.db"));
    assert_eq!(home.charge(&ledger, "before").code, Some(0));
    home.json(["ledger", "backup", backup.to_str().expect("a name")]);
    let mut restore = home.command(["ledger", "restore", backup.to_str().expect("a name"), "--replace"]);
    restore.env("SEMEL_FAILPOINTS", "copy.before_finish=pause(3000)").stderr(Stdio::piped());
    let restoring = restore.spawn().expect("semel starts");
    home.wait_until("it is built", || home.state().join("ledger.db.restoring").exists());
    // It waits however long the call takes.
    let id = Pid::from_child(&restoring);
    kill_process(id, Signal::STOP).expect("it runs");
    let meanwhile = home.charge(&ledger, "meanwhile");
    assert_eq!(meanwhile.code, Some(0), "{meanwhile:?}");
    kill_process(id, Signal::CONT).expect("it is there");
    let refused = Ran::of(restoring.wait_with_output().expect("it ends"));
    assert!(refused.stderr.contains("the ledger was used meanwhile"), "{refused:?}");
    assert_eq!(home.charge(&ledger, "meanwhile").stdout, "did meanwhile\n");
    assert_eq!(home.charged(), 2);
}

#[test]
fn a_ledger_whose_answers_wait_is_not_copied() {
    let home = Home::new();
    home.spool("k");
    let (from, to) = (home.ledger(), home.place("to"));
    let refused = home.semel(["ledger", "copy", &from, &to]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("1 answer waits on this host"), "{refused:?}");
    assert_eq!(home.charge(&from, "other").code, Some(0), "which brings it in");
    home.json(["ledger", "copy", &from, &to]);
    assert_eq!(home.charge(&to, "k").stdout, "did k\n");
    assert_eq!(home.charged(), 2);
}

#[test]
fn a_ledger_on_a_server_is_backed_up_and_restored_in_an_empty_place() {
    let postgres = PostgresServer::start(&[]);
    let home = filled();
    let (old, new) = (postgres.url("old"), postgres.url("new"));
    home.json(["ledger", "copy", &home.ledger(), &old]);
    let backup = home.path().join("monday.db");
    let name = backup.to_str().expect("a name");
    let made = home.on_json(&old, &["ledger", "backup", name]);
    assert_eq!(made["effect"], "created", "{made}");
    assert_eq!(home.charge(&old, "after").code, Some(0));
    let full = home.on(&old, &["ledger", "restore", name, "--replace"]);
    assert!(full.stderr.contains("schema=NAME"), "{full:?}");
    let would = home.on_json(&new, &["ledger", "restore", name, "--dry-run"]);
    let founded = postgres.sql("select count(*) from pg_namespace where nspname = 'new'");
    assert_eq!((&would["effect"], founded.trim()), (&"would_create".into(), "0"), "nothing is founded");
    let text = home.on(&new, &["ledger", "restore", name]);
    assert_eq!(text.code, Some(0), "{text:?}");
    assert!(text.stdout.contains("1 effect in doubt when the backup was made"), "{text:?}");
    let world = home.charged();
    assert_eq!(home.charge(&new, "after").code, Some(121));
    replays(&home, &new);
    assert_eq!(home.charged(), world);
}

#[test]
fn a_journal_that_is_held_back_is_not_left_behind() {
    let postgres = PostgresServer::start(&[]);
    let home = Home::new();
    let ledger = postgres.url("held");
    assert_eq!(home.charge(&ledger, "before").code, Some(0));
    let transaction = postgres.begin();
    assert_eq!(home.charge(&ledger, "after").code, Some(0));
    let refused = home.semel(["ledger", "copy", &ledger, &home.place("to")]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("holds back the newest lines"), "{refused:?}");
    drop(transaction);
    let copied = home.json(["ledger", "copy", &ledger, &home.place("to")]);
    assert_eq!(copied["copied"]["effects"]["count"], 2, "{copied}");
}

#[test]
fn a_ledger_of_an_older_format_is_refused_and_can_be_exported() {
    let home = filled();
    home.meddle_with(
        &home.state().join("ledger.db"),
        "update meta set format = 3, min_reader = 3, min_writer = 3",
    );
    let world = home.charged();
    let refused = home.charge(&home.ledger(), "k0");
    assert_eq!((refused.code, home.charged()), (Some(125), world), "{refused:?}");
    assert!(refused.stderr.contains("semel ledger export"), "{refused:?}");
    let exported = home.semel(["ledger", "export"]);
    assert_eq!(exported.code, Some(0), "{exported:?}");
    let rows: Vec<Value> = exported
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("one document a line"))
        .collect();
    let of = |table: &str| rows.iter().filter(|row| row["table"] == table).count();
    assert!(of("effect") >= KEYS && of("journal") > KEYS && of("reply") > 0, "{exported:?}");
    assert!(!exported.stdout.contains("secret_check"), "{exported:?}");
    let bare = home.semel(["ledger", "export", "--no-replies"]).stdout;
    assert!(!bare.contains("\"table\":\"reply\"") && !bare.contains("\"reply\":"), "{bare}");
}

#[test]
fn a_ledger_of_a_newer_format_is_read_and_not_written() {
    let postgres = PostgresServer::start(&[]);
    let redis = RedisServer::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let etcd = EtcdCluster::start(1);
    let home = filled();
    let (on_etcd, on_postgres) = (format!("etcd://{}", etcd.places()), postgres.url("newer"));
    for to in [&on_postgres, &redis.url(), &on_etcd] {
        home.json(["ledger", "copy", &home.ledger(), to]);
    }
    home.meddle_with(&home.state().join("ledger.db"), "update meta set format = 9, min_writer = 9");
    postgres.sql("update newer.meta set format = 9");
    let newer = "local k = ARGV[1] .. 'values'; local v = redis.call('hget', k, 'ledger'); \
                 redis.call('hset', k, 'ledger', v:sub(1, 11) .. string.char(9) .. v:sub(13) .. 'more'); return 'done'";
    let changed = redis.ask(&["eval", newer, "0", "{semel:ledger}:"]);
    assert!(changed.contains("done"), "{changed}");
    make_newer(&etcd);
    let world = home.charged();
    for ledger in [&home.ledger(), &on_postgres, &redis.url(), &on_etcd] {
        assert_eq!(
            home.on_json(ledger, &["ledger", "list", "--limit", "1000"])["items"].as_array().map(Vec::len),
            Some(KEYS + 5),
            "{ledger}"
        );
        assert_eq!(home.on(ledger, &["ledger", "export"]).stdout.lines().count(), KEYS + 5, "{ledger}");
        for (key, code) in [("k0", 0), ("unseen", 125)] {
            let ran = home.charge(ledger, key);
            assert_eq!(ran.code, Some(code), "{ledger}: {ran:?}");
        }
        let ruled = home.on(ledger, &["ledger", "mark-restored", "--reason", "x"]);
        assert!(ruled.stderr.contains("newer semel"), "{ledger}: {ruled:?}");
        for args in
            [&["ledger", "copy", ledger.as_str(), &home.place("no")][..], &["ledger", "backup", "no.db"]]
        {
            let refused = home.on(ledger, args);
            assert!(refused.stderr.contains("newer semel"), "{ledger}: {refused:?}");
        }
    }
    assert_eq!(home.charged(), world);
}

/// Gives the ledger on etcd the number of a later format, and more behind its secret.
fn make_newer(etcd: &EtcdCluster) {
    let script = r#"
import base64, json, sys, urllib.request
def ask(path, **body):
    request = urllib.request.Request(f"http://127.0.0.1:{sys.argv[1]}/v3/kv/{path}", json.dumps(body).encode())
    return json.load(urllib.request.urlopen(request))
key = base64.b64encode(b"semel/ledger/v/ledger").decode()
value = base64.b64decode(ask("range", key=key)["kvs"][0]["value"])
ask("put", key=key, value=base64.b64encode(value[:3] + b"\x09" + value[4:] + b"more").decode())
"#;
    let changed = Command::new("python3").args(["-c", script, &etcd.port().to_string()]).status();
    assert!(changed.expect("python starts").success());
}
