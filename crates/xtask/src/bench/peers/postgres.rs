//! A PostgreSQL for one measurement: its data beside ours on the same disk, nothing but a private socket to reach it.

use crate::bench::measure;
use crate::project::{self, Result};
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Where Debian keeps the programs, below the version. They are not on the search path there.
const DEBIAN: &str = "/usr/lib/postgresql";

/// Starting takes about a second; a server that is not there by then has said why.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct Postgres {
    process: Child,
    _data: TempDir,
    sockets: TempDir,
}

impl Postgres {
    pub fn start() -> Result<Postgres> {
        let programs = programs()?;
        let data = tempfile::tempdir_in(project::scratch()?)?;
        // The name of a socket must be short, whatever the name of the project's directory is.
        let sockets = tempfile::tempdir()?;
        let user = User::for_owner_of(data.path())?;
        for directory in [&data, &sockets] {
            user.owns(directory.path())?;
        }
        let program = |name: &str| {
            let mut command = Command::new(programs.join(name));
            command.current_dir(data.path()).stdin(Stdio::null());
            user.runs(&mut command);
            command
        };
        // Whoever can enter the directory of the socket may do everything: its owner and root.
        let mut initdb = program("initdb");
        initdb.args(["--username=bench", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "-D"]);
        project::must(initdb.arg(data.path()).stdout(Stdio::null()))?;
        let log = data.path().join("log");
        let mut postgres = program("postgres");
        postgres.arg("-D").arg(data.path()).arg("-k").arg(sockets.path());
        // The defaults, but worth saying: the others write through to the disk too.
        postgres.args(["-c", "listen_addresses=", "-c", "fsync=on", "-c", "synchronous_commit=on"]);
        let process = postgres.stdout(Stdio::null()).stderr(File::create(&log)?).spawn()?;
        let mut postgres = Postgres { process, _data: data, sockets };
        postgres.wait_until_ready(&programs, &log)?;
        Ok(postgres)
    }

    /// The directory that clients name as the host.
    pub fn sockets(&self) -> &Path {
        self.sockets.path()
    }

    fn wait_until_ready(&mut self, programs: &Path, log: &Path) -> Result<()> {
        let started = measure::now();
        let mut asking = Command::new(programs.join("pg_isready"));
        asking.args(["--quiet", "--host"]).arg(self.sockets.path());
        while !asking.status()?.success() {
            if self.process.try_wait()?.is_some() || started.elapsed() > PATIENCE {
                let said = fs::read_to_string(log).unwrap_or_default();
                return Err(format!("PostgreSQL does not start: {}", said.trim()).into());
            }
            measure::pause(Duration::from_millis(50));
        }
        Ok(())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // At once: nobody opens these data again. Its own children end with it, which a plain kill would not see to.
        let told = Command::new("kill").args(["-QUIT", &self.process.id().to_string()]).status();
        if !told.is_ok_and(|status| status.success()) {
            drop(self.process.kill());
        }
        drop(self.process.wait());
    }
}

/// As whom it runs: it refuses root.
enum User {
    Ourselves,
    Other { user: u32, group: u32 },
}

impl User {
    fn for_owner_of(directory: &Path) -> Result<User> {
        if fs::metadata(directory)?.uid() != 0 {
            return Ok(User::Ourselves);
        }
        let other = |name| Some(User::Other { user: id_of(&["-u", name])?, group: id_of(&["-g", name])? });
        let found = ["postgres", "nobody"].into_iter().find_map(other);
        found.ok_or_else(|| "PostgreSQL refuses root, and there is no user to run it as".into())
    }

    fn owns(&self, directory: &Path) -> Result<()> {
        match *self {
            User::Ourselves => Ok(()),
            User::Other { user, group } => Ok(chown(directory, Some(user), Some(group))?),
        }
    }

    fn runs(&self, command: &mut Command) {
        if let User::Other { user, group } = *self {
            command.uid(user).gid(group);
        }
    }
}

fn id_of(words: &[&str]) -> Option<u32> {
    let output = Command::new("id").args(words).stderr(Stdio::null()).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

/// The directory of the programs, empty if they are on the search path.
fn programs() -> Result<PathBuf> {
    if let Some(found) = find_programs() {
        return Ok(found);
    }
    project::install_with_apt("PostgreSQL", &["postgresql"])?;
    find_programs().ok_or_else(|| "there is no PostgreSQL on this machine".into())
}

fn find_programs() -> Option<PathBuf> {
    let versions = fs::read_dir(DEBIAN).into_iter().flatten().filter_map(|entry| entry.ok());
    let versions = versions.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let directories =
        versions.map(|version| (version, Path::new(DEBIAN).join(version.to_string()).join("bin")));
    let newest = directories.filter(|(_, directory)| directory.join("initdb").exists()).max();
    let on_the_path = || {
        let mut asked = Command::new("initdb");
        asked.arg("--version").stdout(Stdio::null());
        asked.status().is_ok_and(|status| status.success()).then(PathBuf::new)
    };
    newest.map(|(_, directory)| directory).or_else(on_the_path)
}
