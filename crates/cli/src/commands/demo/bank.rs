//! The payment server of the demo: a process of its own, which writes each charge down before it answers.
//!
//! It is what tells the truth in the demo. It shares nothing with the ledger, and counts by reading its own log.

use super::protocol::{self, Charge, PATIENCE, Reply, Request};
use crate::output::Output;
use anyhow::Context as _;
use semel_gate::clock::{Clock, SystemClock, block_on};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Long enough that callers who come at once really meet.
const CHARGE_TAKES: Duration = Duration::from_millis(200);

/// The demo makes about a dozen; a log that grows beyond this has another customer.
const CHARGES_MAX: usize = 1_000;

/// Twelve callers with a probe each, twice over.
const CONNECTIONS_MAX: usize = 48;

/// Serves until standard input closes, which it does when whoever started it is gone.
pub fn serve(output: Output, log: &Path) -> anyhow::Result<()> {
    let books = Arc::new(Mutex::new(Books::open(log)?));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("the bank cannot listen")?;
    let address = listener.local_addr().context("the bank does not know its address")?;
    let (ended, end) = channel();
    let input_ended = ended.clone();
    spawn(move || {
        let closed = io::copy(&mut io::stdin().lock(), &mut io::sink());
        // Whatever there was on it, standard input is over.
        let _nobody_waits = input_ended.send(closed.map(|_| ()));
    })?;
    spawn(move || accept(&listener, &books, &ended))?;
    anyhow::ensure!(output.data(address), "nobody reads the bank's address");
    end.recv().context("the bank lost its threads")?.context("the bank cannot go on")
}

fn spawn(work: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
    std::thread::Builder::new().spawn(work).context("no thread can be started")?;
    Ok(())
}

fn accept(listener: &TcpListener, books: &Arc<Mutex<Books>>, ended: &Sender<io::Result<()>>) {
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) => {
                let _nobody_waits = ended.send(Err(error));
                return;
            }
        };
        // Each connection holds one reference, and so does this loop.
        let crowded = Arc::strong_count(books) > CONNECTIONS_MAX;
        let books = Arc::clone(books);
        let served = spawn(move || {
            // A customer who goes away in the middle of a sentence has had all the answer there is.
            let _gone = if crowded {
                answer(&stream, &Reply::Refused { why: "too many connections".into() })
            } else {
                converse(&stream, &books)
            };
        });
        // Without a thread the connection closes unanswered, and nothing was charged.
        drop(served);
    }
}

fn converse(stream: &TcpStream, books: &Mutex<Books>) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(stream);
    while let Some(line) = protocol::read_line(&mut reader)? {
        let done = match protocol::parse(&line) {
            Ok(request) => {
                let charging = matches!(request, Request::Charge { .. });
                let done = books.lock().unwrap_or_else(PoisonError::into_inner).handle(request);
                if charging {
                    block_on(SystemClock::start().sleep(CHARGE_TAKES));
                }
                done
            }
            Err(error) => Done::Answer(Reply::Refused { why: format!("not understood: {error}") }),
        };
        match done {
            Done::Answer(reply) => answer(stream, &reply)?,
            Done::HangUp => return Ok(()),
        }
    }
    Ok(())
}

fn answer(mut stream: &TcpStream, reply: &Reply) -> io::Result<()> {
    let mut line = serde_json::to_vec(reply).expect("a reply has string keys");
    line.push(b'\n');
    stream.write_all(&line)
}

/// What follows from a request.
#[derive(Debug, PartialEq, Eq)]
enum Done {
    Answer(Reply),
    /// The line breaks.
    HangUp,
}

#[derive(Debug)]
struct Books {
    log: PathBuf,
    file: File,
    /// Orders whose next charge will not be answered.
    flaky: BTreeSet<String>,
}

impl Books {
    fn open(log: &Path) -> anyhow::Result<Books> {
        let file = OpenOptions::new().create(true).append(true).open(log);
        let file = file.with_context(|| format!("the bank cannot open its log {}", log.display()))?;
        Ok(Books { log: log.to_owned(), file, flaky: BTreeSet::new() })
    }

    fn handle(&mut self, request: Request) -> Done {
        let reply = match request {
            Request::Charge { order, amount, memo } => match self.charge(order, amount, memo) {
                Ok(charge) if self.flaky.remove(&charge.order) => return Done::HangUp,
                Ok(charge) => Ok(Reply::Charged { charge }),
                Err(error) => Err(error),
            },
            Request::Find { order } => self.charges().map(|charges| Reply::Found {
                charge: charges.into_iter().find(|charge| charge.order == order),
            }),
            Request::Count { order } => self.charges().map(|charges| Reply::Count {
                count: charges.iter().filter(|charge| charge.order == order).count() as u64,
            }),
            Request::LoseNextAnswer { order } => {
                if self.flaky.len() < CHARGES_MAX {
                    self.flaky.insert(order);
                    Ok(Reply::AnswerWillBeLost)
                } else {
                    Err(io::Error::other("too many orders"))
                }
            }
        };
        Done::Answer(reply.unwrap_or_else(|error| Reply::Refused { why: error.to_string() }))
    }

    /// On disk before anybody hears of it.
    fn charge(&mut self, order: String, amount: u64, memo: String) -> io::Result<Charge> {
        let number = self.charges()?.len() + 1;
        if number > CHARGES_MAX {
            return Err(io::Error::other("the bank is closed: too many charges"));
        }
        let charge = Charge { id: format!("ch_{number}"), order, amount, memo };
        let mut line = serde_json::to_vec(&charge).expect("a charge has string keys");
        line.push(b'\n');
        self.file.write_all(&line)?;
        self.file.sync_all()?;
        Ok(charge)
    }

    /// Read anew each time: what counts is what was written.
    fn charges(&self) -> io::Result<Vec<Charge>> {
        let text = std::fs::read(&self.log)?;
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| protocol::parse(line).map_err(io::Error::other)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charge(order: &str) -> Request {
        Request::Charge { order: order.into(), amount: 4900, memo: "a memo\nin two lines".into() }
    }

    fn count(books: &mut Books, order: &str) -> u64 {
        match books.handle(Request::Count { order: order.into() }) {
            Done::Answer(Reply::Count { count }) => count,
            other => panic!("no count: {other:?}"),
        }
    }

    #[test]
    fn a_lost_answer_is_lost_after_the_charge_and_only_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut books = Books::open(&directory.path().join("log")).expect("books");
        books.handle(Request::LoseNextAnswer { order: "1".into() });
        assert_eq!(books.handle(charge("1")), Done::HangUp);
        assert_eq!(count(&mut books, "1"), 1);
        assert!(matches!(books.handle(charge("1")), Done::Answer(Reply::Charged { .. })));
        assert_eq!((count(&mut books, "1"), count(&mut books, "2")), (2, 0));
    }

    #[test]
    fn counts_come_from_the_log_and_not_from_memory() {
        let directory = tempfile::tempdir().expect("a directory");
        let log = directory.path().join("log");
        let mut books = Books::open(&log).expect("books");
        books.handle(charge("1"));
        let line = std::fs::read(&log).expect("a log");
        std::fs::write(&log, [line.clone(), line].concat()).expect("tampered with");
        assert_eq!(count(&mut books, "1"), 2);
        std::fs::write(&log, "nonsense\n").expect("tampered with");
        assert!(matches!(books.handle(charge("1")), Done::Answer(Reply::Refused { .. })));
    }
}
