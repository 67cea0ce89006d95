//! Decisions of people and probes about a doubt.

use crate::holders::Liveness;
use crate::ledger::{ChangeResult, Ledger, RACES_MAX, RecordChange, RecordSnapshot, RecordUpdate};
use crate::store::ReplyChange;
use crate::{Error, journal};
use semel_core::answer::EffectWord;
use semel_core::digest::Digest;
use semel_core::effect::{Doubt, Effect, Evidence, InDoubt, Reply, Ruling, State};
use semel_core::ids::{EffectId, Reason};
use semel_core::lifecycle::Event;
use semel_core::time::At;
use semel_core::undo::Undo;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RulingVerdict {
    /// It happened; its reply, where the person has it.
    Applied {
        reply: Option<Vec<u8>>,
    },
    NotApplied,
}

/// The finding of a probe, as far as it counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probed {
    Yes {
        word: EffectWord,
        reply: Option<Vec<u8>>,
        /// How it can be taken back.
        undo: Option<Undo>,
    },
    No {
        quiet: Duration,
    },
}

/// How long after its lapse the answer of an attempt is still reckoned with, while its holder may live.
const AWAITED_FOR: Duration = Duration::from_secs(600);

impl Ledger {
    /// Whether somebody may still wait for the answer of an attempt that has lapsed: its upstream may be at
    /// work, and an effect that is not there yet may be there in a moment. A person who rules "no" should know.
    pub async fn is_awaited(&self, effect: &Effect, now: At) -> Result<bool, Error> {
        let State::InDoubt(InDoubt { since, why: Doubt::DeadlinePassed | Doubt::HolderSilent }) =
            &effect.state
        else {
            return Ok(false);
        };
        match effect.newest_attempt().filter(|_| now < since.plus(AWAITED_FOR)) {
            Some(attempt) => Ok(self.liveness_of(attempt).await? != Liveness::Dead),
            None => Ok(false),
        }
    }

    /// Rules on a doubt. An effect whose holder has died is first seen to be in doubt.
    pub async fn resolve(
        &self,
        id: EffectId,
        verdict: RulingVerdict,
        ruling: Ruling,
    ) -> Result<RecordUpdate, Error> {
        let now = ruling.at;
        let (event, reply) = match verdict {
            RulingVerdict::NotApplied => (Event::RuledNotApplied { ruling }, ReplyChange::Keep),
            RulingVerdict::Applied { reply } => {
                let kept = if reply.is_some() { Reply::Kept } else { Reply::Unknown };
                let event = Event::RuledApplied { ruling, word: EffectWord::Updated, reply: kept };
                (event, reply.map_or(ReplyChange::Drop, ReplyChange::Set))
            }
        };
        self.change_newest(id, event, reply, now).await
    }

    /// Takes a ruling back, if nothing was claimed since.
    pub async fn reopen(&self, id: EffectId, ruling: Ruling) -> Result<RecordUpdate, Error> {
        let now = ruling.at;
        self.change_newest(id, Event::Reopened { ruling }, ReplyChange::Drop, now).await
    }

    /// Lets the newest effect of its record happen once more.
    pub async fn permit_repeat(&self, id: EffectId, ruling: Ruling) -> Result<RecordUpdate, Error> {
        let now = ruling.at;
        self.change_newest(id, Event::RepeatPermitted { ruling }, ReplyChange::Keep, now).await
    }

    /// Records that a deliberate repeat with this reason is given the success that nobody has got yet,
    /// so that the reason stands for it from now on. `None`: the record has gone on.
    pub async fn adopt(
        &self,
        seen: &RecordSnapshot,
        reason: &Reason,
        now: At,
    ) -> Result<Option<RecordSnapshot>, Error> {
        let event = Event::Adopted { reason: reason.clone() };
        Ok(match self.write(seen, RecordChange::to(&event, now)).await? {
            ChangeResult::Done(changed) => Some(changed.snapshot),
            ChangeResult::Moved => None,
        })
    }

    async fn change_newest(
        &self,
        id: EffectId,
        event: Event,
        reply: ReplyChange,
        now: At,
    ) -> Result<RecordUpdate, Error> {
        let (key, _) = self.by_id(id).await?;
        for _ in 0..RACES_MAX {
            let snapshot = self.observe(key, now).await?;
            if snapshot.effect().map(|effect| effect.id) != Some(id) {
                return Err(Error::Superseded { effect: id.to_string() });
            }
            let change = RecordChange { reply: reply.clone(), ..RecordChange::to(&event, now) };
            if let ChangeResult::Done(changed) = self.write(&snapshot, change).await? {
                return Ok(changed);
            }
        }
        Err(Error::NotWritten { what: format!("effect {id} kept changing; nothing was written. Try again.") })
    }

    /// Records what a probe found about the doubt that was seen. `None`: the record moved, or the "no" does not
    /// count yet (rule 5).
    pub async fn probed(
        &self,
        seen: &RecordSnapshot,
        probed: Probed,
        now: At,
    ) -> Result<Option<RecordUpdate>, Error> {
        let mut kept_undo = None;
        let (event, reply) = match probed {
            Probed::No { quiet } => {
                if !seen.effect().is_some_and(|effect| effect.may_believe_no(quiet, now)) {
                    return Ok(None);
                }
                (Event::ProbedNo { quiet, at: now }, ReplyChange::Keep)
            }
            Probed::Yes { word, reply, undo } => {
                kept_undo = undo;
                let kept = if reply.is_some() { Reply::Kept } else { Reply::Unknown };
                (
                    Event::ProbedYes { word, reply: kept, at: now },
                    reply.map_or(ReplyChange::Drop, ReplyChange::Set),
                )
            }
        };
        let change = RecordChange { reply, undo: kept_undo, ..RecordChange::to(&event, now) };
        Ok(match self.write(seen, change).await? {
            ChangeResult::Done(changed) => Some(changed),
            ChangeResult::Moved => None,
        })
    }

    /// Records that a question after a reported success was answered: it is true.
    pub async fn confirmed(&self, seen: &RecordSnapshot, now: At) -> Result<bool, Error> {
        if self.change_applied(seen, &Event::Confirmed, now).await? {
            return Ok(true);
        }
        // Somebody else may have asked too.
        let Some(seen_effect) = seen.effect() else { return Ok(false) };
        let snapshot = self.at(seen.key, seen_effect.occurrence.number).await?;
        Ok(snapshot.effect().filter(|effect| effect.id == seen_effect.id).is_some_and(|effect| {
            matches!(&effect.state, State::Applied(applied) if applied.evidence == Evidence::Confirmed)
        }))
    }

    /// Records that it is not true. `false`: it stands. Somebody else has seen that it is true, and this read lagged;
    /// or it has been taken back since, and there is nothing to be seen of it.
    pub async fn refute(&self, seen: &RecordSnapshot, what: String, now: At) -> Result<bool, Error> {
        if let Some(effect) = seen.effect()
            && self.undo_has_begun(effect).await?
        {
            return Ok(false);
        }
        self.change_applied(seen, &Event::Refuted { what, at: now }, now).await
    }

    /// Changes a success that was seen. `false`: it is no success any more that could change so.
    async fn change_applied(&self, seen: &RecordSnapshot, event: &Event, now: At) -> Result<bool, Error> {
        let Some((id, number)) = seen.effect().map(|effect| (effect.id, effect.occurrence.number)) else {
            return Ok(false);
        };
        for _ in 0..RACES_MAX {
            let snapshot = self.at(seen.key, number).await?;
            if !snapshot.effect().is_some_and(|effect| effect.id == id && is_unconfirmed(effect)) {
                return Ok(false);
            }
            if let ChangeResult::Done(_) = self.write(&snapshot, RecordChange::of_any(event, now)).await? {
                return Ok(true);
            }
        }
        Err(Error::NotWritten {
            what: format!("record {} kept changing; nothing was written. Try again.", seen.key),
        })
    }

    /// Journals a call that semel kept from starting, so that a cancel can say what was prevented.
    pub async fn prevented(
        &self,
        run_key: Option<Digest>,
        action: &str,
        subject: &str,
        now: At,
    ) -> Result<(), Error> {
        let data = serde_json::json!({"action": action, "subject": subject});
        self.note(journal::note("prevented", None, run_key, data, now), crate::store::Durability::Lazy).await
    }
}

/// A success that nobody but its upstream has vouched for.
fn is_unconfirmed(effect: &Effect) -> bool {
    let State::Applied(applied) = &effect.state else { return false };
    matches!(applied.evidence, Evidence::Accepted | Evidence::Reported)
}
