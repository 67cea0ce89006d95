//! Where the ledger lies: in a file on this machine, or on a server that many hosts share.

use crate::config::Environment;
use crate::context::Context;
use crate::output::Hinted;
use crate::policy_files;
use crate::server_access;
use anyhow::bail;
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::entropy::{Entropy, OsEntropy};
use semel_ledger::fleet_holders::FleetHolders;
use semel_ledger::holders::FileHolders;
use semel_ledger::place::Place;
use semel_ledger::server_address::ServerAddress;
use semel_ledger::sqlite::{OpenOptions, OpenedStore, SqliteStore};
use semel_ledger::{Error, Ledger};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, Clone)]
pub enum LedgerAddress {
    File(PathBuf),
    Server {
        server: ServerAddress,
        /// Where this host keeps its own part: the locks of its processes, the token of its server.
        here: PathBuf,
    },
}

/// Why a command opens the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// One command, without a runtime.
    Command,
    /// Reading alone: a file is not changed. A server founds its ledger at the first connection all the same.
    Reading,
    /// A program that serves many calls at once.
    Server,
}

impl LedgerAddress {
    /// The flag's, the environment's, the policy's, or the file in the state directory.
    pub fn of(context: &Context) -> anyhow::Result<LedgerAddress> {
        let environment = &context.environment;
        server_access::refuse(context)?;
        if let Some(flag) = &context.global.ledger {
            let address = parse("--ledger", flag, environment)?;
            if let LedgerAddress::Server { server, .. } = &address
                && server.has_password()
            {
                return Err(Hinted::error(
                    "--ledger holds a password, which everybody on this machine can see in the list of processes",
                    "put the address into SEMEL_LEDGER, or `ledger = \"…\"` into semel.toml",
                ));
            }
            return Ok(address);
        }
        if let Some(ledger) = &environment.ledger {
            return parse("SEMEL_LEDGER", Path::new(ledger), environment);
        }
        match policy_files::ledger(environment, context.global.policy.as_deref())? {
            Some(ledger) => parse("`ledger` in the policy", Path::new(&ledger), environment),
            None => Ok(LedgerAddress::File(environment.state_directory()?.join("ledger.db"))),
        }
    }

    pub fn open(
        &self,
        environment: &Environment,
        clock: &dyn Clock,
        purpose: Purpose,
    ) -> Result<Ledger, Error> {
        match self {
            LedgerAddress::File(file) => open_file(sqlite_options(file, environment, clock, purpose)),
            LedgerAddress::Server { server, here } => {
                let now = Arc::new(|| SystemClock::start().now());
                let (store, secret) = block_on(server.open(fresh_secret(), now))?;
                let holders = FleetHolders::new(here, Arc::clone(&store))?;
                Ok(Ledger::new(store, Arc::new(holders), OsEntropy, secret))
            }
        }
    }

    /// Whether there is one, or was: a command that only looks founds none. A file that cannot be looked at counts as
    /// there: opening it then says why. So does a server.
    pub fn is_founded(&self) -> bool {
        let LedgerAddress::File(file) = self else { return true };
        let missing = |path: &Path| {
            path.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
        };
        let place = Place::at(file);
        !missing(place.database()) || !missing(&place.secret_file())
    }

    /// The file, for what can be done to a file alone.
    pub fn file(&self, what: &str) -> anyhow::Result<&Path> {
        match self {
            LedgerAddress::File(file) => Ok(file),
            LedgerAddress::Server { .. } => {
                bail!("{what} is for a ledger in a file, and this one is {self}")
            }
        }
    }

    /// Where this host keeps what belongs to the ledger and is not in it.
    pub fn directory(&self) -> PathBuf {
        match self {
            LedgerAddress::File(file) => Place::at(file).directory().to_owned(),
            LedgerAddress::Server { here, .. } => here.clone(),
        }
    }
}

impl fmt::Display for LedgerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LedgerAddress::File(file) => file.display().fmt(f),
            LedgerAddress::Server { server, .. } => server.fmt(f),
        }
    }
}

fn parse(from: &str, given: &Path, environment: &Environment) -> anyhow::Result<LedgerAddress> {
    let text = given.to_str().unwrap_or_default();
    if let Some(server) = ServerAddress::parse(text)? {
        return Ok(LedgerAddress::Server { server, here: environment.state_directory()?.join("shared") });
    }
    let path = match text.split_once("://").or_else(|| text.split_once(':')) {
        Some(("sqlite" | "file", path)) if !path.is_empty() => Path::new(path),
        Some((engine, _)) if text.contains("://") && !engine.contains('/') => {
            bail!(
                "{from} names the engine {engine}, which this semel does not have; it has sqlite:PATH, \
                 postgres://, redis:// and etcd://"
            )
        }
        _ => given,
    };
    Ok(LedgerAddress::File(environment.cwd.join(path)))
}

fn fresh_secret() -> [u8; 32] {
    let mut secret = [0; 32];
    for half in secret.chunks_mut(16) {
        half.copy_from_slice(&OsEntropy.bits().to_be_bytes());
    }
    secret
}

pub fn sqlite_options(
    file: &Path,
    environment: &Environment,
    clock: &dyn Clock,
    purpose: Purpose,
) -> OpenOptions {
    OpenOptions {
        allow_network_fs: environment.allow_network_fs,
        blocking: purpose != Purpose::Server,
        read_only: purpose == Purpose::Reading,
        ..OpenOptions::at(Place::at(file), clock.now())
    }
}

fn open_file(options: OpenOptions) -> Result<Ledger, Error> {
    let OpenedStore { store, secret, .. } = SqliteStore::open(options)?;
    let holders = FileHolders::in_directory(store.place().owners());
    Ok(Ledger::new(Arc::new(store), Arc::new(holders), OsEntropy, secret))
}
