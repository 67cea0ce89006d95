//! Stands between a store and its server: cuts connections, holds messages back, and delays what it passes on.

use crate::random::Random;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Where a server listens.
#[derive(Debug, Clone)]
pub enum Target {
    /// A port of this machine.
    Port(u16),
    Socket(PathBuf),
}

/// Where a connection is cut, or a message held. The word is looked for in what goes to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The server has not seen the message with this word.
    Before(&'static [u8]),
    /// The server has it and has answered: the client has not seen the first part of an answer with the second word.
    Behind(&'static [u8], &'static [u8]),
}

#[derive(Debug)]
struct Orders {
    server: Target,
    /// Left to be carried out, once each.
    cuts: (Option<Moment>, u64),
    /// Left to be held until they are let go.
    holds: (Option<Moment>, u64),
    held: u64,
    after_hold: Fate,
    /// Each part of a message waits for a span of up to this, drawn anew: so connections overtake each other.
    delay_max: Duration,
    random: Random,
    connections: u64,
}

#[derive(Debug)]
struct Shared {
    orders: Mutex<Orders>,
    changed: Condvar,
}

/// It ends with the process of the test.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

impl Proxy {
    pub fn to(server: Target) -> Proxy {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("it is bound").port();
        let (cuts, holds, held, after_hold) = ((None, 0), (None, 0), 0, Fate::Passes);
        let (delay_max, random) = (Duration::ZERO, Random::new(1));
        let orders = Orders { server, cuts, holds, held, after_hold, delay_max, random, connections: 0 };
        let shared = Arc::new(Shared { orders: Mutex::new(orders), changed: Condvar::new() });
        let ours = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let to = {
                    let mut orders = ours.lock();
                    orders.connections += 1;
                    orders.server.clone()
                };
                let server = match to {
                    Target::Port(port) => {
                        TcpStream::connect(("127.0.0.1", port)).map(|stream| Ends::tcp(&stream))
                    }
                    Target::Socket(path) => UnixStream::connect(path).map(|stream| Ends::unix(&stream)),
                };
                // A server that is not there closes what comes to it.
                if let Ok(server) = server {
                    pass(Ends::tcp(&client), server, &ours);
                }
            }
        });
        Proxy { port, shared }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// How many clients have come so far.
    pub fn connections(&self) -> u64 {
        self.shared.lock().connections
    }

    /// Cuts the connection at the next so many of these moments.
    pub fn cut(&self, moment: Moment, times: u64) {
        self.shared.lock().cuts = (Some(moment), times);
    }

    pub fn cuts_left(&self) -> u64 {
        self.shared.lock().cuts.1
    }

    /// Keeps the next message of this kind until [`Proxy::let_go`].
    pub fn hold(&self, moment: Moment) {
        let mut orders = self.shared.lock();
        (orders.holds, orders.held) = ((Some(moment), 1), 0);
    }

    pub fn has_held(&self) -> bool {
        self.shared.lock().held > 0
    }

    /// Passes it on.
    pub fn let_go(&self) {
        self.end_hold(Fate::Passes);
    }

    /// Cuts its connection instead.
    pub fn drop_held(&self) {
        self.end_hold(Fate::Cut);
    }

    fn end_hold(&self, then: Fate) {
        let mut orders = self.shared.lock();
        (orders.held, orders.after_hold) = (0, then);
        self.shared.changed.notify_all();
    }

    pub fn delay_up_to(&self, span: Duration) {
        self.shared.lock().delay_max = span;
    }

    /// New connections go there.
    pub fn lead_to(&self, server: Target) {
        self.shared.lock().server = server;
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn delay(&self) {
        let span = {
            let mut orders = self.lock();
            let max = u64::try_from(orders.delay_max.as_micros()).unwrap_or(u64::MAX);
            Duration::from_micros(if max == 0 { 0 } else { orders.random.below(max) })
        };
        if !span.is_zero() {
            thread::park_timeout(span);
        }
    }

    /// What becomes of a message that was held.
    fn wait_for_the_end(&self) -> Fate {
        let mut orders = self.lock();
        orders.held += 1;
        while orders.held > 0 {
            orders = self.changed.wait(orders).unwrap_or_else(PoisonError::into_inner);
        }
        orders.after_hold
    }
}

/// What becomes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Passes,
    Cut,
    Held,
}

/// A message that was seen on its way to the server, whose answer is waited for.
#[derive(Debug, Clone, Copy)]
struct Awaited {
    answer: &'static [u8],
    fate: Fate,
}

/// Both ways, until one end closes.
fn pass(client: Ends, server: Ends, shared: &Arc<Shared>) {
    let awaited = Arc::new(Mutex::new(None::<Awaited>));
    let (seen, orders) = (Arc::clone(&awaited), Arc::clone(shared));
    let (from, to) = (client.clone(), server.clone());
    thread::spawn(move || {
        copy(from, to, &orders, |bytes| {
            let mut now = orders.lock();
            let (fate, moment) = match (now.cuts, now.holds) {
                ((Some(moment), 1..), _) if sees(moment, bytes) => {
                    now.cuts.1 -= 1;
                    (Fate::Cut, moment)
                }
                (_, (Some(moment), 1..)) if sees(moment, bytes) => {
                    now.holds.1 -= 1;
                    (Fate::Held, moment)
                }
                _ => return Fate::Passes,
            };
            match moment {
                Moment::Before(_) => fate,
                Moment::Behind(_, answer) => {
                    *seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(Awaited { answer, fate });
                    Fate::Passes
                }
            }
        });
    });
    let shared = Arc::clone(shared);
    thread::spawn(move || {
        copy(server, client, &shared, |bytes| {
            let mut awaited = awaited.lock().unwrap_or_else(PoisonError::into_inner);
            match *awaited {
                Some(Awaited { answer, fate }) if contains(bytes, answer) => {
                    *awaited = None;
                    fate
                }
                _ => Fate::Passes,
            }
        });
    });
}

fn sees(moment: Moment, bytes: &[u8]) -> bool {
    let (Moment::Before(word) | Moment::Behind(word, _)) = moment;
    contains(bytes, word)
}

fn contains(bytes: &[u8], word: &[u8]) -> bool {
    word.is_empty() || bytes.windows(word.len()).any(|part| part == word)
}

/// Ends both directions where a message is cut.
fn copy(mut from: Ends, mut to: Ends, shared: &Shared, mut fate: impl FnMut(&[u8]) -> Fate) {
    let mut buffer = vec![0; 1 << 20];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        shared.delay();
        let fate = match fate(&buffer[..length]) {
            Fate::Held => shared.wait_for_the_end(),
            fate => fate,
        };
        if fate == Fate::Cut {
            break;
        }
        if to.write(&buffer[..length]).is_err() {
            break;
        }
    }
    from.close();
    to.close();
}

/// One end of a connection, of either kind.
#[derive(Debug)]
enum Ends {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Clone for Ends {
    fn clone(&self) -> Ends {
        match self {
            Ends::Tcp(stream) => Ends::tcp(stream),
            Ends::Unix(stream) => Ends::unix(stream),
        }
    }
}

impl Ends {
    fn tcp(stream: &TcpStream) -> Ends {
        let _slower_without = stream.set_nodelay(true);
        Ends::Tcp(stream.try_clone().expect("a socket"))
    }

    fn unix(stream: &UnixStream) -> Ends {
        Ends::Unix(stream.try_clone().expect("a socket"))
    }

    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Ends::Tcp(stream) => stream.read(buffer),
            Ends::Unix(stream) => stream.read(buffer),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Ends::Tcp(stream) => stream.write_all(bytes),
            Ends::Unix(stream) => stream.write_all(bytes),
        }
    }

    fn close(&self) {
        let _closed_already = match self {
            Ends::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Ends::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}
