//! Calls asked, sent, done and saved, added up from the ledger's counts.

use schemars::JsonSchema;
use semel_core::effect::State;
use semel_core::time::At;
use semel_gate::counts::{Counter, DoorKind};
use semel_ledger::counts::{CountKey, Day, Tally};
use semel_ledger::holders::Liveness;
use semel_ledger::store::{By, PAGE_ROWS_MAX};
use semel_ledger::{Error, Ledger};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Counts lie by the day; nobody looks further back than facts are kept.
const DAYS_MAX: u32 = 400;

/// Doubts are few; beyond this the number only says "too many".
const OPEN_PAGES_MAX: usize = 20;

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Stats {
    pub schema_version: u32,
    /// The first day that is in it, in UTC.
    pub since: String,
    pub total: StatsLine,
    /// By the way in: `cli`, `mcp`, `http`, `llm`, `fn`.
    pub doors: BTreeMap<String, StatsLine>,
    /// Effects that are in doubt at this moment. Generations that were lost need nobody and are not among them.
    pub in_doubt_now: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Line")]
pub struct StatsLine {
    /// Calls that came.
    pub asked: u64,
    /// Attempts that went to the upstream.
    pub sent: u64,
    /// Of these, what passed through unrecorded: reads, and everything in observe mode.
    pub passed_through: u64,
    /// Effects that happened.
    pub applied: u64,
    pub not_applied: u64,
    pub in_doubt: u64,
    /// Calls by what they got.
    pub ran: u64,
    pub replayed: u64,
    pub joined: u64,
    pub held: u64,
    pub refused: u64,
    pub repeated: Repeated,
    pub duplicates_detected: u64,
    pub tokens: TokenCounts,
    pub saved_tokens: TokenCounts,
    /// In whatever the price table counts in; 0 without one.
    pub cost: f64,
    pub saved_cost: f64,
}

/// Repeats, by who repeated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Repeated {
    pub transport: u64,
    pub sdk: u64,
    pub agent: u64,
    pub process: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Tokens")]
pub struct TokenCounts {
    pub input: u64,
    pub output: u64,
}

impl StatsLine {
    /// Calls that got their answer without anything being sent for them.
    pub fn saved(&self) -> u64 {
        self.replayed + self.joined
    }

    fn of(tally: &Tally) -> StatsLine {
        let count = |counter: Counter| tally.get(counter.word()).copied().unwrap_or_default();
        let money = |counter: Counter| count(counter) as f64 / 1e9;
        StatsLine {
            asked: count(Counter::Asked),
            sent: count(Counter::Sent),
            passed_through: count(Counter::PassedThrough),
            applied: count(Counter::Applied),
            not_applied: count(Counter::NotApplied),
            in_doubt: count(Counter::InDoubt),
            ran: count(Counter::Ran),
            replayed: count(Counter::Replayed),
            joined: count(Counter::Joined),
            held: count(Counter::Held),
            refused: count(Counter::Refused),
            repeated: Repeated {
                transport: count(Counter::Transport),
                sdk: count(Counter::Sdk),
                agent: count(Counter::Agent),
                process: count(Counter::Process),
            },
            duplicates_detected: count(Counter::Duplicates),
            tokens: TokenCounts { input: count(Counter::InputTokens), output: count(Counter::OutputTokens) },
            saved_tokens: TokenCounts {
                input: count(Counter::SavedInputTokens),
                output: count(Counter::SavedOutputTokens),
            },
            cost: money(Counter::Cost),
            saved_cost: money(Counter::SavedCost),
        }
    }
}

/// Of one tenant, or of all.
pub async fn stats(ledger: &Ledger, tenant: Option<&str>, since: Duration, now: At) -> Result<Stats, Error> {
    let today = Day::of(now);
    let began = At(now.0.saturating_sub(u64::try_from(since.as_micros()).unwrap_or(u64::MAX)));
    let first = Day::of(began).max(Day(today.0.saturating_sub(DAYS_MAX)));
    let mut doors: BTreeMap<String, Tally> = BTreeMap::new();
    let counted = ledger.counted().await?;
    for (of, door) in counted.iter().filter(|(of, _)| tenant.is_none_or(|tenant| tenant == of)) {
        let tally = doors.entry(door.clone()).or_default();
        for day in first.0..=today.0 {
            add(tally, &ledger.counts(CountKey { tenant: of, door, day: Day(day) }).await?);
        }
    }
    let mut total = Tally::new();
    doors.values().for_each(|tally| add(&mut total, tally));
    Ok(Stats {
        schema_version: 1,
        since: At(u64::from(first.0) * 86_400 * 1_000_000).to_string()[..10].to_owned(),
        total: StatsLine::of(&total),
        doors: doors.into_iter().map(|(door, tally)| (door, StatsLine::of(&tally))).collect(),
        in_doubt_now: in_doubt(ledger, tenant, now).await?,
    })
}

/// The deeds of all tenants in all processes since the ledger was founded, in the order of the doors.
pub async fn totals(ledger: &Ledger) -> Result<[Tally; DoorKind::ALL.len()], Error> {
    let mut totals: [Tally; DoorKind::ALL.len()] = Default::default();
    for door in DoorKind::ALL {
        totals[door as usize] = ledger.total(door.word()).await?;
    }
    Ok(totals)
}

fn add(tally: &mut Tally, more: &Tally) {
    for (name, count) in more {
        *tally.entry(name.clone()).or_default() += count;
    }
}

/// How many effects are in doubt and need a decision, those included whose holder has just died.
pub async fn in_doubt(ledger: &Ledger, tenant: Option<&str>, now: At) -> Result<u64, Error> {
    let (mut doubts, mut after) = (0, None);
    for _ in 0..OPEN_PAGES_MAX {
        let page = ledger.listing(By::Open, after, PAGE_ROWS_MAX).await?;
        for (_, known) in page.items {
            let effect = &known.effect;
            let lapsed = match effect.open_attempt() {
                Some(attempt) => {
                    now >= attempt.deadline || ledger.liveness_of(attempt).await? != Liveness::Alive
                }
                None => matches!(effect.state, State::InDoubt(_)),
            };
            let ours = tenant.is_none_or(|tenant| effect.facts.tenant == tenant);
            doubts += u64::from(lapsed && ours && effect.facts.class.doubts_need_a_decision());
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    Ok(doubts)
}
