//! Claim and settle: the right to make one attempt, and its answer.

use crate::duplicate_reply::duplicate_reply;
use crate::entropy::{effect_id, nonce};
use crate::ledger::{ChangeResult, Late, Ledger, RACES_MAX, RecordChange, RecordSnapshot, RecordUpdate};
use crate::record::{StoredEffect, index_after, index_of_first};
use crate::small_records::{Alias, KeyTarget, QUARANTINE, Turn, Visits, visits_key};
use crate::store::{
    Against, Commit, Conflict, Durability, EPOCH_CELL, Put, ReplyChange, Require, Revision, SeenAlike,
};
use crate::{Error, journal};
use semel_core::class::Class;
use semel_core::decide::Claiming;
use semel_core::digest::Digest;
use semel_core::effect::{Attempt, Effect, LastSend, NotAppliedWhy, Occurrence, State, Verdict};
use semel_core::ids::{AttemptNo, EffectId, Nonce, OwnerId, Reason};
use semel_core::intent::Intent;
use semel_core::lifecycle::{self, Event, NewAttempt};
use semel_core::outcome::Outcome;
use semel_core::policy::rule::Rule;
use semel_core::time::{At, Uptime};
use semel_core::undo::Undo;
use serde_json::Value;
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// The right to make one attempt. Settling spends it; dropping it leaves the effect to lapse into doubt.
#[must_use = "a claim that is not settled leaves its effect in doubt"]
#[derive(Debug)]
pub struct Claim {
    pub(crate) snapshot: RecordSnapshot,
    pub(crate) attempt: AttemptNo,
    pub(crate) turn: Option<(Digest, Revision)>,
    pub(crate) undo: Option<Undo>,
    pub(crate) about: Option<Box<Value>>,
}

impl Claim {
    /// The words about its answer, should that be a second one.
    pub fn describe(&mut self, answer: Value) {
        self.about = (!answer.is_null()).then(|| Box::new(answer));
    }

    /// How the effect can be taken back if it is settled as applied.
    pub fn keep_undo(&mut self, undo: Undo) {
        self.undo = Some(undo);
    }

    pub fn effect(&self) -> &Effect {
        &self.stored().effect
    }

    /// The effect with what the store keeps around it, as it was claimed.
    pub fn stored(&self) -> &Arc<StoredEffect> {
        self.snapshot.newest.as_ref().expect("a claim always has its effect")
    }

    pub fn key(&self) -> Digest {
        self.snapshot.key
    }

    /// The record as it was when the claim was taken, or brought back.
    pub fn snapshot(&self) -> &RecordSnapshot {
        &self.snapshot
    }

    pub fn attempt(&self) -> AttemptNo {
        self.attempt
    }
}

/// The inputs of a claim. Everything here was read before, and is required to hold still when it lands.
#[derive(Debug)]
pub struct ClaimRequest<'a> {
    pub intent: &'a Intent,
    pub rule: &'a Rule,
    pub snapshot: &'a RecordSnapshot,
    pub how: ClaimKind,
    pub now: At,
    pub uptime: Option<Uptime>,
    pub deadline: At,
    pub last_send: LastSend,
    /// The fences of its run and of all that the effect is of, each at the revision at which it was seen open.
    pub fences: Vec<(Digest, Revision)>,
    pub turn: Option<FreeTurn>,
    /// The caller's own key, which is to point to this intent, at the revision at which it was seen to point to none,
    /// or to one of which nothing happened.
    pub alias: Option<(Digest, Revision)>,
    /// The effects that it was compared with, for a call that has an outline.
    pub alike: Option<(Digest, SeenAlike)>,
    pub sender: AttemptSender,
}

/// The sender of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptSender {
    /// This process.
    Here,
    /// A client that takes the claim away with it. The nonce is its own: asking again with it gets the same claim.
    Away(Nonce),
    /// Code of this process that sends by itself. The claim ends with the process.
    Caller(Nonce),
}

impl AttemptSender {
    /// The nonce under which a claim that was handed out comes back.
    pub fn handed(self) -> Option<Nonce> {
        match self {
            AttemptSender::Here => None,
            AttemptSender::Away(nonce) | AttemptSender::Caller(nonce) => Some(nonce),
        }
    }
}

#[derive(Debug, Clone)]
pub enum ClaimKind {
    Claim(Claiming),
    Resend,
}

/// A turn that was seen free, at this revision.
#[derive(Debug, Clone, Copy)]
pub struct FreeTurn {
    pub key: Digest,
    pub revision: Revision,
}

/// A claim that is asked for, and what it is if the commit lands.
struct PreparedClaim {
    commit: Commit,
    claim: Claim,
}

#[derive(Debug)]
pub enum ClaimResult {
    Won(Claim),
    /// Something moved since it was read: look again.
    Moved,
    /// An open effect with the same identity exists in another scope, under this key.
    Family(Digest),
}

impl Ledger {
    pub async fn claim(&self, request: &ClaimRequest<'_>) -> Result<ClaimResult, Error> {
        let PreparedClaim { mut commit, claim } = self.ask(request)?;
        commit.puts.extend(self.visit(request, &claim).await?);
        let asked = self.unheld.ask(claim.key(), commit.nonce);
        let is_progress = commit.is_progress();
        let (committed, certain) = self.commit_surely(commit).await;
        if certain {
            asked.end();
        }
        Ok(match committed? {
            Ok(()) => {
                if is_progress {
                    self.known.raise(claim.snapshot.reached());
                }
                ClaimResult::Won(claim)
            }
            Err(Conflict::Family(other)) => ClaimResult::Family(other),
            Err(Conflict::Record | Conflict::Cell(_) | Conflict::Alike) => ClaimResult::Moved,
        })
    }

    /// Files an effect that another run began with the run that claims it now.
    async fn visit(&self, request: &ClaimRequest<'_>, claim: &Claim) -> Result<Option<Put>, Error> {
        let Some(run) = request.intent.run_key.filter(|run| claim.stored().index.run != Some(*run)) else {
            return Ok(None);
        };
        let key = visits_key(&self.secret, run);
        let (seen, visits) = self.cell::<Visits>(key).await?;
        let (visits, effect) = (visits.unwrap_or_default(), claim.effect().id);
        Ok((!visits.knows(effect)).then(|| Put::cell(key, seen, &visits.with(effect))))
    }

    /// Everything about a claim but its commit.
    fn ask(&self, request: &ClaimRequest<'_>) -> Result<PreparedClaim, Error> {
        let nonce = nonce(self.entropy());
        let owner = match request.sender {
            AttemptSender::Away(_) => OwnerId::AWAY,
            AttemptSender::Here | AttemptSender::Caller(_) => self.holders.me()?,
        };
        // A client may use its nonce twice, and no two commits may share one.
        let attempt_nonce = request.sender.handed().unwrap_or(nonce);
        let new = NewAttempt {
            nonce: attempt_nonce,
            owner,
            at: request.now,
            deadline: request.deadline,
            last_send: request.last_send,
            call_id: request.intent.call_id.clone(),
            run: request.intent.run.clone(),
            epoch: request.snapshot.epoch.0,
            facts: request.intent.facts(request.rule),
            marks: Arc::clone(&request.intent.marks),
            trace: request.intent.metadata.trace.map(|parent| parent.trace),
            uptime: request.uptime,
        };
        let (effect, event) = self.effect_after(request, new)?;
        let index = match &request.snapshot.newest {
            Some(stored) => index_after(&stored.index, &effect),
            None => index_of_first(request.intent, &effect),
        };
        // A later attempt may come from another run; the row stays with the run that the effect began in, and
        // cancelling looks at the attempts too.
        // A corrected call under the same key looks like other calls than the first one.
        let (alike, content) = (request.intent.alike.key(), request.intent.alike.content());
        let index = crate::store::Index { run: self.run_of(&effect), alike, content, ..index };
        let attempt = effect.newest_attempt().expect("a claimed effect has an attempt").number;
        let key = request.snapshot.key;
        let line = journal::line(&event, &effect, index.run, request.now);
        let (durability, number, class) = (promised(&effect), effect.occurrence.number, effect.facts.class);
        let stands_for = KeyTarget::of(&effect);
        let again = request.snapshot.newest.as_ref().filter(|seen| seen.effect.occurrence.number == number);
        let (put, snapshot) = match again {
            None => request.snapshot.insert(effect, index),
            Some(seen) => {
                request.snapshot.overwrite(seen, (effect, index), Against::Newest, ReplyChange::Drop)
            }
        };
        let mut puts = vec![put];
        if let Some(turn) = request.turn {
            puts.push(Put::cell(turn.key, turn.revision, &Turn { key, occurrence: number, attempt }));
        }
        if let Some((alias, seen)) = request.alias {
            puts.push(Put::cell(alias, seen, &Alias { key, stands_for }));
        }
        // Two runs may well ask a model the same thing at once.
        let family_quiet = (class != Class::Generate).then_some(request.intent.family);
        let mut cells = vec![(EPOCH_CELL, request.snapshot.epoch)];
        cells.extend(&request.fences);
        let commit = Commit {
            require: Require { cells, family_quiet, alike: request.alike, begins: true },
            journal: vec![line],
            durability,
            ..Commit::of(nonce, puts)
        };
        // One that was taken over is left: somebody may know it as free at the revision that it began with.
        let began = request.turn.filter(|turn| turn.revision == Revision::ABSENT);
        let turn = began.map(|turn| (turn.key, turn.revision.next()));
        Ok(PreparedClaim { commit, claim: Claim { snapshot, attempt, turn, undo: None, about: None } })
    }

    fn effect_after(&self, request: &ClaimRequest<'_>, new: NewAttempt) -> Result<(Effect, Event), Error> {
        let newest = request.snapshot.newest.as_deref();
        if newest.is_some_and(|stored| stored.newer) {
            return Err(Error::NewerRecord {
                effect: newest.map(|k| k.effect.id.to_string()).unwrap_or_default(),
            });
        }
        match (&request.how, newest) {
            (ClaimKind::Resend, Some(stored)) => {
                let event = Event::Resent(new);
                let mut effect = lifecycle::next(&stored.effect, &event)?.effect;
                if let Some(reason) = &request.intent.again {
                    effect.occurrence.adopt(reason);
                }
                Ok((effect, event))
            }
            (ClaimKind::Claim(Claiming::NextAttempt), Some(stored)) => {
                let event = Event::Claimed(new);
                let mut effect = lifecycle::next(&stored.effect, &event)?.effect;
                effect.occurrence.tried_by(request.intent.again.clone());
                Ok((effect, event))
            }
            (ClaimKind::Claim(claiming), newest) => {
                let reason = match claiming {
                    Claiming::NextEffect { reason, .. } => reason.clone(),
                    Claiming::First | Claiming::NextAttempt => request.intent.again.clone(),
                };
                let occurrence = occurrence(newest.map(|stored| &stored.effect), reason, request.intent);
                let id = effect_id(self.entropy(), request.now);
                let effect = Effect::claimed(request.intent.seed(id, occurrence, request.rule), &new);
                Ok((effect, Event::Claimed(new)))
            }
            (ClaimKind::Resend, None) => Err(Error::NoSuchEffect(request.snapshot.key.to_string())),
        }
    }

    /// The claim of an attempt by its holder, who has more to say of it: a client that took it away, or a process whose
    /// upstream answered twice. `None`: the ledger has no such attempt of this holder.
    pub async fn claim_again(
        &self,
        id: EffectId,
        attempt: AttemptNo,
        nonce: Nonce,
        holder: OwnerId,
    ) -> Result<Option<Claim>, Error> {
        let (key, stored) = match self.by_id(id).await {
            Ok(snapshot) => snapshot,
            Err(Error::NoSuchEffect(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let is_it = |snapshot: &Attempt| {
            snapshot.owner == holder
                && bool::from(snapshot.nonce.0.to_be_bytes().ct_eq(&nonce.0.to_be_bytes()))
        };
        if !stored.effect.attempt(attempt).is_some_and(is_it) {
            return Ok(None);
        }
        // A turn that it took is free as soon as others see it settled.
        let snapshot = self.at(key, stored.effect.occurrence.number).await?;
        if snapshot.effect().is_none_or(|effect| effect.id != id) {
            return Ok(None);
        }
        Ok(Some(Claim { snapshot, attempt, turn: None, undo: None, about: None }))
    }

    /// `unseen --epoch--> InDoubt`, `NotApplied --epoch--> InDoubt`, and the same for the effect that would follow an
    /// applied one: writes down that a claim of this intent may have been forgotten.
    pub async fn remember_doubt(
        &self,
        intent: &Intent,
        rule: &Rule,
        snapshot: &RecordSnapshot,
        now: At,
    ) -> Result<bool, Error> {
        let newest = snapshot.effect();
        if newest.is_some_and(|effect| !matches!(effect.state, State::Applied(_))) {
            // A refusal is not the answer of the attempt that was lost.
            let event = Event::Forgotten { at: now, epoch: snapshot.epoch.0 };
            let written = self
                .write(snapshot, RecordChange { reply: ReplyChange::Drop, ..RecordChange::to(&event, now) })
                .await?;
            return Ok(matches!(written, ChangeResult::Done(_)));
        }
        let occurrence = occurrence(newest, intent.again.clone(), intent);
        let seed = intent.seed(effect_id(self.entropy(), now), occurrence, rule);
        let effect = Effect::forgotten(seed, now, snapshot.epoch.0);
        let line = journal::note("forgotten", Some(&effect), intent.run_key, serde_json::json!({}), now);
        let index = index_of_first(intent, &effect);
        let (put, _) = snapshot.insert(effect, index);
        let commit = Commit {
            require: Require { cells: vec![(EPOCH_CELL, snapshot.epoch)], ..Require::default() },
            journal: vec![line],
            ..Commit::of(nonce(self.entropy()), vec![put])
        };
        Ok(self.commit(commit).await?.is_ok())
    }

    /// Records the answer of an attempt, whatever has happened to its effect meanwhile. Its caller keeps the claim: to try
    /// again if the ledger cannot be written, or to give up in the middle. The commit of a try that is dropped may land.
    pub async fn settle(
        &self,
        claim: &mut Claim,
        outcome: &Outcome,
        reply: Option<&[u8]>,
        now: At,
    ) -> Result<RecordUpdate, Error> {
        let attempt = claim.attempt;
        let event = Event::Settled { attempt, outcome: outcome.clone(), at: now };
        let (id, number) = (claim.effect().id, claim.effect().occurrence.number);
        let nonce = claim.effect().attempt(attempt).map(|attempt| attempt.nonce);
        // Numbers repeat after a failover that lost a claim; nonces do not.
        let mine = |effect: &Effect| effect.attempt(attempt).map(|attempt| attempt.nonce) == nonce;
        let mut snapshot = claim.snapshot.clone();
        for _ in 0..RACES_MAX {
            if !snapshot.effect().is_some_and(|effect| effect.id == id && mine(effect)) {
                return Box::pin(self.late(claim, snapshot, &event, reply, now)).await;
            }
            let second = match answered_by_another(&snapshot, attempt) {
                true => duplicate_reply(attempt, outcome, reply, claim.about.as_deref()),
                false => None,
            };
            // Given back in the commit that settles its holder. If somebody took it over, it is no longer ours.
            let turn = claim.turn.map(|(key, expected)| Put::ForgetCell { key, expected });
            let change = RecordChange {
                reply: reply_after(&snapshot, attempt, outcome, reply),
                durability: promised(claim.effect()),
                beside: turn.into_iter().collect(),
                note: second,
                undo: claim.undo.clone(),
                ..RecordChange::of_any(&event, now)
            };
            match self.write(&snapshot, change).await? {
                ChangeResult::Done(changed) => return Ok(changed),
                ChangeResult::Moved => {
                    claim.turn = None;
                    snapshot = self.at(snapshot.key, number).await?;
                    // Our own commit may have landed although its answer was lost.
                    let effect = snapshot.effect().filter(|effect| effect.id == id && mine(effect));
                    let recorded = effect.and_then(|effect| effect.attempt(attempt)).map(|a| a.verdict);
                    if recorded == Some(verdict_of(outcome)) {
                        let alarm = effect.and_then(lifecycle::duplicates);
                        return Ok(RecordUpdate { snapshot, alarm, late: None });
                    }
                }
            }
        }
        Err(Error::NotWritten { what: format!("record {} kept changing", snapshot.key) })
    }

    /// An answer whose attempt its effect has dropped, or the ledger has lost: evidence, and nothing else.
    async fn late(
        &self,
        claim: &Claim,
        snapshot: RecordSnapshot,
        event: &Event,
        reply: Option<&[u8]>,
        now: At,
    ) -> Result<RecordUpdate, Error> {
        let id = claim.effect().id;
        let dropped_by = snapshot.effect().filter(|e| e.id == id && has_dropped(e, claim.attempt));
        let alarm = dropped_by.and_then(|effect| lifecycle::alarm_of_dropped(effect, event));
        let is_lost = dropped_by.is_none();
        let run = claim.stored().index.run;
        let data = serde_json::json!({
            "attempt": claim.attempt, "occurrence": claim.effect().occurrence.number, "answer": event.word(),
            "lost": is_lost,
        });
        let mut lines = vec![journal::note("late_answer", Some(claim.effect()), run, data, now)];
        if let Event::Settled { outcome, .. } = event
            && let Some((kind, said)) = duplicate_reply(claim.attempt, outcome, reply, claim.about.as_deref())
        {
            lines.push(journal::note(kind, Some(claim.effect()), run, said, now));
        }
        lines.extend(alarm.map(|alarm| journal::alarm(alarm, claim.effect(), run, now)));
        self.noted(lines, Durability::Durable).await?;
        if is_lost {
            self.bump_after_lost(claim, now).await?;
        }
        let late = Some(if is_lost { Late::Lost } else { Late::Dropped });
        Ok(RecordUpdate { snapshot: RecordSnapshot { reply: None, ..snapshot }, alarm, late })
    }

    /// A ledger that lost this attempt may have lost more. It begins an epoch, unless one has begun since the claim. An
    /// attempt that is older than a quarantine may have been forgotten by retention instead.
    async fn bump_after_lost(&self, claim: &Claim, now: At) -> Result<(), Error> {
        let started = claim.effect().attempt(claim.attempt).map(|attempt| attempt.claimed_at);
        let young = started.is_some_and(|at| now < at.plus(QUARANTINE));
        if young && self.epoch().await?.0 <= claim.snapshot.epoch {
            self.bump_epoch("an attempt was answered that the ledger has lost", now).await?;
        }
        Ok(())
    }

    /// The turn on a resource, if nobody has it; else who does.
    pub async fn turn(
        &self,
        key: Digest,
        now: At,
    ) -> Result<Result<FreeTurn, (Revision, Box<RecordSnapshot>)>, Error> {
        let mut ended = None;
        for _ in 0..RACES_MAX {
            let (revision, turn) = self.cell::<Turn>(key).await?;
            // Read again once its holder is known to have ended: the holder may have deleted it meanwhile, and another
            // begun it anew at the same revision.
            if turn.is_none() || turn == ended {
                return Ok(Ok(FreeTurn { key, revision }));
            }
            let Some(holder) = turn else { continue };
            let snapshot = self.observe(holder.key, now).await?;
            let busy = snapshot.effect().is_some_and(|effect| {
                effect.occurrence.number == holder.occurrence
                    && matches!(effect.state, State::InFlight { attempt } if attempt == holder.attempt)
            });
            if busy {
                return Ok(Err((revision, Box::new(snapshot))));
            }
            ended = Some(holder);
        }
        Err(Error::NotRead { what: format!("turn {key} kept changing") })
    }

    /// Lets a caller's own key point to the effect that answers it, unless it has come to point elsewhere since it was
    /// `seen`.
    pub async fn remember_alias(&self, alias: Digest, seen: Revision, to: &Alias) -> Result<(), Error> {
        self.put_cell(alias, seen, to, Vec::new(), Durability::Lazy).await.map(drop)
    }

    /// Where a caller's own key points to, if it has been seen with another intent.
    pub async fn alias(&self, alias: Digest) -> Result<(Revision, Option<Alias>), Error> {
        self.cell(alias).await
    }

    /// Marks an effect as delivered, as it was last seen. Losing the mark is safe: it means undelivered.
    pub async fn delivered(&self, seen: &RecordSnapshot, now: At) -> Result<(), Error> {
        let Some((id, number)) = seen.effect().map(|effect| (effect.id, effect.occurrence.number)) else {
            return Ok(());
        };
        let mut snapshot = seen.clone();
        for _ in 0..RACES_MAX {
            let is_due = |effect: &Effect| {
                effect.id == id && effect.delivered_at.is_none() && matches!(effect.state, State::Applied(_))
            };
            if !snapshot.effect().is_some_and(is_due) {
                return Ok(());
            }
            let event = Event::Delivered { at: now };
            let change = RecordChange { durability: Durability::Lazy, ..RecordChange::of_any(&event, now) };
            match self.write(&snapshot, change).await? {
                ChangeResult::Done(_) => return Ok(()),
                ChangeResult::Moved => snapshot = self.at(seen.key, number).await?,
            }
        }
        Ok(())
    }
}

fn verdict_of(outcome: &Outcome) -> Verdict {
    match outcome {
        Outcome::Applied { .. } => Verdict::Applied,
        Outcome::NotApplied { why: NotAppliedWhy::Reported(_), .. } => Verdict::Reported,
        Outcome::NotApplied { .. } => Verdict::NotApplied,
        Outcome::InDoubt { .. } => Verdict::Unproven,
    }
}

/// How surely claim and settlement of an effect are written. A claim of a generation that a power cut has lost may be
/// sent again anyway, and its answer is then generated again: that is worth no fsync before the first token. A step
/// that its caller named has one answer for ever, and so has everything else.
fn promised(effect: &Effect) -> Durability {
    match effect.facts.class == Class::Generate && !effect.facts.caller_key {
        true => Durability::Lazy,
        false => Durability::Durable,
    }
}

/// Whether an effect has let go of this attempt, because so many came after it. Numbers only grow.
fn has_dropped(effect: &Effect, attempt: AttemptNo) -> bool {
    effect.attempt(attempt).is_none() && effect.newest_attempt().is_some_and(|newest| newest.number > attempt)
}

/// Whether an effect has the answer of another attempt than this one.
fn answered_by_another(snapshot: &RecordSnapshot, attempt: AttemptNo) -> bool {
    let state = snapshot.effect().map(|effect| &effect.state);
    matches!(state, Some(State::Applied(applied)) if applied.by.is_some_and(|by| by != attempt))
}

fn reply_after(
    snapshot: &RecordSnapshot,
    attempt: AttemptNo,
    outcome: &Outcome,
    reply: Option<&[u8]>,
) -> ReplyChange {
    let state = snapshot.effect().map(|effect| &effect.state);
    let in_flight = matches!(state, Some(State::InFlight { .. }));
    // The reply of a success is that of the attempt that did it.
    let others = answered_by_another(snapshot, attempt);
    let has_success =
        snapshot.effect().is_some_and(|effect| effect.attempts.iter().any(|a| a.verdict == Verdict::Applied));
    match (reply, outcome) {
        (Some(_), Outcome::Applied { .. }) if others => ReplyChange::Keep,
        (None, _) | (_, Outcome::InDoubt { .. }) => ReplyChange::Keep,
        // A refusal must not take the place of a success's reply.
        (Some(_), Outcome::NotApplied { .. }) if !in_flight || has_success => ReplyChange::Keep,
        (Some(bytes), _) => ReplyChange::Set(bytes.to_vec()),
    }
}

fn occurrence(newest: Option<&Effect>, reason: Option<Reason>, intent: &Intent) -> Occurrence {
    match newest {
        Some(newest) => Occurrence::after(newest, reason, &intent.marks),
        None => Occurrence::first(reason),
    }
}
