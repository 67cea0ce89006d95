//! Tells people of every new doubt and of every duplicate: by a command, at an address, or both.
//!
//! The news comes from the journal, and how far each listener was told is kept in the ledger. So effects of every process
//! count, one process at a time tells, and nothing is lost when it ends: the next one goes on. A message comes twice,
//! under the same id, if its teller dies between telling and writing that down.

mod command;
mod message;
mod teller;
mod webhook;

pub use command::NotifyCommand;
pub use webhook::{BadSecret, WebhookSender};

use message::Message;
use semel_core::ids::EffectId;
use semel_gate::Gate;
use semel_gate::clock::Clock;
use semel_ledger::Error;
use semel_ledger::Ledger;
use semel_ledger::outbox::OutboxProgress;
use semel_ledger::store::JOURNAL_PAGE_MAX;
use std::time::Duration;
use teller::{End, Teller};
use tokio::sync::watch;

/// How often the journal is looked at.
const LOOKS_EVERY: Duration = Duration::from_secs(1);

/// How long a process that is about to end tells. What it has not told then is told by the next one.
pub const LAST_WORDS_MAX: Duration = Duration::from_secs(2);

/// How soon it is seen that another process has told.
const OTHERS_LOOKED_AT_EVERY: Duration = Duration::from_millis(50);

/// Somebody who is told, in one way.
#[derive(Debug)]
pub enum Listener {
    Command(NotifyCommand),
    Url(WebhookSender),
}

/// A message that the listener has not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Untaken {
    /// Nobody is there to take anything.
    Away(String),
    /// The listener is there and takes others, most likely.
    Refused(String),
}

impl std::fmt::Display for Untaken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Untaken::Away(why) | Untaken::Refused(why)) = self;
        f.write_str(why)
    }
}

impl Listener {
    /// For people: without what may be secret.
    pub fn name(&self) -> String {
        match self {
            Listener::Command(command) => format!("the command {}", command.argv[0]),
            Listener::Url(webhook) => format!("the webhook {}", webhook.client.target()),
        }
    }

    /// Two listeners are told apart: each hears everything.
    fn outbox(&self) -> String {
        match self {
            Listener::Command(command) => format!("notify command {}", command.argv.join("\0")),
            Listener::Url(webhook) => format!("notify url {}", webhook.client.target().uri()),
        }
    }

    /// Sends one message, once. `id` is the same however often it is sent. `patience`: instead of its own; a command that
    /// takes longer is left alone.
    pub async fn send(
        &self,
        id: &str,
        body: &str,
        clock: &dyn Clock,
        patience: Option<Duration>,
    ) -> Result<(), Untaken> {
        match self {
            Listener::Command(command) => command.run(body, clock, patience).await,
            Listener::Url(webhook) => webhook.post(id, body, clock.now(), patience).await,
        }
    }

    /// Tells what comes, until it shall stop. Another process that does the same is left to it. What goes wrong is said by
    /// `warn`, once until it goes well again.
    pub async fn keep(
        &self,
        gate: &Gate,
        warn: impl Fn(String) + Send + Sync,
        mut stop: watch::Receiver<bool>,
    ) {
        let mut teller = Teller::new(self, gate, warn, None);
        let mut outbox = None;
        loop {
            // What happened until then is told too.
            let last = *stop.borrow() || stop.has_changed().is_err();
            // A page that could not be read or written now is tried again.
            if let Err(error) = teller.look(&mut outbox).await {
                teller.trouble(&format!("the ledger: {error}"));
            }
            if last {
                return;
            }
            tokio::select! {
                () = gate.clock.sleep(LOOKS_EVERY) => {}
                _ = stop.changed() => {}
            }
        }
    }

    /// For a process that is about to end and has just seen a doubt of this effect: tells what is new, or waits until
    /// somebody else has, both for a short time.
    pub async fn tell_now(
        &self,
        gate: &Gate,
        effect: Option<EffectId>,
        warn: impl Fn(String) + Send + Sync,
    ) -> Result<(), Error> {
        let until = gate.clock.elapsed() + LAST_WORDS_MAX;
        let mut teller = Teller::new(self, gate, warn, Some(until));
        loop {
            let done = match gate.ledger.take_outbox_before(&self.outbox(), effect).await? {
                Some(mut outbox) => match teller.walk(&mut outbox).await? {
                    End::Reached => !gate.ledger.store().holds_lines_back().await?,
                    End::Stopped => return Ok(()),
                    End::TakenOver => false,
                },
                None => !self.owes(&gate.ledger).await?,
            };
            if done || gate.clock.elapsed() >= until {
                return Ok(());
            }
            gate.clock.sleep(OTHERS_LOOKED_AT_EVERY).await;
        }
    }

    /// How far it was told. `None`: nobody has begun.
    pub async fn progress(&self, ledger: &Ledger) -> Result<Option<OutboxProgress>, Error> {
        ledger.outbox(&self.outbox()).await
    }

    /// Whether something is to be told.
    pub async fn owes(&self, ledger: &Ledger) -> Result<bool, Error> {
        let Some(mut progress) = self.progress(ledger).await? else { return Ok(false) };
        loop {
            let page = ledger.journal(Some(progress.sent_to), JOURNAL_PAGE_MAX).await?;
            for (cursor, line) in &page.items {
                if Message::of(ledger, &progress, *cursor, line).await?.is_some() {
                    return Ok(true);
                }
                message::pass(&mut progress, *cursor, line);
            }
            if page.next.is_none() {
                return Ok(false);
            }
        }
    }
}
