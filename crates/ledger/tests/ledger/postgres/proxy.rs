//! Stands between a store and its server, and cuts the connection where it is told to.

use semel_testkit::postgres_server::socket;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use tempfile::TempDir;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cut {
    /// The server never sees the first message with this word in it.
    Before(&'static [u8]),
    /// The server has answered it, and the client never sees the answer.
    Behind(&'static [u8]),
}

#[derive(Default)]
struct Orders {
    /// Carried out once.
    cut: Option<Cut>,
    server: PathBuf,
}

pub struct Proxy {
    directory: TempDir,
    orders: Arc<Mutex<Orders>>,
}

const PORT: u16 = 5432;

impl Proxy {
    pub fn to(server: &Path) -> Proxy {
        let directory = tempfile::Builder::new().prefix("px").tempdir_in("/tmp").expect("a directory");
        let listener = UnixListener::bind(socket(directory.path(), PORT)).expect("a socket");
        let orders = Arc::new(Mutex::new(Orders { cut: None, server: server.to_owned() }));
        let ours = Arc::clone(&orders);
        // It ends with the process of the test.
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = UnixStream::connect(&ours.lock().expect("no panic").server);
                let Ok(server) = server else { continue };
                pass(client, server, &ours);
            }
        });
        Proxy { directory, orders }
    }

    pub fn url(&self, schema: &str) -> String {
        semel_testkit::postgres_server::url(self.directory.path(), PORT, schema)
    }

    pub fn cut(&self, cut: Cut) {
        self.orders.lock().expect("no panic").cut = Some(cut);
    }

    /// Whether it has been carried out.
    pub fn has_cut(&self) -> bool {
        self.orders.lock().expect("no panic").cut.is_none()
    }

    /// New connections go there.
    pub fn lead_to(&self, server: &Path) {
        self.orders.lock().expect("no panic").server = server.to_owned();
    }
}

/// Both ways, until one end closes.
fn pass(client: UnixStream, server: UnixStream, orders: &Arc<Mutex<Orders>>) {
    let cutting = Arc::new(Mutex::new(None));
    let ends = || [client.try_clone().expect("a socket"), server.try_clone().expect("a socket")];
    let (there, back) = (ends(), ends());
    let (orders, seen) = (Arc::clone(orders), Arc::clone(&cutting));
    thread::spawn(move || {
        let [client, server] = there;
        copy(&client, &server, |bytes| {
            let mut orders = orders.lock().expect("no panic");
            match orders.cut {
                Some(Cut::Before(word)) if contains(bytes, word) => {
                    orders.cut = None;
                    false
                }
                Some(Cut::Behind(word)) if contains(bytes, word) => {
                    orders.cut = None;
                    *seen.lock().expect("no panic") = Some(word);
                    true
                }
                _ => true,
            }
        });
    });
    thread::spawn(move || {
        let [client, server] = back;
        let mut withheld = false;
        copy(&server, &client, |bytes| {
            // The server names the command that it has completed.
            withheld |= cutting.lock().expect("no panic").is_some_and(|word| contains(bytes, word));
            !withheld
        });
    });
}

fn contains(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|part| part == word)
}

/// Ends both directions when `passes` says no.
fn copy(mut from: &UnixStream, mut to: &UnixStream, mut passes: impl FnMut(&[u8]) -> bool) {
    let mut buffer = vec![0; 1 << 20];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if !passes(&buffer[..length]) || to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _closed_already = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
