//! What goes wrong from outside.

use super::Sabotage;
use super::plan::{RUNS, TENANT};
use super::stage::{RunSpan, Simulation, lock};
use semel_core::policy::Retention;
use semel_gate::clock::Clock;
use semel_ledger::Ledger;
use semel_ledger::memory::MemorySnapshot;
use std::sync::Arc;
use std::time::Duration;

const HOUR_MICROS: i64 = 3_600_000_000;

/// Retention that drops every reply it may drop, and no fact.
const EVERY_REPLY: Retention =
    Retention { replies: Duration::ZERO, facts: Duration::from_secs(1 << 32), windows: Duration::ZERO };

/// Troubles, one after another, until there are none left.
pub async fn rage(stage: Arc<Simulation>) {
    let random = stage.random.clone();
    let mut snapshot: Option<MemorySnapshot> = None;
    let mut failed_over = false;
    for _ in 0..stage.plan.troubles {
        stage.clock.nap(random.millis(50, 9_000)).await;
        let slot = random.below(stage.plan.processes.len());
        match random.below(12) {
            0 | 1 => {
                stage.tally.count("crash");
                crash(&stage, slot);
            }
            9 => {
                stage.tally.count("power cut");
                (0..stage.plan.processes.len()).for_each(|slot| crash(&stage, slot));
                stage.store.cut_power();
                stage.clock.reboot();
            }
            2 => {
                let process = lock(&stage.living).get(&slot).map(|(process, ..)| *process);
                if let Some(process) = process {
                    stage.tally.count("pause");
                    stage.orders.pause(process, stage.clock.elapsed() + random.millis(500, 45_000));
                }
            }
            10 | 11 => silence(&stage, slot),
            3 if stage.plan.jumpy => {
                stage.tally.count("clock jump");
                stage.clock.jump(if random.percent(50) { HOUR_MICROS } else { -HOUR_MICROS });
            }
            3 => {
                stage.tally.count("store outage");
                stage.trouble.down_until(stage.clock.elapsed() + random.millis(500, 12_000));
            }
            4 | 5 if stage.plan.failover && !failed_over => match &snapshot {
                None => snapshot = stage.store.snapshot(),
                Some(old) => {
                    failed_over = true;
                    stage.tally.count("failover");
                    fail_over(&stage, old).await;
                }
            },
            6 => {
                let (gate, _holders) = stage.gate(super::executor::OUTSIDE);
                // Another may be at it, or the store away: it is done the next time.
                if gate.ledger.prune(EVERY_REPLY, stage.clock.now(), stage.clock.uptime()).await.is_ok() {
                    stage.tally.count("replies pruned");
                }
            }
            _ => {
                let stage = Arc::clone(&stage);
                let (run, hold) = (*random.pick(&RUNS), random.millis(1_000, 20_000));
                stage.orders.clone().start(super::executor::OUTSIDE, async move {
                    cancel(&stage, run, hold).await;
                });
            }
        }
        if stage.plan.failover && snapshot.is_none() && random.percent(50) {
            snapshot = stage.store.snapshot();
        }
    }
}

/// A process dies, and another takes its place after a while.
fn crash(stage: &Arc<Simulation>, slot: usize) {
    stage.crash(slot);
    let (again, after) = (Arc::clone(stage), stage.random.millis(10, 15_000));
    stage.orders.start(super::executor::OUTSIDE, async move {
        again.clock.nap(after).await;
        again.start_process(slot);
    });
}

/// Nobody hears of a process for a while, and it goes on all the same, at once or after a pause.
fn silence(stage: &Arc<Simulation>, slot: usize) {
    let Some((process, holders, _)) = lock(&stage.living).get(&slot).cloned() else { return };
    let Some(silence) = holders.silence() else { return };
    stage.tally.count("silence");
    let (clock, span) = (stage.clock.clone(), stage.random.millis(1_000, 60_000));
    if stage.random.percent(30) {
        stage.orders.pause(process, clock.elapsed() + stage.random.millis(500, 45_000));
    }
    stage.orders.start(super::executor::OUTSIDE, async move {
        clock.nap(span).await;
        drop(silence);
    });
}

/// A replica that lags takes over; the store notices that, and bumps its epoch before it serves anybody.
async fn fail_over(stage: &Simulation, old: &MemorySnapshot) {
    stage.store.fail_over_to(old);
    if stage.broken == Some(Sabotage::EpochMissed) {
        return;
    }
    let (_, holders) = stage.gate(super::executor::OUTSIDE);
    let ledger =
        Ledger::new(stage.store.as_store(), Arc::new(holders), stage.random.clone(), super::plan::secret());
    ledger.bump_epoch("failover", stage.clock.now()).await.expect("the memory store takes an epoch");
}

/// Cancels a run until that is drained, holds it for a while, lifts the fence.
async fn cancel(stage: &Arc<Simulation>, run: &str, hold: Duration) {
    stage.tally.count("cancel");
    let (gate, _holders) = stage.gate(super::executor::OUTSIDE);
    let mut drained_at = None;
    for _ in 0..12 {
        if let Ok(cancelled) = gate.ledger.cancel(TENANT, run, false, None, stage.clock.now()).await
            && cancelled.drained
        {
            stage.tally.count("drained");
            drained_at = Some(stage.clock.elapsed());
            break;
        }
        stage.clock.nap(stage.random.millis(500, 5_000)).await;
    }
    stage.clock.nap(hold).await;
    let until = stage.clock.elapsed();
    if let Some(from) = drained_at {
        lock(&stage.drains).push(RunSpan { run: run.to_owned(), from, until });
    }
    for _ in 0..5 {
        if gate.ledger.cancel(TENANT, run, true, None, stage.clock.now()).await.is_ok() {
            break;
        }
        stage.clock.nap(stage.random.millis(500, 3_000)).await;
    }
    lock(&stage.lifts).push(RunSpan { run: run.to_owned(), from: until, until: stage.clock.elapsed() });
}
