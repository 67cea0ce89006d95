//! An API at the other end of the line that does what it is asked, writes down every change it makes, and then fails in
//! the way that it was told to.
//!
//! It speaks HTTP/1.1 over plain sockets, so that a fault can stand at any byte. Payments, models and plain resources
//! are offered at once; what it was asked and what it did stand in its log, one line each, written before the fault.
//! The `semel-upstream` binary is this module with arguments.

mod connection;
mod control;
mod keys;
mod log;
mod models;
mod payments;
mod performed;
mod plain;
mod plan;
mod reply;
mod respond;
mod service;
mod state;
mod wire;

use log::EventLog;
use serde_json::json;
use state::UpstreamState;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;

/// Listens, says where on `ready` as one line of JSON, and serves until the process ends.
///
/// Redirects point to a second listener, `elsewhere`, whose requests nobody should ever see in the log.
pub fn serve(listen: SocketAddr, log: &Path, mut ready: impl Write) -> std::io::Result<()> {
    let listener = TcpListener::bind(listen)?;
    let elsewhere = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let state = Arc::new(UpstreamState::new(EventLog::open(log)?, elsewhere.local_addr()?));
    let addresses = json!({"address": listener.local_addr()?, "elsewhere": elsewhere.local_addr()?});
    writeln!(ready, "{addresses}")?;
    ready.flush()?;
    let second = Arc::clone(&state);
    std::thread::spawn(move || accept(&elsewhere, &second, Entrypoint::Elsewhere));
    accept(&listener, &state, Entrypoint::Here);
    Ok(())
}

/// Which of the two listeners a connection came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entrypoint {
    Here,
    Elsewhere,
}

fn accept(listener: &TcpListener, state: &Arc<UpstreamState>, place: Entrypoint) {
    for stream in listener.incoming().flatten() {
        let state = Arc::clone(state);
        // A peer that goes away in the middle is the normal case here.
        std::thread::spawn(move || drop(connection::serve(&stream, &state, place)));
    }
}
