//! A real Redis server of a test's own: in a temporary directory, on a port of loopback that was free.

use crate::wait::wait_until;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

#[derive(Debug)]
pub struct RedisServer {
    port: u16,
    options: Vec<String>,
    directory: tempfile::TempDir,
    process: Child,
}

impl RedisServer {
    /// Every commit on the disk before it is acknowledged; and these options of `redis-server` besides.
    pub fn start(options: &[&str]) -> RedisServer {
        let durable = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""];
        let options: Vec<String> = durable.iter().chain(options).map(|option| (*option).to_owned()).collect();
        let directory = tempfile::tempdir().expect("a directory for the server");
        let port = free_port();
        let process = spawn(directory.path(), port, &options);
        let server = RedisServer { port, options, directory, process };
        server.wait_until_ready();
        server
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// At once, as a power cut of its process would.
    pub fn kill(&mut self) {
        self.process.kill().expect("the server can be killed");
        self.process.wait().expect("the server ends");
    }

    /// With these options besides; the last one of a name counts.
    pub fn restart_with(&mut self, options: &[&str]) {
        self.options.extend(options.iter().map(|option| (*option).to_owned()));
        self.restart();
    }

    /// Its log as it is on the disk now.
    pub fn log(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let files = std::fs::read_dir(self.directory.path().join("appendonlydir")).expect("it has a log");
        let paths = files.map(|file| file.expect("readable").path());
        paths.map(|path| (path.clone(), std::fs::read(path).expect("readable"))).collect()
    }

    /// Its log is that of an earlier time.
    pub fn put_back(&self, log: Vec<(PathBuf, Vec<u8>)>) {
        for (path, bytes) in log {
            std::fs::write(path, bytes).expect("it is ours");
        }
    }

    pub fn restart(&mut self) {
        self.process = spawn(self.directory.path(), self.port, &self.options);
        self.wait_until_ready();
    }

    /// A command's answer, as the server writes it.
    pub fn ask(&self, words: &[&str]) -> String {
        ask(self.port, words).expect("the server answers")
    }

    fn wait_until_ready(&self) {
        let answers = || ask(self.port, &["PING"]).is_ok_and(|said| !said.contains("LOADING"));
        wait_until("the Redis server answers", answers);
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ended_already = self.process.kill();
        let _ended_already = self.process.wait();
    }
}

fn spawn(directory: &Path, port: u16, options: &[String]) -> Child {
    Command::new("redis-server")
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--dir"])
        .arg(directory)
        .args(options)
        .stdout(Stdio::null())
        .spawn()
        .expect("redis-server is installed by `cargo xtask test`, or by `apt-get install redis-server`")
}

/// With room above it: the bus of a cluster node has a port 10,000 higher.
pub fn free_port() -> u16 {
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        if port < 55_000 {
            return port;
        }
    }
}

fn ask(port: u16, words: &[&str]) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    let command: String = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
    stream.write_all(format!("*{}\r\n{command}*1\r\n$4\r\nQUIT\r\n", words.len()).as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
