//! Settings that cannot work are told before anything is started.

use super::{Laptop, Office, TOUCH};
use crate::home::Home;
use crate::serve::served::{Served, TOKEN};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Says so, in these words, and starts nothing.
fn refused(laptop: &Laptop, variables: &[(&str, &str)], words: &[&str]) {
    let mut command = laptop.command(&["run", "--key", "k", "--", "sh", "-c", TOUCH]);
    for (name, value) in variables {
        match *value {
            "" => command.env_remove(name),
            value => command.env(name, value),
        };
    }
    let ran = crate::home::Ran::of(command.output().expect("semel starts"));
    assert_eq!(ran.code, Some(125), "{variables:?}: {ran:?}");
    words.iter().for_each(|words| assert!(ran.stderr.contains(words), "{words}: {ran:?}"));
    assert!(!laptop.world.exists() && !laptop.has_a_ledger(), "{ran:?}");
    assert!(!ran.stderr.contains(&laptop.token), "{ran:?}");
}

#[test]
fn settings_that_cannot_work_start_nothing() {
    let office = Office::open("");
    let laptop = office.laptop("ci");
    refused(&laptop, &[("SEMEL_TOKEN", "")], &["SEMEL_TOKEN", "hint: ", "semel token create"]);
    refused(&laptop, &[("SEMEL_TOKEN", "wrong")], &["does not know the token", "SEMEL_TOKEN"]);
    refused(&laptop, &[("SEMEL_TOKEN", "a b")], &["one line of plain characters"]);
    refused(&laptop, &[("SEMEL_SERVER", "http://semel.example.com")], &["expose the token", "https://"]);
    refused(&laptop, &[("SEMEL_SERVER", "semel.example.com")], &["SEMEL_SERVER is not the address"]);
    refused(&laptop, &[("SEMEL_LEDGER", "other.db")], &["SEMEL_SERVER and SEMEL_LEDGER name two ledgers"]);
    refused(&laptop, &[("SEMEL_SERVER", &format!("{}/elsewhere", laptop.url))], &["refuses"]);
    let file = laptop.home.file("token", &format!("{}\n", laptop.token));
    let file_text = file.to_string_lossy().into_owned();
    let by_file = [("SEMEL_TOKEN", ""), ("SEMEL_TOKEN_FILE", file_text.as_str())];
    refused(&laptop, &[("SEMEL_TOKEN_FILE", &file_text)], &["both set"]);
    set_mode(&file, 0o644);
    refused(&laptop, &by_file, &["other users can read", "chmod o="]);
    set_mode(&file, 0o600);
    let mut command = laptop.command(&["run", "--key", "k", "--", "sh", "-c", TOUCH]);
    command.env_remove("SEMEL_TOKEN").env("SEMEL_TOKEN_FILE", &file);
    assert!(command.output().expect("semel starts").status.success());
    assert_eq!(office.effects(), 1);
}

fn set_mode(file: &std::path::Path, mode: u32) {
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(mode)).expect("it is ours");
}

#[test]
fn commands_that_need_the_ledger_itself_name_the_server() {
    let office = Office::open("");
    let laptop = office.laptop("ci");
    for args in
        [&["ledger"][..], &["ledger", "list"], &["stats"], &["token", "list"], &["cancel", "r"], &["serve"]]
    {
        let ran = laptop.semel(args);
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:?}");
        assert!(
            ran.stderr.contains("SEMEL_SERVER is set. Nothing was changed.")
                && ran.stderr.contains("/api/v1/effects"),
            "{args:?}: {ran:?}"
        );
    }
    let flag = laptop.semel(&["--ledger", "x.db", "run", "--", "true"]);
    assert_eq!(flag.code, Some(125), "{flag:?}");
    let probe = laptop.run(&["--key", "k", "--probe", "true"], TOUCH);
    assert_eq!(probe.code, Some(125), "{probe:?}");
    assert!(probe.stderr.contains("hint:  leave --probe out"), "{probe:?}");
    assert!(!laptop.has_a_ledger() && office.effects() == 0);
}

#[test]
fn doctor_tells_of_the_server_the_token_and_the_clock() {
    let office = Office::open("");
    let laptop = office.laptop("ci");
    let doctor = laptop.semel(&["doctor"]);
    assert_eq!(doctor.code, Some(0), "{doctor:?}");
    for words in [laptop.url.as_str(), "scope agent", "tenant local", "ms from the server's"] {
        assert!(doctor.stdout.contains(words), "{words}: {doctor:?}");
    }
    let admin = Laptop { token: TOKEN.to_owned(), ..laptop };
    let doctor = admin.semel(&["doctor"]);
    assert!(doctor.stdout.contains("warn  token") && doctor.stdout.contains("scope admin"), "{doctor:?}");
    let wrong = Laptop { token: "wrong".to_owned(), ..admin };
    let doctor = wrong.semel(&["doctor"]);
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    assert!(doctor.stdout.contains("does not know the token"), "{doctor:?}");
}

#[test]
fn a_wrong_scheme_or_the_certificate_of_an_authority_is_named() {
    let office = Office::open("");
    let laptop = office.laptop("ci");
    let with_tls = laptop.url.replace("http://", "https://");
    refused(&laptop, &[("SEMEL_SERVER", &with_tls)], &["does not speak TLS", "leave the s out"]);
    let home = Home::new();
    certify(&home, "CA:TRUE");
    let served = Served::start(&home, TLS);
    let (plain, tls) = (format!("http://{}", served.address), format!("https://{}", served.address));
    refused(&laptop, &[("SEMEL_SERVER", &plain)], &["write https://"]);
    let roots = home.work().join("cert.pem").to_string_lossy().into_owned();
    let words = ["the certificate of an authority", "basicConstraints=CA:FALSE"];
    refused(&laptop, &[("SEMEL_SERVER", &tls), ("SEMEL_SERVER_CA", &roots)], &words);
}

/// A certificate of its own for the server on this machine.
fn certify(home: &Home, constraints: &str) {
    let made = Command::new("openssl")
        .args("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2".split(' '))
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", &format!("basicConstraints=critical,{constraints}")])
        .args(["-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(home.work())
        .output()
        .expect("openssl is installed by `cargo xtask test`");
    assert!(made.status.success(), "{made:?}");
    set_mode(&home.work().join("key.pem"), 0o640);
}

const TLS: &str = "[serve]\ntls = { certificate = \"cert.pem\", key = \"key.pem\" }\n";

#[test]
fn a_private_authority_vouches_for_a_server_and_no_other_does() {
    let home = Home::new();
    certify(&home, "CA:FALSE");
    let served = Served::start(&home, TLS);
    let roots = home.work().join("cert.pem").to_string_lossy().into_owned();
    let office = Office { home, served };
    let laptop = office.laptop_at("ci", &format!("https://{}", office.served.address));
    refused(&laptop, &[], &["certificate", "SEMEL_SERVER_CA"]);
    refused(&laptop, &[("SEMEL_SERVER_CA", "/nonexistent")], &["SEMEL_SERVER_CA", "cannot be read"]);
    let mut command = laptop.command(&["run", "--key", "k", "--", "sh", "-c", TOUCH]);
    let ran = crate::home::Ran::of(command.env("SEMEL_SERVER_CA", roots).output().expect("semel starts"));
    assert_eq!((ran.code, ran.stdout.as_str(), office.effects()), (Some(0), "touched\n", 1), "{ran:?}");
}
