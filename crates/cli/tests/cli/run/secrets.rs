use crate::home::Home;

/// Whether any file of the ledger holds these bytes.
fn written(home: &Home, secret: &str) -> Vec<std::path::PathBuf> {
    let holds = |path: &std::path::PathBuf| {
        std::fs::read(path)
            .is_ok_and(|bytes| bytes.windows(secret.len()).any(|part| part == secret.as_bytes()))
    };
    home.state_files().into_iter().filter(|path| path.is_file()).filter(holds).collect()
}

#[test]
fn secrets_in_arguments_and_their_echo_are_never_written() {
    let home = Home::new();
    let secret = "hunter2-tr0ub4dor";
    let commands: &[&[&str]] = &[
        &["echo", "--token", secret],
        &["echo", &format!("--password={secret}")],
        &["echo", "-H", &format!("Authorization: Bearer {secret}")],
        &["echo", &format!("https://bob:{secret}@example.test/")],
        &["sh", "-c", &format!("echo 'Set-Cookie: sid={secret}'"), "--secret", secret],
        &["echo", &format!("API_KEY={secret}")],
    ];
    for command in commands {
        let ran = home.semel([&["run", "--class", "consequential", "--"], *command].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stdout.contains(secret), "the caller itself sees everything: {ran:?}");
    }
    assert_eq!(written(&home, secret), Vec::<std::path::PathBuf>::new());
    let shown = home.semel(["ledger", "list", "--wide"]).stdout + &home.semel(["ledger", "export"]).stdout;
    assert!(!shown.contains(secret), "{shown}");
}

#[test]
fn a_rule_marks_further_arguments_as_secret() {
    let home = Home::new();
    home.file("semel.toml", "version = 1\n[[rule]]\nmatch = \"cli:echo *\"\nsecret = [\"argv[2]\"]\n");
    home.semel(["run", "--", "echo", "pin", "4711-0815-4711"]);
    assert!(written(&home, "4711-0815-4711").is_empty());
    assert!(!written(&home, "echo").is_empty(), "the search itself works");
}

#[test]
fn the_ledger_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    home.semel(["run", "--", "true"]);
    for path in home.state_files() {
        let mode = path.metadata().expect("a file").permissions().mode() & 0o777;
        assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
    }
    assert_eq!(home.state().metadata().expect("a directory").permissions().mode() & 0o777, 0o700);
}
