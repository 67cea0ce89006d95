//! A wrong address, password, certificate or setting is refused at the start, and the password is never repeated.

use super::{noted, noted_claim, open, wait};
use semel_ledger::store::{Committed, Store};
use semel_testkit::postgres_server::{PASSWORD, PostgresServer, free_port, give_to_nobody};
use semel_testkit::wait_until;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

const BY_NETWORK: &str = "listen_addresses=127.0.0.1";

fn refusal(url: &str) -> String {
    let refused = open(url).expect_err(url);
    let words = format!("{refused} {refused:?}");
    assert!(!words.contains(PASSWORD) && !words.contains("wrong-horse"), "{words}");
    words
}

#[test]
fn a_server_without_fsync_is_refused() {
    let server = PostgresServer::start(&["fsync=off"]);
    let words = refusal(&server.url("semel"));
    assert!(words.contains("set fsync=on"), "{words}");
}

#[test]
fn a_wrong_address_says_what_is_wrong_with_it() {
    let server = PostgresServer::start(&[BY_NETWORK]);
    let port = server.port;
    let nobody = free_port();
    for (url, words) in [
        (format!("postgres://semel:wrong-horse@127.0.0.1:{port}/postgres"), "password authentication failed"),
        (format!("postgres://semel@127.0.0.1:{port}/postgres"), "password"),
        (
            format!("postgres://semel:{PASSWORD}@127.0.0.1:{port}/missing"),
            "database \"missing\" does not exist",
        ),
        (format!("postgres://semel:{PASSWORD}@127.0.0.1:{nobody}/postgres"), "refused"),
        (format!("postgres://semel:{PASSWORD}@nowhere.invalid/postgres"), "nowhere.invalid"),
        (format!("postgres://semel:{PASSWORD}@127.0.0.1:{port}/postgres?sslmode=require"), "TLS"),
        (format!("postgres://semel:{PASSWORD}@127.0.0.1:{port}/postgres?sslmode=sometimes"), "sslmode"),
        (format!("postgres://semel:{PASSWORD}@127.0.0.1:{port}/postgres?colour=red"), "wrong value: colour"),
        (format!("postgres://semel:{PASSWORD}@127.0.0.1:{port}/postgres?sslrootcert=/no/such"), "/no/such"),
    ] {
        let said = refusal(&url);
        assert!(said.contains(words), "{url}: {said}");
    }
    open(&format!("postgres://semel:{PASSWORD}@127.0.0.1:{port}/postgres")).expect("all of it is right");
}

#[test]
fn a_server_that_never_speaks_is_given_up() {
    let mute = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = mute.local_addr().expect("bound").port();
    let words = refusal(&format!("postgres://semel:{PASSWORD}@127.0.0.1:{port}/postgres?connect_timeout=1"));
    assert!(words.contains("has not answered for 1 s"), "{words}");
}

#[test]
fn a_server_without_a_free_connection_says_so() {
    let server = PostgresServer::start(&[
        "max_connections=2",
        "superuser_reserved_connections=0",
        "max_wal_senders=0",
    ]);
    let others = [server.begin(), server.begin()];
    let words = refusal(&server.url("semel"));
    assert!(words.contains("too many clients"), "{words}");
    drop(others);
    wait_until("a connection is free", || open(&server.url("semel")).is_ok());
}

#[test]
fn an_ordinary_role_may_found_a_ledger_and_a_lesser_one_may_use_it() {
    let server = PostgresServer::start(&[]);
    server.sql(
        "CREATE ROLE founder LOGIN; GRANT CREATE ON DATABASE postgres TO founder; CREATE ROLE agent LOGIN",
    );
    let by = |role: &str| server.url("semel").replace("semel@", &format!("{role}@"));
    let words = refusal(&by("agent"));
    assert!(words.contains("permission denied"), "{words}");
    open(&by("founder")).expect("it may create a schema");
    server.sql(
        "GRANT USAGE ON SCHEMA semel TO agent; \
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA semel TO agent",
    );
    let (store, _) = open(&by("agent")).expect("it may write");
    assert_eq!(wait(store.commit(noted_claim("k", 1))).expect("answered"), Committed::Done);
    assert_eq!(noted(&store), [1]);
}

/// An authority, and a certificate that it has signed for `localhost`.
fn certify(directory: &Path) {
    let openssl = |words: &str| {
        let run = Command::new("openssl").args(words.split(' ')).current_dir(directory).output();
        let output = run.expect("openssl is installed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    std::fs::write(directory.join("names"), "subjectAltName=DNS:localhost").expect("a file");
    openssl("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.pem");
    openssl("req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout server.key -out server.csr");
    openssl(
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out server.pem",
    );
    give_to_nobody(&directory.join("server.key"));
}

#[test]
fn a_certificate_that_nobody_vouches_for_is_refused() {
    let settings = [BY_NETWORK, "ssl=on", "ssl_cert_file=../server.pem", "ssl_key_file=../server.key"];
    let server = PostgresServer::start_with(&settings, certify);
    let authority = server.directory().join("ca.pem");
    let url =
        |host: &str, rest: &str| format!("postgres://semel:{PASSWORD}@{host}:{}/postgres{rest}", server.port);
    let trusting = format!("?sslmode=verify-full&sslrootcert={}", authority.display());
    let _open = open(&url("localhost", &trusting)).expect("the authority vouches for it");
    let encrypted = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                     WHERE application_name = 'semel'";
    assert_eq!(server.sql(encrypted), "t");
    for (url, words) in
        [(url("localhost", ""), "sslrootcert=FILE"), (url("127.0.0.1", &trusting), "not valid for name")]
    {
        let said = refusal(&url);
        assert!(said.contains(words), "{url}: {said}");
    }
}
