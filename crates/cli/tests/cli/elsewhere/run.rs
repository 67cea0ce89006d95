use super::{Office, TOUCH};
use crate::home::Ran;
use semel_testkit::proxy::{Proxy, Target};
use serde_json::json;

#[test]
fn two_laptops_with_one_key_make_one_effect() {
    let office = Office::open("");
    let laptops = [office.laptop("ci"), office.laptop("ci")];
    let script = format!("sleep 0.3; {TOUCH}");
    let both = std::thread::scope(|scope| {
        let runs: Vec<_> = [0, 1, 0, 1]
            .map(|n| (&laptops[n], &script))
            .map(|(laptop, script)| scope.spawn(move || laptop.run(&["--key", "deploy-1"], script)))
            .into_iter()
            .collect();
        runs.into_iter().map(|run| run.join().expect("it ends")).collect::<Vec<_>>()
    });
    for ran in &both {
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "touched\n"), "{both:?}");
    }
    assert_eq!((office.effects(), office.recorded().len()), (1, 1));
    let recorded = &office.recorded()[0];
    assert_eq!((&recorded["state"], &recorded["action"]), (&json!("applied"), &json!("cli:sh")));
    assert!(recorded["delivered_at"].is_string(), "a caller has read it: {recorded}");
    assert!(laptops.iter().all(|laptop| !laptop.has_a_ledger()), "no second ledger is founded");
}

#[test]
fn a_replay_is_the_same_to_the_byte_and_a_callers_alone() {
    let office = Office::open("");
    let script = "echo x >> \"$WORLD\"; printf 'a\\000\\377\\n'; printf 'b\\r\\n' >&2";
    let run = |name: &str| {
        let laptop = office.laptop(name);
        let output = laptop.command(&["-q", "run", "--key", "k", "--", "sh", "-c", script]).output();
        output.expect("semel starts")
    };
    let (first, again) = (run("ann"), run("ann"));
    assert_eq!((first.status.code(), first.stdout.as_slice()), (Some(0), b"a\0\xff\n".as_slice()));
    assert_eq!((again.status.code(), &again.stdout, &again.stderr), (Some(0), &first.stdout, &first.stderr));
    assert_eq!(office.effects(), 1);
    // Another principal's key is another key.
    assert_eq!(run("bob").status.code(), Some(0));
    assert_eq!((office.effects(), office.recorded().len()), (2, 2));
}

#[test]
fn answers_and_exit_codes_are_those_of_a_ledger_of_ones_own() {
    let office = Office::open("");
    let laptop = office.laptop("ann");
    let json = |flags: &[&str], script: &str| -> Ran { laptop.run(&[flags, &["--json"]].concat(), script) };
    let dry = json(&["--key", "k", "--dry-run"], TOUCH);
    assert_eq!((dry.code, &dry.json()["would"]), (Some(0), &json!("run")), "{dry:?}");
    assert_eq!((office.effects(), office.recorded().len()), (0, 0));
    let ran = json(&["--key", "k", "--run", "nightly"], TOUCH);
    assert_eq!(
        (ran.code, &ran.json()["outcome"], &ran.json()["tier"]),
        (Some(0), &json!("ran"), &json!("opaque"))
    );
    assert_eq!(ran.json()["data"]["stdout"], "touched\n");
    let replayed = json(&["--key", "k", "--run", "nightly"], TOUCH);
    assert_eq!((replayed.code, &replayed.json()["outcome"]), (Some(0), &json!("replayed")), "{replayed:?}");
    assert_eq!(replayed.json()["data"]["stdout"], "touched\n");
    let dry = json(&["--key", "k", "--dry-run"], TOUCH);
    assert_eq!(dry.json()["would"], "replay", "{dry:?}");
    let drift = json(&["--key", "k"], "echo another");
    assert_eq!((drift.code, &drift.json()["code"]), (Some(123), &json!("drift")), "{drift:?}");
    let again = json(&["--key", "k", "--again", "a second one"], TOUCH);
    assert_eq!((again.code, &again.json()["outcome"]), (Some(0), &json!("ran")), "{again:?}");
    assert_eq!(office.effects(), 2);
    // A reason is one repetition, however often it is given.
    assert_eq!(json(&["--key", "k", "--again", "a second one"], TOUCH).json()["outcome"], "replayed");
    assert_eq!(office.effects(), 2);
    let refused = json(&["--key", "r", "--refused-exit", "3"], "exit 3");
    assert_eq!((refused.code, &refused.json()["code"]), (Some(3), &json!("upstream_refused")), "{refused:?}");
    let doubt = json(&["--key", "d"], "echo x >> \"$WORLD\"; exit 7");
    assert_eq!((doubt.code, &doubt.json()["code"]), (Some(121), &json!("in_doubt")), "{doubt:?}");
    let held = json(&["--key", "d"], "echo x >> \"$WORLD\"; exit 7");
    assert_eq!((held.code, &held.json()["outcome"]), (Some(121), &json!("held")), "{held:?}");
    let missing = laptop.semel(&["run", "--json", "--key", "m", "--", "no-such-program"]);
    assert_eq!((missing.code, &missing.json()["code"]), (Some(127), &json!("not_started")), "{missing:?}");
    assert_eq!(office.effects(), 3);
    let in_run = office.home.semel(["ledger", "list", "--run", "nightly", "--json"]);
    assert_eq!(in_run.json()["items"].as_array().map(Vec::len), Some(1), "{in_run:?}");
    assert_eq!(office.home.semel(["cancel", "nightly"]).code, Some(0));
    let cancelled = json(&["--key", "after", "--run", "nightly"], TOUCH);
    assert_eq!(
        (cancelled.code, &cancelled.json()["code"]),
        (Some(120), &json!("cancelled")),
        "{cancelled:?}"
    );
    assert_eq!(office.effects(), 3);
}

#[test]
fn a_laptop_is_told_of_no_command_that_is_refused_there() {
    let office = Office::open(
        "version = 1\n[[rule]]\nmatch = \"cli:sh\"\nclass = \"consequential\"\nagain = \"person\"\n",
    );
    let laptop = office.laptop("ann");
    let doubt = laptop.run(&["--key", "d", "--json"], "exit 7").json();
    let id = doubt["effect_id"].as_str().expect("an effect");
    let hint = doubt["human_next_step"].as_str().expect("a hint");
    assert_eq!(hint, format!("on the server {}: semel ledger show {id}", laptop.url));
    assert_eq!(laptop.semel(&["ledger", "show", id]).code, Some(2), "it is refused here");
    assert_eq!(laptop.run(&["--key", "k"], TOUCH).code, Some(0));
    let replayed = laptop.run(&["--key", "k", "--json"], TOUCH).json();
    let reason = replayed["reason"].as_str().expect("a reason");
    assert!(reason.contains("semel ledger on the server)"), "{reason}");
}

#[test]
fn a_dry_run_of_a_read_is_answered_as_by_a_ledger_of_ones_own() {
    let office = Office::open("");
    let laptop = office.laptop("ann");
    let args = ["run", "--json", "--dry-run", "--class", "read", "--", "sh", "-c", TOUCH];
    let remote = laptop.semel(&args);
    assert_eq!((remote.code, &remote.json()["would"]), (Some(0), &json!("run")), "{remote:?}");
    assert_eq!(remote.json(), laptop.home.semel(args).json());
    assert_eq!((office.effects(), office.recorded().len()), (0, 0));
}

#[test]
fn a_laptop_that_dies_leaves_a_doubt_after_its_deadline_and_no_second_run() {
    let office = Office::open("");
    let (dying, other) = (office.laptop("ci"), office.laptop("ci"));
    let script = "echo x >> \"$WORLD\"; kill -9 $PPID; sleep 1";
    let mut died = dying.command(&["run", "--key", "k", "--timeout", "3s", "--", "sh", "-c", script]);
    assert_eq!(died.output().expect("semel starts").status.code(), None);
    assert_eq!(office.effects(), 1);
    let waits = other.run(&["--key", "k", "--wait", "0s", "--json"], script);
    assert_eq!((waits.code, &waits.json()["code"]), (Some(122), &json!("in_flight")), "{waits:?}");
    let held = other.run(&["--key", "k", "--wait", "20s", "--json"], script);
    assert_eq!((held.code, &held.json()["code"]), (Some(121), &json!("in_doubt")), "{held:?}");
    assert_eq!((office.effects(), &office.recorded()[0]["state"]), (1, &json!("in_doubt")));
    let id = held.json()["effect_id"].as_str().expect("an effect").to_owned();
    assert_eq!(office.home.semel(["ledger", "resolve", &id, "--applied", "--reason", "seen"]).code, Some(0));
    assert_eq!(other.run(&["--key", "k"], script).code, Some(0));
    assert_eq!(office.effects(), 1);
}

#[test]
fn a_callers_policy_names_the_intent_and_the_servers_holds_it_back() {
    let rule = "version = 1\n[[rule]]\nmatch = \"cli:pay\"\nclass = \"consequential\"\n";
    let office = Office::open(&format!("{rule}again = \"person\"\n"));
    let pay = |laptop: &super::Laptop, flags: &[&str], customer: &str, note: &str| {
        let args = [&["run", "--json", "--action", "pay"], flags, &["--", "sh", "-c", TOUCH, customer, note]]
            .concat();
        laptop.semel(&args)
    };
    let with_rule = [office.laptop("ann"), office.laptop("ann")];
    for laptop in &with_rule {
        laptop.home.file("semel.toml", &format!("{rule}key = [\"argv[3]\"]\ncontent = [\"argv[4]\"]\n"));
    }
    assert_eq!(pay(&with_rule[0], &[], "ann", "thanks").json()["outcome"], "ran");
    let replayed = pay(&with_rule[1], &[], "ann", "thank you");
    assert_eq!(replayed.json()["outcome"], "replayed", "its key is the customer: {replayed:?}");
    assert_eq!(pay(&with_rule[1], &[], "bob", "thanks").json()["outcome"], "ran");
    let again = pay(&with_rule[0], &["--again", "more"], "ann", "thanks");
    assert_eq!((again.code, &again.json()["code"]), (Some(120), &json!("held_for_person")), "{again:?}");
    let weaker = pay(&with_rule[0], &["--class", "act"], "ann", "thanks");
    assert_eq!(weaker.code, Some(125), "{weaker:?}");
    assert_eq!(office.effects(), 2);
    // Without a rule of its own a caller gets the server's class and its limits.
    let without = office.laptop("cid");
    assert_eq!(pay(&without, &["--key", "1"], "cid", "thanks").json()["outcome"], "ran");
    let again = pay(&without, &["--key", "1", "--again", "more"], "cid", "thanks");
    assert_eq!(again.json()["code"], "held_for_person", "{again:?}");
    assert_eq!(office.effects(), 3);
}

#[test]
fn an_operators_secrets_are_kept_of_no_callers_output() {
    let rule = "version = 1\n[[rule]]\nmatch = \"cli:sh\"\nclass = \"act\"\n";
    let office = Office::open(&format!("{rule}secret = [\"reply.card.pin\"]\n"));
    let with_rule = office.laptop("ann");
    with_rule.home.file("semel.toml", rule);
    for laptop in [with_rule, office.laptop("bob")] {
        for (key, unread, kept) in
            [("read", "", "{\"card\":{\"pin\":\"[redacted]\"},\"id\":7}\n"), ("not", "}", "")]
        {
            let said = format!("echo x >> \"$WORLD\"; echo '{unread}{{\"card\":{{\"pin\":4711}},\"id\":7}}'");
            let before = office.effects();
            let first = laptop.run(&["--key", key], &said);
            assert!(first.code == Some(0) && first.stdout.contains("4711"), "{first:?}");
            let replayed = laptop.run(&["--key", key], &said);
            assert_eq!((replayed.stdout.as_str(), office.effects()), (kept, before + 1), "{replayed:?}");
        }
    }
}

#[test]
fn the_token_is_in_no_output_and_in_no_process_list() {
    let office = Office::open("");
    let proxy = Proxy::to(office.target());
    let laptop = office.laptop_behind("ann", &proxy);
    let list = "cat /proc/$PPID/cmdline | tr '\\0' ' '";
    let shown = laptop.run(&["--key", "k"], list);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    proxy.lead_to(Target::Port(9));
    let refused = laptop.run(&["--key", "other", "--json"], TOUCH);
    assert_eq!(refused.code, Some(125), "{refused:?}");
    let doctor = laptop.semel(&["doctor"]);
    for ran in [shown, refused, doctor] {
        assert!(!format!("{ran:?}").contains(&laptop.token), "{ran:?}");
    }
    assert!(!office.served.said().contains(&laptop.token));
}
