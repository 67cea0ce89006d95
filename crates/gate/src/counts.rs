//! Counts of calls, sends, answers and savings, per tenant and door. Counting is an atomic addition.

use crate::events::{AnswerEvent, GateEvent, Observer, SettlementEvent};
use semel_core::answer::OutcomeWord;
use semel_core::effect::{Effect, State};
use semel_core::intent::Intent;
use semel_core::retry_origin::RetryOrigin;
use semel_core::word_table;
use semel_ledger::counts::{CountKey, Day, Tally};
use semel_ledger::doubt_observer::DoubtObserver;
use semel_ledger::histogram::Histogram;
use semel_ledger::{Error, Ledger};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// A way in, as the names of actions begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DoorKind {
    Cli,
    Mcp,
    Http,
    Llm,
    Fn,
}

word_table!(DoorKind { Cli = "cli", Mcp = "mcp", Http = "http", Llm = "llm", Fn = "fn" });

impl DoorKind {
    /// `mcp:github/create_issue` came through the MCP door. A command may be called anything.
    pub fn of(action: &str) -> DoorKind {
        action.split_once(':').and_then(|(door, _)| DoorKind::parse(door)).unwrap_or(DoorKind::Cli)
    }
}

macro_rules! counters {
    ($($(#[$about:meta])* $name:ident = $word:literal,)*) => {
        /// The counters. The words are those of the ledger and the API.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Counter { $($(#[$about])* $name,)* }

        impl Counter {
            pub const ALL: &[Counter] = &[$(Counter::$name,)*];

            pub fn word(self) -> &'static str {
                match self { $(Counter::$name => $word,)* }
            }
        }
    };
}

counters! {
    /// Calls that came.
    Asked = "asked",
    /// Attempts that went to the upstream, what was not recorded included.
    Sent = "sent",
    /// Of these, what passed through unrecorded: reads, and everything in observe mode.
    PassedThrough = "passed_through",
    /// Effects that happened, as far as their attempts say.
    Applied = "applied",
    NotApplied = "not_applied",
    InDoubt = "in_doubt",
    /// Calls that made an attempt.
    Ran = "ran",
    /// Calls that were answered without one.
    Replayed = "replayed",
    Joined = "joined",
    Held = "held",
    Refused = "refused",
    /// Repeats, by who repeated.
    Transport = "repeated_by_transport",
    Sdk = "repeated_by_sdk",
    Agent = "repeated_by_agent",
    Process = "repeated_by_process",
    /// Two attempts of one effect succeeded.
    Duplicates = "duplicates_detected",
    InputTokens = "input_tokens",
    OutputTokens = "output_tokens",
    SavedInputTokens = "saved_input_tokens",
    SavedOutputTokens = "saved_output_tokens",
    /// In billionths of whatever the price table counts in.
    Cost = "cost_nanos",
    SavedCost = "saved_cost_nanos",
}

const COUNTERS: usize = Counter::ALL.len();
const DOORS: usize = DoorKind::ALL.len();

/// Tenants are few; of more than this the rest is counted together.
const TENANTS_MAX: usize = 1_000;
/// As no tenant is called.
const OTHERS: &str = "(others)";

/// The counts of one tenant.
#[derive(Debug)]
struct TenantCounts {
    now: [[AtomicU64; COUNTERS]; DOORS],
    /// The part that the ledger has, or is about to have.
    written: [[AtomicU64; COUNTERS]; DOORS],
}

impl Default for TenantCounts {
    fn default() -> Self {
        let zeros = || std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0)));
        TenantCounts { now: zeros(), written: zeros() }
    }
}

#[derive(Debug, Default)]
pub struct Counts {
    tenants: RwLock<HashMap<String, Arc<TenantCounts>>>,
    pub claims: Histogram,
    pub settlements: Histogram,
}

/// Tokens that a model call used, or did not have to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// In billionths of whatever the price table counts in; 0 without a price.
    pub cost_nanos: u64,
}

impl Counts {
    pub fn add(&self, tenant: &str, door: DoorKind, counter: Counter, more: u64) {
        self.add_all(tenant, door, [(counter, more)]);
    }

    /// The tenant is looked up once: that is dearer than what is counted.
    fn add_all(&self, tenant: &str, door: DoorKind, more: impl IntoIterator<Item = (Counter, u64)>) {
        let add = |counted: &TenantCounts| {
            for (counter, more) in more {
                counted.now[door as usize][counter as usize].fetch_add(more, Ordering::Relaxed);
            }
        };
        let known = self.tenants.read().unwrap_or_else(PoisonError::into_inner);
        match known.get(tenant) {
            Some(counted) => add(counted),
            None => {
                drop(known);
                let mut tenants = self.tenants.write().unwrap_or_else(PoisonError::into_inner);
                let tenant = if tenants.len() < TENANTS_MAX { tenant } else { OTHERS };
                add(tenants.entry(tenant.to_owned()).or_default());
            }
        }
    }

    /// A call that a door passed on without asking the gate.
    pub fn passed_through(&self, tenant: &str, door: DoorKind) {
        let counters = [Counter::Asked, Counter::Sent, Counter::PassedThrough];
        self.add_all(tenant, door, counters.map(|counter| (counter, 1)));
    }

    /// Tokens that went over the wire.
    pub fn used(&self, tenant: &str, usage: Usage) {
        self.tokens(tenant, usage, [Counter::InputTokens, Counter::OutputTokens, Counter::Cost]);
    }

    /// Tokens that an answer from the record, or a joined one, did not need again.
    pub fn saved(&self, tenant: &str, usage: Usage) {
        self.tokens(
            tenant,
            usage,
            [Counter::SavedInputTokens, Counter::SavedOutputTokens, Counter::SavedCost],
        );
    }

    fn tokens(&self, tenant: &str, usage: Usage, counters: [Counter; 3]) {
        let amounts = [usage.input_tokens, usage.output_tokens, usage.cost_nanos];
        self.add_all(tenant, DoorKind::Llm, counters.into_iter().zip(amounts));
    }

    /// The counts of all tenants together, since this process began.
    pub fn total(&self, door: DoorKind, counter: Counter) -> u64 {
        let of = |counted: &Arc<TenantCounts>| {
            counted.now[door as usize][counter as usize].load(Ordering::Relaxed)
        };
        self.tenants.read().unwrap_or_else(PoisonError::into_inner).values().map(of).sum()
    }

    /// Adds what is new to the ledger's own counts. What cannot be written now is written the next time.
    pub async fn write(&self, ledger: &Ledger, day: Day) -> Result<(), Error> {
        let tenants = self.tenants.read().unwrap_or_else(PoisonError::into_inner).clone();
        for (tenant, counted) in &tenants {
            for door in DoorKind::ALL {
                let taken =
                    UnwrittenCounts::all_new(&counted.now[door as usize], &counted.written[door as usize]);
                if taken.new.is_empty() {
                    continue;
                }
                let tally: Tally =
                    taken.new.iter().map(|(counter, more)| (counter.word().to_owned(), *more)).collect();
                ledger.add_counts(CountKey { tenant, door: door.word(), day }, &tally).await?;
                taken.written();
            }
        }
        Ok(())
    }

    fn settled(&self, settling: &SettlementEvent<'_>) {
        self.settlements.add(settling.took);
        self.became(settling.effect);
        if settling.duplicate {
            self.happened_twice(settling.effect);
        }
    }

    fn happened_twice(&self, effect: &Effect) {
        let facts = &effect.facts;
        self.add(&facts.tenant, DoorKind::of(&facts.action), Counter::Duplicates, 1);
    }

    fn became(&self, effect: &Effect) {
        let counter = match effect.state {
            State::Applied(_) => Counter::Applied,
            State::NotApplied(_) => Counter::NotApplied,
            State::InDoubt(_) | State::InFlight { .. } => Counter::InDoubt,
        };
        self.add(&effect.facts.tenant, DoorKind::of(&effect.facts.action), counter, 1);
    }

    fn answered(&self, answered: &AnswerEvent<'_>) {
        let AnswerEvent { intent, answer, repeated_by, looked_again, .. } = answered;
        let outcome = match answer.outcome {
            // Whatever it found when it looked again, it has made an attempt.
            _ if *looked_again => Some(Counter::Ran),
            OutcomeWord::Ran => Some(Counter::Ran),
            OutcomeWord::Replayed => Some(Counter::Replayed),
            OutcomeWord::Joined => Some(Counter::Joined),
            OutcomeWord::Held => Some(Counter::Held),
            OutcomeWord::Refused => Some(Counter::Refused),
            OutcomeWord::DryRun => None,
        };
        let repeated_by = repeated_by.filter(|_| outcome.is_some()).map(repeats);
        self.count_all(intent, [Some(Counter::Asked), outcome, repeated_by].into_iter().flatten());
    }

    fn count(&self, intent: &Intent, counter: Counter) {
        self.count_all(intent, [counter]);
    }

    fn count_all(&self, intent: &Intent, counters: impl IntoIterator<Item = Counter>) {
        let counters = counters.into_iter().map(|counter| (counter, 1));
        self.add_all(&intent.tenant, DoorKind::of(&intent.action), counters);
    }
}

fn repeats(by: RetryOrigin) -> Counter {
    match by {
        RetryOrigin::Transport => Counter::Transport,
        RetryOrigin::Sdk => Counter::Sdk,
        RetryOrigin::Agent => Counter::Agent,
        RetryOrigin::Process => Counter::Process,
    }
}

/// Counts that one thread is about to write, and no other. Given back unless they were written.
struct UnwrittenCounts<'c> {
    written: &'c [AtomicU64; COUNTERS],
    new: Vec<(Counter, u64)>,
}

impl<'c> UnwrittenCounts<'c> {
    fn all_new(now: &[AtomicU64; COUNTERS], written: &'c [AtomicU64; COUNTERS]) -> Self {
        let new = Counter::ALL.iter().map(|counter| {
            let now = now[*counter as usize].load(Ordering::Relaxed);
            let before = written[*counter as usize].fetch_max(now, Ordering::Relaxed);
            (*counter, now.saturating_sub(before))
        });
        UnwrittenCounts { written, new: new.filter(|(_, more)| *more > 0).collect() }
    }

    fn written(mut self) {
        self.new.clear();
    }
}

impl Drop for UnwrittenCounts<'_> {
    fn drop(&mut self) {
        for (counter, more) in &self.new {
            self.written[*counter as usize].fetch_sub(*more, Ordering::Relaxed);
        }
    }
}

/// A deadline or a holder's death leaves a doubt, as an unclear answer does; a probe or a ruling ends one.
impl DoubtObserver for Counts {
    fn observe_doubt(&self, effect: &Effect) {
        self.became(effect);
    }

    fn observe_duplicate(&self, effect: &Effect) {
        self.happened_twice(effect);
    }
}

impl Observer for Counts {
    fn observe(&self, event: &GateEvent<'_>) {
        match event {
            GateEvent::Claimed { took } => self.claims.add(*took),
            GateEvent::Sent { intent } => self.count(intent, Counter::Sent),
            GateEvent::Settled(settling) => self.settled(settling),
            GateEvent::Answered(answered) => self.answered(answered),
            GateEvent::Begun { intent, again, repeated_by } => {
                let became: &[Counter] =
                    if *again { &[Counter::Replayed] } else { &[Counter::Ran, Counter::Sent] };
                let repeated_by = repeated_by.map(repeats);
                let counters = [Counter::Asked].into_iter().chain(became.iter().copied()).chain(repeated_by);
                self.count_all(intent, counters);
            }
            GateEvent::Failed { intent } => self.count_all(intent, [Counter::Asked, Counter::Refused]),
            GateEvent::PassedThrough { intent } => {
                self.passed_through(&intent.tenant, DoorKind::of(&intent.action))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_who_write_at_once_write_nothing_twice_and_what_was_not_written_is_written_next() {
        let counted = TenantCounts::default();
        let (now, written) = (&counted.now[0], &counted.written[0]);
        now[Counter::Asked as usize].store(3, Ordering::Relaxed);
        let first = UnwrittenCounts::all_new(now, written);
        assert_eq!(first.new, [(Counter::Asked, 3)]);
        assert_eq!(UnwrittenCounts::all_new(now, written).new, []);
        drop(first);
        let again = UnwrittenCounts::all_new(now, written);
        assert_eq!(again.new, [(Counter::Asked, 3)]);
        again.written();
        assert_eq!(UnwrittenCounts::all_new(now, written).new, []);
    }
}
