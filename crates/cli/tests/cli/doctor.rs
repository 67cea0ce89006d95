use crate::home::Home;
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
    assert!(ran.stdout.contains("semel policy check"), "{ran:?}");
}
