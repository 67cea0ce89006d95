//! The project's own tasks. `cargo xtask test` is what has to pass; `cargo xtask bench` prints the numbers.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a task talks to whoever started it")]

use std::process::ExitCode;
use xtask::project::{self, Result};
use xtask::{dist, docs, peers, peers_packs, sdk, test, weigh};

const USAGE: &str = "\
usage: cargo xtask test [--long] [ARGUMENTS OF cargo test…]
       cargo xtask peers [--agents]
       cargo xtask bench [--quick] [--large] [--gate] [--json FILE] [NAME…]
       cargo xtask bench peers|sdk-peers
       cargo xtask weigh [--write]
       cargo xtask dist python|npm
       cargo xtask sdk
       cargo xtask packs [--write]
       cargo xtask docs

test    sets up what the tests need, builds once, runs them all
          --long   model checks to the full depth, 20000 kills, 50 power cuts, real agents, a cut at
                   every byte
peers   installs the real peers of the tests into target/peers; `test` does it too
          --agents also those of the long tests
bench   prints a table of ratios for each bench, with its goals and aims
          --quick  once instead of three times, and no ledger of ten million effects
          --large  an audit of ten gigabytes instead of one
          --gate   exit 1 if a goal is missed
          --json   write the lines there too
          NAME…    only these: alone busy slow-disk replay processes command mcp http llm sdk
                   sqlite postgres redis etcd postgres-peers size size-postgres size-redis size-etcd
                   memory audit; `engines` stands for all that tell how fast the engines are
bench peers   compares with DBOS, Restate and agent-ledger, installed into target/bench/peers
bench sdk-peers   compares with libraries that protect a function of Python, and prints a table
weigh   counts lines, crates, bytes, instructions and allocations, and exits 1 if one is more than
        3 % above its line in weight.toml
          --write  put what was measured there
dist    builds the packages of a release into target/dist
sdk     the tests of the SDKs alone; `test` runs them too
packs   asks the MCP servers that the packs are for, from npm, whether the packs' fixture still holds
          --write  make it hold
docs    writes the generated pages: docs/catalogue.md, docs/policy.md and docs/cli.md";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["help" | "--help" | "-h"] | [_, "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        ["test", rest @ ..] => test::run(rest),
        ["peers", rest @ ..] => peers::run(rest),
        ["bench", rest @ ..] => bench(rest),
        ["weigh", rest @ ..] => weigh::run(rest),
        ["dist", rest @ ..] => dist::run(rest),
        ["sdk"] => sdk::test(&[]).map(|()| ExitCode::SUCCESS),
        ["packs", rest @ ..] => peers_packs::run(rest),
        ["docs"] => docs::run(),
        _ => {
            eprintln!("{USAGE}");
            Ok(ExitCode::from(2))
        }
    };
    done.unwrap_or_else(|error| {
        eprintln!("xtask: {error}");
        ExitCode::from(2)
    })
}

/// A crate of its own, so that the other tasks need not wait until semel is built. What a debug build measures is the
/// debug build.
fn bench(words: &[&str]) -> Result<ExitCode> {
    let mut cargo = project::cargo();
    cargo.args(["run", "--quiet", "--release", "--package", "semel-bench", "--"]).args(words);
    cargo.current_dir(std::env::current_dir()?);
    let code = cargo.status()?.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(2)))
}
