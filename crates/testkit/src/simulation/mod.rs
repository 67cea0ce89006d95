//! The gate ring: whole gates over one shaky store, against a world that counts.
//!
//! One thread polls all tasks in an order that the seed decides, on a clock that moves only when everybody waits.
//! Processes crash, pause and fall silent, the power fails, requests and answers get lost, commits land unanswered, a lagging replica takes over,
//! the wall clock jumps, runs are cancelled. Afterwards the world and the ledger are held against each other.

pub mod beneath;
mod check;
pub mod clock;
pub mod executor;
pub mod holders;
pub mod plan;
pub mod random;
mod stage;
pub mod store;
mod storm;
pub mod tally;
pub mod upstream;
pub mod world;

use plan::SimulationPlan;
use random::SharedRandom;
use semel_ledger::store::Store;
use stage::Simulation;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Parts that break one rule each. A check that never objects is no evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// The upstream's library sends again by itself when no answer comes.
    HiddenResend,
    /// Live holders are pronounced dead.
    LivePronouncedDead,
    /// Holders that nobody hears of are pronounced dead.
    SilentPronouncedDead,
    /// The probe says "no" without looking.
    LyingProbe,
    /// A failover that loses claims goes unnoticed.
    EpochMissed,
    /// The store ignores what a commit requires of fence and epoch.
    FenceIgnored,
    /// Every commit is as lazy as a delivered mark.
    NothingSynced,
    /// The store drops what an effect says of those before it in its record.
    PastDropped,
}

#[derive(Debug)]
pub struct Report {
    pub seed: u64,
    /// What the checks object to, in words.
    pub violations: Vec<String>,
    /// What happened, for whoever has to find out why.
    pub story: Vec<String>,
    /// How often what was seen.
    pub counts: BTreeMap<&'static str, u64>,
}

/// Everything goes wrong meanwhile.
fn work_in_a_storm(stage: &Arc<Simulation>) {
    stage.work();
    if !stage.plan.faultless {
        stage.orders.start(executor::OUTSIDE, storm::rage(Arc::clone(stage)));
    }
}

/// Runs one seed, as designed or with one part broken.
pub fn simulate(seed: u64, broken: Option<Sabotage>) -> Report {
    simulate_over(seed, broken, None)
}

/// The same over the fresh ledger of a real server, which loses nothing that it has acknowledged.
pub fn simulate_on(seed: u64, server: Arc<dyn Store>) -> Report {
    simulate_over(seed, None, Some(server))
}

fn simulate_over(seed: u64, broken: Option<Sabotage>, server: Option<Arc<dyn Store>>) -> Report {
    let random = SharedRandom::of(seed);
    let mut plan = SimulationPlan::draw(&random, broken);
    plan.failover &= server.is_none();
    let stage = Arc::new(Simulation::set(plan, random, broken, server));
    let mut violations = Vec::new();
    for act in [work_in_a_storm, Simulation::calm, Simulation::ruled] {
        act(&stage);
        let mut ended = executor::run(&stage.orders, &stage.clock, &stage.random);
        if ended.is_ok() {
            stage.write_rest();
            ended = executor::run(&stage.orders, &stage.clock, &stage.random);
        }
        if let Err(stuck) = ended {
            violations.push(stuck);
            break;
        }
        violations.extend(check::held_by_somebody(&stage));
        stage.everybody_leaves();
    }
    violations.extend(check::all(&stage));
    let story = if violations.is_empty() { Vec::new() } else { check::story(&stage) };
    Report { seed, violations, story, counts: stage.tally.counts() }
}
