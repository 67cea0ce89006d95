//! What the page about the engines tells operators to type, on real servers: a user with the rights that it lists passes the
//! whole suite, on one ledger that is emptied before each case as the page says.

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

#[test]
fn the_rights_on_postgresql_are_enough() {
    let server = PostgresServer::start(&[]);
    server.sql("CREATE ROLE agent LOGIN");
    let url = server.url("semel");
    exercise(|| {
        server.sql(&emptying("PostgreSQL", "IF EXISTS semel"));
        drop(postgres::store(&url));
        server.sql(&block("PostgreSQL"));
        (postgres::store(&url.replace("semel@", "agent@")), ())
    });
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
    let facts =
        block_on(redis::at(&url).unwrap().describe(At(0))).expect("it may ask for settings and the time");
    assert!(facts.durability.starts_with("durable"), "{facts:?}");
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
}
