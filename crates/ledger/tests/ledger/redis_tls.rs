//! Redis over TLS: the certificates that a machine trusts are a matter of its environment, so a process of its own asks.

use crate::kv::block_on;
use crate::redis::at;
use semel_ledger::store::{Committed, Store};
use semel_testkit::redis_server::{RedisServer, free_port};
use semel_testkit::store_suite::{claim, index, named};
use std::path::Path;
use std::process::{Command, Output};

const URL: &str = "SEMEL_TEST_REDIS_TLS";

#[test]
#[ignore = "run by the other test, as a child process"]
#[allow(clippy::disallowed_methods, reason = "a child that is told what to do")]
fn child() {
    let Ok(url) = std::env::var(URL) else { return };
    let store = at(&url).unwrap();
    let answer = block_on(store.commit(claim(named("k"), index(1, true)).into()));
    assert_eq!(answer.unwrap(), Committed::Done);
}

/// A process that trusts this certificate and no other.
fn ask(url: &str, trusted: &Path) -> Output {
    Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", "redis_tls::child", "--ignored", "--nocapture"])
        .env(URL, url)
        .env("SSL_CERT_FILE", trusted)
        .env_remove("SSL_CERT_DIR")
        .output()
        .expect("the child runs")
}

fn certificate(directory: &Path, name: &str) -> [String; 2] {
    let [key, certificate] =
        ["key", "pem"].map(|end| directory.join(format!("{name}.{end}")).display().to_string());
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", &key, "-out", &certificate])
        .output()
        .expect("openssl is installed by `cargo xtask test`");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    [key, certificate]
}

#[test]
fn a_trusted_certificate_is_accepted_and_another_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let [key, trusted] = certificate(directory.path(), "server");
    let [_, another] = certificate(directory.path(), "another");
    let port = free_port().to_string();
    let files = ["--tls-key-file", &key, "--tls-cert-file", &trusted, "--tls-ca-cert-file", &trusted];
    let options = [&["--tls-port", &port, "--tls-auth-clients", "no"][..], &files].concat();
    let _server = RedisServer::start(&options);
    let url = format!("rediss://localhost:{port}");
    let asked = ask(&url, trusted.as_ref());
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let refused = ask(&url, another.as_ref());
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && words.contains("certificate"), "{words}");
}
