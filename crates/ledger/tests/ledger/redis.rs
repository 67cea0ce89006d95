//! The key-value engine on a real Redis server, and what can happen to that.

use crate::kv::{SECRET, block_on, claim_until, lost, open};
use crate::{position, scene};
use semel_core::time::At;
use semel_ledger::Error;
use semel_ledger::kv::redis::{RedisAddress, RedisKv, Tier};
use semel_ledger::kv::{Kv, KvStore};
use semel_ledger::store::{By, Committed, Durability, Hint, Revision, Store};
use semel_testkit::proxy::{Moment, Proxy, Target};
use semel_testkit::redis_server::RedisServer;
use semel_testkit::store_suite::{claim, exercise, index, named, one, record};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

pub type RedisStore = KvStore<RedisKv>;

pub fn at(url: &str) -> Result<RedisStore, Error> {
    let address = RedisAddress::parse(url)?;
    open(async move { RedisKv::connect(address).await })
}

fn commit(store: &RedisStore, commit: semel_ledger::store::Commit) -> Result<Committed, Error> {
    block_on(store.commit(commit.into()))
}

fn epoch(store: &RedisStore) -> Revision {
    block_on(store.read(named("k"))).unwrap().epoch
}

#[test]
fn redis_passes_the_suite() {
    let server = RedisServer::start(&[]);
    let cases = AtomicU64::new(0);
    exercise(|| {
        let name = cases.fetch_add(1, Ordering::Relaxed);
        (at(&format!("{}?ledger=case-{name}", server.url())).expect("it opens"), ())
    });
}

#[test]
fn no_acknowledged_claim_is_lost_when_the_server_is_killed_under_load() {
    let mut server = RedisServer::start(&[]);
    let store = at(&server.url()).unwrap();
    let (stopped, landed) = (AtomicBool::new(false), AtomicU64::new(0));
    let acknowledged: Vec<u128> = std::thread::scope(|scope| {
        let (stopped, landed, store) = (&stopped, &landed, &store);
        let work = move |worker| claim_until(stopped, landed, store, worker);
        let workers: Vec<_> = (0..8).map(|worker| scope.spawn(move || work(worker))).collect();
        for _ in 0..3 {
            let enough = landed.load(Ordering::Relaxed) + 100;
            semel_testkit::wait_until("claims land", || landed.load(Ordering::Relaxed) >= enough);
            server.kill();
            server.restart();
        }
        let enough = landed.load(Ordering::Relaxed) + 100;
        semel_testkit::wait_until("claims land again", || landed.load(Ordering::Relaxed) >= enough);
        stopped.store(true, Ordering::Relaxed);
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert_eq!(lost(&store, &acknowledged), Vec::<u128>::new());
    assert_eq!(epoch(&store), Revision::ABSENT, "it has read its log again, and nothing is held");
}

#[test]
fn a_restart_of_a_server_that_may_lose_claims_begins_a_new_epoch() {
    let mut server = RedisServer::start(&["--appendfsync", "everysec"]);
    let store = at(&server.url()).unwrap();
    assert_eq!(commit(&store, claim(named("k"), index(1, true))).unwrap(), Committed::Done);
    // An orderly end writes everything; the ledger cannot know that.
    server.ask(&["SHUTDOWN"]);
    server.restart();
    assert_eq!(commit(&store, claim(named("after"), index(2, true))).unwrap(), Committed::Done);
    assert_eq!(epoch(&store), Revision(1));
}

/// Its settings after a crash say nothing about the time before.
#[test]
fn a_server_that_is_made_durable_after_a_crash_begins_an_epoch() {
    let mut server = RedisServer::start(&["--appendfsync", "everysec"]);
    drop(at(&server.url()).unwrap());
    server.kill();
    server.restart_with(&["--appendfsync", "always"]);
    assert_eq!(epoch(&at(&server.url()).unwrap()), Revision(1));
    server.kill();
    server.restart();
    assert_eq!(epoch(&at(&server.url()).unwrap()), Revision(1), "from now on it keeps everything");
}

#[test]
fn a_commit_whose_connection_is_cut_behind_the_script_lands_once() {
    let server = RedisServer::start(&[]);
    drop(at(&server.url()).unwrap());
    let proxy = Proxy::to(Target::Port(server.port()));
    let store = at(&format!("redis://127.0.0.1:{}", proxy.port())).unwrap();
    proxy.cut(Moment::Behind(b"EVALSHA", b""), 5);
    for effect in 0..10 {
        let claim = claim(named(&effect.to_string()), index(effect, true));
        assert_eq!(commit(&store, claim).unwrap(), Committed::Done);
    }
    assert_eq!(proxy.cuts_left(), 0, "all cuts were made");
    let found = block_on(store.scan(By::All, None, 99)).unwrap().items;
    assert_eq!(found.iter().map(|row| row.revision).collect::<Vec<_>>(), [Revision(1); 10]);
}

#[test]
fn of_two_stores_that_claim_one_key_exactly_one_wins() {
    let server = RedisServer::start(&[]);
    let stores = [at(&server.url()).unwrap(), at(&server.url()).unwrap()];
    for round in 0..100u128 {
        let wins = std::thread::scope(|scope| {
            let racing = [0, 1].map(|n| {
                let claim = claim(named(&round.to_string()), index(round * 2 + n as u128, true));
                let store = &stores[n];
                scope.spawn(move || commit(store, claim).unwrap())
            });
            racing
                .map(|racer| racer.join().unwrap())
                .iter()
                .filter(|answer| **answer == Committed::Done)
                .count()
        });
        assert_eq!(wins, 1);
    }
}

#[test]
fn a_server_that_would_lose_claims_unnoticed_is_refused() {
    let evicting = RedisServer::start(&["--maxmemory-policy", "allkeys-lru"]);
    let refused = at(&evicting.url()).unwrap_err().to_string();
    assert!(refused.contains("set maxmemory-policy noeviction"), "{refused}");
    let primary = evicting.port().to_string();
    let replica = RedisServer::start(&["--replicaof", "127.0.0.1", &primary]);
    let refused = at(&replica.url()).unwrap_err().to_string();
    assert!(refused.contains("name the primary"), "{refused}");
    let lonely = RedisServer::start(&["--cluster-enabled", "yes"]);
    let refused = at(&lonely.url()).unwrap_err().to_string();
    assert!(refused.contains("CLUSTERDOWN"), "{refused}");
}

#[test]
fn a_wrong_password_host_or_certificate_is_refused_and_never_shown() {
    let server = RedisServer::start(&["--requirepass", "the-right-one"]);
    let url = |user: &str| format!("redis://{user}127.0.0.1:{}", server.port());
    assert!(at(&url(":the-right-one@")).is_ok());
    for (url, word) in [
        (url(":s3cret@"), "refuses this user or password"),
        (url("nobody:s3cret@"), "refuses this user or password"),
        (url(""), "NOAUTH"),
        ("redis://:s3cret@127.0.0.1:1".to_owned(), "refused"),
        ("redis://:s3cret@no-such-host.invalid".to_owned(), "no-such-host.invalid"),
        (url(":s3cret@").replace("redis:", "rediss:"), "127.0.0.1"),
    ] {
        let refused = at(&url).unwrap_err().to_string();
        assert!(refused.contains(word) && !refused.contains("s3cret"), "{refused}");
    }
}

#[test]
fn the_tier_is_what_the_server_keeps() {
    for (options, tier) in [
        (&[][..], Tier::Durable),
        (&["--appendfsync", "everysec"], Tier::SometimesOnDisk),
        (&["--no-appendfsync-on-rewrite", "yes"], Tier::SometimesOnDisk),
        (&["--appendonly", "no"], Tier::NotOnDisk),
        (&["--rename-command", "CONFIG", ""], Tier::Unknown),
    ] {
        let server = RedisServer::start(options);
        let store = at(&server.url()).unwrap();
        assert_eq!(store.server().tier(), tier);
        assert_eq!(commit(&store, claim(named("k"), index(1, true))).unwrap(), Committed::Done);
        assert_eq!(store.server().tier(), tier, "a server that can tell says that it is on the disk");
        assert_eq!(tier.to_string().starts_with("durable"), tier.is_durable());
    }
}

#[test]
fn a_full_server_refuses_and_goes_on_when_it_has_room() {
    let server = RedisServer::start(&[]);
    let store = at(&server.url()).unwrap();
    server.ask(&["CONFIG", "SET", "maxmemory", "1"]);
    let refused = commit(&store, claim(named("k"), index(1, true))).unwrap_err().to_string();
    assert!(refused.contains("OOM"), "{refused}");
    server.ask(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(commit(&store, claim(named("k"), index(1, true))).unwrap(), Committed::Done);
}

#[test]
fn a_replica_that_takes_over_begins_a_new_epoch() {
    let mut primary = RedisServer::start(&[]);
    let replica = RedisServer::start(&["--replicaof", "127.0.0.1", &primary.port().to_string()]);
    // A first replica gives its primary a new replication id, so it comes before the ledger.
    let is_attached = || replica.ask(&["INFO", "replication"]).contains("master_link_status:up");
    semel_testkit::wait_until("the replica is attached", is_attached);
    let both = format!("redis+cluster://127.0.0.1:{},127.0.0.1:{}", primary.port(), replica.port());
    let store = at(&both).unwrap();
    assert_eq!(commit(&store, claim(named("k"), index(1, true))).unwrap(), Committed::Done);
    let replicated = || replica.ask(&["HLEN", "{semel:ledger}:values"]) != ":0\r\n+OK\r\n";
    semel_testkit::wait_until("the replica has the ledger", replicated);
    assert_eq!(epoch(&store), Revision::ABSENT);
    primary.kill();
    replica.ask(&["REPLICAOF", "NO", "ONE"]);
    assert_eq!(commit(&store, claim(named("after"), index(2, true))).unwrap(), Committed::Done);
    assert_eq!(epoch(&store), Revision(1));
}

/// As behind a firewall that drops everything: each look at the host takes seconds.
#[test]
fn those_who_wait_for_a_host_that_never_answers_wait_together() {
    let mut server = RedisServer::start(&[]);
    let proxy = Proxy::to(Target::Port(server.port()));
    let hole = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = hole.local_addr().unwrap().port();
    let connections = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&connections);
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for connection in hole.incoming() {
            counted.fetch_add(1, Ordering::Relaxed);
            kept.push(connection);
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let address = RedisAddress::parse(&format!("redis://127.0.0.1:{}", proxy.port())).unwrap();
        let kv = Arc::new(RedisKv::connect(address).await.unwrap());
        proxy.lead_to(Target::Port(port));
        server.kill();
        while kv.read(vec![b"k".to_vec()], Vec::new()).await.is_ok() {}
        let before = connections.load(Ordering::Relaxed);
        let mut reads = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let kv = Arc::clone(&kv);
            reads.spawn(async move { kv.read(vec![b"k".to_vec()], Vec::new()).await.is_err() });
        }
        assert_eq!(reads.join_all().await, [true; 8]);
        assert_eq!(connections.load(Ordering::Relaxed), before + 1);
    });
}

#[test]
fn a_commit_is_announced_to_other_processes() {
    let server = RedisServer::start(&[]);
    let (store, other) = (at(&server.url()).unwrap(), at(&server.url()).unwrap());
    let key = named("k");
    assert_eq!(commit(&store, claim(key, index(1, true))).unwrap(), Committed::Done);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (heard, mut news) = tokio::sync::mpsc::unbounded_channel();
        let announced = async {
            let subscribed = || server.ask(&["PUBSUB", "NUMSUB", "{semel:ledger}:moved"]).contains(":3\r\n");
            while !subscribed() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let settled = one(record(key, 1, 1, index(1, false)));
            assert_eq!(store.commit(settled.into()).await.unwrap(), Committed::Done);
            assert_eq!(news.recv().await, Some(key.short()));
        };
        tokio::select! {
            () = other.server().listen(|key| _ = heard.send(key)) => panic!("the connection broke"),
            () = announced => {}
        }
    });
    assert_eq!(block_on(other.changed(key, Revision(1), Duration::from_secs(30))), Hint::Changed);
}

#[test]
fn the_secret_is_that_of_the_one_who_founded_the_ledger() {
    let server = RedisServer::start(&[]);
    drop(at(&server.url()).unwrap());
    let address = RedisAddress::parse(&server.url()).unwrap();
    let another = KvStore::open(async { RedisKv::connect(address).await }, [9; 32], Arc::new(|| At(1)));
    assert_eq!(block_on(another).unwrap().1.expose(), &SECRET);
}

#[test]
fn lazy_commits_and_durable_ones_share_a_batch() {
    let server = RedisServer::start(&[]);
    let store = Arc::new(at(&server.url()).unwrap());
    std::thread::scope(|scope| {
        for effect in 0..32 {
            let store = &store;
            scope.spawn(move || {
                let mut claim = claim(named(&effect.to_string()), index(effect, true));
                claim.durability = if effect % 2 == 0 { Durability::Lazy } else { Durability::Durable };
                assert_eq!(commit(store, claim).unwrap(), Committed::Done);
            });
        }
    });
    assert_eq!(block_on(store.scan(By::All, None, 99)).unwrap().items.len(), 32);
}

/// As it is when a backup of its directory is put back: its settings promise that nothing is lost by a restart.
#[test]
fn a_server_that_starts_with_an_older_log_begins_an_epoch() {
    let (mut server, host) = (RedisServer::start(&[]), scene::directory());
    let store = Arc::new(at(&server.url()).unwrap());
    let ledger = position::process(store.clone(), host.path());
    position::call(&ledger, "kept");
    let log = server.log();
    position::call(&ledger, "lost");
    server.kill();
    server.put_back(log);
    server.restart();
    assert_eq!(position::epoch_of(&ledger), 1);
    assert_eq!(position::epoch_of(&position::process(store, host.path())), 1, "and only one");
}
