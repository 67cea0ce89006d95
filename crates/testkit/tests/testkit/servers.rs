//! The real binary on real servers that die, fill up, refuse connections, or lie behind a bad network. Judged by the
//! world's log: nothing is sent without a claim, nothing runs twice, and no answer is lost.

use crate::scene::{Mounted, Scene, Started, private_directory, until};
use semel_testkit::etcd_cluster::EtcdCluster;
use semel_testkit::history::Saw;
use semel_testkit::ledger_server::{ENGINES, Engine, LedgerServer};
use semel_testkit::postgres_server::PostgresServer;
use semel_testkit::proxy::{Moment, Proxy};
use semel_testkit::redis_server::RedisServer;
use semel_testkit::semel_process::{ProcessAnswer, RunCall, SemelProcess};
use semel_testkit::world;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The answer comes so long after the change: time enough to see the change, and to do harm.
const LINGERS: &[&str] = &["--linger-ms", "600"];

fn asked(key: &str) -> RunCall<'_> {
    RunCall { key, json: true, wait: Some("5s"), touch: LINGERS, ..RunCall::default() }
}

/// One server, and two hosts that reach it through one proxy.
struct Fleet {
    server: LedgerServer,
    proxy: Proxy,
    scene: Scene,
    elsewhere: SemelProcess,
}

impl Fleet {
    fn on(server: LedgerServer) -> Fleet {
        let proxy = server.proxy();
        let mut scene = Scene::new();
        scene.process.server = Some(server.url_by(&proxy));
        let state = scene.directory.path().join("elsewhere");
        let elsewhere = SemelProcess { state, ..scene.process.clone() };
        let fleet = Fleet { server, proxy, scene, elsewhere };
        // The ledger is founded, and has something to lose.
        assert_eq!(fleet.call("before").saw, fleet.truth("before"));
        fleet
    }

    fn start(engine: Engine) -> Fleet {
        Fleet::on(LedgerServer::start(engine))
    }

    fn call(&self, key: &str) -> ProcessAnswer {
        self.scene.call(&asked(key))
    }

    /// From the other host, which does not wait.
    fn call_elsewhere(&self, key: &str) -> ProcessAnswer {
        self.elsewhere.call(&RunCall { wait: Some("0s"), ..asked(key) }).expect("semel starts")
    }

    fn begin(&self, key: &str) -> Started {
        Started::new(self.scene.process.command(&asked(key)))
    }

    fn changes(&self, key: &str) -> usize {
        self.scene.changes(key)
    }

    /// The answer that says what the world says.
    fn truth(&self, key: &str) -> Saw {
        let log = self.scene.world.log().expect("the world's log can be read");
        log.get(key).map_or(Saw::Nothing, |happened| Saw::Success { body: world::body(&happened[0].id) })
    }

    /// A call of which nothing was sent.
    fn assert_refused(&self, key: &str, answered: &ProcessAnswer) {
        assert!(matches!(answered.saw, Saw::Unavailable { .. }), "{answered:?}");
        assert_eq!(self.changes(key), 0, "{answered:?}");
    }

    /// A call that happened once, and of which both hosts know.
    fn assert_happened_once(&self, key: &str) {
        assert_eq!(self.call(key).saw, self.truth(key));
        assert_eq!(self.call_elsewhere(key).saw, self.truth(key));
        assert_eq!(self.changes(key), 1);
    }

    /// What waits on the first host for the ledger.
    fn spooled(&self) -> usize {
        semel_ledger::spool::count(&self.scene.process.state.join("shared/spool"))
    }

    /// The first host keeps the answer, and the ledger gets it once it can be written again.
    fn assert_spooled(&self, key: &str, first: &ProcessAnswer) {
        assert_eq!((&first.saw, self.spooled()), (&self.truth(key), 1), "{first:?}");
        let reason = first.object["reason"].as_str().unwrap_or_default();
        assert!(reason.contains("recorded on this host"), "{first:?}");
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Landed {
    No,
    Yes,
}

impl Landed {
    fn moment(self, server: &LedgerServer) -> Moment {
        match self {
            Landed::No => server.before_commit(),
            Landed::Yes => server.behind_commit(),
        }
    }
}

impl Fleet {
    /// The server dies with a commit on its way to it, or with its answer on the way back: nobody gets either.
    fn kill_with_a_commit_held(&mut self) {
        until("a commit is on its way", || self.proxy.has_held());
        self.server.kill();
        self.proxy.drop_held();
    }
}

fn kill_at_the_claim(engine: Engine) {
    for landed in [Landed::No, Landed::Yes] {
        let mut fleet = Fleet::start(engine);
        fleet.proxy.hold(landed.moment(&fleet.server));
        let call = fleet.begin("k");
        fleet.kill_with_a_commit_held();
        fleet.assert_refused("k", &call.finish(true));
        fleet.assert_refused("k", &fleet.call("k"));
        fleet.server.start_again();
        let next = fleet.call("k");
        match landed {
            Landed::No => assert_eq!((&next.saw, fleet.changes("k")), (&fleet.truth("k"), 1), "{next:?}"),
            // Nobody knows what became of its holder's claim but that the holder is gone.
            Landed::Yes => assert_eq!((&next.saw, fleet.changes("k")), (&Saw::InDoubt, 0), "{next:?}"),
        }
        fleet.assert_happened_once("before");
    }
}

#[test]
fn a_postgresql_that_is_killed_at_the_claim_lets_nothing_be_sent() {
    kill_at_the_claim(Engine::Postgres);
}

#[test]
fn a_redis_that_is_killed_at_the_claim_lets_nothing_be_sent() {
    kill_at_the_claim(Engine::Redis);
}

#[test]
fn an_etcd_that_is_killed_at_the_claim_lets_nothing_be_sent() {
    kill_at_the_claim(Engine::Etcd);
}

fn kill_at_the_settlement(engine: Engine) {
    for landed in [Landed::No, Landed::Yes] {
        let mut fleet = Fleet::start(engine);
        let call = fleet.begin("k");
        until("it has happened", || fleet.changes("k") == 1);
        fleet.proxy.hold(landed.moment(&fleet.server));
        fleet.kill_with_a_commit_held();
        fleet.assert_spooled("k", &call.finish(true));
        let down = fleet.call("k");
        assert!(matches!(down.saw, Saw::Unavailable { .. }), "{down:?}");
        fleet.server.start_again();
        let elsewhere = fleet.call_elsewhere("k");
        match landed {
            Landed::No => assert!(matches!(elsewhere.saw, Saw::InFlight | Saw::InDoubt), "{elsewhere:?}"),
            Landed::Yes => assert_eq!(elsewhere.saw, fleet.truth("k"), "{elsewhere:?}"),
        }
        assert_eq!(fleet.changes("k"), 1, "{elsewhere:?}");
        fleet.assert_happened_once("k");
        assert_eq!(fleet.spooled(), 0);
        fleet.assert_happened_once("before");
    }
}

#[test]
fn a_postgresql_that_is_killed_at_the_settlement_gets_the_answer_later() {
    kill_at_the_settlement(Engine::Postgres);
}

#[test]
fn a_redis_that_is_killed_at_the_settlement_gets_the_answer_later() {
    kill_at_the_settlement(Engine::Redis);
}

#[test]
fn an_etcd_that_is_killed_at_the_settlement_gets_the_answer_later() {
    kill_at_the_settlement(Engine::Etcd);
}

/// Inside the claim's commit and inside the settlement's, on either side of it.
#[test]
fn a_connection_that_is_cut_inside_a_commit_is_made_anew_and_nothing_runs_twice() {
    for engine in ENGINES {
        let fleet = Fleet::start(engine);
        for landed in [Landed::No, Landed::Yes] {
            let moment = landed.moment(&fleet.server);
            let key = format!("claim-{landed:?}");
            fleet.proxy.cut(moment, 1);
            let first = fleet.call(&key);
            assert_eq!(
                (&first.saw, fleet.proxy.cuts_left()),
                (&fleet.truth(&key), 0),
                "{engine:?} {first:?}"
            );
            fleet.assert_happened_once(&key);
            let key = format!("settle-{landed:?}");
            let call = fleet.begin(&key);
            until("it has happened", || fleet.changes(&key) == 1);
            fleet.proxy.cut(moment, 1);
            let first = call.finish(true);
            assert_eq!(
                (&first.saw, fleet.proxy.cuts_left()),
                (&fleet.truth(&key), 0),
                "{engine:?} {first:?}"
            );
            assert_eq!(fleet.spooled(), 0, "{engine:?}: it reached the ledger");
            fleet.assert_happened_once(&key);
        }
    }
}

/// The claim that was sent first arrives second.
#[test]
fn a_claim_that_another_overtakes_in_the_network_is_lost() {
    for engine in ENGINES {
        let fleet = Fleet::start(engine);
        fleet.proxy.hold(fleet.server.before_write());
        let slow = fleet.begin("k");
        until("its claim is on its way", || fleet.proxy.has_held());
        let fast = fleet.call_elsewhere("k");
        assert_eq!((&fast.saw, fleet.changes("k")), (&fleet.truth("k"), 1), "{engine:?} {fast:?}");
        fleet.proxy.let_go();
        let slow = slow.finish(true);
        assert_eq!((&slow.saw, fleet.changes("k")), (&fleet.truth("k"), 1), "{engine:?} {slow:?}");
    }
}

#[test]
fn callers_behind_a_slow_network_that_reorders_and_cuts_make_one_change_each() {
    for engine in ENGINES {
        let fleet = Fleet::start(engine);
        fleet.proxy.delay_up_to(Duration::from_millis(25));
        fleet.proxy.cut(fleet.server.behind_commit(), 6);
        let keys = ["a", "b", "c"];
        let calls: Vec<_> = (0..12)
            .map(|call| {
                let process = if call % 2 == 0 { &fleet.scene.process } else { &fleet.elsewhere };
                let key = keys[call % keys.len()];
                let ask = RunCall { wait: Some("30s"), touch: &[], ..asked(key) };
                (key, Started::new(process.command(&RunCall { touch: LINGERS, ..ask })))
            })
            .collect();
        for (key, call) in calls {
            let answered = call.finish(true);
            assert_eq!(answered.saw, fleet.truth(key), "{engine:?} {answered:?}");
        }
        assert_eq!(fleet.proxy.cuts_left(), 0, "{engine:?}");
        keys.iter().for_each(|key| fleet.assert_happened_once(key));
    }
}

#[test]
fn a_postgresql_without_a_free_connection_lets_nothing_be_sent() {
    const CONNECTIONS: usize = 5;
    let reserved = ["max_connections=5", "superuser_reserved_connections=0", "max_wal_senders=0"];
    let fleet = Fleet::on(LedgerServer::Postgres(PostgresServer::start(&reserved)));
    let LedgerServer::Postgres(server) = &fleet.server else { unreachable!("it was just started") };
    let taken: Vec<_> = (0..CONNECTIONS).map(|_| server.begin()).collect();
    let refused = fleet.call("k");
    fleet.assert_refused("k", &refused);
    drop(taken);
    until("a connection is free", || fleet.call("k").saw != refused.saw);
    fleet.assert_happened_once("k");
    // A process that has one keeps it.
    let call = fleet.begin("held");
    until("it has happened", || fleet.changes("held") == 1);
    let _taken: Vec<_> = (0..CONNECTIONS - 1).map(|_| server.begin()).collect();
    assert_eq!(call.finish(true).saw, fleet.truth("held"));
}

#[test]
fn a_redis_without_a_free_connection_lets_nothing_be_sent() {
    const CONNECTIONS: usize = 8;
    let fleet = Fleet::on(LedgerServer::Redis(RedisServer::start(&["--maxclients", "8"])));
    let LedgerServer::Redis(server) = &fleet.server else { unreachable!("it was just started") };
    // The server may still count those that have just been left, and refuses one that is too many.
    let mut taken = Vec::new();
    until("all connections are taken", || {
        let mut connection = TcpStream::connect(("127.0.0.1", server.port())).expect("it listens");
        let mut answer = [0; 5];
        let asked = connection.write_all(b"PING\r\n").and_then(|()| connection.read_exact(&mut answer));
        if asked.is_ok() && answer == *b"+PONG" {
            taken.push(connection);
        }
        taken.len() == CONNECTIONS
    });
    let refused = fleet.call("k");
    fleet.assert_refused("k", &refused);
    drop(taken);
    until("a connection is free", || fleet.call("k").saw != refused.saw);
    fleet.assert_happened_once("k");
}

#[test]
fn a_redis_that_is_full_refuses_claims_and_gets_answers_later() {
    let fleet = Fleet::start(Engine::Redis);
    let LedgerServer::Redis(server) = &fleet.server else { unreachable!("it was just started") };
    let is_full = |full: bool| server.ask(&["CONFIG", "SET", "maxmemory", if full { "1" } else { "0" }]);
    is_full(true);
    fleet.assert_refused("k", &fleet.call("k"));
    is_full(false);
    let call = fleet.begin("k");
    until("it has happened", || fleet.changes("k") == 1);
    is_full(true);
    fleet.assert_spooled("k", &call.finish(true));
    // It cannot be imported yet, so nothing about it is decided.
    let held = fleet.call("k");
    assert!(matches!(held.saw, Saw::Unavailable { .. }), "{held:?}");
    is_full(false);
    fleet.assert_happened_once("k");
    fleet.assert_happened_once("before");
    assert_eq!(fleet.spooled(), 0);
}

#[test]
fn a_damaged_answer_is_named_by_the_doctor_and_leaves_a_doubt() {
    let fleet = Fleet::start(Engine::Redis);
    let LedgerServer::Redis(server) = &fleet.server else { unreachable!("it was just started") };
    let call = fleet.begin("k");
    until("it has happened", || fleet.changes("k") == 1);
    server.ask(&["CONFIG", "SET", "maxmemory", "1"]);
    fleet.assert_spooled("k", &call.finish(true));
    let doctor = || {
        let output = fleet.scene.process.semel().arg("doctor").output().expect("semel starts");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (_, said) = doctor();
    assert!(said.contains("1 answer waits on this host"), "{said}");
    let base = fleet.scene.process.state.join("shared/spool");
    let ledger = fs::read_dir(base).expect("it is there").next().expect("of one ledger").expect("readable");
    let file =
        fs::read_dir(ledger.path()).expect("it is there").next().expect("an answer").expect("readable");
    let whole = fs::read(file.path()).expect("it is ours");
    fs::write(file.path(), &whole[..whole.len() / 2]).expect("it is ours");
    server.ask(&["CONFIG", "SET", "maxmemory", "0"]);
    let (code, said) = doctor();
    assert!(code == Some(1) && said.contains("is damaged") && said.contains("remove the file"), "{said}");
    let held = fleet.call("k");
    assert_eq!((&held.saw, fleet.changes("k")), (&Saw::InDoubt, 1), "{held:?}");
}

#[test]
fn an_etcd_that_is_full_refuses_claims_and_gets_answers_later() {
    const QUOTA: &[&str] = &["--quota-backend-bytes", "4194304"];
    let fleet = Fleet::on(LedgerServer::Etcd(EtcdCluster::start_with(1, QUOTA)));
    let LedgerServer::Etcd(etcd) = &fleet.server else { unreachable!("it was just started") };
    let fill = || {
        // The same key each time: its old values are what a compaction frees.
        let put = format!(r#"{{"key":"ZmlsbGVy","value":"{}"}}"#, "QUFB".repeat(100_000));
        until("it is full", || etcd.post("/v3/kv/put", &put).contains("database space exceeded"));
    };
    let make_room = || {
        let said = etcd.post("/v3/kv/range", r#"{"key":"ZmlsbGVy"}"#);
        let revision = said.split_once(r#""revision":""#).expect("a revision").1.split('"').next().unwrap();
        etcd.post("/v3/kv/compaction", &format!(r#"{{"revision":"{revision}","physical":true}}"#));
        etcd.post("/v3/maintenance/defragment", "{}");
        let status = etcd.post("/v3/maintenance/status", "{}");
        let member = status.split_once(r#""member_id":""#).expect("a member").1.split('"').next().unwrap();
        let disarm = format!(r#"{{"action":"DEACTIVATE","memberID":"{member}","alarm":"NOSPACE"}}"#);
        etcd.post("/v3/maintenance/alarm", &disarm);
    };
    fill();
    fleet.assert_refused("k", &fleet.call("k"));
    make_room();
    let call = fleet.begin("k");
    until("it has happened", || fleet.changes("k") == 1);
    fill();
    fleet.assert_spooled("k", &call.finish(true));
    make_room();
    fleet.assert_happened_once("k");
    fleet.assert_happened_once("before");
    assert_eq!(fleet.spooled(), 0);
}

/// A full disk stops PostgreSQL where it can no longer write its log: then it is a server that is gone.
#[test]
#[ignore = "mounts filesystems: run it as root with --ignored"]
fn a_postgresql_on_a_full_disk_refuses_claims_and_goes_on_with_room() {
    let place = private_directory();
    let disk = place.path().join("disk");
    fs::create_dir(&disk).expect("there is room");
    let options = ["-t", "tmpfs", "-o", "size=200m,mode=0777"];
    let _mounted = Mounted::new("none", &disk, &options).expect("only root may mount");
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
    let server = PostgresServer::start_in(&disk, &["autovacuum=off"], |_| {});
    let mut fleet = Fleet::on(LedgerServer::Postgres(server));
    let filler = disk.join("filler");
    fill(&filler);
    let mut happened = vec!["before".to_owned()];
    // Files that have room go on for a while.
    let refused = (0..3_000).map(|number| format!("key-{number}")).find(|key| {
        let answered = fleet.scene.call(&RunCall { touch: &[], ..asked(key) });
        match answered.saw {
            Saw::Unavailable { .. } => true,
            saw => {
                assert_eq!((&saw, fleet.changes(key)), (&fleet.truth(key), 1));
                happened.push(key.clone());
                false
            }
        }
    });
    let refused = refused.expect("the disk was never full");
    assert_eq!(fleet.changes(&refused), 0);
    fs::remove_file(filler).expect("it was filled");
    // Whether it has survived is its own affair.
    fleet.server.kill();
    fleet.server.start_again();
    for key in &happened {
        let ask = RunCall { touch: if key == "before" { LINGERS } else { &[] }, ..asked(key) };
        assert_eq!((&fleet.scene.call(&ask).saw, fleet.changes(key)), (&fleet.truth(key), 1));
    }
    let again = fleet.scene.call(&RunCall { touch: &[], ..asked(&refused) });
    assert_eq!((&again.saw, fleet.changes(&refused)), (&fleet.truth(&refused), 1));
}

fn fill(file: &Path) {
    let file = fs::File::create(file).expect("a name takes no room");
    let full = Command::new("cat").arg("/dev/zero").stdout(file).stderr(Stdio::null()).status();
    assert!(!full.expect("cat starts").success(), "the disk is not full");
}
