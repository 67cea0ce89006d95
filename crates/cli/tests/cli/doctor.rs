use crate::home::{Home, Ran};
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_doctor_finds_nothing_wrong_where_there_is_nothing_and_leaves_nothing() {
    let home = Home::new();
    let ran = home.semel(["doctor", "--full"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("not there yet"), "{ran:?}");
    assert!(!home.state().exists());
}

#[test]
fn a_doctor_changes_nothing() {
    let home = Home::new();
    home.semel(["run", "--", "true"]);
    home.doubt("k");
    let database = || std::fs::read(home.state().join("ledger.db")).unwrap();
    let before = (home.state_files(), database());
    let report = home.json(["doctor", "--full"]);
    assert_eq!(report["ok"], true, "{report}");
    assert!(
        report["items"]
            .as_array()
            .unwrap()
            .iter()
            .any(|check| check["detail"] == "1 in doubt, 0 recorded as in flight")
    );
    assert_eq!((home.state_files(), database()), before);
}

#[test]
fn a_doctor_names_what_is_wrong_and_what_to_do() {
    let home = Home::new();
    home.semel(["run", "--", "true"]);
    let database = home.state().join("ledger.db");
    std::fs::set_permissions(&database, std::fs::Permissions::from_mode(0o644)).unwrap();
    let ran = home.semel(["doctor"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.contains("FAIL") && ran.stdout.contains("hint: chmod 600"), "{ran:?}");
    std::fs::set_permissions(&database, std::fs::Permissions::from_mode(0o600)).unwrap();
    home.file("semel.toml", "version = 1\nmode = \"gard\"\n");
    let ran = home.semel(["doctor"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.contains("semel policy lint"), "{ran:?}");
}

#[test]
fn a_doctor_warns_of_a_password_that_others_can_read() {
    let home = Home::new();
    let policy = home.file("semel.toml", "ledger = \"redis://:s3cret@127.0.0.1:1\"\n");
    for (mode, warns) in [(0o644, true), (0o640, false)] {
        std::fs::set_permissions(&policy, std::fs::Permissions::from_mode(mode)).unwrap();
        let ran = home.semel(["doctor"]);
        assert_eq!(ran.stdout.contains("hint: chmod o= "), warns, "{ran:?}");
        assert!(!ran.stdout.contains("s3cret"), "{ran:?}");
    }
}

#[test]
fn a_doctor_says_which_credentials_are_not_there() {
    let home = Home::new();
    home.file(
        "semel.toml",
        "[upstream.bank]\nurl = \"http://127.0.0.1:1\"\nheaders_env = { Authorization = \"BANK_KEY\" }\n\
         [mcp.notes]\nurl = \"http://127.0.0.1:1\"\nheaders_env = { Authorization = \"NOTES_KEY\" }\n",
    );
    let credentials = |set: &[(&str, &str)]| {
        let ran = Ran::of(home.command(["doctor"]).envs(set.iter().copied()).output().expect("it starts"));
        let told = ran.stdout.lines().find(|line| line.contains("credentials")).map(str::to_owned);
        (ran.code, told.unwrap_or_else(|| panic!("{ran:?}")))
    };
    let (code, told) = credentials(&[("BANK_KEY", "Bearer x")]);
    assert!(told.starts_with("warn") && told.contains("mcp.notes: ") && told.contains("NOTES_KEY"), "{told}");
    assert!(code == Some(0) && !told.contains("BANK_KEY"), "{told}");
    let serve = Ran::of(home.command(["serve", "--listen", "127.0.0.1:0"]).output().expect("it starts"));
    assert!(serve.code != Some(0) && serve.stderr.contains("_KEY is not set"), "{serve:?}");
    let (_, told) = credentials(&[("BANK_KEY", "Bearer x"), ("NOTES_KEY", "Bearer y")]);
    assert!(told.starts_with("ok"), "{told}");
}

/// Two hosts have one project in two places.
#[test]
fn a_doctor_of_a_shared_ledger_warns_that_directories_tell_commands_without_a_key_apart() {
    let home = Home::new();
    let run = |directory: &str, key: &[&str]| {
        let place = home.work().join(directory);
        std::fs::create_dir_all(&place).unwrap();
        let command = ["--class", "consequential", "--", "sh", "-c", "echo x >> $HOME/world"];
        let words = [&["run"], key, &command].concat();
        let ran = Ran::of(home.command(words).current_dir(place).output().expect("it starts"));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        std::fs::read_to_string(home.path().join("world")).unwrap().lines().count()
    };
    assert_eq!([run("one", &[]), run("other", &[]), run("other", &[])], [1, 2, 2]);
    assert_eq!([run("one", &["--key", "k"]), run("other", &["--key", "k"])], [3, 3]);
    let warns = |variables: &[(&str, &str)]| {
        let ran =
            Ran::of(home.command(["doctor"]).envs(variables.iter().copied()).output().expect("it starts"));
        ran.stdout.contains("a command without a key runs once in each directory")
    };
    assert!(!warns(&[]), "one host has one directory of a project, or means two");
    assert!(warns(&[("SEMEL_LEDGER", "redis://127.0.0.1:1")]));
    assert!(warns(&[("SEMEL_SERVER", "http://127.0.0.1:1"), ("SEMEL_TOKEN", "t")]));
}
