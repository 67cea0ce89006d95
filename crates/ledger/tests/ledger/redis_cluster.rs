//! A ledger on a cluster of six nodes, of which one is lost.

use crate::kv::block_on;
use crate::redis::at;
use semel_ledger::store::{Committed, Revision, Store};
use semel_testkit::redis_server::RedisServer;
use semel_testkit::store_suite::{claim, exercise, index, named};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Makes one cluster of these nodes. `options` are what `redis-cli` needs to reach them at `places`.
pub fn join(nodes: &[RedisServer], places: &[String], options: &[&str]) {
    let made = Command::new("redis-cli")
        .args(options)
        .args(["--cluster", "create"])
        .args(places)
        .arg("--cluster-yes")
        .output()
        .expect("redis-cli comes with redis-server");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stdout));
    let is_whole = |node: &RedisServer| {
        let link = node.ask(&["INFO", "replication"]);
        node.ask(&["CLUSTER", "INFO"]).contains("cluster_state:ok")
            && (link.contains("role:master") || link.contains("master_link_status:up"))
    };
    semel_testkit::wait_until("the cluster is whole", || nodes.iter().all(is_whole));
}

#[test]
fn a_cluster_passes_the_suite_and_loses_a_node() {
    let options = ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"];
    let mut nodes: Vec<_> = (0..6).map(|_| RedisServer::start(&options)).collect();
    let places: Vec<String> = nodes.iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
    // Three primaries with a replica each.
    join(&nodes, &places, &["--cluster-replicas", "1"]);
    let cases = AtomicUsize::new(0);
    exercise(|| {
        let case = cases.fetch_add(1, Ordering::Relaxed);
        let url = format!("{}?ledger=case-{case}", nodes[case % nodes.len()].url());
        (at(&url).expect("any node leads to the ledger"), ())
    });

    let store = at(&format!("redis+cluster://{}", places.join(","))).unwrap();
    let commit = |word: &str, effect| block_on(store.commit(claim(named(word), index(effect, true)).into()));
    assert_eq!(commit("before", 1).unwrap(), Committed::Done);
    let has_it = |node: &RedisServer| node.ask(&["HLEN", "{semel:ledger}:values"]).starts_with(':');
    let primary = nodes.iter().position(has_it).expect("a node has the ledger");
    nodes[primary].kill();
    let nodes_left = || nodes.iter().enumerate().filter(|(n, _)| *n != primary).map(|(_, node)| node);
    semel_testkit::wait_until("a replica takes over", || nodes_left().any(has_it));
    semel_testkit::wait_until("commits land again", || {
        commit("after", 2).is_ok_and(|answer| answer == Committed::Done)
    });
    assert_eq!(block_on(store.read(named("after"))).unwrap().epoch, Revision(1), "it may lack the newest");
}
