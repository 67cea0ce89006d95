//! Asking whether a success is true while its caller has the answer.

use super::asks::Asks;
use super::origins::Origin;
use super::{Asker, Lent, Matter};
use crate::hall::Hall;
use http::HeaderMap;
use semel_core::ids::EffectId;
use semel_core::json::Json;
use semel_core::policy::rule::Confirm;
use semel_ledger::RecordSnapshot;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Effects that are being asked about: a replay need not ask beside the call that it repeats.
#[derive(Debug, Clone, Default)]
pub struct Following(Arc<Mutex<HashSet<EffectId>>>);

/// One effect is asked about, until this is dropped.
#[derive(Debug)]
pub struct Followed {
    id: EffectId,
    of: Following,
}

impl Following {
    /// `None`: somebody of this process does already.
    pub fn begin(&self, done: &RecordSnapshot) -> Option<Followed> {
        let id = done.effect()?.id;
        let new = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
        new.then(|| Followed { id, of: self.clone() })
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.of.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

/// All that a question needs once the call that it is about has ended.
#[derive(Debug)]
pub struct Question {
    pub confirm: Confirm,
    pub action: String,
    pub arguments: Json,
    /// What it answered, as rules see it.
    pub reply: Json,
    /// What the caller passed through to its upstream.
    pub credential: Option<(Origin, HeaderMap)>,
}

/// Begins to ask in the background, unless this process already does. Within a runtime.
pub fn follow(hall: &Arc<Hall>, done: RecordSnapshot, question: Question) {
    let Some(followed) = hall.following.begin(&done) else { return };
    let hall = Arc::clone(hall);
    tokio::spawn(async move {
        let Question { confirm, action, arguments, reply, credential } = &question;
        let lent = match credential {
            Some((upstream, headers)) => Lent::Credential { upstream, headers },
            None => Lent::Nothing,
        };
        let matter = Matter { action, arguments, effect: None, reply: Some(reply), lent };
        let asker = Asker { means: &hall.means, policy: &hall.policy, matter, signals: None };
        if let Ok(gate) = &hall.gate {
            // What cannot be written stays as it was reported.
            let _as_reported = gate.confirm(confirm, &done, &mut Asks { asker, confirm }).await;
        }
        drop(followed);
    });
}
