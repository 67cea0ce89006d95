use crate::home::Home;

#[test]
fn a_bumped_epoch_holds_what_is_unseen_until_it_is_accepted() {
    let home = Home::new();
    assert_eq!(home.json(["ledger", "quarantine"])["number"], 1);
    assert_eq!(home.json(["ledger", "mark-restored", "--reason", "restored"])["number"], 2);
    let held = home.semel(["run", "--", "echo", "a"]);
    assert_eq!(held.code, Some(121), "{held:?}");
    for words in ["for a day it holds every call that it does not know", "hint: semel ledger quarantine;"] {
        assert!(held.stderr.contains(words), "{held:?}");
    }
    assert!(home.semel(["ledger"]).stderr.contains("may have forgotten"));
    let accepted = home.json(["ledger", "end-quarantine"]);
    assert_eq!(
        (&accepted["accepted"], &accepted["quarantined_until"]),
        (&true.into(), &serde_json::Value::Null)
    );
    assert_eq!(home.semel(["run", "--", "echo", "b"]).code, Some(0));
}

#[test]
fn a_lost_secret_is_replaced_under_a_new_epoch() {
    let home = Home::new();
    assert_eq!(home.semel(["run", "--run", "r", "--key", "k", "--", "echo", "a"]).code, Some(0));
    std::fs::remove_file(home.state().join("ledger.secret")).expect("the secret was there");
    let refused = home.semel(["ledger"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("semel ledger rotate-secret"), "{refused:?}");
    let renewed = home.json(["ledger", "rotate-secret", "--reason", "lost"]);
    assert_eq!((&renewed["number"], &renewed["reason"]), (&2.into(), &"lost".into()));
    // The same key is not recognised, and must not run again.
    assert_eq!(home.semel(["run", "--run", "r", "--key", "k", "--", "echo", "a"]).code, Some(121));
    let list = home.json(["ledger", "list", "--run", "r"]);
    assert_eq!(
        list["items"].as_array().unwrap().len(),
        2,
        "effects from before are still listed by their run"
    );
    home.semel(["ledger", "end-quarantine"]);
    assert_eq!(home.semel(["run", "--key", "k2", "--", "echo", "b"]).code, Some(0));
    assert_eq!(home.semel(["doctor", "--full"]).code, Some(0));
}

#[test]
fn a_secret_that_is_there_is_replaced_only_on_demand_and_set_aside() {
    let home = Home::new();
    assert_eq!(home.semel(["ledger", "rotate-secret", "--reason", "x"]).code, Some(2), "there is no ledger");
    home.semel(["run", "--", "true"]);
    let secret = home.state().join("ledger.secret");
    let before = std::fs::read(&secret).unwrap();
    let refused = home.semel(["ledger", "rotate-secret", "--reason", "leaked"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("--replace"), "{refused:?}");
    assert_eq!(std::fs::read(&secret).unwrap(), before);
    assert_eq!(home.semel(["ledger", "rotate-secret", "--reason", "leaked", "--replace"]).code, Some(0));
    assert_ne!(std::fs::read(&secret).unwrap(), before);
    let aside = home.state_files().into_iter().filter(|path| path.to_string_lossy().contains(".secret."));
    assert_eq!(aside.map(|path| std::fs::read(path).unwrap()).collect::<Vec<_>>(), [before]);
    assert_eq!(home.semel(["ledger"]).code, Some(0));
}

#[test]
fn answers_that_wait_come_in_before_the_secret_changes() {
    let home = Home::new();
    let answer = home.spool("k");
    let secret = || std::fs::read(home.state().join("ledger.secret")).expect("it is there");
    let (before, whole) = (secret(), std::fs::read(&answer).expect("readable"));
    std::fs::write(&answer, &whole[1..]).expect("written");
    let rotate = ["ledger", "rotate-secret", "--reason", "leaked", "--replace"];
    let refused = home.semel(rotate);
    assert_eq!((refused.code, secret()), (Some(2), before.clone()), "{refused:?}");
    assert!(refused.stderr.contains("1 answer that waits"), "{refused:?}");
    std::fs::write(&answer, &whole).expect("written");
    assert_eq!(home.semel(rotate).code, Some(0));
    assert_ne!(secret(), before);
    assert!(!answer.exists());
    let listed = home.json(["ledger", "list"]);
    assert_eq!(listed["items"][0]["state"], "applied", "{listed}");
}
