//! The ledger on a real PostgreSQL, started here in a directory of its own and stopped by its own process id.

use crate::scene;
use semel_core::digest::{Digest, Secret};
use semel_ledger::Error;
use semel_ledger::postgres::{PostgresAddress, PostgresStore};
use semel_ledger::store::{Committed, Store};
use semel_testkit::store_suite::{claim, exercise, index, named};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// A server that listens on a socket in its directory alone.
struct Server {
    directory: TempDir,
    process: Child,
}

/// Where Debian and others put the server's programs.
fn program(name: &str) -> PathBuf {
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let found =
        installed.map(|version| version.path().join("bin").join(name)).filter(|path| path.is_file()).max();
    found.unwrap_or_else(|| PathBuf::from(name))
}

/// The server refuses to run as root.
fn as_nobody(program: PathBuf) -> Command {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new(program);
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

const NOBODY: u32 = 65_534;

fn wait<F: Future>(future: F) -> F::Output {
    scene::runtime().block_on(future)
}

impl Server {
    fn start(settings: &[&str]) -> Server {
        let directory = tempfile::Builder::new().prefix("pg").tempdir_in("/tmp").expect("a directory");
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(directory.path(), Some(NOBODY), Some(NOBODY))
                .expect("root may give it away");
        }
        let data = directory.path().join("data");
        let made = as_nobody(program("initdb"))
            .args(["--username=semel", "--auth=trust", "--no-sync", "-D"])
            .arg(&data)
            .current_dir(directory.path())
            .output()
            .expect("PostgreSQL is installed");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let mut command = as_nobody(program("postgres"));
        command.args(["-c", "listen_addresses=", "-k"]).arg(directory.path()).arg("-D").arg(&data);
        settings.iter().for_each(|setting| {
            command.args(["-c", setting]);
        });
        let process = command
            .current_dir(directory.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        Server { directory, process }
    }

    fn address(&self, schema: &str) -> PostgresAddress {
        let socket = self.directory.path().to_str().expect("a path of ours").replace('/', "%2F");
        PostgresAddress::parse(&format!("postgres://semel@{socket}/postgres?schema={schema}"))
            .expect("an address")
    }

    fn open(&self, schema: &str) -> Result<(PostgresStore, Secret), Error> {
        let mut tries = 0;
        loop {
            tries += 1;
            match wait(PostgresStore::open(self.address(schema), [7; 32])) {
                // It is still starting.
                Err(Error::Engine { what, .. }) if tries < 600 && !what.contains("set ") => {
                    std::thread::sleep(Duration::from_millis(50));
                }
                opened => return opened,
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ended = self.process.kill();
        let _reaped = self.process.wait();
    }
}

#[test]
fn the_postgres_store_passes_the_suite() {
    let server = Server::start(&[]);
    let ledgers = AtomicUsize::new(0);
    exercise(|| {
        let schema = format!("suite_{}", ledgers.fetch_add(1, Ordering::Relaxed));
        (server.open(&schema).expect("it opens").0, ())
    });
}

#[test]
fn a_server_that_can_lose_claims_is_refused_with_what_to_change() {
    let server = Server::start(&["fsync=off"]);
    let refused = server.open("semel").expect_err("claims could be lost").to_string();
    assert!(refused.contains("set fsync=on"), "{refused}");
}

#[test]
fn two_processes_share_one_ledger_and_its_secret() {
    let server = Server::start(&[]);
    let (first, secret) = server.open("semel").expect("it opens");
    let (second, same) = server.open("semel").expect("it opens again");
    assert_eq!(secret.check_value(), same.check_value());
    let commit =
        |store: &PostgresStore, effect| wait(store.commit(claim(named("once"), index(effect, true)).into()));
    assert_eq!(commit(&first, 1).expect("answered"), Committed::Done);
    assert!(matches!(commit(&second, 2).expect("answered"), Committed::Conflict(_)));
    let key: Digest = named("once");
    assert_eq!(wait(second.read(key)).expect("read").revision.0, 1);
}

#[test]
fn a_server_that_was_killed_has_every_claim_that_it_acknowledged() {
    let mut server = Server::start(&[]);
    let (store, _) = server.open("semel").expect("it opens");
    for effect in 0..20 {
        let committed =
            wait(store.commit(claim(named(&format!("claim {effect}")), index(effect, true)).into()));
        assert_eq!(committed.expect("answered"), Committed::Done);
    }
    // SIGKILL to the first of its processes; the others end with it.
    server.process.kill().expect("it runs");
    server.process.wait().expect("it ends");
    let unreachable = wait(store.commit(claim(named("late"), index(99, true)).into()));
    assert!(matches!(unreachable, Err(_) | Ok(Committed::Unknown)), "{unreachable:?}");
    let data = server.directory.path().join("data");
    std::fs::remove_file(data.join("postmaster.pid")).expect("it left its lock");
    let mut again = as_nobody(program("postgres"));
    again.args(["-c", "listen_addresses=", "-k"]).arg(server.directory.path()).arg("-D").arg(&data);
    server.process = again.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts again");
    let (reopened, _) = server.open("semel").expect("it opens");
    for effect in 0..20 {
        let found = wait(reopened.read(named(&format!("claim {effect}")))).expect("read");
        assert_eq!(found.revision.0, 1, "{effect}");
    }
    // The connections of the store are made anew by themselves.
    assert_eq!(wait(store.read(named("claim 3"))).expect("read").revision.0, 1);
}
