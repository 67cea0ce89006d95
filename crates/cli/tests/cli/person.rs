//! Only a person rules: at a terminal, or with an operator token, and never inside a run.

use crate::home::{Home, RULER, Ran};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

/// A ruling and everything else that takes a person, on the effect in doubt, and on one that was done.
fn rulings(doubt: &str, done: &str) -> Vec<Vec<String>> {
    let words = |line: String| line.split(' ').map(str::to_owned).collect();
    [
        format!("ledger resolve {doubt} --applied --reason seen"),
        format!("ledger resolve {doubt} --not-applied --reason looked"),
        format!("ledger reopen {doubt} --reason wrong"),
        format!("ledger allow-repeat {done} --reason wanted"),
        format!("ledger undo {done} --reason wrong"),
        "ledger end-quarantine".to_owned(),
        "ledger same-server billing".to_owned(),
        "cancel r1 --lift".to_owned(),
        "token create --scope operator".to_owned(),
        "token create --scope admin".to_owned(),
    ]
    .map(words)
    .to_vec()
}

fn scene() -> (Home, String, String) {
    let home = Home::new();
    let done =
        home.json(["run", "--key", "done", "--", "true"])["effect_id"].as_str().expect("an id").to_owned();
    let doubt = home.doubt("k");
    home.semel(["cancel", "r1"]);
    (home, doubt, done)
}

/// All that the ledger has written down.
fn lines(home: &Home) -> String {
    home.semel(["ledger", "tail", "--no-follow", "-n", "1000"]).stdout
}

#[test]
fn without_a_terminal_and_without_a_token_nobody_rules() {
    let (home, doubt, done) = scene();
    // The journal also says that the token of the tests was made.
    home.operator_token();
    let before = lines(&home);
    for args in rulings(&doubt, &done) {
        let ran =
            Ran::of(home.command(&args).env_remove("SEMEL_OPERATOR_TOKEN").output().expect("it starts"));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{args:?}: {ran:?}");
        assert!(
            ran.stderr.contains("only a person decides this, at a terminal or with an operator token"),
            "{ran:?}"
        );
    }
    assert_eq!(lines(&home), before);
    assert_eq!(home.json(["ledger", "show", &doubt])["state"], "in_doubt");
}

#[test]
fn inside_a_run_nobody_rules_whatever_is_shown() {
    let (home, doubt, done) = scene();
    let token = home.operator_token().to_owned();
    let before = lines(&home);
    for (name, value) in [("SEMEL_RUN_ID", "r1"), ("SEMEL_EFFECT_ID", &doubt), ("BAGGAGE", "semel.run_id=r1")]
    {
        for args in rulings(&doubt, &done) {
            let mut command = home.command(args.iter().map(String::as_str).chain(["--token", &token]));
            let ran = Ran::of(command.env(name, value).output().expect("it starts"));
            assert_eq!(ran.code, Some(2), "{name}: {ran:?}");
            assert!(ran.stderr.contains("this process belongs to a run"), "{ran:?}");
        }
    }
    assert_eq!(lines(&home), before);
}

/// An agent that semel runs cannot rule on what it did, not even with the token of whoever started it.
#[test]
fn a_command_that_semel_runs_neither_rules_nor_sees_the_token() {
    let (home, doubt, _) = scene();
    let semel = env!("CARGO_BIN_EXE_semel");
    let rule = format!(
        "echo \"[$SEMEL_OPERATOR_TOKEN]\"; {semel} ledger resolve {doubt} --applied --reason x --token {}",
        home.operator_token()
    );
    let mut run = home.command(["run", "--key", "agent", "--", "sh", "-c", &rule]);
    let ran = Ran::of(run.env("SEMEL_OPERATOR_TOKEN", home.operator_token()).output().expect("it starts"));
    assert_eq!(ran.stdout, "[]\n", "{ran:?}");
    assert!(ran.stderr.contains("this process belongs to a run"), "{ran:?}");
    assert_eq!(home.json(["ledger", "show", &doubt])["state"], "in_doubt");
}

#[test]
fn a_token_rules_by_its_scope_its_tenant_and_its_time() {
    let (home, doubt, _) = scene();
    let make = |more: &[&str]| {
        let made = home.json(["token", "create"].iter().chain(more));
        made["token"].as_str().expect("a token").to_owned()
    };
    let resolve = |token: &str| {
        let args = ["ledger", "resolve", &doubt, "--applied", "--reason", "seen", "--token", token];
        let mut command = home.command(args);
        Ran::of(command.env_remove("SEMEL_OPERATOR_TOKEN").output().expect("it starts"))
    };
    let agent = make(&["--scope", "agent"]);
    let foreign = make(&["--scope", "operator", "--tenant", "acme"]);
    let revoked = make(&["--scope", "operator", "--name", "gone"]);
    let listed = home.json(["token", "list"]);
    let gone = listed["items"].as_array().expect("a list").iter().find(|token| token["name"] == "gone");
    home.json(["token", "revoke", gone.expect("it is listed")["id"].as_str().expect("an id")]);
    for token in [&agent, &foreign, &revoked, "semel_none_0123", "none"] {
        let ran = resolve(token);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains("no token of scope operator for tenant local"), "{ran:?}");
    }
    let operator = make(&["--scope", "operator", "--name", "ops"]);
    assert_eq!(resolve(&operator).code, Some(0));
    assert_eq!(home.json(["ledger", "show", &doubt])["ruling"]["by"], "operator token ops");
    // An operator rules; who makes operators is an admin.
    let mut more = home.command(["token", "create", "--scope", "operator"]);
    assert_eq!(
        more.env("SEMEL_OPERATOR_TOKEN", &operator).output().expect("it starts").status.code(),
        Some(2)
    );
}

#[test]
fn the_journal_says_who_accepted_lifted_and_allowed() {
    let (home, _, done) = scene();
    for args in [
        vec!["ledger", "end-quarantine"],
        vec!["cancel", "r1", "--lift"],
        vec!["ledger", "allow-repeat", &done, "--reason", "wanted"],
    ] {
        assert_eq!(home.semel(&args).code, Some(0), "{args:?}");
    }
    for kind in ["epoch_accepted", "run_lifted", "released"] {
        let lines = lines(&home);
        let line =
            lines.lines().find(|line| line.contains(kind)).unwrap_or_else(|| panic!("{kind}: {lines}"));
        assert!(line.contains(RULER), "{line}");
    }
}

#[test]
fn a_dry_run_of_an_undo_takes_nobody() {
    let (home, _, done) = scene();
    let mut command = home.command(["ledger", "undo", &done, "--reason", "wrong", "--dry-run"]);
    let ran = Ran::of(command.env_remove("SEMEL_OPERATOR_TOKEN").output().expect("it starts"));
    assert_eq!(ran.code, Some(120), "{ran:?}");
    assert!(ran.stderr.contains("cannot undo"), "{ran:?}");
}

/// A command with standard input and standard error at a terminal, where somebody types this.
fn at_a_terminal(command: &mut Command, typed: &str) -> (Option<i32>, String) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&terminal).and_then(|()| unlockpt(&terminal)).expect("a terminal of ours");
    let name = ptsname(&terminal, Vec::new()).expect("its name").into_string().expect("a plain name");
    let end = || OpenOptions::new().read(true).write(true).open(&name).expect("its other end");
    command.stdin(end()).stderr(end()).stdout(Stdio::piped());
    let mut terminal = std::fs::File::from(terminal);
    terminal.write_all(typed.as_bytes()).expect("typed");
    let ran = command.spawn().and_then(|child| child.wait_with_output()).expect("it runs");
    // Once nobody has its other end any more, reading ends, with an error.
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let mut shown = Vec::new();
    let _the_end = terminal.read_to_end(&mut shown);
    (ran.status.code(), String::from_utf8_lossy(&shown).into_owned())
}

#[test]
fn at_a_terminal_a_person_is_shown_what_would_be_ruled_and_asked() {
    let (home, doubt, _) = scene();
    let resolve = || {
        let mut command = home.command(["ledger", "resolve", &doubt, "--applied", "--reason", "seen"]);
        command.env_remove("SEMEL_OPERATOR_TOKEN");
        command
    };
    for no in ["\n", "n\n", "perhaps\n"] {
        let (code, shown) = at_a_terminal(&mut resolve(), no);
        assert_eq!(code, Some(2), "{shown}");
        assert!(shown.contains("nothing was changed: it was not confirmed"), "{shown}");
    }
    assert_eq!(home.json(["ledger", "show", &doubt])["state"], "in_doubt");
    let (code, shown) = at_a_terminal(&mut resolve(), "y\n");
    assert_eq!(code, Some(0), "{shown}");
    assert!(
        shown.contains(&format!("Record that {doubt} cli:sh")) && shown.contains("happened? [y/N]"),
        "{shown}"
    );
    let by = home.json(["ledger", "show", &doubt])["ruling"]["by"].clone();
    assert_eq!(by, format!("terminal of uid {}", rustix::process::getuid().as_raw()));
    let (code, shown) = at_a_terminal(resolve().env("SEMEL_RUN_ID", "r1"), "y\n");
    assert_eq!(code, Some(2), "{shown}");
    assert!(shown.contains("this process belongs to a run"), "{shown}");
}

#[test]
fn the_first_operator_token_is_made_at_a_terminal() {
    let home = Home::new();
    let mut make = home.command(["token", "create", "--scope", "operator"]);
    let (code, shown) = at_a_terminal(make.env_remove("SEMEL_OPERATOR_TOKEN"), "y\n");
    assert_eq!(code, Some(0), "{shown}");
    let tokens = home.json(["token", "list"]);
    let scopes: Vec<_> = tokens["items"].as_array().unwrap().iter().map(|token| &token["scope"]).collect();
    assert!(scopes.contains(&&"operator".into()), "{tokens}");
}

/// What a model reads of a doubt, a hold and a cancelled run names the effect and the ledger alone.
#[test]
fn the_text_that_a_model_reads_never_names_the_command_that_rules() {
    let home = Home::new();
    home.file(
        "semel.toml",
        "[[rule]]\nmatch = \"cli:echo *\"\nclass = \"consequential\"\nagain = \"person\"\n",
    );
    let lost = ["run", "--key", "k", "--", "sh", "-c", "kill -9 $$"];
    let [first, held] = [home.semel(lost), home.semel(lost)];
    home.semel(["run", "--", "echo", "once"]);
    let again = home.semel(["run", "--again", "more", "--", "echo", "once"]);
    home.semel(["cancel", "r1"]);
    let cancelled = home.semel(["run", "--run", "r1", "--", "true"]);
    let id = home.json(["ledger"])["items"][0]["effect_id"].as_str().expect("an id").to_owned();
    let shown = ["ledger show", "ledger"]
        .map(|args| home.semel(args.split(' ').chain(args.contains("show").then_some(id.as_str()))));
    for ran in [first, held, again, cancelled].iter().chain(&shown) {
        for ruling in
            ["ledger resolve", "ledger reopen", "ledger allow-repeat", "ledger undo", "--lift", "--applied"]
        {
            assert!(!ran.stderr.contains(ruling) && !ran.stdout.contains(ruling), "{ruling}: {ran:?}");
        }
        assert!(ran.stderr.contains("semel ledger") || ran.code == Some(0), "{ran:?}");
    }
}
