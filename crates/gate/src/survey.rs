//! One look at the ledger: all that a decision about a call rests on. Passing, handing out a claim and a dry run share
//! it.

use crate::call::GateCall;
use crate::caller_key::ResolvedKey;
use crate::fences::RunFences;
use crate::{Error, Gate};
use semel_core::decide::{Past, Situation};
use semel_core::digest::Digest;
use semel_core::effect::{Effect, State};
use semel_core::intent::Intent;
use semel_core::policy::rule::Rule;
use semel_core::time::At;
use semel_ledger::RecordSnapshot;
use semel_ledger::record::StoredEffect;
use semel_ledger::store::Revision;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Survey {
    /// Without the call's own past.
    situation: Situation<'static>,
    /// The cells of the fences that a claim must find as they are.
    pub(crate) fences: Vec<(Digest, Revision)>,
    pub(crate) key: ResolvedKey,
    pub(crate) snapshot: RecordSnapshot,
    /// The effect that the call has sent or waited for, if its record has a newer one.
    pub(crate) older: Option<Arc<StoredEffect>>,
}

impl Survey {
    pub(crate) fn situation<'a>(&'a self, past: Past<'a>) -> Situation<'a> {
        let older = self.older.as_ref().map(|stored| &stored.effect);
        Situation { past: Past { older, ..past }, ..self.situation }
    }

    pub(crate) fn now(&self) -> At {
        self.situation.now
    }

    /// The cell of the caller's own key, if that may come to stand for what answers it.
    pub(crate) fn unbound_key(&self) -> Option<Revision> {
        self.key.unbound(self.situation.stands_for, &self.snapshot)
    }

    pub(crate) fn with_fences(self, fences: Vec<(Digest, Revision)>) -> Survey {
        Survey { fences, ..self }
    }

    pub(crate) fn effect(&self) -> Option<&Effect> {
        self.snapshot.effect()
    }
}

impl Gate {
    /// Looks for a call that may act. An attempt that has lapsed is recorded as such on the way.
    pub(crate) async fn survey(&self, call: &GateCall<'_>) -> Result<Survey, Error> {
        let now = self.clock.now();
        let key = self.resolve_key_of_call(call, now).await?;
        let snapshot = self.ledger.observe(key.record, now).await?;
        let older = match (call.occurrence_in(snapshot.key), snapshot.effect()) {
            (Some(number), Some(newest)) if number < newest.occurrence.number => {
                self.ledger.occurrence(snapshot.key, number).await?.map(Arc::new)
            }
            _ => None,
        };
        Ok(Survey { older, ..self.survey_of(call.intent, call.rule, key, snapshot, now).await? })
    }

    /// Looks without writing anything.
    pub(crate) async fn survey_unwritten(&self, intent: &Intent, rule: &Rule) -> Result<Survey, Error> {
        let now = self.clock.now();
        let key = self.resolve_key(intent, now).await?;
        let snapshot = self.ledger.find(key.record).await?;
        self.survey_of(intent, rule, key, snapshot, now).await
    }

    pub(crate) async fn survey_of(
        &self,
        intent: &Intent,
        rule: &Rule,
        key: ResolvedKey,
        snapshot: RecordSnapshot,
        now: At,
    ) -> Result<Survey, Error> {
        let RunFences { cells: fences, shut: fenced, memory_boundary } = self.fence(intent).await?;
        let situation = Situation {
            now,
            uptime: self.clock.uptime(),
            newest_on_record: self.newest_on_record(&snapshot, rule).await?,
            fenced,
            memory_boundary,
            forgotten_before: self.forgotten_before(&snapshot, now).await?,
            stands_for: self.stands_for(&key, &snapshot).await?,
            reached_by_key: snapshot.key != intent.key,
            past: Past::default(),
        };
        Ok(Survey { situation, fences, key, snapshot, older: None })
    }

    /// Rule 9: whether a claim of this record may have been lost since it was last known to be whole.
    async fn forgotten_before(&self, snapshot: &RecordSnapshot, now: At) -> Result<Option<At>, Error> {
        if snapshot.effect().is_some_and(|effect| effect.is_whole_in(snapshot.epoch.0))
            || snapshot.epoch == Revision::ABSENT
        {
            return Ok(None);
        }
        let (_, epoch) = self.ledger.epoch().await?;
        Ok(epoch.and_then(|epoch| epoch.forgotten_before(now)))
    }

    /// Rule 7: the newest instant on record, where the life of an upstream's key decides. The clock may be behind it.
    async fn newest_on_record(&self, snapshot: &RecordSnapshot, rule: &Rule) -> Result<Option<At>, Error> {
        let in_doubt = snapshot.effect().is_some_and(|effect| matches!(effect.state, State::InDoubt(_)));
        if !in_doubt || rule.inject.as_ref().is_none_or(|inject| inject.valid_for.is_none()) {
            return Ok(None);
        }
        Ok(self.ledger.newest_instant().await?)
    }
}
