use crate::home::Home;

#[test]
fn every_command_prints_exactly_one_document() {
    let home = Home::new();
    let empty: &[&[&str]] = &[
        &["ledger"],
        &["ledger", "--markdown"],
        &["ledger", "list"],
        &["ledger", "runs"],
        &["ledger", "prune"],
        &["ledger", "quarantine"],
        &["token", "list"],
        &["stats"],
        &["doctor"],
        &["init"],
        &["init", "--undo", "--write"],
    ];
    for args in empty {
        home.json(args.iter());
    }
    assert!(!home.state().exists(), "looking founds no ledger");
    let id = home.doubt("k");
    home.semel(["run", "--run", "r", "--key", "done", "--", "echo", "x"]);
    let man = home.work().join("man");
    let state_file = home.state().join("ledger.db");
    let state_file = state_file.to_str().expect("a name");
    let full: &[&[&str]] = &[
        &["ledger"],
        &["ledger", "--run", "r"],
        &["ledger", "--run", "r", "--markdown"],
        &["ledger", "list", "--wide"],
        &["ledger", "show", &id],
        &["ledger", "reply", "--key", "done"],
        &["ledger", "resolve", &id, "--applied", "--reason", "seen"],
        &["ledger", "allow-repeat", &id, "--reason", "once more"],
        &["ledger", "reopen", &id, "--reason", "no"],
        &["ledger", "prune"],
        &["ledger", "quarantine"],
        &["ledger", "copy", state_file, "copy.db", "--dry-run"],
        &["ledger", "copy", state_file, "copy.db"],
        &["ledger", "copy", state_file, "copy.db"],
        &["ledger", "backup", "backup.db"],
        &["ledger", "restore", "backup.db", "--replace", "--dry-run"],
        &["ledger", "restore", "backup.db", "--replace"],
        &["ledger", "mark-restored", "--reason", "test"],
        &["ledger", "end-quarantine"],
        &["cancel", "r"],
        &["cancel", "r", "--lift"],
        &["key", "fn:x", "--args", "{}"],
        &["token", "create", "--scope", "agent"],
        &["token", "list"],
        &["policy", "lint"],
        &["policy", "test"],
        &["policy", "explain", "fn:x"],
        &["policy", "schema"],
        &["policy", "presets"],
        &["policy", "presets", "stripe"],
        &["explain"],
        &["explain", "drift"],
        &["doctor", "--full"],
        &["completions", "bash"],
        &["man", man.to_str().unwrap()],
        // Tokens are forgotten with the secret.
        &["ledger", "rotate-secret", "--reason", "test", "--replace"],
    ];
    for args in full {
        let document = home.json(args.iter());
        assert!(document.is_object(), "{args:?}");
    }
}

#[test]
fn global_flags_stand_anywhere_and_an_error_is_one_document_on_stderr() {
    let home = Home::new();
    for args in [["--json", "ledger", "list"], ["ledger", "--json", "list"], ["ledger", "list", "--json"]] {
        assert_eq!(home.semel(args).json()["schema_version"], 1);
    }
    let error = home.semel(["ledger", "show", "ZZZZ", "--json"]);
    assert_eq!((error.code, error.stdout.as_str()), (Some(2), ""));
    let document: serde_json::Value = serde_json::from_str(&error.stderr).expect("one document");
    assert_eq!(document["hint"], "semel doctor");
    let misplaced = home.semel(["ledger", "--run", "r", "show", "ZZZZ"]);
    assert_eq!(misplaced.code, Some(2), "{misplaced:?}");
    assert!(misplaced.stderr.contains("hint:  semel ledger list --run RUN"), "{misplaced:?}");
}

#[test]
fn values_are_completed_and_a_mistyped_word_leads_to_nothing_that_deletes() {
    let home = Home::new();
    let bash = home.semel(["completions", "bash"]).stdout;
    for values in ["read convergent act generate consequential", "created updated deleted sent noop none"] {
        assert!(bash.contains(values), "{values}");
    }
    for mistyped in ["prun", "undoo", "rotate-secre"] {
        let refused = home.semel(["ledger", mistyped]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        for deletes in ["'prune'", "'undo'", "'rotate-secret'"] {
            assert!(!refused.stderr.contains(deletes), "{refused:?}");
        }
    }
    assert!(home.semel(["ledger", "rns"]).stderr.contains("'runs'"));
}

#[test]
fn completions_and_man_pages_are_made_from_the_same_tree() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(home.semel(["completions", shell]).stdout.contains("resolve"), "{shell}");
    }
    assert_eq!(home.semel(["man", "pages"]).code, Some(0));
    let pages = home.work().join("pages");
    for page in ["semel.1", "semel-run.1", "semel-ledger-resolve.1"] {
        assert!(pages.join(page).is_file(), "{page}");
    }
}
