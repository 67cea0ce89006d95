//! A real etcd cluster of a test's own: in temporary directories, on ports of loopback that were free.

use crate::redis_server::free_port;
use crate::wait::wait_until;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

fn run(command: &mut Command) {
    let done = command.env("ETCDCTL_API", "3").output().expect("etcdctl is installed");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[derive(Debug)]
pub struct EtcdCluster {
    members: Vec<EtcdMember>,
}

#[derive(Debug)]
struct EtcdMember {
    port: u16,
    tls_port: u16,
    arguments: Vec<String>,
    process: Option<Child>,
    _directory: tempfile::TempDir,
}

impl EtcdCluster {
    pub fn start(size: usize) -> EtcdCluster {
        Self::start_with(size, &[])
    }

    /// With these options of `etcd` besides. With a certificate it speaks TLS too, at other places.
    pub fn start_with(size: usize, options: &[&str]) -> EtcdCluster {
        let ports: Vec<(u16, u16)> = (0..size).map(|_| (free_port(), free_port())).collect();
        let place = |port: u16| format!("http://127.0.0.1:{port}");
        let speaks_tls = options.contains(&"--cert-file");
        let all =
            ports.iter().map(|(_, peer)| format!("n{peer}={}", place(*peer))).collect::<Vec<_>>().join(",");
        let member = |(port, peer): &(u16, u16)| {
            let directory = tempfile::tempdir().expect("a directory for the server");
            let data = directory.path().display().to_string();
            let tls_port = free_port();
            let tls_place = if speaks_tls { format!(",https://127.0.0.1:{tls_port}") } else { String::new() };
            let arguments = [
                ("--name", format!("n{peer}")),
                ("--data-dir", data),
                ("--listen-client-urls", place(*port) + &tls_place),
                ("--advertise-client-urls", place(*port)),
                ("--listen-peer-urls", place(*peer)),
                ("--initial-advertise-peer-urls", place(*peer)),
                ("--initial-cluster", all.clone()),
                ("--log-level", "error".to_owned()),
                ("--logger", "zap".to_owned()),
            ];
            let arguments = arguments.into_iter().flat_map(|(name, value)| [name.to_owned(), value]);
            let arguments = arguments.chain(options.iter().map(|option| (*option).to_owned())).collect();
            let mut member =
                EtcdMember { port: *port, tls_port, arguments, process: None, _directory: directory };
            member.spawn();
            member
        };
        let cluster = EtcdCluster { members: ports.iter().map(member).collect() };
        wait_until("the etcd cluster answers", || cluster.leader().is_some());
        cluster
    }

    /// `HOST:PORT`, with commas between.
    pub fn places(&self) -> String {
        self.members.iter().map(|member| format!("127.0.0.1:{}", member.port)).collect::<Vec<_>>().join(",")
    }

    /// Where its first member speaks TLS.
    pub fn tls_place(&self) -> String {
        format!("localhost:{}", self.members[0].tls_port)
    }

    /// Of its first member.
    pub fn port(&self) -> u16 {
        self.members[0].port
    }

    /// The answer of its first member, whatever it is.
    pub fn post(&self, path: &str, body: &str) -> String {
        self.members[0].post(path, body).expect("etcd answers")
    }

    /// Kills the leader at once, and returns its number.
    pub fn kill_leader(&mut self) -> usize {
        let mut found = None;
        wait_until("there is a leader", || {
            found = self.leader();
            found.is_some()
        });
        let leader = found.expect("it was found");
        self.members[leader].kill();
        leader
    }

    /// The name by which etcd tells clusters apart.
    pub fn id(&self) -> String {
        let status = self.post("/v3/maintenance/status", "{}");
        let (_, rest) = status.split_once("\"cluster_id\":\"").expect("it has a name");
        rest.split('"').next().unwrap_or_default().to_owned()
    }

    /// All that its first member has, in a file.
    pub fn save_snapshot(&self, file: &Path) {
        let place = format!("http://127.0.0.1:{}", self.members[0].port);
        let mut save = Command::new("etcdctl");
        run(save.args(["--endpoints", &place, "snapshot", "save"]).arg(file));
    }

    /// Of a cluster of one: ends it, and starts it again with what is in that file.
    pub fn restore(&mut self, snapshot: &Path) {
        let member = &mut self.members[0];
        member.kill();
        let option = |name: &str| {
            let place = member.arguments.iter().position(|argument| argument == name).expect("it was given");
            member.arguments[place + 1].clone()
        };
        std::fs::remove_dir_all(option("--data-dir")).expect("it is ours");
        let mut restore = Command::new("etcdctl");
        restore.args(["snapshot", "restore"]).arg(snapshot);
        for name in ["--name", "--data-dir", "--initial-cluster", "--initial-advertise-peer-urls"] {
            restore.args([name, &option(name)]);
        }
        run(&mut restore);
        member.spawn();
        wait_until("the etcd cluster answers", || self.leader().is_some());
    }

    pub fn restart(&mut self, member: usize) {
        self.members[member].spawn();
        wait_until("the member is back", || self.members[member].status().is_some());
    }

    fn leader(&self) -> Option<usize> {
        self.members.iter().position(|member| {
            member.status().is_some_and(|status| {
                let field = |name: &str| {
                    let (_, rest) = status.split_once(&format!("\"{name}\":\""))?;
                    rest.split('"').next().map(str::to_owned)
                };
                field("leader").is_some() && field("leader") == field("member_id")
            })
        })
    }
}

impl EtcdMember {
    fn spawn(&mut self) {
        let process =
            Command::new("etcd").args(&self.arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let missing = "etcd is installed by `cargo xtask test`, or by `apt-get install etcd-server`";
        self.process = Some(process.expect(missing));
    }

    fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ended_already = process.kill();
            let _ended_already = process.wait();
        }
    }

    /// Its JSON.
    fn status(&self) -> Option<String> {
        self.process.as_ref()?;
        let answer = self.post("/v3/maintenance/status", "{}").ok()?;
        answer.starts_with("HTTP/1.0 200").then_some(answer)
    }

    fn post(&self, path: &str, body: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        let length = body.len();
        let request = format!("POST {path} HTTP/1.0\r\nHost: etcd\r\nContent-Length: {length}\r\n\r\n{body}");
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }
}

impl Drop for EtcdMember {
    fn drop(&mut self) {
        self.kill();
    }
}
