//! From the first message to the last: who may end the conversation, and what is finished before.

use anyhow::Context as _;
use rustix::process::Signal;
use semel_doors::mcp::connection::Connection;
use semel_doors::mcp::door::Door;
use semel_doors::mcp::link::Link;
use semel_doors::mcp::link::child::{ChildLink, ChildOutput};
use semel_doors::mcp::serve::stdio::{FromServer, Stdio};
use semel_doors::mcp::server::Server;
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
/// How long a server may take to end once its input has ended, and once it was asked to.
const ENDS_BY_ITSELF: Duration = Duration::from_secs(5);
const ENDS_WHEN_ASKED: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub struct Session {
    pub door: Arc<Door>,
    pub server: Arc<Server>,
    pub connection: Arc<Connection>,
}

impl Session {
    /// The exit code: the server's own.
    pub async fn run(self, output: ChildOutput) -> anyhow::Result<u8> {
        let stdout = std::io::stdout();
        let (door, server) = (Arc::clone(&self.door), Arc::clone(&self.server));
        let stdio = Stdio::new(door, server, self.connection.clone(), stdout, Handle::current())?;
        let (server_ends, server_ended) = oneshot::channel();
        output.listen(FromServer { stdio: Arc::clone(&stdio), ended: server_ends })?;
        let (client_leaves, client_left) = oneshot::channel::<()>();
        let reading = Arc::clone(&stdio);
        std::thread::Builder::new().name("from-client".into()).spawn(move || {
            reading.read(std::io::stdin());
            drop(client_leaves);
        })?;
        let signalled = signals()?;
        let Link::Child(child) = &self.server.link;
        tokio::select! {
            _ = server_ended => self.settle(SETTLE_TAKES_MAX).await,
            _ = client_left => {
                self.settle(SETTLE_TAKES_MAX).await;
                child.close();
            }
            signal = signalled => {
                // Rule 12: what was sent is finished first.
                self.settle(SETTLE_AFTER_SIGNAL).await;
                child.signal(signal.unwrap_or(Signal::TERM));
                child.close();
            }
        }
        let status = self.end(child).await;
        // Its last words may have come while it was ending.
        self.settle(ENDS_BY_ITSELF).await;
        let drained = tokio::task::spawn_blocking(move || stdio.drain());
        let _a_client_that_does_not_read = tokio::time::timeout(ENDS_BY_ITSELF, drained).await;
        Ok(status.map_or(1, exit_code))
    }

    async fn settle(&self, within: Duration) {
        // What has not settled by then stays in flight, and is seen to be in doubt once this process is gone.
        let _unsettled = tokio::time::timeout(within, self.door.busy.rest()).await;
    }

    async fn end(&self, child: &ChildLink) -> Option<ExitStatus> {
        for (patience, then) in [(ENDS_BY_ITSELF, Signal::TERM), (ENDS_WHEN_ASKED, Signal::KILL)] {
            if let Ok(status) = tokio::time::timeout(patience, child.exit()).await {
                return status;
            }
            child.signal(then);
        }
        tokio::time::timeout(ENDS_WHEN_ASKED, child.exit()).await.ok().flatten()
    }
}

/// The first signal that asks semel to end.
fn signals() -> anyhow::Result<oneshot::Receiver<Signal>> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM]).context("signals")?;
    let (tell, told) = oneshot::channel();
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        if let Some(signal) = signals.forever().next() {
            let _over = tell.send(match signal {
                SIGHUP => Signal::HUP,
                SIGINT => Signal::INT,
                _ => Signal::TERM,
            });
        }
    })?;
    Ok(told)
}

/// As a shell would report it.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    u8::try_from(code).unwrap_or(1)
}
