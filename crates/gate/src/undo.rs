//! Taking an effect back, as an effect of its own.

use crate::look::Look;
use crate::reply::{Passed, held};
use crate::upstream::Upstream;
use crate::{Error, Gate};
use semel_core::answer::OutcomeWord;
use semel_core::effect::{Effect, NotApplied, NotAppliedWhy, State};
use semel_core::ids::EffectId;
use semel_core::intent::Intent;
use semel_core::policy::rule::Rule;
use semel_core::undo::{Undo, UndoCall};
use semel_core::wording;

/// An effect that can be taken back, or has been: then its undo answers from the record.
#[derive(Debug, Clone)]
pub struct Undoable {
    pub effect: Effect,
    /// The call that takes it back.
    pub call: UndoCall,
}

impl Gate {
    /// How an effect of this tenant is taken back; or, in the answer, why it is not.
    pub async fn undoable(&self, id: EffectId, tenant: &str) -> Result<Result<Undoable, Box<Passed>>, Error> {
        let now = self.clock.now();
        let effect = self.ledger.now_of(id, now).await?.effect;
        // Possession of an id is no right: another tenant's effect is as good as none.
        if effect.facts.tenant != tenant {
            return Err(Error::Ledger(semel_ledger::Error::NoSuchEffect(id.to_string())));
        }
        let refuse = |trouble| Ok(Err(Box::new(Passed::refused(&effect, trouble))));
        match (&effect.state, &effect.undo) {
            (State::InFlight { .. }, _) => {
                Ok(Err(Box::new(held(&effect, wording::undo_too_early(&effect, now), OutcomeWord::Held))))
            }
            (State::InDoubt(_), _) => {
                Ok(Err(Box::new(held(&effect, wording::undo_needs_ruling(&effect), OutcomeWord::Held))))
            }
            (State::NotApplied(NotApplied { why: NotAppliedWhy::Refuted(_), .. }), _) => {
                refuse(wording::refuted(&effect))
            }
            (State::Applied(_), Some(Undo::By(call))) => {
                Ok(Ok(Undoable { call: call.clone(), effect: effect.clone() }))
            }
            (State::Applied(_) | State::NotApplied(_), _) => refuse(wording::cannot_undo(&effect)),
        }
    }

    /// Takes it back: by the one path, whatever the mode, so that two who want it do it once. The intent is the one
    /// that [`Intent::to_undo`] makes of the call.
    pub async fn undo(
        &self,
        undoable: &Undoable,
        intent: &Intent,
        rule: &Rule,
        upstream: &mut dyn Upstream,
    ) -> Result<Passed, Error> {
        let passed = self.guard(&Look::default(), intent, rule, upstream).await?;
        // Reading the effect writes the link. If that fails now, the next reader does it.
        if passed.answer.ok && self.point("undo.before_link").is_ok() {
            let _next_reader = self.ledger.now_of(undoable.effect.id, self.clock.now()).await;
            let _linked = self.point("undo.after_link");
        }
        Ok(passed)
    }
}
