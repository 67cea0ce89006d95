//! The key-value engine on a real etcd cluster, and what can happen to that.

use crate::engines_page;
use crate::kv::{block_on, claim_until, lost, open};
use crate::{position, scene};
use semel_core::time::At;
use semel_ledger::Error;
use semel_ledger::kv::etcd::{EtcdAddress, EtcdKv};
use semel_ledger::kv::{Kv, KvStore, MemoryKv};
use semel_ledger::store::{By, Commit, Committed, Latest, OwnerId, Revision, Store};
use semel_testkit::etcd_cluster::EtcdCluster;
use semel_testkit::store_suite::{claim, exercise, index, named, one, record};
use serde_json::Value;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

pub fn at(url: &str) -> Result<KvStore<EtcdKv>, Error> {
    let address = EtcdAddress::parse(url)?;
    open(async move { EtcdKv::connect(address).await })
}

#[test]
fn etcd_passes_the_suite() {
    let cluster = EtcdCluster::start(1);
    let cases = AtomicU64::new(0);
    exercise(|| {
        let case = cases.fetch_add(1, Ordering::Relaxed);
        (at(&format!("etcd://{}?ledger=case-{case}", cluster.places())).expect("it opens"), ())
    });
}

/// It reads long lists in stretches, and gives its last entries in no other way.
#[test]
fn lists_are_read_in_the_same_pages_as_on_any_server() {
    let cluster = EtcdCluster::start(1);
    let etcd = at(&format!("etcd://{}", cluster.places())).unwrap();
    let memory = open(async { Ok(MemoryKv::default()) }).unwrap();
    let (run, outline, line) = (named("run"), named("outline"), |at| {
        semel_ledger::journal::note("note", None, None, serde_json::json!({}), At(at))
    });
    for n in 0..300_u32 {
        let mut index = index(u128::from(n) + 1, n % 7 == 0);
        // One run long ago, and one outline now and then.
        index.run = (20..40).contains(&n).then_some(run);
        index.alike = (n % 5 == 0).then_some(outline);
        let record = match n % 10 {
            0 => record(named("often"), n / 10 + 1, u64::from(n / 10), index),
            _ => record(named(&n.to_string()), 1, 0, index),
        };
        let lines = (0..n % 3).map(|at| line(u64::from(n * 3 + at))).collect();
        let commit = Commit { journal: lines, ..one(record) };
        for store in [&etcd as &dyn Store, &memory] {
            assert_eq!(block_on(store.commit(commit.clone().into())).unwrap(), Committed::Done);
        }
    }
    let lists = |store: &dyn Store| {
        let mut found = Vec::new();
        for of in
            [Latest::All, Latest::Open, Latest::Run(run), Latest::Alike(outline), Latest::OpenAlike(outline)]
        {
            let mut before = None;
            loop {
                let page = block_on(store.latest(of, before, 23)).unwrap();
                found.push(page.items.iter().map(|(_, row)| row.index.effect).collect::<Vec<_>>());
                before = page.next;
                if before.is_none() {
                    break;
                }
            }
        }
        for by in [By::All, By::Open, By::Run(run), By::Record(named("often")), By::Effect(77)] {
            let mut after = None;
            loop {
                let page = block_on(store.scan(by, after, 23)).unwrap();
                found.push(page.items.iter().map(|row| row.index.effect).collect());
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        let mut after = None;
        loop {
            let page = block_on(store.journal(after, 23)).unwrap();
            found.push(page.items.iter().map(|(_, line)| u128::from(line.at.0)).collect());
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let newest = block_on(store.newest_lines(100)).unwrap();
        found.push(newest.iter().map(|(_, line)| u128::from(line.at.0)).collect());
        let cards = block_on(store.cards(outline)).unwrap();
        found.push(cards.iter().map(|card| u128::from(card.ordinal)).collect());
        found
    };
    let expected = lists(&memory);
    assert!(expected.len() > 40 && expected[0].first() == Some(&300));
    assert_eq!(lists(&etcd), expected);
}

#[test]
fn no_acknowledged_claim_is_lost_when_the_leader_is_killed_under_load() {
    let mut cluster = EtcdCluster::start(3);
    let stores = [(); 2].map(|()| at(&format!("etcd://{}", cluster.places())).unwrap());
    let (stopped, landed) = (AtomicBool::new(false), AtomicU64::new(0));
    let acknowledged: Vec<u128> = std::thread::scope(|scope| {
        let (stopped, landed, stores) = (&stopped, &landed, &stores);
        let work = move |worker: usize| claim_until(stopped, landed, &stores[worker % 2], worker as u128);
        let workers: Vec<_> = (0..8).map(|worker| scope.spawn(move || work(worker))).collect();
        for _ in 0..2 {
            let enough = landed.load(Ordering::Relaxed) + 50;
            semel_testkit::wait_until("claims land", || landed.load(Ordering::Relaxed) >= enough);
            let killed = cluster.kill_leader();
            let enough = landed.load(Ordering::Relaxed) + 50;
            semel_testkit::wait_until("claims land without it", || landed.load(Ordering::Relaxed) >= enough);
            cluster.restart(killed);
        }
        stopped.store(true, Ordering::Relaxed);
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert_eq!(lost(&stores[0], &acknowledged), Vec::<u128>::new());
    let epoch = block_on(stores[0].read(named("k"))).unwrap().epoch;
    assert_eq!(epoch, Revision::ABSENT, "a new leader has everything");
}

#[test]
fn of_two_stores_that_claim_one_key_exactly_one_wins() {
    let cluster = EtcdCluster::start(1);
    let stores = [(); 2].map(|()| at(&format!("etcd://{}", cluster.places())).unwrap());
    for round in 0..30u128 {
        let wins = std::thread::scope(|scope| {
            let racing = [0, 1].map(|n| {
                let claim = claim(named(&round.to_string()), index(round * 2 + n as u128, true));
                let store = &stores[n];
                scope.spawn(move || block_on(store.commit(claim.into())).unwrap())
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
fn a_commit_is_announced_to_other_processes() {
    let cluster = EtcdCluster::start(1);
    let url = format!("etcd://{}", cluster.places());
    let (store, other) = (at(&url).unwrap(), at(&url).unwrap());
    let key = named("k");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        assert_eq!(store.commit(claim(key, index(1, true)).into()).await.unwrap(), Committed::Done);
        let (heard, mut news) = tokio::sync::mpsc::unbounded_channel();
        let announced = async {
            // Nothing tells when a watch has begun, so it is announced until it is heard.
            for revision in 1.. {
                let settled = one(record(key, 1, revision, index(1, false)));
                assert_eq!(store.commit(settled.into()).await.unwrap(), Committed::Done);
                let next = tokio::time::timeout(Duration::from_millis(100), news.recv()).await;
                if let Ok(heard) = next {
                    assert_eq!(heard, Some(key.short()));
                    break;
                }
            }
        };
        tokio::select! {
            () = other.server().listen(|key| _ = heard.send(key)) => panic!("the connection broke"),
            () = announced => {}
        }
    });
}

/// The server's clock alone says when a process that is no longer heard of has fallen silent.
#[test]
fn a_mark_ends_with_its_lease_and_comes_back_with_another() {
    let cluster = EtcdCluster::start(1);
    let url = format!("etcd://{}", cluster.places());
    let (store, other) = (at(&url).unwrap(), at(&url).unwrap());
    let claimed_by = |owner, effect: u128| {
        store.announce(owner);
        let mut claim = claim(named(&effect.to_string()), index(effect, true));
        claim.require.begins = true;
        assert_eq!(block_on(store.commit(claim.into())).unwrap(), Committed::Done);
    };
    let silent = |owner| block_on(other.silent(&[owner])).unwrap();
    // As if nothing had been heard of the process for a minute.
    let end_leases = || {
        let answer = cluster.post("/v3/lease/leases", "{}");
        let (_head, body) = answer.split_once("\r\n\r\n").expect("an answer");
        let leases: Value = serde_json::from_str(body).expect("JSON");
        let leases = leases["leases"].as_array().expect("there is one").clone();
        for lease in leases {
            cluster.post("/v3/lease/revoke", &lease.to_string());
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let kept = || runtime.block_on(store.server().keep_marks()).unwrap().is_some();
    let (one, two) = (OwnerId(1), OwnerId(2));
    claimed_by(one, 1);
    assert!(kept());
    assert_eq!((silent(one), silent(two)), (vec![], vec![two]));
    end_leases();
    assert_eq!(silent(one), [one]);
    // The claim is refused with the lease that has ended, and made with another.
    claimed_by(two, 2);
    assert_eq!(silent(two), []);
    semel_testkit::wait_until("the next beat brings the first mark back too", || silent(one).is_empty());
    end_leases();
    assert!(!kept());
    assert_eq!(block_on(other.silent(&[one, two])).unwrap(), [one, two]);
}

/// Its tokens are signed, and end after this time or with any change of a right. `agent` has the rights that the page about
/// the engines lists.
pub fn cluster_with_login(token_ends_after: &str) -> EtcdCluster {
    let directory = tempfile::tempdir().unwrap();
    let [key, public] = ["key", "public"].map(|name| directory.path().join(name).display().to_string());
    let tools = "openssl and etcdctl are installed by `cargo xtask test`";
    for words in [vec!["genrsa", "-out", &key, "2048"], vec!["rsa", "-in", &key, "-pubout", "-out", &public]]
    {
        assert!(Command::new("openssl").args(words).output().expect(tools).status.success());
    }
    let tokens = format!("jwt,pub-key={public},priv-key={key},sign-method=RS256,ttl={token_ends_after}");
    let cluster = EtcdCluster::start_with(1, &["--auth-token", &tokens]);
    for words in ["user add root:rootpw", "user grant-role root root", "user add agent:s3cret"] {
        etcdctl(&cluster, words);
    }
    for line in engines_page::block("etcd").lines() {
        etcdctl(&cluster, line.strip_prefix("etcdctl ").expect("a command of etcdctl"));
    }
    etcdctl(&cluster, "auth enable");
    cluster
}

pub fn etcdctl(cluster: &EtcdCluster, words: &str) {
    let told = Command::new("etcdctl")
        .env("ETCDCTL_API", "3")
        .arg(format!("--endpoints={}", cluster.places()))
        .args(words.split(' '))
        .output()
        .expect("etcdctl is installed by `cargo xtask test`");
    assert!(told.status.success(), "{words}: {}", String::from_utf8_lossy(&told.stderr));
}

fn must_land(store: &KvStore<EtcdKv>, effect: u128) {
    let claim = claim(named(&effect.to_string()), index(effect, true));
    assert_eq!(block_on(store.commit(claim.into())).unwrap(), Committed::Done);
}

#[test]
#[allow(clippy::disallowed_methods, reason = "its tokens end by the clock of the server")]
fn a_login_needs_its_own_ledger_alone_and_outlives_its_tokens() {
    let cluster = cluster_with_login("2s");
    let url =
        |password: &str, name: &str| format!("etcd://agent:{password}@{}?ledger={name}", cluster.places());
    for (url, word) in
        [(url("wrong", "ledger"), "invalid user ID"), (url("s3cret", "other"), "permission denied")]
    {
        let refused = at(&url).unwrap_err().to_string();
        assert!(refused.contains(word) && !refused.contains("s3cret"), "{refused}");
    }
    let store = at(&url("s3cret", "ledger")).unwrap();
    must_land(&store, 1);
    std::thread::sleep(Duration::from_secs(3));
    must_land(&store, 2);
}

#[test]
fn a_changed_right_of_another_user_disturbs_nobody() {
    let cluster = cluster_with_login("1h");
    let store = at(&format!("etcd://agent:s3cret@{}", cluster.places())).unwrap();
    must_land(&store, 1);
    etcdctl(&cluster, "--user=root:rootpw role add another");
    must_land(&store, 2);
}

#[test]
fn a_wrong_host_is_refused_and_no_password_shown() {
    let cluster = EtcdCluster::start(1);
    for (url, word) in [
        ("etcd://me:s3cret@127.0.0.1:1".to_owned(), "refused"),
        ("etcd://me:s3cret@no-such-host.invalid".to_owned(), "no-such-host.invalid"),
        (format!("etcd://me:s3cret@{}", cluster.places()), "authentication is not enabled"),
        (format!("etcds://{}", cluster.places()), "127.0.0.1"),
    ] {
        let refused = at(&url).unwrap_err().to_string();
        assert!(refused.contains(word) && !refused.contains("s3cret"), "{refused}");
    }
}

/// Restored as its manual says, the cluster keeps its id.
#[test]
fn a_snapshot_that_was_restored_begins_an_epoch() {
    let (mut cluster, host) = (EtcdCluster::start(1), scene::directory());
    let store = Arc::new(at(&format!("etcd://{}", cluster.places())).unwrap());
    let ledger = position::process(store.clone(), host.path());
    position::call(&ledger, "kept");
    let (snapshot, id) = (host.path().join("snapshot"), cluster.id());
    cluster.save_snapshot(&snapshot);
    position::call(&ledger, "lost");
    cluster.restore(&snapshot);
    assert_eq!(cluster.id(), id, "nothing else tells it from the old one");
    assert_eq!(position::epoch_of(&ledger), 1);
    assert_eq!(position::epoch_of(&position::process(store, host.path())), 1, "and only one");
}
