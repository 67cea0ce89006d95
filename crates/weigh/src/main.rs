//! The parts of `cargo xtask weigh` that run under valgrind, or stand behind semel meanwhile.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it talks to whoever weighs")]

mod behind;

use semel_weigh::Result;
use semel_weigh::house::{House, KeySource};
use std::path::Path;
use std::process::ExitCode;
use tokio::runtime::Builder;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["gate", call, count, directory] => gate(call, count, Path::new(directory)),
        ["tool"] => behind::tool(),
        ["api"] => behind::api(),
        _ => Err("usage: semel-weigh gate fresh|replay|read COUNT DIRECTORY | tool | api".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("semel-weigh: {error}");
            ExitCode::FAILURE
        }
    }
}

/// So many calls of one kind, one after the other, each with an intent of its own, as a door derives it.
fn gate(call: &str, count: &str, directory: &Path) -> Result<()> {
    let count: u64 = count.parse()?;
    // One thread: with more, the waiting of some would be weighed.
    let runtime = Builder::new_current_thread().enable_time().build()?;
    let house = House::open(&directory.join("ledger.db"))?;
    let intent = |n| house.intent(KeySource::Key, "weigh", n);
    match call {
        "fresh" => {
            for n in 0..count {
                runtime.block_on(house.fresh(&intent(n)));
            }
        }
        "replay" => {
            runtime.block_on(house.fresh(&intent(0)));
            for _ in 0..count {
                runtime.block_on(house.replay(&intent(0)));
            }
        }
        "read" => {
            for n in 0..count {
                runtime.block_on(house.read(&intent(n)));
            }
        }
        other => return Err(format!("there is no call `{other}`").into()),
    }
    Ok(())
}
