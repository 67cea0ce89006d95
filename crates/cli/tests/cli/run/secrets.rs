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
        &["echo", &format!("PGPASSWORD={secret}"), &format!("MYSQL_PWD={secret}")],
        &["echo", &format!("https://x.test/blob?sig={secret}")],
        &["echo", &format!("data: {{\"password\":\"{secret}\"}} end")],
        &["printf", &format!("ok\\n{{\\n \"password\" : \"{secret}\",\\n \"x\": 1, \"x\": 2}}\\n")],
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
fn keys_that_are_known_by_their_shape_are_never_written() {
    let home = Home::new();
    let tail = "A1b2C3d4E5f6G7h8I9j0K1l2";
    for beginning in ["ghp_", "sk_live_", "xoxb-", "sk-ant-api03-", "glpat-", "AKIA"] {
        let ran = home.semel(["run", "--", "echo", "deploy", &format!("{beginning}{tail}")]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    assert_eq!(written(&home, tail), Vec::<std::path::PathBuf>::new());
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
fn a_rule_marks_parts_of_the_output_as_secret() {
    let home = Home::new();
    let rule = |pattern: &str, path: &str| {
        format!("[[rule]]\nmatch = \"{pattern}\"\nclass = \"consequential\"\nsecret = [\"{path}\"]\n")
    };
    home.file(
        "semel.toml",
        &(rule("cli:cat card", "reply.card.number") + &rule("cli:cat text", "reply.text")),
    );
    home.file("card", "{\"card\": {\"number\": \"4711-0815\", \"of\": \"ann\"}}\n");
    home.file("text", "4711-0815\n");
    for (file, kept) in [("card", r#"{"card":{"number":"[redacted]","of":"ann"}}"#), ("text", "[redacted]")] {
        let ran = home.semel(["run", "--", "cat", file]);
        assert!(ran.stdout.contains("4711-0815"), "the caller itself sees everything: {ran:?}");
        assert_eq!(home.semel(["run", "--", "cat", file]).stdout.trim_end(), kept, "the record does not");
    }
    assert!(written(&home, "4711-0815").is_empty());
}

#[test]
fn an_output_that_cannot_be_read_for_what_a_rule_calls_secret_is_not_kept() {
    let home = Home::new();
    home.file(
        "semel.toml",
        "[[rule]]\nmatch = \"cli:sh make\"\nclass = \"consequential\"\nsecret = [\"reply.pin\"]\n",
    );
    let world = home.file("make", "echo made >> world; cat card\n");
    home.file("card", "{\"pin\": \"4711-0815\", \"beside\": NaN}\n");
    assert!(home.semel(["run", "--", "sh", "make"]).stdout.contains("4711-0815"));
    let again = home.json(["run", "--", "sh", "make"]);
    assert!(again["reason"].as_str().is_some_and(|reason| reason.contains("was not kept")), "{again}");
    assert_eq!(std::fs::read_to_string(world.with_file_name("world")).expect("an effect"), "made\n");
    assert!(written(&home, "4711-0815").is_empty());
}

#[test]
fn nor_is_one_that_is_read_by_the_name_of_what_is_secret_in_a_log_or_beside_it() {
    let home = Home::new();
    home.file(
        "semel.toml",
        "[[rule]]\nmatch = \"cli:*\"\nclass = \"consequential\"\nsecret = [\"reply.pin\"]\n",
    );
    home.file("make", "echo made >> world; cat $1; cat $2 >&2\n");
    home.file("log", "starting\n{\"pin\": \"4711-0815\"}\n");
    home.file("nan", "{\"pin\": \"4711-0815\", \"beside\": NaN}\n");
    home.file("card", "{\"pin\": \"4711-0815\"}\n");
    home.file("plain", "all is well\n");
    for (n, (out, beside, kept)) in [
        ("log", "plain", None),
        ("plain", "log", Some("all is well\n")),
        ("plain", "nan", Some("all is well\n")),
        ("plain", "card", Some("all is well\n")),
    ]
    .into_iter()
    .enumerate()
    {
        let ran = home.semel(["run", "--", "sh", "make", out, beside]);
        assert!((ran.stdout + &ran.stderr).contains("4711-0815"), "the caller itself sees everything");
        let again = home.json(["run", "--", "sh", "make", out, beside]);
        assert_eq!(again["data"]["stdout"].as_str(), kept, "{out} {beside}: {again}");
        assert!(!again.to_string().contains("4711-0815"), "{again}");
        let world = std::fs::read_to_string(home.file("plain", "all is well\n").with_file_name("world"));
        assert_eq!(world.expect("an effect").lines().count(), n + 1);
    }
    assert!(written(&home, "4711-0815").is_empty());
}

#[test]
fn a_mask_that_takes_everything_away_leaves_the_ledger_to_its_owner() {
    let home = Home::new();
    let semel = env!("CARGO_BIN_EXE_semel");
    let script = format!("umask 777; {semel} run --key k -- true && {semel} run --key k -- true");
    let ran = home.program(&["sh", "-c", &script].map(str::to_owned)).output().expect("a shell");
    assert!(ran.status.success(), "{ran:?}");
    for path in home.state_files() {
        use std::os::unix::fs::PermissionsExt;
        let mode = path.metadata().expect("a file").permissions().mode() & 0o777;
        assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
    }
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
