use crate::home::{Home, RULER};

const LOST: [&str; 8] = ["run", "--key", "k", "--", "sh", "-c", "kill -9 $$", "x"];

#[test]
fn after_it_is_ruled_applied_the_next_call_gets_the_reply() {
    let home = Home::new();
    assert_eq!(home.semel(LOST).code, Some(121));
    let id = home.json(["ledger"])["items"][0]["effect_id"].as_str().unwrap().to_owned();
    let reply = home.file("reply", "charge ch_1\n");
    let end = &id[id.len() - 8..];
    let args = ["ledger", "resolve", end, "--applied", "--reason", "seen in the dashboard", "--reply"];
    let ruled = home.semel(args.iter().map(|arg| arg.as_ref()).chain([reply.as_os_str()]));
    assert_eq!(ruled.code, Some(0), "{ruled:?}");
    assert!(ruled.stdout.contains(&id), "{ruled:?}");
    let again = home.semel(LOST);
    assert_eq!((again.code, again.stdout.as_str()), (Some(0), "charge ch_1\n"));
    let shown = home.json(["ledger", "show", &id]);
    assert_eq!(shown["ruling"]["by"], RULER);
    assert_eq!((&shown["evidence"], &shown["reply"]), (&"ruled".into(), &"kept".into()));
}

#[test]
fn a_reply_may_come_from_standard_input_and_has_a_limit() {
    let home = Home::new();
    let id = home.doubt("k");
    let args = ["ledger", "resolve", &id, "--applied", "--reason", "seen", "--reply", "-"];
    let large = home.semel_reading(args, &vec![b'x'; 1024 * 1024 + 1]);
    assert_eq!(large.code, Some(2), "{large:?}");
    assert_eq!(home.semel_reading(args, b"found").code, Some(0));
    assert_eq!(home.semel(["ledger", "reply", "--key", "k"]).stdout, "found");
}

#[test]
fn a_ruling_without_a_reply_says_so_and_a_reply_may_be_json() {
    let home = Home::new();
    let (bare, given) = (home.doubt("bare"), home.doubt("given"));
    let resolve = |id: &str, more: &[&str]| {
        let args = ["ledger", "resolve", id, "--applied", "--reason", "seen"];
        home.semel([&args, more].concat())
    };
    let ruled = resolve(&bare, &[]);
    assert_eq!(ruled.code, Some(0), "{ruled:?}");
    assert!(format!("{ruled:?}").contains("--reply"), "{ruled:?}");
    assert_eq!(resolve(&given, &["--reply", r#"{"id": 7}"#]).code, Some(0));
    assert_eq!(home.semel(["ledger", "reply", "--key", "given"]).stdout, r#"{"id": 7}"#);
}

#[test]
fn after_it_is_ruled_not_applied_the_next_call_runs() {
    let home = Home::new();
    home.file("once.sh", "test -e ran && echo done && exit; touch ran; kill -9 $$\n");
    let run = || home.semel(["run", "--key", "k", "--", "sh", "once.sh"]);
    assert_eq!(run().code, Some(121));
    assert_eq!(run().code, Some(121));
    let id = home.json(["ledger"])["items"][0]["effect_id"].as_str().unwrap().to_owned();
    let args = ["ledger", "resolve", &id, "--not-applied", "--reason", "not in the list"];
    assert_eq!(home.json(args)["state"], "not_applied");
    let ran = run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "done\n"));
}

#[test]
fn a_ruling_can_be_taken_back_and_only_a_doubt_can_be_ruled_on() {
    let home = Home::new();
    let id = home.doubt("k");
    home.json(["ledger", "resolve", &id, "--applied", "--reason", "seen"]);
    let twice = home.semel(["ledger", "resolve", &id, "--not-applied", "--reason", "changed my mind"]);
    assert_eq!(twice.code, Some(2));
    assert!(twice.stderr.contains("is applied; there is no doubt"), "{twice:?}");
    assert_eq!(home.json(["ledger", "reopen", &id, "--reason", "wrong row"])["state"], "in_doubt");
    assert_eq!(home.json(["ledger", "reopen", &id, "--reason", "again"])["effect"], "noop");
    let never_ruled = home.semel(["ledger", "reopen", &home.doubt("other"), "--reason", "wrong"]);
    assert_eq!(never_ruled.code, Some(2));
    assert!(never_ruled.stderr.contains("no ruling made it so"), "{never_ruled:?}");
}

/// What `semel ledger allow-repeat` says of the next equal calls is what they get.
#[test]
fn who_lets_it_happen_again_is_told_which_call_runs() {
    let home = Home::new();
    let again = |id: &str| home.semel(["ledger", "allow-repeat", id, "--reason", "wanted"]).stdout;
    let script = home.file("charge.sh", "echo x >> world\n");
    let run = || home.json(["run", "--key", "done", "--", "sh", script.to_str().expect("a path")]);
    let done = run()["effect_id"].as_str().expect("an id").to_owned();
    assert!(again(&done).ends_with("may happen once more: the next equal call runs.\n"));
    assert_eq!([run(), run()].map(|ran| ran["outcome"].clone()), ["ran", "replayed"]);
    assert_eq!(home.effects(), 2);
    let ruled = home.doubt("k");
    home.semel(["ledger", "resolve", &ruled, "--applied", "--reason", "seen"]);
    let told = again(&ruled);
    assert!(told.contains("the next equal call gets that, and the one after it runs"), "{told}");
    let outcome = || {
        let ran = home.semel(["run", "--json", "--key", "k", "--", "sh", "-c", "kill -9 $$"]);
        ran.json()["outcome"].as_str().expect("an outcome").to_owned()
    };
    assert_eq!([outcome(), outcome()], ["replayed", "ran"]);
}

#[test]
fn what_a_rule_never_repeats_nobody_lets_happen_again() {
    let home = Home::new();
    home.file(
        "semel.toml",
        "[[rule]]\nmatch = \"cli:echo *\"\nclass = \"consequential\"\nagain = \"never\"\n",
    );
    assert_eq!(home.semel(["run", "--", "echo", "once"]).code, Some(0));
    let id = home.json(["ledger", "list"])["items"][0]["effect_id"].as_str().expect("an id").to_owned();
    let refused = home.semel(["ledger", "allow-repeat", &id, "--reason", "please"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("semel.toml:1 says again = \"never\""), "{refused:?}");
}

#[test]
fn a_ruling_needs_a_verdict_and_a_reason() {
    let home = Home::new();
    let id = home.doubt("k");
    for args in
        [vec!["--applied"], vec!["--reason", "x"], vec!["--applied", "--not-applied", "--reason", "x"]]
    {
        let ran = home.semel([&["ledger", "resolve", id.as_str()], args.as_slice()].concat());
        assert_eq!(ran.code, Some(2), "{ran:?}");
    }
    let empty = home.semel(["ledger", "resolve", &id, "--applied", "--reason", " "]);
    assert_eq!(empty.code, Some(2), "{empty:?}");
    assert_eq!(home.json(["ledger", "show", &id])["state"], "in_doubt");
}
