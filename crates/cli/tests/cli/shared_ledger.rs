//! Several hosts on one ledger: each with a state directory of its own, and real servers between them.

use crate::home::{Home, Ran};
use crate::llm::stage::{ask, request};
use crate::mcp::door::stage::{Stage, greeted};
use crate::mcp::line::Line;
use crate::mcp::{assert_replayed, receipt};
use crate::serve::served::Served;
use semel_testkit::etcd_cluster::EtcdCluster;
use semel_testkit::http::{FakeModel, FakeModelApi};
use semel_testkit::postgres_server::{PASSWORD, PostgresServer};
use semel_testkit::redis_server::RedisServer;
use semel_testkit::wait_until;
use serde_json::json;
use std::path::Path;
use std::process::Command;

/// A host: its own processes and lock files.
struct Host<'w> {
    home: Home,
    ledger: &'w str,
    world: &'w Path,
}

impl<'w> Host<'w> {
    fn new(ledger: &'w str, world: &'w Path) -> Self {
        Host { home: Home::new(), ledger, world }
    }

    fn semel(&self, args: &[&str]) -> Command {
        let mut command = self.home.command(args);
        command.env("SEMEL_LEDGER", self.ledger);
        command
    }

    /// Charges once, and tells the world.
    fn charge(&self, key: &str, script: &str) -> Ran {
        let script = format!("echo {key} >> '{}'; {script}", self.world.display());
        Ran::of(
            self.semel(&["run", "--key", key, "--wait", "10s", "--", "sh", "-c", &script])
                .output()
                .expect("semel starts"),
        )
    }
}

fn charges(world: &Path) -> usize {
    std::fs::read_to_string(world).unwrap_or_default().lines().count()
}

/// Two hosts share one ledger, whichever engine keeps it.
fn two_hosts_make_one_effect(ledger: &str) {
    let directory = tempfile::tempdir().expect("a directory");
    let world = directory.path().join("world");
    let (one, other) = (Host::new(ledger, &world), Host::new(ledger, &world));
    let first = one.charge("a", "echo charged");
    assert_eq!(
        (first.code, first.stderr.matches("began a new ledger at").count()),
        (Some(0), 1),
        "{first:?}"
    );
    let replayed = other.charge("a", "echo charged");
    assert_eq!((replayed.code, replayed.stdout.as_str()), (Some(0), "charged\n"), "{replayed:?}");
    assert!(!replayed.stderr.contains("began a new ledger"), "{replayed:?}");
    assert_eq!(charges(&world), 1);
    // The first host's process dies in the middle of its call.
    let mut dying = one.semel(&["run", "--key", "b", "--timeout", "3s", "--", "sh", "-c"]);
    dying.arg(format!("echo b >> '{}'; kill -9 $PPID; sleep 1", world.display()));
    dying.output().expect("semel starts");
    assert_eq!(charges(&world), 2);
    let held = other.charge("b", "true");
    assert_ne!(held.code, Some(0), "{held:?}");
    assert_eq!(charges(&world), 2, "nobody knows how far it came: {held:?}");
    // Calls of both hosts at once.
    let both = std::thread::scope(|scope| {
        let calls =
            [&one, &other, &one, &other].map(|host| scope.spawn(|| host.charge("c", "sleep 0.2; echo c")));
        calls.map(|call| call.join().expect("it ends"))
    });
    assert!(both.iter().all(|ran| ran.code == Some(0)), "{both:?}");
    assert_eq!(charges(&world), 3);
    let listed = Ran::of(other.semel(&["ledger", "list", "--json"]).output().expect("semel starts"));
    assert_eq!(listed.json()["items"].as_array().expect("items").len(), 3, "{listed:?}");
    let restored = other.semel(&["ledger", "mark-restored", "--reason", "an older copy"]).output();
    assert!(restored.expect("semel starts").status.success());
    assert_ne!(one.charge("d", "true").code, Some(0), "the copy may have forgotten it");
    assert_eq!(charges(&world), 3);
    let doctor = Ran::of(other.semel(&["doctor"]).output().expect("semel starts"));
    assert!(
        doctor.stdout.contains("the durable write of a claim takes") && doctor.stdout.contains("durability"),
        "{doctor:?}"
    );
}

#[test]
fn two_hosts_on_postgresql_make_one_effect() {
    let server = PostgresServer::start(&[]);
    two_hosts_make_one_effect(&server.url("semel"));
}

#[test]
fn two_hosts_on_redis_make_one_effect() {
    let server = RedisServer::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    two_hosts_make_one_effect(&server.url());
}

#[test]
fn two_hosts_on_etcd_make_one_effect() {
    let cluster = EtcdCluster::start(1);
    two_hosts_make_one_effect(&format!("etcd://{}", cluster.places()));
}

#[test]
fn a_call_whose_leader_dies_before_its_answer_is_recorded_is_made_once() {
    let mut cluster = EtcdCluster::start(3);
    let directory = tempfile::tempdir().expect("a directory");
    let world = directory.path().join("world");
    let ledger = format!("etcd://{}", cluster.places());
    let (one, other) = (Host::new(&ledger, &world), Host::new(&ledger, &world));
    let killed = directory.path().join("killed");
    let script = format!("until [ -e '{}' ]; do sleep 0.05; done; echo charged", killed.display());
    let first = std::thread::scope(|scope| {
        let call = scope.spawn(|| one.charge("a", &script));
        wait_until("it is claimed and at work", || charges(&world) == 1);
        cluster.kill_leader();
        std::fs::write(&killed, "").expect("a file");
        call.join().expect("it ends")
    });
    assert_eq!((first.code, first.stdout.as_str()), (Some(0), "charged\n"), "{first:?}");
    // If the cluster had no leader for too long, the answer waited on the first host.
    for host in [&one, &other] {
        let replayed = host.charge("a", &script);
        assert_eq!((replayed.code, replayed.stdout.as_str()), (Some(0), "charged\n"), "{replayed:?}");
    }
    assert_eq!(charges(&world), 1);
}

/// A server loses its ledger while no process is connected, and so looks like a new one.
fn calls_are_held_after_a_loss(ledger: &str, lose: impl FnOnce()) {
    let directory = tempfile::tempdir().expect("a directory");
    let world = directory.path().join("world");
    let hosts = [Host::new(ledger, &world), Host::new(ledger, &world)];
    for host in &hosts {
        assert_eq!(host.charge("a", "true").code, Some(0));
    }
    lose();
    // The third host has never seen the lost ledger: the others found out first.
    for host in hosts.iter().chain([&Host::new(ledger, &world)]) {
        let held = host.charge("a", "true");
        assert_eq!((held.code, charges(&world)), (Some(121), 1), "{held:?}");
        let epoch = Ran::of(host.semel(&["--json", "ledger", "quarantine"]).output().expect("semel starts"));
        assert_eq!(epoch.json()["number"], 2, "one loss, one epoch: {epoch:?}");
    }
}

#[test]
fn a_redis_that_was_emptied_holds_calls() {
    let server = RedisServer::start(&[]);
    calls_are_held_after_a_loss(&server.url(), || assert!(server.ask(&["FLUSHALL"]).contains("OK")));
}

#[test]
fn a_redis_that_comes_back_without_its_data_holds_calls() {
    let mut server = RedisServer::start(&["--appendonly", "no"]);
    calls_are_held_after_a_loss(&server.url(), || {
        server.kill();
        server.restart();
    });
}

#[test]
fn a_postgresql_whose_schema_was_dropped_holds_calls() {
    let server = PostgresServer::start(&[]);
    calls_are_held_after_a_loss(&server.url("semel"), || {
        server.sql("DROP SCHEMA semel CASCADE");
    });
}

#[test]
fn an_etcd_that_was_emptied_holds_calls() {
    let cluster = EtcdCluster::start(1);
    calls_are_held_after_a_loss(&format!("etcd://{}", cluster.places()), || {
        let all = json!({"key": "AA==", "range_end": "AA=="});
        assert!(cluster.post("/v3/kv/deleterange", &all.to_string()).contains("deleted"));
    });
}

#[test]
fn an_address_of_the_flag_is_the_same_ledger_as_one_of_the_environment() {
    let server = RedisServer::start(&[]);
    let url = server.url();
    let directory = tempfile::tempdir().expect("a directory");
    let world = directory.path().join("world");
    let home = Home::new();
    let script = format!("echo a >> '{}'; echo charged", world.display());
    let ran = home.semel(["--ledger", &url, "run", "--key", "a", "--", "sh", "-c", &script]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "charged\n"), "{ran:?}");
    let replayed = Host::new(&url, &world).charge("a", "echo charged");
    assert_eq!((replayed.code, replayed.stdout.as_str()), (Some(0), "charged\n"), "{replayed:?}");
    assert_eq!(charges(&world), 1);
    assert!(!home.state().join("ledger.db").exists(), "no second ledger is founded");
}

#[test]
fn a_tool_call_of_two_hosts_on_redis_happens_once() {
    let server = RedisServer::start(&[]);
    let directory = tempfile::tempdir().expect("a directory");
    let world = directory.path().join("world");
    let call = || {
        let stage = Stage::with_tools(&["charge"]);
        let mut command = stage.guarded(&["--any-directory"]);
        command.env("SEMEL_LEDGER", server.url()).env("SEMEL_WORLD", &world);
        greeted(Line::to(&mut command)).call("charge", json!({"customer": "ada"}))
    };
    let first = call();
    assert_eq!(receipt(&first)["outcome"], "ran", "{first}");
    assert_replayed(&call(), &first);
    assert_eq!(charges(&world), 1);
}

#[test]
fn a_model_call_of_two_hosts_on_redis_is_paid_once() {
    let (server, model) = (RedisServer::start(&[]), FakeModel::start());
    let url = model.url();
    let policy =
        format!("[serve]\nrequire_token = false\n[upstream.openai]\nurl = \"{url}\"\nspeaks = \"openai\"\n");
    let call = || {
        let home = Home::new();
        let served = Served::start_with(&home, &policy, &[("SEMEL_LEDGER", &server.url())]);
        ask(&served, FakeModelApi::Chat, "Semel-Step: one\r\n", &request("m")).answer()
    };
    let (first, again) = (call(), call());
    assert_eq!((first.status, again.body), (200, first.body));
    assert_eq!(model.asked(), 1);
}

#[test]
fn an_address_in_the_policy_is_used_and_a_password_is_never_shown() {
    let server = PostgresServer::start(&["listen_addresses=127.0.0.1"]);
    let home = Home::new();
    let address = format!("postgres://semel:{PASSWORD}@127.0.0.1:{}/postgres?sslmode=disable", server.port);
    home.file("semel.toml", &format!("version = 1\nledger = \"{address}\"\n"));
    let ran = home.semel(["run", "--key", "k", "--", "true"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let doctor = home.semel(["doctor"]);
    assert!(doctor.stdout.contains(&format!("postgres://127.0.0.1:{}/postgres", server.port)), "{doctor:?}");
    assert!(!home.state().join("ledger.db").exists(), "no second ledger is founded");
    let in_the_open = home.semel(["--ledger", &address, "ledger"]);
    assert_eq!(in_the_open.code, Some(2), "{in_the_open:?}");
    assert!(in_the_open.stderr.contains("list of processes"), "{in_the_open:?}");
    for wrong in ["not-it", "not/it"] {
        let wrong = address.replace(PASSWORD, wrong);
        home.file("semel.toml", &format!("version = 1\nledger = \"{wrong}\"\n"));
        let refused = home.semel(["run", "--key", "k", "--", "true"]);
        assert_ne!(refused.code, Some(0), "{refused:?}");
        let said = refused.stdout + &refused.stderr + &doctor.stdout + &doctor.stderr + &in_the_open.stderr;
        assert!(!said.contains("not-it") && !said.contains("not/it") && !said.contains(PASSWORD), "{said}");
    }
}
