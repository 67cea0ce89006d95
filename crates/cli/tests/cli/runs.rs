use crate::home::Home;

#[test]
fn a_cancelled_run_starts_nothing_until_the_fence_is_lifted() {
    let home = Home::new();
    let run = || home.semel(["run", "--run", "r1", "--", "sh", "-c", "echo x >> ran"]).code;
    let times = || std::fs::read_to_string(home.work().join("ran")).unwrap_or_default().lines().count();
    assert_eq!((run(), times()), (Some(0), 1));
    let cancelled = home.json(["cancel", "r1", "--reason", "enough"]);
    assert_eq!((&cancelled["cancelled"], &cancelled["drained"]), (&true.into(), &true.into()));
    assert_eq!(cancelled["applied"].as_array().unwrap().len(), 1);
    assert_eq!((run(), times()), (Some(120), 1));
    let text = home.semel(["cancel", "r1"]).stdout;
    for line in
        ["applied: 1", "in flight: none", "in doubt: none", "prevented: 1", "undo: none", "drained: yes"]
    {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert_eq!(home.semel(["run", "--run", "r2", "--", "true"]).code, Some(0));
    assert_eq!(home.json(["cancel", "r1", "--lift"])["cancelled"], false);
    assert_eq!((run(), times()), (Some(0), 2));
}

#[test]
fn a_run_can_be_cancelled_before_anything_is_recorded() {
    let home = Home::new();
    let said = "No such run so far.";
    let cancelled = home.semel(["cancel", "r1"]);
    assert_eq!(cancelled.code, Some(0));
    assert!(cancelled.stdout.contains(said), "{cancelled:?}");
    assert_eq!(home.semel(["run", "--run", "r1", "--", "true"]).code, Some(120));
    let again = home.semel(["cancel", "r1"]);
    assert!(!again.stdout.contains(said), "a fence is something: {again:?}");
    home.semel(["run", "--run", "r2", "--", "false"]);
    for (run, known) in [("r1", true), ("r2", true), ("r3", false)] {
        assert_eq!(home.json(["cancel", run])["known"], known, "{run}");
    }
    let lifted = home.semel(["cancel", "r4", "--lift"]);
    assert!(lifted.stdout.contains(said) && !lifted.stdout.contains("blocked"), "{lifted:?}");
}

#[test]
fn what_a_command_of_a_run_does_through_semel_stops_with_the_run() {
    let home = Home::new();
    let semel = env!("CARGO_BIN_EXE_semel");
    let script = format!(
        "for n in 1 2 3; do {semel} run --key step-$n -- sh -c 'echo x >> world'; \
         [ $n = 1 ] && {semel} cancel R --reason 'enough for today'; done; true"
    );
    let outer = home.run(&["--run", "R", "--key", "outer"], &script);
    assert_eq!(home.effects(), 1, "{outer:?}");
    let told = home.semel(["ledger", "--run", "R", "--markdown"]).stdout;
    assert!(told.contains("This run was cancelled") && told.contains("enough for today"), "{told}");
    let shown = home.semel(["ledger", "--run", "R"]).stderr;
    assert!(shown.contains("run R was cancelled") && shown.contains("enough for today"), "{shown}");
    let journal = home.semel(["ledger", "tail", "--no-follow", "--json"]).stdout;
    assert!(journal.contains("enough for today"), "{journal}");
}
