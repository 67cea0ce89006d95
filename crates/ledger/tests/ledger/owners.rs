use crate::scene;
use semel_ledger::owner::{OwnerLock, is_alive};
use semel_ledger::store::OwnerId;
use std::process::{Command, Stdio};

#[test]
fn an_owner_lives_as_long_as_its_lock() {
    let directory = scene::directory();
    let owners = directory.path().join("ledger.owners");
    let lock = OwnerLock::take(&owners).expect("lockable");
    let id = lock.id();
    assert!(is_alive(&owners, id).expect("known"));
    drop(lock);
    assert!(!is_alive(&owners, id).expect("known"));
    assert!(!is_alive(&owners, OwnerId(42)).expect("known"), "nobody ever had this id");
    assert_eq!(std::fs::read_dir(&owners).expect("readable").count(), 0, "nothing is left behind");
}

#[test]
fn a_released_owner_is_dead_at_once() {
    let directory = scene::directory();
    let lock = OwnerLock::take(directory.path()).expect("lockable");
    let id = lock.id();
    assert!(!lock.release().expect("known"), "no child holds on");
    assert!(!is_alive(directory.path(), id).expect("known"));
}

#[test]
fn a_child_that_inherited_the_lock_keeps_its_owner_alive() {
    let directory = scene::directory();
    let mut lock = OwnerLock::take(directory.path()).expect("lockable");
    let id = lock.id();
    lock.inheritable().expect("possible");
    let mut child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().expect("sleep exists");
    lock.seal().expect("possible");
    assert!(lock.release().expect("known"), "the child holds on");
    assert!(is_alive(directory.path(), id).expect("known"));
    child.kill().expect("ours");
    child.wait().expect("ours");
    assert!(!is_alive(directory.path(), id).expect("known"));
    assert_eq!(std::fs::read_dir(directory.path()).expect("readable").count(), 0, "the dead are tidied away");
}

#[test]
fn a_child_that_did_not_inherit_the_lock_keeps_nobody_alive() {
    let directory = scene::directory();
    let lock = OwnerLock::take(directory.path()).expect("lockable");
    let id = lock.id();
    let mut child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().expect("sleep exists");
    drop(lock);
    assert!(!is_alive(directory.path(), id).expect("known"));
    child.kill().expect("ours");
    child.wait().expect("ours");
}

#[test]
fn taking_and_tidying_at_once_never_leaves_a_living_owner_without_a_name() {
    let directory = scene::directory();
    let path = directory.path();
    std::thread::scope(|scope| {
        let tidy = scope.spawn(|| {
            for _ in 0..400 {
                for entry in std::fs::read_dir(path).expect("readable").flatten() {
                    let id = u128::from_str_radix(&entry.file_name().to_string_lossy(), 16).expect("an id");
                    let _ = is_alive(path, OwnerId(id));
                }
            }
        });
        while !tidy.is_finished() {
            let lock = OwnerLock::take(path).expect("lockable");
            assert!(is_alive(path, lock.id()).expect("known"));
        }
    });
}
