//! Puts the parts together for a program that serves many calls at once: runtime, ledger, gate.

use crate::context::Context;
use crate::output::{Output, counted};
use crate::unread_effects;
use anyhow::Context as _;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use semel::ledger_address::Purpose;
use semel_core::policy::Policy;
use semel_doors::mcp::link::child::ChildLink;
use semel_doors::runtime::RuntimeClock;
use semel_doors::services::Services;
use semel_gate::Gate;
use semel_gate::clock::Clock;
use semel_ledger::entropy::{Entropy, OsEntropy};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, oneshot};

/// A runtime in the thread that blocks on it. Many connections are served by several threads with one each.
pub fn runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// A runtime beside a thread that has its own things to do.
pub fn runtime_beside() -> std::io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(1).enable_all().build()
}

/// How many files this process may have open from now on: all that the system lets it have. What many shells start with
/// is meant for programs that open a few.
pub fn open_files() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    let current = if setrlimit(Resource::Nofile, raised).is_ok() { limit.maximum } else { limit.current };
    // Without a limit there are as many as anybody wants.
    current.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX))
}

/// The gate, or why there is none: reads pass without one. A ledger is opened at the start alone, so whoever mends it
/// has to know that the program does not notice.
pub fn gate(context: &Context, clock: &RuntimeClock, policy: &Policy) -> Result<Gate, String> {
    open_gate(context, clock, policy).map_err(|why| format!("{why}; once that is mended, start semel again"))
}

fn open_gate(context: &Context, clock: &RuntimeClock, policy: &Policy) -> Result<Gate, String> {
    let address = context.ledger_address().map_err(|error| format!("{error:#}"))?;
    let ledger = address.open(&context.environment.settings, clock, Purpose::Server);
    let ledger = ledger.map_err(|error| error.to_string())?;
    if let Some(unread) = unread_effects::count(&ledger, policy).ok().and_then(unread_effects::sentence) {
        context.output.warn(format_args!("semel: {unread}; see semel ledger"));
    }
    Ok(Gate::new(ledger, clock.clone(), policy.mode))
}

/// How often a program that runs for long looks whether retention is due; the ledger itself says when it is.
const PRUNE_LOOKS_EVERY: Duration = Duration::from_secs(3600);

/// Retention runs by itself, also where no command ever ends.
pub async fn keep_retention(services: Arc<Services>) {
    let Ok(gate) = &services.gate else { return };
    let retention = services.policy.retention;
    loop {
        // A failed pruning is tried again at the next look.
        let _tried_again =
            gate.ledger.prune_if_due(retention, services.clock.now(), services.clock.uptime()).await;
        services.clock.sleep(PRUNE_LOOKS_EVERY).await;
    }
}

/// How often what was counted goes to the ledger.
const COUNTS_EVERY: Duration = Duration::from_secs(5);

/// Counts of all processes add up in the ledger. Calls that are refused are counted too: so a ledger that takes no
/// write is heard of here, and told once.
pub async fn keep_counts(services: Arc<Services>, output: Output) {
    let Ok(gate) = &services.gate else { return };
    let mut told = None;
    loop {
        services.clock.sleep(COUNTS_EVERY).await;
        // Counts that could not be written now are written the next time.
        let trouble = gate.write_counts().await.err().map(|error| error.to_string());
        if let Some(why) = trouble.as_ref().filter(|_| trouble != told) {
            output.warn(format_args!("semel: effects are refused: {why}"));
        }
        told = trouble;
    }
}

/// How often an answer is tried again that the ledger could not take.
const OWED_EVERY: Duration = Duration::from_secs(1);

/// Answers that came while the ledger was in trouble are settled once it is well, also those of earlier processes.
pub async fn keep_settling(services: Arc<Services>) {
    let Ok(gate) = &services.gate else { return };
    loop {
        gate.settle_pending().await;
        services.clock.sleep(OWED_EVERY).await;
    }
}

/// How long a server writes after its grace. Its service manager kills it soon, and a ledger that is gone says so after
/// a minute. The next reader finds what is not written.
const LAST_WRITES_TIME_MAX: Duration = Duration::from_secs(10);

/// The last writes of a server.
pub async fn write_rest(services: &Services, output: Output) {
    let writes = async {
        lapse_rest(services, output).await;
        write_counts(services).await;
    };
    if tokio::time::timeout(LAST_WRITES_TIME_MAX, writes).await.is_err() {
        output
            .warn("semel: the ledger does not answer; calls that are still in flight, if any, are in doubt");
    }
}

/// The last of them, before a program ends.
pub async fn write_counts(services: &Services) {
    if let Ok(gate) = &services.gate {
        let _lost = gate.write_counts().await;
    }
}

/// The last thing of all: the ledger is left as one file.
pub fn fold_back(services: &Services) {
    if let Ok(gate) = &services.gate {
        gate.ledger.store().fold_back();
    }
}

/// A call that did not settle in time is in doubt, and is written down as such before the process ends.
async fn lapse_rest(services: &Services, output: Output) {
    let Ok(gate) = &services.gate else { return };
    gate.settle_pending().await;
    match gate.ledger.lapse_own(services.clock.now()).await {
        Ok(0) => {}
        Ok(rest) => {
            let calls = counted(rest, "call", "calls");
            output.warn(format_args!(
                "semel: in doubt, because not settled in time: {calls}; see semel ledger"
            ));
        }
        // The next reader finds its holder dead, and the doubt with it.
        Err(error) => {
            output.warn(format_args!("semel: what is still in flight could not be marked: {error}"))
        }
    }
}

/// A name for this process among all that ever spoke to a server.
pub fn instance() -> String {
    format!("{:012x}", OsEntropy.bits() >> 80)
}

/// The first signal that asks semel to end. A hangup asks for something else where `reload` is given.
pub fn signals(reload: Option<Arc<Notify>>) -> anyhow::Result<oneshot::Receiver<Signal>> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM]).context("signals")?;
    let (tell, told) = oneshot::channel();
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        let mut ends = signals.forever().filter(|signal| match &reload {
            Some(reload) if *signal == SIGHUP => {
                reload.notify_one();
                false
            }
            _ => true,
        });
        if let Some(signal) = ends.next() {
            let _over = tell.send(match signal {
                SIGHUP => Signal::HUP,
                SIGINT => Signal::INT,
                _ => Signal::TERM,
            });
        }
    })?;
    Ok(told)
}

/// Signals that say nothing of ending, or leave it to the server: it gets each of them, and semel ends when it does.
pub fn pass_on_signals(to: impl Fn(Signal) + Send + 'static) -> anyhow::Result<()> {
    use signal_hook::consts::{SIGQUIT, SIGUSR1, SIGUSR2};
    let mut signals = signal_hook::iterator::Signals::new([SIGQUIT, SIGUSR1, SIGUSR2]).context("signals")?;
    std::thread::Builder::new().name("signals-passed".into()).spawn(move || {
        for signal in signals.forever() {
            to(match signal {
                SIGQUIT => Signal::QUIT,
                SIGUSR1 => Signal::USR1,
                _ => Signal::USR2,
            });
        }
    })?;
    Ok(())
}

/// How long a server may take to end once its input has ended, and once it was asked to.
pub const ENDS_BY_ITSELF: Duration = Duration::from_secs(5);
const ENDS_WHEN_ASKED: Duration = Duration::from_secs(3);

/// Ends a server as a client does that goes away: its input first, then a word, then force.
pub async fn end(child: &ChildLink) -> Option<ExitStatus> {
    for (patience, then) in [(ENDS_BY_ITSELF, Signal::TERM), (ENDS_WHEN_ASKED, Signal::KILL)] {
        if let Ok(status) = tokio::time::timeout(patience, child.exit()).await {
            return status;
        }
        child.signal(then);
    }
    tokio::time::timeout(ENDS_WHEN_ASKED, child.exit()).await.ok().flatten()
}
