//! `docs/engines.md` lists the rights that a user of each server needs, and the command that empties a ledger. A user with
//! just these rights passes the store suite here, and the command empties the ledger before each case.

use crate::etcd::{self, cluster_with_login, etcdctl};
use crate::kv::block_on;
use crate::{postgres, redis};
use semel_core::time::At;
use semel_ledger::store::Store;
use semel_testkit::postgres_server::PostgresServer;
use semel_testkit::redis_server::RedisServer;
use semel_testkit::store_suite::exercise;

/// The first block of code in this section.
pub fn block(section: &str) -> String {
    let page = page();
    let (_, section) = page.split_once(&format!("\n## {section}\n")).expect(section);
    let block = section.split("```").nth(1).expect("a block of code");
    let (_language, lines) = block.split_once('\n').expect("lines");
    lines.to_owned()
}

/// The command that makes room for another ledger, in the table that begins its line with this engine.
fn emptying(engine: &str, ledger: &str) -> String {
    let page = page();
    let (_, table) = page.split_once("| place | empty it |").expect("a table");
    let line = table.lines().find(|line| line.starts_with(&format!("| {engine} |"))).expect(engine);
    line.split('`').nth(1).expect("a command").replace("NAME", ledger)
}

fn page() -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/engines.md");
    std::fs::read_to_string(page).expect("a page")
}

/// `semel doctor` asks for this.
fn must_be_described(store: &impl Store) {
    let facts = block_on(store.describe(At(0))).expect("it may ask for settings and the time");
    assert!(facts.durability.starts_with("durable"), "{facts:?}");
}

#[test]
fn the_rights_on_postgresql_are_enough() {
    let server = PostgresServer::start(&[]);
    server.sql("CREATE ROLE agent LOGIN");
    let founder = server.url("semel");
    let url = founder.replace("semel@", "agent@");
    exercise(|| {
        server.sql(&emptying("PostgreSQL", "IF EXISTS semel"));
        drop(postgres::store(&founder));
        server.sql(&block("PostgreSQL"));
        (postgres::store(&url), ())
    });
    must_be_described(&postgres::store(&url));
}

#[test]
fn the_rights_on_redis_are_enough() {
    let server = RedisServer::start(&[]);
    let ask = |command: &str| server.ask(&command.split_whitespace().collect::<Vec<_>>());
    let answer = ask(&block("Redis and Valkey").replace("PASSWORD", "s3cret"));
    assert!(answer.starts_with("+OK"), "{answer}");
    let empty = emptying("Redis", "ledger").replace('\'', "");
    let empty = empty.strip_prefix("redis-cli ").expect("a command of its own tool");
    let url = format!("redis://agent:s3cret@127.0.0.1:{}", server.port());
    exercise(|| {
        ask(empty);
        (redis::at(&url).expect("it opens"), ())
    });
    must_be_described(&redis::at(&url).unwrap());
}

#[test]
fn the_rights_on_etcd_are_enough() {
    let cluster = cluster_with_login("1h");
    let empty = emptying("etcd", "ledger");
    let empty = empty.strip_prefix("etcdctl ").expect("a command of its own tool");
    let url = format!("etcd://agent:s3cret@{}", cluster.places());
    exercise(|| {
        etcdctl(&cluster, &format!("--user=root:rootpw {empty}"));
        (etcd::at(&url).expect("it opens"), ())
    });
    must_be_described(&etcd::at(&url).unwrap());
}
