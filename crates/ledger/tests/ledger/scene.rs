//! A directory of one's own, and ways to drive a store.

use semel_core::time::At;
use semel_ledger::Error;
use semel_ledger::place::Place;
use semel_ledger::sqlite::{OpenOptions, OpenedStore, SqliteStore};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use tempfile::TempDir;

pub fn directory() -> TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    mode(directory.path(), 0o700);
    directory
}

pub fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("our own file");
}

pub fn place(directory: &TempDir) -> Place {
    Place::at(directory.path().join("ledger.db"))
}

pub fn open(place: &Place) -> Result<OpenedStore, Error> {
    SqliteStore::open(OpenOptions::at(place.clone(), At(1_000_000)))
}

pub fn open_blocking(place: &Place) -> Result<OpenedStore, Error> {
    SqliteStore::open(OpenOptions { blocking: true, ..OpenOptions::at(place.clone(), At(1_000_000)) })
}

/// Polls once. A store in blocking mode never needs more.
pub fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a future of a blocking store was pending"),
    }
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}
