//! Redis and etcd over TLS. A process reads from its environment which certificates it trusts, so each question comes from
//! a child process.

use crate::kv::block_on;
use crate::redis_cluster::join;
use crate::{etcd, redis};
use semel_ledger::store::{Committed, Store};
use semel_testkit::etcd_cluster::EtcdCluster;
use semel_testkit::redis_server::{RedisServer, free_port};
use semel_testkit::store_suite::{claim, index, named};
use std::path::Path;
use std::process::{Command, Output};

const URL: &str = "SEMEL_TEST_TLS";

#[test]
#[ignore = "run by the other test, as a child process"]
#[allow(clippy::disallowed_methods, reason = "a child that is told what to do")]
fn child() {
    let Ok(url) = std::env::var(URL) else { return };
    let claim = claim(named("k"), index(1, true)).into();
    let answer = match url.starts_with("etcds") {
        true => block_on(etcd::at(&url).unwrap().commit(claim)),
        false => block_on(redis::at(&url).unwrap().commit(claim)),
    };
    assert_eq!(answer.unwrap(), Committed::Done);
}

/// A process that trusts this certificate and no other.
fn ask(url: &str, trusted: &Path) -> Output {
    Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", "tls::child", "--ignored", "--nocapture"])
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
        .args([
            "-addext",
            "subjectAltName=DNS:localhost,IP:127.0.0.1",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
        ])
        .args(["-keyout", &key, "-out", &certificate])
        .output()
        .expect("openssl is installed by `cargo xtask test`");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    [key, certificate]
}

/// A client that trusts the server's certificate is answered, and one that trusts the other is not.
fn must_need_trust(url: &str, [trusted, another]: [&str; 2]) {
    let asked = ask(url, trusted.as_ref());
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let refused = ask(url, another.as_ref());
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && words.contains("certificate"), "{words}");
}

#[test]
fn a_trusted_certificate_is_accepted_and_another_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let [key, trusted] = certificate(directory.path(), "server");
    let [_, another] = certificate(directory.path(), "another");
    let certificates = [trusted.as_str(), &another];
    let files = ["--tls-key-file", &key, "--tls-cert-file", &trusted, "--tls-ca-cert-file", &trusted];
    let redis = |options: &[&str]| {
        let port = free_port();
        let tls = ["--tls-port", &port.to_string(), "--tls-auth-clients", "no"];
        (RedisServer::start(&[&tls[..], &files, options].concat()), format!("localhost:{port}"))
    };

    let (_alone, place) = redis(&[]);
    must_need_trust(&format!("rediss://{place}"), certificates);

    let in_cluster = ["--cluster-enabled", "yes", "--tls-cluster", "yes"];
    let (nodes, places): (Vec<_>, Vec<_>) = (0..3).map(|_| redis(&in_cluster)).unzip();
    let by_number: Vec<String> = places.iter().map(|place| place.replace("localhost", "127.0.0.1")).collect();
    join(&nodes, &by_number, &["--tls", "--cacert", &trusted]);
    for place in places {
        must_need_trust(
            &format!("rediss+cluster://{place}?ledger={}", place.replace(':', "-")),
            certificates,
        );
    }

    let cluster = EtcdCluster::start_with(1, &["--cert-file", &trusted, "--key-file", &key]);
    must_need_trust(&format!("etcds://{}", cluster.tls_place()), certificates);
}
