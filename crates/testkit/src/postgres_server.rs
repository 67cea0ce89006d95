//! A real PostgreSQL in a directory of its own, stopped by its own process id.

use crate::wait_until;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use tempfile::TempDir;

/// Anybody may come by the socket as `semel`; by the network with [`PASSWORD`].
#[derive(Debug)]
pub struct PostgresServer {
    directory: TempDir,
    pub port: u16,
    settings: Vec<String>,
    process: Child,
}

pub const PASSWORD: &str = "correct-horse";

/// The server and its pooler refuse to run as root.
const NOBODY: u32 = 65_534;

/// A program of PostgreSQL, as somebody who is not root.
pub fn as_nobody(name: &str) -> Command {
    let mut command = Command::new(program(name));
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command.current_dir("/tmp").stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Debian and others keep the server's programs out of the search path.
fn program(name: &str) -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let kept = versions.map(|version| version.path().join("bin").join(name)).filter(|path| path.is_file());
    let others = ["/usr/sbin", "/usr/local/bin"].map(|place| Path::new(place).join(name));
    kept.max().or_else(|| others.into_iter().find(|path| path.is_file())).unwrap_or_else(|| name.into())
}

/// A directory that they may write to, with a name short enough for a socket in it.
pub fn directory() -> TempDir {
    directory_in(Path::new("/tmp"))
}

fn directory_in(parent: &Path) -> TempDir {
    let directory = tempfile::Builder::new().prefix("pg").tempdir_in(parent).expect("a directory");
    give_to_nobody(directory.path());
    directory
}

pub fn give_to_nobody(path: &Path) {
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).expect("root may give it away");
    }
}

pub fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    listener.local_addr().expect("bound").port()
}

fn run(command: &mut Command) {
    let output = command.stderr(Stdio::piped()).output().expect("PostgreSQL is installed");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

impl PostgresServer {
    pub fn start(settings: &[&str]) -> PostgresServer {
        Self::start_with(settings, |_| {})
    }

    /// `prepare` may put files into the directory, before the server reads them.
    pub fn start_with(settings: &[&str], prepare: impl FnOnce(&Path)) -> PostgresServer {
        Self::start_in(Path::new("/tmp"), settings, prepare)
    }

    /// The same in a directory below another one.
    pub fn start_in(parent: &Path, settings: &[&str], prepare: impl FnOnce(&Path)) -> PostgresServer {
        let directory = directory_in(parent);
        let password = directory.path().join("password");
        std::fs::write(&password, PASSWORD).expect("a file");
        give_to_nobody(&password);
        let mut initdb = as_nobody("initdb");
        initdb.args(["--username=semel", "--auth-local=trust", "--auth-host=scram-sha-256", "--no-sync"]);
        initdb.args(["--encoding=UTF8", "--locale=C", "--pwfile"]).arg(&password);
        run(initdb.arg("-D").arg(directory.path().join("data")));
        prepare(directory.path());
        Self::over(directory, settings.iter().map(|setting| (*setting).to_owned()).collect())
    }

    fn over(directory: TempDir, settings: Vec<String>) -> PostgresServer {
        let port = free_port();
        let process = spawn(directory.path(), port, &settings);
        let mut server = PostgresServer { directory, port, settings, process };
        server.wait_until_ready();
        server
    }

    /// A copy of its present state that follows it, as fast as it happens to.
    pub fn standby(&self) -> PostgresServer {
        let directory = directory();
        let mut copy = as_nobody("pg_basebackup");
        copy.args(["--username=semel", "--write-recovery-conf", "--checkpoint=fast", "--no-sync", "-h"]);
        copy.arg(self.directory.path()).args(["-p", &self.port.to_string(), "-D"]);
        run(copy.arg(directory.path().join("data")));
        Self::over(directory, self.settings.clone())
    }

    pub fn promote(&self) {
        run(as_nobody("pg_ctl").args(["promote", "--wait", "-D"]).arg(self.directory.path().join("data")));
    }

    /// SIGKILL to the first of its processes; the others end with it.
    pub fn kill(&mut self) {
        self.process.kill().expect("it is ours");
        self.process.wait().expect("it ends");
    }

    pub fn start_again(&mut self) {
        self.process = spawn(self.directory.path(), self.port, &self.settings);
        self.wait_until_ready();
    }

    fn wait_until_ready(&mut self) {
        wait_until("PostgreSQL answers", || {
            // It gives up while a process of a killed predecessor is still ending.
            if self.process.try_wait().expect("it is ours").is_some() {
                self.process = spawn(self.directory.path(), self.port, &self.settings);
            }
            let mut ask = as_nobody("pg_isready");
            ask.arg("-h").arg(self.directory.path()).args(["-p", &self.port.to_string()]);
            ask.status().is_ok_and(|status| status.success())
        });
    }

    /// Statements, and what they answer.
    pub fn sql(&self, statements: &str) -> String {
        let mut psql = self.client("psql");
        psql.args(["-XAtq", "-v", "ON_ERROR_STOP=1"]).stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut psql = psql.spawn().expect("psql is installed");
        psql.stdin.take().expect("asked for").write_all(statements.as_bytes()).expect("it reads");
        let output = psql.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Everything in it, as statements.
    pub fn dump(&self) -> String {
        let output = self.client("pg_dump").output().expect("pg_dump is installed");
        String::from_utf8(output.stdout).expect("statements are text")
    }

    /// A transaction that runs until it is dropped.
    pub fn begin(&self) -> OpenTransaction {
        let mut psql =
            self.client("psql").args(["-XAtq"]).stdin(Stdio::piped()).spawn().expect("psql is installed");
        let mut input = psql.stdin.take().expect("asked for");
        input.write_all(b"BEGIN; SELECT pg_current_xact_id();\n").expect("it reads");
        let mut number = String::new();
        BufReader::new(psql.stdout.take().expect("asked for")).read_line(&mut number).expect("it has begun");
        OpenTransaction { psql, _input: input }
    }

    fn client(&self, name: &str) -> Command {
        let mut command = as_nobody(name);
        command.arg("-h").arg(self.directory.path()).args(["-p", &self.port.to_string()]);
        command.args(["-U", "semel", "-d", "postgres"]).stdout(Stdio::piped());
        command
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub fn socket(&self) -> PathBuf {
        socket(self.directory.path(), self.port)
    }

    /// By the socket.
    pub fn url(&self, schema: &str) -> String {
        url(self.directory.path(), self.port, schema)
    }
}

#[derive(Debug)]
pub struct OpenTransaction {
    psql: Child,
    _input: ChildStdin,
}

impl Drop for OpenTransaction {
    fn drop(&mut self) {
        let _ended_already = self.psql.kill();
        let _reaped = self.psql.wait();
    }
}

/// Where a server or a proxy in this directory listens.
pub fn socket(directory: &Path, port: u16) -> PathBuf {
    directory.join(format!(".s.PGSQL.{port}"))
}

pub fn url(directory: &Path, port: u16, schema: &str) -> String {
    let host = directory.to_str().expect("a path of ours").replace('/', "%2F");
    format!("postgres://semel@{host}:{port}/postgres?schema={schema}")
}

fn spawn(directory: &Path, port: u16, settings: &[String]) -> Child {
    let mut server = as_nobody("postgres");
    server.arg("-D").arg(directory.join("data")).arg("-k").arg(directory);
    server.args(["-p", &port.to_string(), "-c", "listen_addresses="]);
    settings.iter().for_each(|setting| {
        server.args(["-c", setting]);
    });
    server.spawn().expect("PostgreSQL is installed")
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        let _ended_already = self.process.kill();
        let _reaped = self.process.wait();
    }
}
