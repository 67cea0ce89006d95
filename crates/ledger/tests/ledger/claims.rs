//! Ledgers over a store, and claims of them as the gate makes them.

use crate::kv::block_on;
use semel_core::decide::Claiming;
use semel_core::digest::Secret;
use semel_core::effect::LastSend;
use semel_core::ids::{IdempotencyKey, Run};
use semel_core::intent::{Ask, Intent};
use semel_core::json::Json;
use semel_core::policy::{ActionFacts, Policy};
use semel_core::time::At;
use semel_ledger::Ledger;
use semel_ledger::claim::{AttemptSender, Claim, ClaimKind, ClaimRequest, ClaimResult};
use semel_ledger::entropy::OsEntropy;
use semel_ledger::holders::FileHolders;
use semel_ledger::memory::{MemoryStore, Sleeper};
use semel_ledger::store::Store;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

pub const NOW: At = At(1_000_000);

struct NoTime;

impl Sleeper for NoTime {
    fn sleep(&self, _span: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async {})
    }
}

pub fn memory() -> Arc<MemoryStore> {
    Arc::new(MemoryStore::new(Arc::new(NoTime)))
}

/// A process of this host, over a store whose ledger has this secret.
pub fn ledger(store: Arc<dyn Store>, host: &Path, secret: u8) -> Ledger {
    let holders = FileHolders::in_directory(host.join("holders"));
    Ledger::new(store, Arc::new(holders), OsEntropy, Secret::new([secret; 32]))
        .spooled_below(&host.join("spool"))
}

/// The next attempt of the call that this key names, in this run.
pub fn claimed(ledger: &Ledger, key: &str, run: Option<&str>) -> Claim {
    let rule = Policy::default().rule_for(&ActionFacts::new("fn:charge", &Json::Null));
    let run = run.map(|id| Run::inferred(id).expect("a name"));
    let ask = Ask {
        run,
        key: Some(IdempotencyKey::parse(key).expect("a key")),
        ..Ask::of(("t", "p"), "fn:charge", &Json::Null)
    };
    let intent = Intent::of(&ask, &rule, ledger.secret()).expect("it has a key");
    let snapshot = block_on(ledger.find(intent.key)).expect("readable");
    let claiming = if snapshot.effect().is_some() { Claiming::NextAttempt } else { Claiming::First };
    let request = ClaimRequest {
        intent: &intent,
        rule: &rule,
        snapshot: &snapshot,
        how: ClaimKind::Claim(claiming),
        now: NOW,
        uptime: None,
        deadline: NOW.plus(Duration::from_secs(60)),
        last_send: LastSend::By(NOW),
        fences: Vec::new(),
        turn: None,
        alias: None,
        alike: None,
        sender: AttemptSender::Here,
    };
    match block_on(ledger.claim(&request)).expect("answered") {
        ClaimResult::Won(claim) => claim,
        other => panic!("nobody else claims: {other:?}"),
    }
}
