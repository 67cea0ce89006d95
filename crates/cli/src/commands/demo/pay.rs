//! The payment tool of the demo. The book is the world: a file with one line for each charge, which the tool writes and
//! semel knows nothing of.

use crate::args::{DemoPay, PayRequest};
use crate::output::Output;
use anyhow::Context as _;
use rustix::process::{Signal, getpid, kill_process};
use semel_gate::clock::{Clock, SystemClock, block_on};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// A probe's no.
const EXIT_NO: u8 = 1;
/// Nothing that a probe could be believed for.
const EXIT_UNCLEAR: u8 = 2;

/// Long enough that callers who come at once really meet.
const CHARGE_TAKES: Duration = Duration::from_millis(200);

/// One line of the book.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    pub id: String,
    pub order: String,
    /// In cents.
    pub amount: u64,
    pub memo: String,
}

pub fn pay(output: Output, args: &DemoPay) -> ExitCode {
    let done = match &args.request {
        PayRequest::Charge { order, amount, memo } => charge(&args.book, order, *amount, memo).map(Some),
        PayRequest::Find { order } => {
            charges(&args.book).map(|all| all.into_iter().find(|charge| charge.order == *order))
        }
    };
    let (said, code) = match done {
        Ok(Some(charge)) if output.line(&charge) => return ExitCode::SUCCESS,
        Ok(Some(_)) => ("nobody reads the answer".to_owned(), EXIT_UNCLEAR),
        Ok(None) => ("there is no such charge".to_owned(), EXIT_NO),
        Err(error) => (format!("{error:#}"), EXIT_UNCLEAR),
    };
    output.warn(format_args!("pay: {said}"));
    ExitCode::from(code)
}

/// Takes the money: asked twice, it is taken twice. It is on disk before anybody hears of it.
fn charge(book: &Path, order: &str, amount: u64, memo: &str) -> anyhow::Result<Charge> {
    let mut file = OpenOptions::new().append(true).open(book).context("the book cannot be opened")?;
    file.lock().context("the book cannot be locked")?;
    let id = format!("ch_{}", charges(book)?.len() + 1);
    let charge = Charge { id, order: order.to_owned(), amount, memo: memo.to_owned() };
    let mut line = serde_json::to_vec(&charge).expect("a charge has string keys");
    line.push(b'\n');
    file.write_all(&line).and_then(|()| file.sync_all()).context("the book cannot be written")?;
    drop(file);
    block_on(SystemClock::start().sleep(CHARGE_TAKES));
    if std::fs::remove_file(kill_mark(book, order)).is_ok() {
        // The money is gone, and so is the one who would have said so.
        kill_process(getpid(), Signal::KILL).context("it cannot be killed")?;
    }
    Ok(charge)
}

/// Has the tool killed in its next charge of this order, after the money is taken and before it says so. A mark beside
/// the book, so that the agent's retry is the same command to the byte.
pub fn kill_next_charge(book: &Path, order: &str) -> anyhow::Result<()> {
    File::create(kill_mark(book, order)).context("the mark cannot be made")?;
    Ok(())
}

fn kill_mark(book: &Path, order: &str) -> PathBuf {
    book.with_extension(format!("kill-{order}"))
}

/// Read anew each time: what counts is what was written.
pub fn charges(book: &Path) -> anyhow::Result<Vec<Charge>> {
    let text = std::fs::read_to_string(book).context("the book cannot be read")?;
    let charges = text.lines().map(serde_json::from_str).collect::<Result<_, _>>();
    charges.context("the book makes no sense")
}
