//! The outside: it counts what was done to it, and nothing else in a simulation knows the truth.

use semel_core::digest::Digest;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// One intended effect: a record, and its occurrence.
pub type EffectPlace = (Digest, u32);

#[derive(Debug, Clone, Default)]
pub struct SimulatedWorld(Arc<Mutex<Truth>>);

#[derive(Debug, Default)]
struct Truth {
    done: BTreeMap<EffectPlace, Vec<Done>>,
    /// Idempotency keys that the upstream has seen: when first, and what it answered; `None` is a refusal.
    keys: HashMap<String, (Duration, Option<u64>)>,
    sent: Vec<(Option<String>, Duration)>,
    /// What was done, by what it was asked for with.
    asked: Vec<(EffectPlace, CallIdentity)>,
    serial: u64,
}

/// What a call asks for something with: each of these stands for one effect of its record.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallIdentity {
    Reason(String),
    /// The model's id for the call, and what it said.
    Call(u64),
    /// No reason to repeat it, where a success answers repeats.
    Plain,
}

#[derive(Debug, Clone, Copy)]
pub struct Done {
    pub at: Duration,
    pub reply: u64,
}

/// An idempotency key as the upstream honours it.
#[derive(Debug, Clone)]
pub struct HonouredKey {
    pub key: String,
    pub valid_for: Duration,
}

impl SimulatedWorld {
    /// Changes the world. The reply is the number of the change.
    pub fn apply(
        &self,
        place: EffectPlace,
        key: Option<&HonouredKey>,
        names: &[CallIdentity],
        now: Duration,
    ) -> u64 {
        let mut truth = self.truth();
        if let Some(honoured) = key
            && let Some((first, Some(reply))) = truth.keys.get(&honoured.key)
            && now < *first + honoured.valid_for
        {
            return *reply;
        }
        truth.serial += 1;
        let reply = truth.serial;
        truth.done.entry(place).or_default().push(Done { at: now, reply });
        truth.asked.extend(names.iter().map(|name| (place, name.clone())));
        if let Some(honoured) = key {
            truth.keys.insert(honoured.key.clone(), (now, Some(reply)));
        }
        reply
    }

    /// Whether an upstream that remembers what it said to a key refuses: as it did before, or because it would now.
    pub fn refuses(&self, key: &HonouredKey, would: bool, now: Duration) -> bool {
        let mut truth = self.truth();
        match truth.keys.get(&key.key) {
            Some((first, said)) if now < *first + key.valid_for => said.is_none(),
            _ if would => {
                truth.keys.insert(key.key.clone(), (now, None));
                true
            }
            _ => false,
        }
    }

    /// Somebody acts on behalf of a run.
    pub fn acted(&self, run: Option<String>, now: Duration) {
        self.truth().sent.push((run, now));
    }

    pub fn acted_between(&self, run: &str, from: Duration, until: Duration) -> bool {
        let within = |at: Duration| at > from && at < until;
        self.truth().sent.iter().any(|(of, at)| of.as_deref() == Some(run) && within(*at))
    }

    pub fn acts(&self) -> Vec<(Option<String>, Duration)> {
        self.truth().sent.clone()
    }

    /// Which effects of a record were done by what they were asked for with.
    pub fn asked(&self) -> BTreeMap<(Digest, CallIdentity), BTreeSet<u32>> {
        let mut asked: BTreeMap<_, BTreeSet<u32>> = BTreeMap::new();
        for ((key, number), name) in &self.truth().asked {
            asked.entry((*key, name.clone())).or_default().insert(*number);
        }
        asked
    }

    pub fn done(&self, place: EffectPlace) -> Vec<Done> {
        self.truth().done.get(&place).cloned().unwrap_or_default()
    }

    pub fn any_of(&self, key: Digest) -> Option<Done> {
        self.truth().done.iter().find(|((of, _), _)| *of == key).map(|(_, done)| done[0])
    }

    pub fn places(&self) -> Vec<(EffectPlace, Vec<Done>)> {
        self.truth().done.iter().map(|(place, done)| (*place, done.clone())).collect()
    }

    fn truth(&self) -> MutexGuard<'_, Truth> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
