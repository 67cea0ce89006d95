//! The engines as the command line shows them: what `semel doctor` finds, what answers say of a ledger that may forget,
//! and how a wrong address or setting is refused.

use crate::home::{Home, Ran};
use crate::serve::served::{SESSION, Served, TOKEN, calling};
use insta::assert_snapshot;
use semel_testkit::etcd_cluster::EtcdCluster;
use semel_testkit::http::FakeMcpServer;
use semel_testkit::postgres_server::{PASSWORD, PostgresServer, free_port};
use semel_testkit::redis_server::RedisServer;
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

fn semel(home: &Home, ledger: &str, args: &[&str]) -> Ran {
    let variable = (!ledger.is_empty()).then_some(("SEMEL_LEDGER", ledger));
    Ran::of(home.command(args).envs(variable).output().expect("semel starts"))
}

// --- What a doctor finds

/// The answer of a doctor without what differs between machines: numbers, places, and packagers' names.
fn examined(home: &Home, ledger: &str) -> String {
    let ran = semel(home, ledger, &["doctor"]);
    let place = home.path().canonicalize().expect("a home").display().to_string();
    let mut shown = format!("exit {:?}\n", ran.code);
    for line in ran.stdout.lines() {
        let line = line.replace(&place, "HOME").replace("behind", "ahead of");
        let line =
            line.split_once("ledger id").map_or(line.clone(), |(ok, _)| format!("{ok}ledger id        ID"));
        let line = line.split(" (Debian").next().unwrap_or_default();
        let unit = ["µs", "ms", "ns"].into_iter().find(|unit| line.contains(unit) && line.contains("takes"));
        let line = unit.map_or(line.to_owned(), |unit| line.replace(unit, "UNIT"));
        let mut digits = false;
        for c in line.chars() {
            if !(digits && (c.is_ascii_digit() || c == '.')) {
                digits = c.is_ascii_digit();
                shown.push(if digits { 'N' } else { c });
            }
        }
        shown.push('\n');
    }
    shown
}

#[test]
fn a_doctor_examines_a_ledger_in_a_file() {
    let home = Home::new();
    home.semel(["run", "--", "true"]);
    assert_snapshot!("doctor_sqlite", examined(&home, ""));
}

#[test]
fn a_doctor_examines_a_ledger_on_postgresql() {
    let server = PostgresServer::start(&["listen_addresses=127.0.0.1"]);
    let address = format!("postgres://semel:{PASSWORD}@127.0.0.1:{}/postgres?sslmode=disable", server.port);
    assert_snapshot!("doctor_postgresql", examined(&Home::new(), &address));
    let ids = [Home::new(), Home::new()].map(|home| {
        let full = semel(&home, &address, &["doctor", "--full"]).stdout;
        assert!(full.contains("every one can be read"), "{full}");
        full.lines().find(|line| line.contains("ledger id")).map(str::to_owned)
    });
    assert!(ids[0].is_some() && ids[0] == ids[1], "{ids:?}");
}

#[test]
fn a_doctor_examines_a_ledger_on_redis_and_warns_of_one_that_may_forget() {
    let durable = RedisServer::start(&[]);
    assert_snapshot!("doctor_redis", examined(&Home::new(), &durable.url()));
    let forgetful = RedisServer::start(&["--appendfsync", "everysec"]);
    assert_snapshot!("doctor_redis_best_effort", examined(&Home::new(), &forgetful.url()));
}

#[test]
fn a_doctor_examines_a_ledger_on_etcd() {
    let alone = EtcdCluster::start(1);
    let address = |cluster: &EtcdCluster| format!("etcd://{}", cluster.places());
    assert_snapshot!("doctor_etcd", examined(&Home::new(), &address(&alone)));
    let three = EtcdCluster::start(3);
    let shown = semel(&Home::new(), &address(&three), &["doctor"]).stdout;
    assert!(shown.contains("3 nodes") && shown.contains("the loss of a node loses nothing"), "{shown}");
}

// --- A ledger that may forget

#[test]
fn every_receipt_of_a_ledger_that_may_forget_says_best_effort() {
    let (durable, forgetful) = (RedisServer::start(&[]), RedisServer::start(&["--appendonly", "no"]));
    for (server, expected) in [(&durable, json!(null)), (&forgetful, json!(true))] {
        let (home, upstream) = (Home::new(), FakeMcpServer::start());
        let url = server.url();
        let run =
            |script: &str| semel(&home, &url, &["run", "--json", "--key", "k", "--", "sh", "-c", script]);
        // One that ran, one that was replayed, one that is refused.
        for (script, code) in [("echo x", 0), ("echo x", 0), ("echo y", 123)] {
            let ran = run(script);
            assert_eq!((ran.code, &ran.json()["best_effort"]), (Some(code), &expected), "{ran:?}");
        }
        let policy = format!(
            "[mcp.bank]\nurl = \"{0}\"\n[upstream.shop]\nurl = \"{0}\"\nprivate = true\n",
            upstream.url()
        );
        let served = Served::start_with(&home, &policy, &[("SEMEL_LEDGER", &url)]);
        let answer = served.call("charge", json!({"amount": 1})).json();
        let receipt = &answer["result"]["_meta"]["dev.semel/receipt"];
        assert_eq!((&receipt["outcome"], &receipt["best_effort"]), (&json!("ran"), &expected), "{answer}");
        let message = calling(7, "charge", json!({"amount": 2})).to_string();
        let headers = format!("Semel-Token: {TOKEN}\r\n{SESSION}Content-Type: application/json\r\n");
        let head = served.ask_raw("POST /p/shop/charges HTTP/1.1", &headers, &message).answer().head;
        assert_eq!(head.to_lowercase().contains("semel-best-effort: true"), expected == true, "{head}");
        let begin = |nonce: &str| {
            let body =
                json!({"action": "fn:charge", "arguments": {"n": 1}, "key": "b", "nonce": nonce}).to_string();
            let headers = format!("Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n");
            served.ask_raw("POST /api/v1/begin HTTP/1.1", &headers, &body).answer().json()
        };
        let claimed = begin("0123456789abcdef");
        assert_eq!((&claimed["outcome"], &claimed["best_effort"]), (&json!("run"), &expected), "{claimed}");
    }
}

// --- Bad input

const WRONG: &str = "wrong-s3cret";

/// Everything of semel that a caller sees when its ledger cannot be used, and what must not be there.
fn refuses(address: &str, words: &str) {
    let home = Home::new();
    let world = home.work().join("world");
    let touch = format!("echo x >> '{}'", world.display());
    let run = semel(&home, address, &["run", "--key", "k", "--", "sh", "-c", &touch]);
    let list = semel(&home, address, &["ledger", "list"]);
    let doctor = semel(&home, address, &["doctor"]);
    let mut serve = home.command(["serve", "--listen", "127.0.0.1:0"]);
    serve.env("SEMEL_LEDGER", address).env("SEMEL_SHARED_LEDGER", "1").env("SEMEL_SERVE_TOKEN", TOKEN);
    let serve = Ran::of(serve.output().expect("semel starts"));
    assert!(!world.exists(), "nothing was done: {run:?}");
    assert_eq!((run.code, doctor.code), (Some(125), Some(1)), "{address}: {run:?} {doctor:?}");
    assert!(matches!(list.code, Some(1..)) && matches!(serve.code, Some(1..)), "{list:?} {serve:?}");
    for said in [&run.stderr, &list.stderr, &doctor.stdout, &serve.stderr] {
        assert!(said.contains(words), "{address} should say {words}: {said}");
    }
    assert!(run.stderr.contains("Nothing was sent"), "{run:?}");
    assert!(serve.stderr.contains("nothing was sent"), "{serve:?}");
    for ran in [&list, &doctor] {
        assert!(format!("{}{}", ran.stdout, ran.stderr).contains("hint:"), "{ran:?}");
    }
    let all = format!("{run:?} {list:?} {doctor:?} {serve:?}");
    assert!(!all.contains(WRONG) && !all.contains(PASSWORD) && !all.contains("s3cret"), "{all}");
    let named = home
        .state_files()
        .into_iter()
        .chain(std::fs::read_dir(home.work()).into_iter().flatten().flatten().map(|entry| entry.path()));
    let named: Vec<_> = named.filter(|path| path.to_string_lossy().contains("s3cret")).collect();
    assert!(named.is_empty(), "{named:?}");
    assert!(!home.state().join("ledger.db").exists(), "no other ledger is begun");
}

#[test]
fn an_address_that_means_nothing_is_refused_and_begins_no_ledger() {
    for (address, words) in [
        ("mysql://me:wrong-s3cret@h/x", "names the engine mysql"),
        ("POSTGRES://me:wrong-s3cret@h/x", "write postgres://, with two slashes"),
        ("postgres:/me:wrong-s3cret@h/x", "write postgres://, with two slashes"),
        ("etcd:me:wrong-s3cret@h", "write etcd://, with two slashes"),
        ("postgres//me:wrong-s3cret@h/x", "neither an address nor a path"),
        ("redis/wrong-s3cret", "neither an address nor a path"),
        ("wrong-s3cret@h", "neither an address nor a path"),
        ("me:wrong-s3cret", "is a relative path"),
        ("me:wrong-s3cret@h", "names the engine me"),
        ("postgres://me:wrong@h/s3cret@h/x", "write %40 for @ and %2F for /"),
        ("postgres://me:wrong-s3cret@h:port/x", "write postgres://USER:PASSWORD@HOST:PORT/DATABASE"),
        ("postgres://me:wrong-s3cret@/x", "the URL names no host"),
        ("postgres://me:wrong-s3cret@h/x?schema=a;drop", "schema must consist of"),
        ("postgres://me:wrong-s3cret@h/x?sslmode=maybe", "sslmode must be"),
        ("postgres://me:wrong-s3cret@h/x?colour=red", "unknown or has a wrong value: colour"),
        ("redis://:wrong-s3cret@h:port", "write redis://USER:PASSWORD@HOST:PORT"),
        ("redis://:wrong-s3cret@h?ledger=a/b", "ledger=NAME must consist of"),
        ("redis://:wrong-s3cret@h?name=x", "the only parameter of the URL"),
        ("etcd://me:wrong-s3cret@h:port", "write etcd://HOST:PORT"),
        ("etcd://wrong-s3cret@h", "a user needs a password"),
        ("etcd://me:wrong-s3cret@h?ledger=", "ledger=NAME must consist of"),
    ] {
        refuses(address, words);
    }
}

#[test]
fn an_empty_address_is_an_error_and_begins_no_ledger() {
    for variable in ["SEMEL_LEDGER", "SEMEL_SERVER"] {
        let home = Home::new();
        for (args, code) in [(&["run", "--key", "k", "--", "true"][..], 125), (&["ledger", "list"], 2)] {
            let ran = Ran::of(home.command(args).env(variable, " \n").output().expect("semel starts"));
            assert_eq!(ran.code, Some(code), "{ran:?}");
            assert!(ran.stderr.contains(&format!("{variable} is set and empty")), "{ran:?}");
        }
        assert!(!home.state().exists(), "no ledger is begun");
    }
}

#[test]
fn a_wrong_host_password_database_certificate_or_setting_of_postgresql_is_refused() {
    let server = PostgresServer::start(&["listen_addresses=127.0.0.1"]);
    let (port, nobody) = (server.port, free_port());
    let at = |login: &str, place: &str, rest: &str| format!("postgres://{login}@{place}/{rest}");
    let here = format!("127.0.0.1:{port}");
    let right = format!("semel:{PASSWORD}");
    let wrong = format!("semel:{WRONG}");
    for (address, words) in [
        (at(&wrong, &here, "postgres"), "password authentication failed"),
        (at(&right, &format!("127.0.0.1:{nobody}"), "postgres"), "Connection refused"),
        (at(&wrong, "no-such-host.invalid", "postgres"), "no-such-host.invalid"),
        (at(&right, &here, "missing"), "database \"missing\" does not exist"),
        (at(&right, &here, "postgres?sslmode=require"), "TLS"),
        (at(&right, &here, "postgres?sslrootcert=/no/such.pem"), "/no/such.pem"),
    ] {
        refuses(&address, words);
    }
    let careless = PostgresServer::start(&["fsync=off"]);
    refuses(&careless.url("semel"), "set fsync=on");
}

#[test]
fn a_wrong_host_password_or_setting_of_redis_is_refused() {
    let server = RedisServer::start(&["--requirepass", PASSWORD]);
    let port = server.port();
    for (address, words) in [
        (format!("redis://:{WRONG}@127.0.0.1:{port}"), "refuses this user or password"),
        (format!("redis://127.0.0.1:{port}"), "NOAUTH"),
        (format!("redis://:{PASSWORD}@127.0.0.1:{}", free_port()), "Connection refused"),
        (format!("redis://:{WRONG}@no-such-host.invalid"), "no-such-host.invalid"),
        (format!("rediss://:{PASSWORD}@127.0.0.1:{port}"), "it may not speak TLS at this port"),
    ] {
        refuses(&address, words);
    }
    let evicting = RedisServer::start(&["--maxmemory-policy", "allkeys-lru"]);
    refuses(&evicting.url(), "set maxmemory-policy noeviction");
    let replica = RedisServer::start(&["--replicaof", "127.0.0.1", &evicting.port().to_string()]);
    refuses(&replica.url(), "name the primary");
}

/// Answers every request like a server that is no etcd, or one that is too old.
fn other_server() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut lines =
                BufReader::new(stream.try_clone().expect("a stream")).lines().map_while(Result::ok);
            let _head = lines.by_ref().take_while(|line| !line.is_empty()).count();
            let _gone =
                stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    port
}

#[test]
fn a_wrong_host_password_or_server_of_etcd_is_refused() {
    let cluster = EtcdCluster::start(1);
    for (address, words) in [
        (format!("etcd://me:{WRONG}@127.0.0.1:{}", free_port()), "Connection refused"),
        (format!("etcd://me:{WRONG}@no-such-host.invalid"), "no-such-host.invalid"),
        (format!("etcd://me:{WRONG}@{}", cluster.places()), "authentication is not enabled"),
        (format!("etcds://{}", cluster.places()), "etcds://127.0.0.1"),
        (format!("etcd://127.0.0.1:{}", other_server()), "no gateway of etcd 3.4 or later"),
    ] {
        refuses(&address, words);
    }
}

#[test]
fn a_password_on_the_command_line_is_refused_and_in_no_list_of_processes() {
    let home = Home::new();
    for address in [
        "postgres://me:s3cret@h/x",
        "rediss://:s3cret@h",
        "redis+cluster://u:s3cret@a,b",
        "etcd://me:s3cret@h",
    ] {
        let ran = home.semel(["--ledger", address, "run", "--", "true"]);
        assert!(matches!(ran.code, Some(1..)), "{ran:?}");
        let said = format!("{ran:?}");
        assert!(said.contains("list of processes") && !said.contains("s3cret"), "{said}");
    }
    // A process whose ledger has a password, and its child, which looks at the list.
    let server = RedisServer::start(&["--requirepass", PASSWORD]);
    let address = format!("redis://:{PASSWORD}@127.0.0.1:{}", server.port());
    let script = "cat /proc/$PPID/cmdline /proc/$$/cmdline | tr '\\0' ' '";
    let ran = semel(&home, &address, &["run", "--key", "k", "--", "sh", "-c", script]);
    assert!(ran.code == Some(0) && ran.stdout.contains("semel run --key k"), "{ran:?}");
    assert!(!format!("{ran:?}").contains(PASSWORD), "{ran:?}");
    let shown = semel(&home, &address, &["ledger", "list", "--wide", "--json"]);
    assert!(shown.code == Some(0) && !shown.stdout.contains(PASSWORD), "{shown:?}");
}

// --- Sizing

/// So many effects are made for a measurement.
const MEASURED: u64 = 500;

/// Bytes that an effect takes: each with 60 bytes of arguments and a reply of 300, in a named run.
fn bytes_per_effect(ledger: &str, size: impl Fn(&Home) -> u64) -> u64 {
    let home = Home::new();
    let variable: Vec<_> = (!ledger.is_empty()).then_some(("SEMEL_LEDGER", ledger)).into_iter().collect();
    let mut served = Served::start_with(&home, "", &variable);
    let make = |served: &Served, n: u64| {
        let post = |path: &str, body: serde_json::Value| {
            let headers = format!("Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n");
            served
                .ask_raw(&format!("POST /api/v1/{path} HTTP/1.1"), &headers, &body.to_string())
                .answer()
                .json()
        };
        let arguments = json!({"customer": format!("customer-{n:06}"), "amount": n});
        let begun = post("begin", json!({"action": "fn:charge", "arguments": arguments, "run": "nightly"}));
        let settled =
            json!({"claim": begun["claim"], "outcome": "applied", "reply": {"text": "x".repeat(288)}});
        assert_eq!(post("settle", settled)["ok"], true, "{begun}");
    };
    (0..20).for_each(|n| make(&served, n));
    assert!(served.stop().success());
    let before = size(&home);
    let mut served = Served::again_with(&home, &variable);
    (20..20 + MEASURED).for_each(|n| make(&served, n));
    assert!(served.stop().success());
    (size(&home) - before) / MEASURED
}

/// The number that the page of the engines gives for one of them.
fn documented(engine: &str) -> u64 {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/engines.md");
    let page = std::fs::read_to_string(page).expect("a page");
    let (_, sizing) = page.split_once("## Sizing").expect("a section");
    let line = sizing.lines().find(|line| line.starts_with(&format!("| {engine}"))).expect(engine);
    let kib = line.split('|').nth(2).expect("a column").trim().trim_end_matches(" KiB");
    (kib.parse::<f64>().expect("a number") * 1024.0) as u64
}

/// Engines lay out pages, so a small number of effects says no more than this.
fn is_as_documented(engine: &str, measured: u64) {
    let said = documented(engine);
    assert!((said / 2..=said * 3 / 2).contains(&measured), "{engine}: {measured} bytes, documented {said}");
}

#[test]
fn an_effect_takes_as_much_room_as_the_page_says() {
    let file = |home: &Home| std::fs::metadata(home.state().join("ledger.db")).expect("it is there").len();
    is_as_documented("SQLite", bytes_per_effect("", file));
    let server = PostgresServer::start(&[]);
    let tables = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class \
                  WHERE relkind = 'r' AND relnamespace = 'semel'::regnamespace";
    let size = |_: &Home| server.sql(tables).parse().expect("a number");
    is_as_documented("PostgreSQL", bytes_per_effect(&server.url("semel"), size));
    let redis = RedisServer::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let number_in = |text: &str, name: &str| -> u64 {
        let (_, rest) = text.split_once(name).expect(name);
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().expect("a number")
    };
    let in_memory = |_: &Home| number_in(&redis.ask(&["INFO", "memory"]), "used_memory_dataset:");
    is_as_documented("Redis", bytes_per_effect(&redis.url(), in_memory));
    let etcd = EtcdCluster::start(1);
    let in_use = |_: &Home| {
        // Without what was overwritten.
        let revision = number_in(&etcd.post("/v3/kv/range", r#"{"key":"AA=="}"#), "\"revision\":\"");
        etcd.post("/v3/kv/compact", &json!({"revision": revision, "physical": true}).to_string());
        number_in(&etcd.post("/v3/maintenance/status", "{}"), "\"dbSizeInUse\":\"")
    };
    is_as_documented("etcd", bytes_per_effect(&format!("etcd://{}", etcd.places()), in_use));
}

#[test]
fn a_relative_path_is_the_same_ledger_in_every_directory() {
    let home = Home::new();
    let policy = "version = 1\nledger = \"here.db\"\n";
    std::fs::write(home.work().join("semel.toml"), policy).expect("writable");
    let below = home.work().join("below");
    std::fs::create_dir(&below).expect("a directory");
    for directory in [home.work(), below.clone(), below] {
        let mut run = home.command(["run", "--key", "k", "--", "sh", "-c"]);
        let world = home.work().join("world");
        run.arg(format!("echo once >> {}", world.display())).current_dir(directory);
        assert_eq!(Ran::of(run.output().expect("semel starts")).code, Some(0));
    }
    assert_eq!(std::fs::read_to_string(home.work().join("world")).expect("it is there"), "once\n");
    let refused =
        Ran::of(home.command(["doctor"]).env("SEMEL_LEDGER", "here.db").output().expect("it starts"));
    assert!(refused.stdout.contains("is a relative path"), "{refused:?}");
}
