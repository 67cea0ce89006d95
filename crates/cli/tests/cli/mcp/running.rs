//! Processes that listen on loopback for as long as a test holds them.

use super::Way;
use super::peers::{NAME, Server};
use crate::home::Home;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

/// One listening process; it ends with this value.
#[derive(Debug)]
pub struct Running {
    child: Child,
    port: u16,
}

/// A server over HTTP, and semel before it if asked.
#[derive(Debug)]
pub struct Served {
    url: String,
    _server: Option<Running>,
    _semel: Option<Running>,
}

impl Running {
    /// Starts a program that says `listening PORT` first.
    pub fn start(command: &mut Command) -> Running {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut said = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("its output is a pipe"));
        output.read_line(&mut said).expect("it says where it listens");
        let port = said.strip_prefix("listening ").and_then(|port| port.trim().parse().ok());
        let port = port.unwrap_or_else(|| panic!("{command:?} said {said:?}"));
        // Whatever else it says is read and forgotten, so that it never waits for a reader.
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        Running { child, port }
    }

    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself, as some tests want it to.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

impl Served {
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Home {
    /// A server that listens, and semel before it if asked.
    pub fn http(&self, way: Way, server: Server) -> Served {
        let mut words = server.command();
        words.push("http".to_owned());
        let server = Running::start(&mut self.program(&words));
        let url = format!("http://127.0.0.1:{}/mcp", server.port());
        match way {
            Way::Direct => Served { url, _server: Some(server), _semel: None },
            Way::Guarded => {
                let served = self.serve(&format!("url = \"{url}\""));
                Served { _server: Some(server), ..served }
            }
        }
    }

    /// `semel serve` before a server that it starts itself.
    pub fn http_before_stdio(&self, server: Server) -> Served {
        self.serve(&format!("command = {}", serde_json::json!(server.command())))
    }

    /// `semel serve` with one upstream, as a line of its table in `semel.toml`.
    fn serve(&self, upstream: &str) -> Served {
        self.file(
            "semel.toml",
            &format!("version = 1\n\n[serve]\nrequire_token = false\n\n[mcp.{NAME}]\n{upstream}\n"),
        );
        let port = free_port();
        let mut command = Command::new(env!("CARGO_BIN_EXE_semel"));
        self.furnish(&mut command).args(["serve", "--listen", &format!("127.0.0.1:{port}")]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("semel starts");
        let mut semel = Running { child, port };
        self.wait_until("semel listens", || {
            let ended = semel.child.try_wait().expect("semel is our child");
            assert!(ended.is_none(), "semel serve has ended: {ended:?}");
            TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
        });
        Served { url: format!("http://127.0.0.1:{port}/mcp/{NAME}"), _server: None, _semel: Some(semel) }
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("it has an address").port()
}
