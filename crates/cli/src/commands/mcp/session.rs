//! From the first message to the last: who may end the conversation, and what is finished before.

use crate::server_runtime;
use rustix::process::Signal;
use semel_doors::mcp::connection::ClientConnection;
use semel_doors::mcp::line_reader::LineReader;
use semel_doors::mcp::link::Link;
use semel_doors::mcp::link::child::ChildOutput;
use semel_doors::mcp::link::remote::ClientQueue;
use semel_doors::mcp::serve::stdio::{ClientInput, ServerOutput, Stdio};
use semel_doors::mcp::server::Server;
use semel_doors::services::Services;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// How long calls that were sent may take to settle after the client has gone. Clients kill after a few seconds; what
/// has not settled then is in doubt, which is the truth.
const SETTLE_TAKES_MAX: Duration = Duration::from_secs(60);
/// After a signal there is less time: whoever sent it will send a stronger one.
const SETTLE_AFTER_SIGNAL: Duration = Duration::from_secs(10);

/// How long a server may take to heed a signal before its input ends too.
const HEEDS_SIGNAL_WITHIN: Duration = Duration::from_secs(1);
/// How long what an ended server has said may take to be read.
const LAST_WORDS_TAKE_MAX: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct StdioSession {
    pub services: Arc<Services>,
    pub server: Arc<Server>,
    pub connection: Arc<ClientConnection>,
}

/// Where the server's messages come from.
#[derive(Debug)]
pub enum ServerMessages {
    Child(ChildOutput),
    Remote(ClientQueue),
}

impl StdioSession {
    /// The exit code: the server's own; a remote one has none.
    pub async fn run(self, hears: ServerMessages) -> anyhow::Result<u8> {
        let stdout = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
        let (services, server) = (Arc::clone(&self.services), Arc::clone(&self.server));
        let stdio = Stdio::new(services, server, self.connection.clone(), stdout, Handle::current())?;
        let (server_ends, mut server_ended) = oneshot::channel();
        let listener = ServerOutput { stdio: Arc::clone(&stdio), ended: server_ends };
        let (client_leaves, client_left) = oneshot::channel();
        let stdin = std::io::stdin().as_fd().try_clone_to_owned()?;
        let mut line_readers =
            vec![LineReader::new(stdin, ClientInput { stdio: Arc::clone(&stdio), ended: client_leaves })];
        match (hears, &self.server.link) {
            (ServerMessages::Child(output), _) => line_readers.push(output.line_reader(listener)),
            (ServerMessages::Remote(queue), Link::Remote(remote)) => remote.listen(queue, listener),
            (ServerMessages::Remote(_), Link::Child(_)) => {}
        }
        let runtime = Handle::current();
        let pipes = std::thread::Builder::new().name("pipes".into());
        pipes.spawn(move || LineReader::read_and_run_tasks(line_readers, &runtime))?;
        let signalled = server_runtime::signals(None)?;
        if let Link::Child(_) = &self.server.link {
            let server = Arc::clone(&self.server);
            server_runtime::pass_on_signals(move |signal| {
                if let Link::Child(child) = &server.link {
                    child.signal(signal);
                }
            })?;
        }
        let asked = tokio::select! {
            _ = &mut server_ended => None,
            _ = client_left => Some(None),
            signal = signalled => Some(Some(signal.unwrap_or(Signal::TERM))),
        };
        // Rule 12: what was sent is finished first.
        let patience = if let Some(Some(_)) = asked { SETTLE_AFTER_SIGNAL } else { SETTLE_TAKES_MAX };
        self.settle(patience).await;
        let code = match &self.server.link {
            Link::Child(child) => {
                if let Some(Some(signal)) = asked {
                    child.signal(signal);
                    // Some servers end by their input alone; the others should see the signal and nothing else.
                    let _ends_otherwise = tokio::time::timeout(HEEDS_SIGNAL_WITHIN, child.exit()).await;
                }
                if asked.is_some() {
                    child.close();
                }
                let status = server_runtime::end(child).await;
                if asked.is_some() {
                    // Its last words may still be in the pipe, unless somebody else keeps that open.
                    let _kept_open = tokio::time::timeout(LAST_WORDS_TAKE_MAX, server_ended).await;
                }
                status.map_or(1, exit_code)
            }
            Link::Remote(remote) => {
                let _unanswered = tokio::time::timeout(patience, remote.rest()).await;
                remote.close().await;
                0
            }
        };
        // A call may have been answered while the server was ending.
        self.settle(server_runtime::ENDS_BY_ITSELF).await;
        let drained = tokio::task::spawn_blocking(move || stdio.drain());
        let _a_client_that_does_not_read =
            tokio::time::timeout(server_runtime::ENDS_BY_ITSELF, drained).await;
        Ok(code)
    }

    async fn settle(&self, within: Duration) {
        // A call that has not settled by then stays in flight, and is seen to be in doubt once this process is gone.
        let _unsettled = tokio::time::timeout(within, self.services.in_flight.idle()).await;
    }
}

/// As a shell would report it.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    u8::try_from(code).unwrap_or(1)
}
