//! `semel serve` with a certificate of its own.

use super::served::{Served, TOKEN};
use crate::home::{Home, Ran};
use rustix::process::Signal;
use semel_testkit::http::{ApiAct, RawClient, ScriptedApi};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

const TLS: &str = "[serve]\ntls = { certificate = \"cert.pem\", key = \"key.pem\" }\n";

/// A key and a certificate for this machine that vouches for itself: `NAME.key` and `NAME.pem`.
fn certify(home: &Home, name: &str) {
    let made = Command::new("openssl")
        .args("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2".split(' '))
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-keyout", &format!("{name}.key"), "-out", &format!("{name}.pem")])
        .current_dir(home.work())
        .output()
        .expect("openssl is installed by `cargo xtask test`");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// Puts a certificate and a key where the policy says.
fn install(home: &Home, certificate: &str, key: &str) {
    for (from, to) in [(key, "key.pem"), (certificate, "cert.pem")] {
        std::fs::copy(home.work().join(from), home.work().join(to)).expect("it is there");
    }
    set_mode_of_key(home, 0o640);
}

fn set_mode_of_key(home: &Home, mode: u32) {
    let mode = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(home.work().join("key.pem"), mode).expect("it is ours");
}

fn serving(home: &Home, api: &ScriptedApi) -> Served {
    certify(home, "first");
    install(home, "first.pem", "first.key");
    Served::start(home, &format!("{TLS}[upstream.bank]\nurl = \"{}\"\n", api.url()))
}

/// The status that curl reports of a charge, or its exit code.
fn charge(home: &Home, served: &Served, trusted: &str, words: &[&str]) -> Result<String, i32> {
    let output = Command::new("curl")
        .args([
            "-s",
            "-o",
            "/dev/null",
            "-w",
            "%{http_version} %{http_code}",
            "-d",
            "amount=1",
            "--cacert",
            trusted,
        ])
        .args(["-H", &format!("Semel-Token: {TOKEN}"), "-H", "Idempotency-Key: order-1"])
        .args(words)
        .arg(format!("https://{}/p/bank/charges", served.address))
        .current_dir(home.work())
        .output()
        .expect("curl is there");
    match output.status.code() {
        Some(0) => Ok(String::from_utf8(output.stdout).expect("text")),
        code => Err(code.expect("it ended by itself")),
    }
}

/// curl's exit code for a certificate that it does not trust.
const UNTRUSTED: Result<String, i32> = Err(60);

#[test]
fn a_guarded_call_over_tls_happens_once_and_addresses_say_https() {
    let (home, api) = (Home::new(), ScriptedApi::start());
    let served = serving(&home, &api);
    assert_eq!(served.told["apis"][0], format!("https://{}/p/bank/", served.address));
    for options in [&[][..], &["--tls-max", "1.2"], &["--http2"]] {
        assert_eq!(charge(&home, &served, "first.pem", options), Ok("1.1 201".into()), "{options:?}");
    }
    certify(&home, "other");
    assert_eq!(charge(&home, &served, "other.pem", &[]), UNTRUSTED);
    assert_eq!(api.effects(), 1);
}

#[test]
fn large_requests_and_answers_pass_whole() {
    const BYTES: usize = 3 << 20;
    let (home, api) = (Home::new(), ScriptedApi::start());
    let served = serving(&home, &api);
    home.file("large", &"x".repeat(300_000));
    api.next(ApiAct::Large(BYTES));
    let words = ["--data-binary", "@large", "-w", "%{size_upload} %{size_download}"];
    assert_eq!(charge(&home, &served, "first.pem", &words), Ok(format!("300009 {BYTES}")));
    assert_eq!((api.effects(), api.last().body.len()), (1, 300_009));
}

#[test]
fn bytes_that_are_no_tls_reach_nobody() {
    let (home, api) = (Home::new(), ScriptedApi::start());
    let served = serving(&home, &api);
    let silent = RawClient::connect(&served.address);
    let headers = format!("Semel-Token: {TOKEN}\r\n");
    let mut plain = served.ask_raw("POST /p/bank/charges HTTP/1.1", &headers, "amount=1");
    assert!(!plain.rest().contains("HTTP/"));
    for garbage in [&[0; 70_000][..], b"\x16\x03\x01\xff\xff\x01", &[0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0xff]] {
        let mut client = RawClient::connect(&served.address);
        client.write(garbage);
        client.rest();
    }
    assert_eq!(
        (api.effects(), home.json(["ledger", "list"])["items"].as_array().map(Vec::len)),
        (0, Some(0))
    );
    assert_eq!(charge(&home, &served, "first.pem", &[]), Ok("1.1 201".into()));
    drop(silent);
    assert!(!served.said().contains("panic"), "{}", served.said());
}

/// A client with one connection.
struct Connected {
    client: std::process::Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Connected {
    fn to(home: &Home, served: &Served, trusted: &str) -> Connected {
        let mut client = Command::new("openssl")
            .args([
                "s_client",
                "-quiet",
                "-verify_return_error",
                "-connect",
                &served.address,
                "-CAfile",
                trusted,
            ])
            .current_dir(home.work())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("openssl starts");
        let answers = BufReader::new(client.stdout.take().expect("a pipe"));
        Connected { client, answers }
    }

    /// The status line of an answer without a body.
    fn ask(&mut self) -> String {
        let request = b"HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
        self.client.stdin.as_mut().expect("a pipe").write_all(request).expect("it reads");
        let mut lines = self.answers.by_ref().lines().map(|line| line.expect("text"));
        let status = lines.next().expect("an answer");
        lines.find(|line| line.is_empty()).expect("the end of its head");
        status
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        let _ended = self.client.kill();
        let _reaped = self.client.wait();
    }
}

#[test]
fn changed_files_count_for_new_connections_and_broken_ones_do_not() {
    let (home, api) = (Home::new(), ScriptedApi::start());
    let mut served = serving(&home, &api);
    let mut open = Connected::to(&home, &served, "first.pem");
    assert_eq!(open.ask(), "HTTP/1.1 200 OK");
    certify(&home, "second");
    let said = |words: &str| home.wait_until(words, || served.said().contains(words));
    // By itself.
    install(&home, "second.pem", "second.key");
    said("new connections get the new certificate");
    assert_eq!(charge(&home, &served, "second.pem", &[]), Ok("1.1 201".into()));
    assert_eq!(charge(&home, &served, "first.pem", &[]), UNTRUSTED);
    // When it is told to look.
    for (certificate, key, words) in [
        ("first.pem", "second.key", "does not belong to the certificate"),
        ("semel.toml", "second.key", "has no certificate in PEM form"),
        ("first.pem", "semel.toml", "has no private key in PEM form"),
    ] {
        install(&home, certificate, key);
        served.signal(Signal::HUP);
        said(words);
        assert_eq!(charge(&home, &served, "second.pem", &[]), Ok("1.1 201".into()), "{words}");
    }
    assert!(served.said().contains("the certificate in use stays"), "{}", served.said());
    assert_eq!(open.ask(), "HTTP/1.1 200 OK");
    assert_eq!(api.effects(), 1);
    drop(open);
    assert!(served.stop().success());
}

#[test]
fn files_that_cannot_be_used_are_refused_at_the_start() {
    let home = Home::new();
    ["first", "second"].iter().for_each(|name| certify(&home, name));
    home.file("semel.toml", TLS);
    home.file("empty", "");
    let refused = |words: &[&str]| {
        let ran: Ran = home.semel(["serve", "--listen", "127.0.0.1:0"]);
        assert!(ran.code.is_some_and(|code| code != 0), "{ran:?}");
        words.iter().for_each(|words| assert!(ran.stderr.contains(words), "{words}: {ran:?}"));
    };
    refused(&["cert.pem cannot be read", "certificate = \"…\""]);
    for (certificate, key, words) in [
        ("first.pem", "second.key", ["does not belong to the certificate", "one renewal"]),
        ("empty", "first.key", ["cert.pem has no certificate", "BEGIN CERTIFICATE"]),
        ("first.pem", "first.pem", ["key.pem has no private key", "encrypted"]),
    ] {
        install(&home, certificate, key);
        refused(&words);
    }
    install(&home, "first.pem", "first.key");
    set_mode_of_key(&home, 0o644);
    refused(&["other users can read the key", "chmod o= "]);
    let key = home.work().join("key.pem");
    std::fs::remove_file(&key).and_then(|()| std::fs::create_dir(&key)).expect("a directory in its place");
    refused(&["key.pem is no file", "key = \"…\""]);
}
