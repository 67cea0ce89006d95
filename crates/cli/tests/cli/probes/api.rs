//! An HTTP API that answers as it is told, and keeps all that it heard.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// One request, as it arrived.
#[derive(Debug, Clone)]
pub struct Heard {
    pub head: String,
    pub body: String,
}

impl Heard {
    /// `GET /charges/1`.
    pub fn what(&self) -> String {
        self.head.split(' ').take(2).collect::<Vec<_>>().join(" ")
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// How one request is answered.
#[derive(Debug, Clone)]
pub struct Says {
    status: u16,
    headers: &'static str,
    body: String,
    /// It is carried out, and the answer never comes.
    lost: bool,
    takes: Duration,
}

impl Says {
    pub fn json(status: u16, body: &str) -> Says {
        let headers = "Content-Type: application/json\r\n";
        Says { status, headers, body: body.to_owned(), lost: false, takes: Duration::ZERO }
    }

    pub fn nothing() -> Says {
        Says { lost: true, ..Says::json(200, "") }
    }

    pub fn with(self, headers: &'static str) -> Says {
        Says { headers, ..self }
    }

    pub fn taking(self, takes: Duration) -> Says {
        Says { takes, ..self }
    }
}

#[derive(Debug, Clone)]
pub struct Api {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    heard: Mutex<Vec<Heard>>,
    /// By method and path; the last answer is given again and again.
    says: Mutex<HashMap<String, Vec<Says>>>,
}

impl Api {
    pub fn start() -> Api {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let api = Api { address: listener.local_addr().expect("an address"), state: Arc::default() };
        let serving = api.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = serving.clone();
                std::thread::spawn(move || serving.serve(stream));
            }
        });
        api
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on, `GET /path` is answered with these in turn, and with the last of them for ever.
    pub fn tell(&self, what: &str, says: impl IntoIterator<Item = Says>) {
        let mut says: Vec<Says> = says.into_iter().collect();
        says.reverse();
        self.state.says.lock().expect("nobody panicked").insert(what.to_owned(), says);
    }

    pub fn heard(&self) -> Vec<Heard> {
        self.state.heard.lock().expect("nobody panicked").clone()
    }

    /// How often it was asked for this.
    pub fn count(&self, what: &str) -> usize {
        self.heard().iter().filter(|heard| heard.what() == what).count()
    }

    /// How often the world was changed: requests that do not only read.
    pub fn effects(&self) -> usize {
        self.heard().iter().filter(|heard| !heard.head.starts_with("GET ")).count()
    }

    /// A client that goes away in the middle is none of its business.
    fn serve(&self, mut stream: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let heard = Heard { head, body: String::new() };
        let length = heard.header("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let heard = Heard { body: String::from_utf8(body).ok()?, ..heard };
        let says = self.answer(&heard.what());
        self.state.heard.lock().expect("nobody panicked").push(heard);
        pause(says.takes);
        if says.lost {
            return None;
        }
        let head = format!(
            "HTTP/1.1 {} X\r\n{}Content-Length: {}\r\nConnection: close\r\n\r\n",
            says.status,
            says.headers,
            says.body.len()
        );
        stream.write_all(format!("{head}{}", says.body).as_bytes()).ok()
    }

    fn answer(&self, what: &str) -> Says {
        let mut says = self.state.says.lock().expect("nobody panicked");
        let path = what.split('?').next().unwrap_or_default();
        match says.get_mut(path) {
            Some(list) if list.len() > 1 => list.pop().expect("it is not empty"),
            Some(list) => list.last().cloned().unwrap_or_else(|| Says::json(404, "null")),
            None => Says::json(404, r#"{"error": "nobody said anything"}"#),
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "a slow server takes real time")]
fn pause(span: Duration) {
    std::thread::sleep(span);
}
