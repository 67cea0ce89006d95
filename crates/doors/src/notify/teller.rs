//! Walks along the journal and tells one listener, one message at a time. The journal is the queue.

use super::message::{self, Message};
use super::{Listener, Untaken};
use semel_gate::Gate;
use semel_ledger::Error;
use semel_ledger::outbox::{JournalOutbox, OutboxFailure};
use semel_ledger::store::JOURNAL_PAGE_MAX;
use std::time::Duration;

/// A listener that is away is asked again, at first soon, then rarely.
const TRY_AGAIN_FIRST: Duration = Duration::from_secs(1);
const TRY_AGAIN_MAX: Duration = Duration::from_secs(300);

/// A message that the listener itself cannot take is not the listener's being away; others must not wait for it.
const REFUSALS_MAX: u32 = 5;

pub struct Teller<'a, W> {
    listener: &'a Listener,
    gate: &'a Gate,
    warn: W,
    /// When a process that is about to end tells no more.
    until: Option<Duration>,
    /// Somebody has heard that it does not go well, and not yet that it does again.
    away: bool,
}

/// Where a walk has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Reached,
    /// The listener is away, or there is no time left.
    Stopped,
    /// Another process tells.
    TakenOver,
}

enum Delivery {
    Taken,
    GivenUp(String),
    Later,
}

impl<'a, W: Fn(String) + Send + Sync> Teller<'a, W> {
    pub fn new(listener: &'a Listener, gate: &'a Gate, warn: W, until: Option<Duration>) -> Self {
        Teller { listener, gate, warn, until, away: false }
    }

    /// Tells what is new, if nobody else does.
    pub async fn look(&mut self, outbox: &mut Option<JournalOutbox>) -> Result<(), Error> {
        let ledger = &self.gate.ledger;
        if outbox.is_none() {
            *outbox = ledger.take_outbox(&self.listener.outbox()).await?;
        }
        let Some(mut held) = outbox.take() else { return Ok(()) };
        // A holder that died tells nobody; somebody has to look.
        ledger.notice_lapses(self.gate.clock.now()).await?;
        if self.walk(&mut held).await? != End::TakenOver {
            *outbox = Some(held);
        }
        Ok(())
    }

    /// From the last line that was told to the journal's end.
    pub async fn walk(&mut self, outbox: &mut JournalOutbox) -> Result<End, Error> {
        let ledger = &self.gate.ledger;
        loop {
            let page = ledger.journal(Some(outbox.progress.sent_to), JOURNAL_PAGE_MAX).await?;
            for (cursor, line) in &page.items {
                let message = Message::of(ledger, &outbox.progress, *cursor, line).await?;
                if let Some(message) = &message {
                    let failed = match self.deliver(message).await {
                        Delivery::Taken => None,
                        Delivery::GivenUp(why) => {
                            let (about, at) = (message.about, self.gate.clock.now());
                            Some(OutboxFailure { about, at, why })
                        }
                        Delivery::Later => {
                            ledger.mark_sent(outbox).await?;
                            return Ok(End::Stopped);
                        }
                    };
                    message.tell(&mut outbox.progress);
                    outbox.progress.failed = failed;
                }
                message::pass(&mut outbox.progress, *cursor, line);
                // Most lines are no news; where they end is written once.
                if message.is_some() && !ledger.mark_sent(outbox).await? {
                    return Ok(End::TakenOver);
                }
            }
            if !page.items.is_empty() && !ledger.mark_sent(outbox).await? {
                return Ok(End::TakenOver);
            }
            // A journal that grows faster than one page a look must still be caught up with.
            if page.next.is_none() {
                return Ok(End::Reached);
            }
        }
    }

    /// Sends until it was taken.
    async fn deliver(&mut self, message: &Message) -> Delivery {
        let clock = &*self.gate.clock;
        let (mut pause, mut refusals) = (TRY_AGAIN_FIRST, 0);
        loop {
            let patience = self.until.map(|until| until.saturating_sub(clock.elapsed()));
            if patience.is_some_and(|patience| patience.is_zero()) {
                return Delivery::Later;
            }
            match self.listener.send(&message.id, &message.body, clock, patience).await {
                Ok(()) => {
                    self.taken();
                    return Delivery::Taken;
                }
                Err(Untaken::Refused(why)) => {
                    refusals += 1;
                    // A command has run, and is not run twice. The next process would begin to count anew.
                    let is_only_try = self.until.is_some() || matches!(self.listener, Listener::Command(_));
                    if refusals >= REFUSALS_MAX || is_only_try {
                        let (name, about) = (self.listener.name(), message.about);
                        (self.warn)(format!(
                            "semel: {name} {why}; {about} is not told: semel ledger show {about}"
                        ));
                        return Delivery::GivenUp(why);
                    }
                }
                Err(Untaken::Away(why)) => self.trouble(&why),
            }
            if self.until.is_some() {
                return Delivery::Later;
            }
            clock.sleep(pause).await;
            pause = (pause * 2).min(TRY_AGAIN_MAX);
        }
    }

    pub fn trouble(&mut self, why: &str) {
        if !std::mem::replace(&mut self.away, true) {
            let then = match self.until {
                None => "It is tried until it can",
                Some(_) => "The next semel that sees a doubt tries again",
            };
            (self.warn)(format!("semel: {} cannot be told: {why}. {then}", self.listener.name()));
        }
    }

    fn taken(&mut self) {
        if std::mem::replace(&mut self.away, false) {
            (self.warn)(format!("semel: {} is told again", self.listener.name()));
        }
    }
}
