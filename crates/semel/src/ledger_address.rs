//! Where the ledger lies: in a file on this machine, or on a server that many hosts share.

use crate::settings::{self, Settings};
use crate::{BadSetting, policy_files};
use semel_core::digest::Secret;
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::clock_skew;
use semel_ledger::entropy::OsEntropy;
use semel_ledger::fleet_holders::FleetHolders;
use semel_ledger::holders::FileHolders;
use semel_ledger::place::Place;
use semel_ledger::position;
use semel_ledger::server_address::ServerAddress;
use semel_ledger::sqlite::{OpenOptions, OpenedStore, SqliteStore};
use semel_ledger::{Error, Ledger};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, Clone)]
/// The place of a ledger.
pub enum LedgerAddress {
    /// On SQLite.
    File(PathBuf),
    /// On an engine that many hosts share.
    Server {
        /// The engine and its address.
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
    pub fn of(
        settings: &Settings,
        flag: Option<&Path>,
        policy: Option<&Path>,
    ) -> Result<LedgerAddress, BadSetting> {
        let address = Self::configured(settings, flag, policy)?;
        match &address {
            LedgerAddress::File(file) if settings.shared_ledger => Err(BadSetting::hinted(
                format!(
                    "SEMEL_SHARED_LEDGER is set, and the ledger is the file {}, which no other host shares; nothing was \
                     sent",
                    file.display()
                ),
                "name a server in SEMEL_LEDGER: postgres://…, redis://… or etcd://…",
            )),
            _ => Ok(address),
        }
    }

    fn configured(
        settings: &Settings,
        flag: Option<&Path>,
        policy: Option<&Path>,
    ) -> Result<LedgerAddress, BadSetting> {
        if let Some(flag) = flag {
            return refuse_password("--ledger", parse("--ledger", flag, settings)?, || {
                "put the address into SEMEL_LEDGER, or `ledger = \"…\"` into semel.toml".to_owned()
            });
        }
        if let Some(ledger) = &settings.ledger {
            let address = parse_from("SEMEL_LEDGER", Path::new(ledger), settings, Path::new(""))?;
            if let LedgerAddress::File(file) = &address
                && file.is_relative()
            {
                return Err(BadSetting::hinted(
                    "SEMEL_LEDGER is a relative path, another file in each directory",
                    "write the whole path, the same one from every directory, or the address of a server",
                ));
            }
            return Ok(address);
        }
        match policy_files::ledger(settings, policy)? {
            Some((policy, ledger)) => {
                let beside = settings.cwd.join(policy).parent().map(Path::to_owned).unwrap_or_default();
                parse_from("`ledger` in the policy", Path::new(&ledger), settings, &beside)
            }
            None => Ok(LedgerAddress::File(settings.state_directory()?.join("ledger.db"))),
        }
    }

    /// An argument of a command: an address, or `env:NAME` for the variable that holds it.
    pub fn named(what: &str, text: &str, settings: &Settings) -> Result<LedgerAddress, BadSetting> {
        if let Some(name) = text.strip_prefix("env:") {
            return parse(name, Path::new(&settings::named(name)?), settings);
        }
        refuse_password(what, parse(what, Path::new(text), settings)?, || {
            "put the address into a variable, and name that: env:NAME".to_owned()
        })
    }

    /// Opens the ledger, or founds it.
    pub fn open(&self, settings: &Settings, clock: &dyn Clock, purpose: Purpose) -> Result<Ledger, Error> {
        let open = |purpose| {
            let ledger = self.open_for_copy(settings, clock, purpose, None)?;
            block_on(ledger.refuse_partial(&self.to_string(), purpose != Purpose::Reading))?;
            if let LedgerAddress::Server { server, here } = self
                && purpose != Purpose::Reading
            {
                let server = server.to_string();
                block_on(clock_skew::check(ledger.store(), &server, || clock.now()))?;
                block_on(position::check(&ledger, here, &server, clock.now()))?;
            }
            Ok(ledger)
        };
        match open(purpose) {
            // The command may want no more than to look. What it wants to write is refused.
            Err(Error::TooNew { .. } | Error::IsBackup { .. }) if purpose == Purpose::Command => {
                open(Purpose::Reading)
            }
            opened => opened,
        }
    }

    /// The same of a copy that may be unfinished. One that is founded here gets this secret.
    pub fn open_for_copy(
        &self,
        settings: &Settings,
        clock: &dyn Clock,
        purpose: Purpose,
        copy_of: Option<Secret>,
    ) -> Result<Ledger, Error> {
        match self {
            LedgerAddress::File(file) => {
                let options = sqlite_options(file, settings, clock, purpose);
                let ledger = open_file(OpenOptions { copy_of, ..options })?;
                Ok(ledger.spooled_below(&self.spool()))
            }
            LedgerAddress::Server { server, here } => {
                let now = Arc::new(|| SystemClock::start().now());
                let cannot = |source| Error::Open { path: here.clone(), source };
                let is_copy = copy_of.is_some();
                let fresh = copy_of.map_or_else(Place::fresh_secret, Ok).map_err(cannot)?;
                let (store, secret) = block_on(server.open(*fresh.expose(), now))?;
                // A mistyped name of a schema or a ledger means another one, which knows nothing.
                if !is_copy && secret.expose() == fresh.expose() {
                    (settings.on_new_ledger)(&server.to_string());
                }
                let holders = FleetHolders::new(here, Arc::clone(&store))?;
                let ledger = Ledger::new(store, Arc::new(holders), OsEntropy, secret);
                Ok(ledger.spooled_below(&self.spool()))
            }
        }
    }

    /// Afterwards this host expects this ledger here, and no other one.
    pub fn expect(&self, ledger: &Ledger) -> Result<(), Error> {
        match self {
            LedgerAddress::File(_) => Ok(()),
            LedgerAddress::Server { server, here } => position::remember(ledger, here, &server.to_string()),
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
    pub fn file(&self, what: &str) -> Result<&Path, BadSetting> {
        match self {
            LedgerAddress::File(file) => Ok(file),
            LedgerAddress::Server { .. } => {
                Err(BadSetting::new(format!("{what} is for a ledger in a file, and this one is {self}")))
            }
        }
    }

    /// Where this host keeps answers that could not reach it.
    pub fn spool(&self) -> PathBuf {
        match self {
            LedgerAddress::File(file) => Place::at(file).spool(),
            LedgerAddress::Server { here, .. } => here.join("spool"),
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

fn refuse_password(
    from: &str,
    address: LedgerAddress,
    hint: impl FnOnce() -> String,
) -> Result<LedgerAddress, BadSetting> {
    match &address {
        LedgerAddress::Server { server, .. } if server.has_password() => Err(BadSetting::hinted(
            format!(
                "{from} holds a password, which everybody on this machine can see in the list of processes"
            ),
            hint(),
        )),
        _ => Ok(address),
    }
}

fn parse(from: &str, given: &Path, settings: &Settings) -> Result<LedgerAddress, BadSetting> {
    parse_from(from, given, settings, &settings.cwd)
}

/// A relative path begins at `base`.
fn parse_from(
    from: &str,
    given: &Path,
    settings: &Settings,
    base: &Path,
) -> Result<LedgerAddress, BadSetting> {
    let text = given.to_str().unwrap_or_default();
    let server = ServerAddress::parse(text).map_err(|error| {
        let hint = "correct the address in SEMEL_LEDGER, or `ledger` in semel.toml; then: semel doctor";
        BadSetting::hinted(error.to_string(), hint)
    })?;
    if let Some(server) = server {
        return Ok(LedgerAddress::Server { server, here: settings.state_directory()?.join("shared") });
    }
    let path = match text.split_once("://").or_else(|| text.split_once(':')) {
        Some(("sqlite" | "file", path)) if !path.is_empty() => Path::new(path),
        Some((engine, _)) if SERVERS.contains(&engine) && text.contains("://") => {
            return Err(BadSetting::hinted(
                format!("{from} is a ledger on a server, and this program was built without that engine"),
                "build it with the feature postgres, redis or etcd of the crate semel",
            ));
        }
        // A mistyped address is no path: it would begin a ledger that nobody means, and its name would hold a password.
        Some((engine, _)) if names_engine(engine) => {
            let right = engine.to_ascii_lowercase();
            return Err(BadSetting::hinted(
                format!(
                    "{from} is no address of a ledger: write {right}://, with two slashes and in small letters"
                ),
                "correct the address; then: semel doctor",
            ));
        }
        Some((engine, rest)) if !engine.contains('/') && (text.contains("://") || rest.contains('@')) => {
            return Err(BadSetting::hinted(
                format!(
                    "{from} names the engine {engine}, which this semel does not have; it has sqlite:PATH, \
                     postgres://, redis:// and etcd://"
                ),
                "correct the address; then: semel doctor",
            ));
        }
        _ if text
            .split_whitespace()
            .any(|word| word.starts_with("host=") || word.starts_with("password=")) =>
        {
            return Err(BadSetting::hinted(
                format!("{from} is no address of a ledger: options of libpq are not read; nothing was sent"),
                "write postgres://USER:PASSWORD@HOST:PORT/DATABASE",
            ));
        }
        _ if !text.starts_with(['/', '.'])
            && (text.contains('@') || text.split('/').next().is_some_and(names_engine)) =>
        {
            return Err(BadSetting::hinted(
                format!("{from} is neither an address nor a path of a ledger"),
                "write postgres://…, redis://… or etcd://… for a server, or a path that begins with / or ./",
            ));
        }
        _ => given,
    };
    Ok(LedgerAddress::File(base.join(path)))
}

const SERVERS: [&str; 6] = ["postgres", "postgresql", "redis", "rediss", "etcd", "etcds"];

fn names_engine(text: &str) -> bool {
    SERVERS.contains(&text.to_ascii_lowercase().as_str())
}

/// How a file is opened.
pub fn sqlite_options(file: &Path, settings: &Settings, clock: &dyn Clock, purpose: Purpose) -> OpenOptions {
    OpenOptions {
        allow_network_fs: settings.allow_network_fs,
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
