//! The API that fails as told, as a process: `semel-upstream --log FILE [--listen ADDRESS]`.
//!
//! It prints one line, `{"address": …, "elsewhere": …}`, and serves until it is killed. `POST /__plan` tells it what
//! goes wrong next, `POST /__release/NAME` lets what waits go on; `semel_testkit::upstream` says in which words.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (log, listen) = match words.as_slice() {
        ["--log", log] => (log, "127.0.0.1:0"),
        ["--log", log, "--listen", listen] => (log, *listen),
        _ => return complain("usage: semel-upstream --log FILE [--listen ADDRESS]"),
    };
    let Ok(listen) = listen.parse::<SocketAddr>() else { return complain("semel-upstream: no such address") };
    match semel_testkit::upstream::serve(listen, Path::new(log), std::io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain(&format!("semel-upstream: {error}")),
    }
}

fn complain(text: &str) -> ExitCode {
    let _nobody_listens = writeln!(std::io::stderr(), "{text}");
    ExitCode::from(2)
}
