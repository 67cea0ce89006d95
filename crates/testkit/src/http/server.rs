//! A server that keeps every request, counts what a test calls an effect, and answers as the test says.

use super::request::{Request, RequestReader};
use std::io::Write;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// Answers one request. `None` closes the connection.
type AnswerFn = dyn Fn(&mut ServedExchange<'_>) -> Option<()> + Send + Sync;

#[derive(Debug, Clone)]
pub struct FakeServer {
    address: SocketAddr,
    shared: Arc<FakeServerState>,
}

#[derive(Debug, Default)]
struct FakeServerState {
    log: Mutex<FakeServerLog>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct FakeServerLog {
    requests: Vec<Request>,
    connections: usize,
    closed: usize,
    effects: usize,
    /// Answers that wait go on if their request is among the first so many.
    released: usize,
}

/// One request, its place among all, and the socket for the answer.
#[derive(Debug)]
pub struct ServedExchange<'a> {
    pub request: &'a Request,
    /// From 1.
    pub number: usize,
    pub server: &'a FakeServer,
    stream: &'a mut TcpStream,
}

impl FakeServer {
    pub fn start(
        answer: impl Fn(&mut ServedExchange<'_>) -> Option<()> + Send + Sync + 'static,
    ) -> FakeServer {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let server =
            FakeServer { address: listener.local_addr().expect("an address"), shared: Arc::default() };
        let (serving, answer): (FakeServer, Arc<AnswerFn>) = (server.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                serving.lock().connections += 1;
                let (serving, answer) = (serving.clone(), Arc::clone(&answer));
                std::thread::spawn(move || {
                    serving.converse(stream, &*answer);
                    serving.lock().closed += 1;
                    serving.shared.changed.notify_all();
                });
            }
        });
        server
    }

    /// One connection, until either side closes it. A client that goes away in the middle is the normal case.
    fn converse(&self, mut stream: TcpStream, answer: &AnswerFn) -> Option<()> {
        stream.set_nodelay(true).ok()?;
        let mut source = RequestReader::new(stream.try_clone().ok()?);
        loop {
            let head = source.head().ok()??;
            let request = source.body(head).ok()?;
            let number = {
                let mut log = self.lock();
                log.requests.push(request.clone());
                log.requests.len()
            };
            self.shared.changed.notify_all();
            answer(&mut ServedExchange { request: &request, number, server: self, stream: &mut stream })?;
        }
    }

    fn lock(&self) -> MutexGuard<'_, FakeServerLog> {
        self.shared.log.lock().expect("nobody panicked")
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn host(&self) -> String {
        self.address.to_string()
    }

    pub fn requests(&self) -> Vec<Request> {
        self.lock().requests.clone()
    }

    pub fn last(&self) -> Request {
        self.lock().requests.last().cloned().expect("a request")
    }

    pub fn connections(&self) -> usize {
        self.lock().connections
    }

    /// How often the world was changed.
    pub fn effects(&self) -> usize {
        self.lock().effects
    }

    pub fn count_effect(&self) -> usize {
        let mut log = self.lock();
        log.effects += 1;
        log.effects
    }

    /// Lets all that wait go on, and all that will.
    pub fn release(&self) {
        self.release_first(usize::MAX);
    }

    /// Lets the first so many requests go on.
    pub fn release_first(&self, count: usize) {
        self.lock().released = count;
        self.shared.changed.notify_all();
    }

    pub fn is_released(&self, number: usize) -> bool {
        self.lock().released >= number
    }

    pub fn wait_for_requests(&self, count: usize) {
        drop(self.shared.changed.wait_while(self.lock(), |log| log.requests.len() < count));
    }

    pub fn wait_for_closed(&self, count: usize) {
        drop(self.shared.changed.wait_while(self.lock(), |log| log.closed < count));
    }
}

impl ServedExchange<'_> {
    /// Until the test lets this request go on.
    pub fn wait_for_release(&self) {
        let shared = &self.server.shared;
        drop(shared.changed.wait_while(self.server.lock(), |log| log.released < self.number));
    }

    pub fn write(&mut self, text: &str) -> Option<()> {
        self.stream.write_all(text.as_bytes()).and_then(|()| self.stream.flush()).ok()
    }

    /// One chunk of a body; an empty one ends it.
    pub fn chunk(&mut self, text: &str) -> Option<()> {
        self.write(&format!("{:x}\r\n{text}\r\n", text.len()))
    }

    /// A whole response; a body that looks like JSON is called so, unless the headers say otherwise.
    pub fn reply(&mut self, status: u16, headers: &str, body: &str) -> Option<()> {
        let is_json = body.starts_with('{') && !headers.contains("Content-Type");
        let kind = if is_json { "Content-Type: application/json\r\n" } else { "" };
        let length = body.len();
        self.write(&format!("HTTP/1.1 {status} X\r\n{kind}{headers}Content-Length: {length}\r\n\r\n{body}"))
    }

    /// Ends the connection in both directions, without another word.
    pub fn hang_up(&mut self) -> Option<()> {
        self.stream.shutdown(Shutdown::Both).ok()
    }

    /// Until the client closes its end.
    pub fn wait_for_close(&mut self) {
        let _closed = std::io::Read::read(self.stream, &mut [0]);
    }
}
