//! An effect: a change in the outside world, and its entry in the ledger. Its state answers one question: did it
//! happen?

use crate::class::{Class, Tier};
use crate::digest::Digest;
use crate::effect_word::EffectWord;
use crate::identity::{IntentDigest, Marks};
use crate::ids::{AttemptNo, EffectId, Nonce, OwnerId, Reason, Run};
use crate::time::{At, Uptime};
use crate::undo::{Undo, UndoCall, Undoes, Undone};
use crate::word_table;
use minicbor::{Decode, Encode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    pub id: EffectId,
    pub occurrence: Occurrence,
    /// Shared, like the marks: they stay what they are while states change, and every change copies an effect.
    pub facts: Arc<Facts>,
    pub marks: Arc<Marks>,
    /// Newest last. Attempts proven not applied are dropped from the front beyond [`ATTEMPTS_KEPT`].
    pub attempts: Vec<Attempt>,
    pub state: State,
    pub opened_at: At,
    /// The epoch of the store in which it was claimed last, or in which it was recorded that a claim may be lost.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub epoch: u64,
    /// The first time its answer reached a caller. Missing means undelivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered_at: Option<At>,
    /// How it can be taken back, since it was known to have happened; `None` where its rule does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<Undo>,
    /// It was taken back. It happened all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone: Option<Undone>,
    /// Somebody lets it happen once more, where its rule leaves that to a person.
    #[serde(rename = "released", default, skip_serializing_if = "Option::is_none")]
    pub repeat_permitted: Option<Ruling>,
    /// How often an upstream has refused it for certain. It may remember a refusal under its key, so that a caller who
    /// tries again needs another one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refusals: u64,
}

fn is_zero(epoch: &u64) -> bool {
    *epoch == 0
}

/// Enough to read a history by; an unproven attempt is never dropped, but past a [`STORM`] where repeats do no harm.
pub const ATTEMPTS_KEPT: usize = 16;

/// The retries of all layers above one request come within a minute: three layers of two retries each, with pauses of
/// at most eight seconds.
pub const STORM: Duration = Duration::from_secs(60);

/// Which effect of its record this is, and why it was wanted again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
pub struct Occurrence {
    /// From 1.
    #[n(0)]
    pub number: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[n(1)]
    pub reason: Option<Reason>,
    /// Reasons of earlier deliberate repeats of this record, so that a retried one finds its own occurrence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[n(2)]
    pub earlier: Vec<(u32, Reason)>,
    /// The calls that earlier effects of this record were made for, oldest first, so that a transport that repeats one
    /// finds its own effect too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[n(3)]
    pub calls: Vec<(u32, CallMark)>,
    /// The success that this one follows; of the first effect there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[n(4)]
    pub before: Option<PreviousSuccess>,
    /// A person let the success before it happen once more, and this is what became of that.
    #[serde(rename = "by_leave", default, skip_serializing_if = "std::ops::Not::not")]
    #[n(5)]
    pub by_permission: bool,
}

impl Occurrence {
    /// Whether it was made, or answered for, with this very reason.
    pub fn was_for(&self, reason: &Reason) -> bool {
        self.reason.as_ref() == Some(reason)
            || self.earlier.iter().any(|(number, known)| *number == self.number && known == reason)
    }
}

/// Facts about a success that count once the record has gone on, because the next effect may never happen, and then
/// the success still answers its repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
pub struct PreviousSuccess {
    #[n(0)]
    pub number: u32,
    #[n(1)]
    pub delivered_at: At,
    /// When it was claimed: [`Attempt::uptime`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[n(2)]
    pub uptime: Option<Uptime>,
}

/// A call by the model's id for it and by what it said: the same again is a transport that repeats itself. It need not
/// be unique beyond its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
#[serde(transparent)]
#[cbor(transparent)]
pub struct CallMark(#[n(0)] pub u64);

impl CallMark {
    pub fn of(call_id: &str, marks: &Marks) -> CallMark {
        CallMark(Digest::of(&[&marks.fingerprint.0, call_id.as_bytes()]).short())
    }
}

/// A transport repeats itself within minutes, and a model rarely says the same so often meanwhile.
pub const EARLIER_CALLS_KEPT: usize = 32;

/// A record repeated on purpose more often than this takes no further reasons: a key of its own is the better name.
pub const EARLIER_REASONS_KEPT: usize = 200;

/// Facts that do not change while the effect lives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
pub struct Facts {
    #[n(0)]
    pub action: String,
    #[n(1)]
    pub class: Class,
    #[n(2)]
    pub tier: Tier,
    #[n(3)]
    pub tenant: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[n(4)]
    pub run: Option<Run>,
    #[n(5)]
    pub digest: IntentDigest,
    /// A caller named it with a key of its own: it answers for ever and its fact is never pruned.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[n(6)]
    pub caller_key: bool,
    /// A caller came to it with a key that only joins (`caller_key = "joins"`): that key means it for ever, so its fact
    /// is never pruned either.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[n(7)]
    pub by_joining_key: bool,
    /// One redacted line for tables.
    #[n(8)]
    pub subject: String,
    /// Where the rule stands, as `semel.toml:12`, or `default`.
    #[n(9)]
    pub rule: String,
    /// It takes another effect back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[n(10)]
    pub undoes: Option<Undoes>,
    /// Whose call it was: [`principal_mark`](crate::intent::principal_mark). 0 in records from before it was kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[n(11)]
    pub principal: u64,
    /// Which key its upstream knows it by: [`Intent::upstream_key`](crate::intent::Intent::upstream_key). 0 in records
    /// from before it was kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[n(12)]
    pub upstream_key: u64,
    /// The server behind its action: [`authority_mark`](crate::intent::authority_mark). 0 where nothing tells two
    /// of one name apart, and in records from before it was kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[n(13)]
    pub authority: u64,
    /// How its rule read the arguments: [`Sorting::reading`](crate::identity::Sorting).
    #[serde(default, skip_serializing_if = "is_zero")]
    #[n(14)]
    pub reading: u64,
}

impl Facts {
    /// A caller named it with a key, or its class says so. Then a failure that proves nothing is a doubt.
    pub fn must_happen_once(&self) -> bool {
        self.caller_key || self.by_joining_key || self.class == Class::Consequential
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
pub struct Attempt {
    #[n(0)]
    pub number: AttemptNo,
    #[n(1)]
    pub nonce: Nonce,
    #[n(2)]
    pub owner: OwnerId,
    #[n(3)]
    pub claimed_at: At,
    /// When an unanswered attempt stops being merely slow.
    #[n(4)]
    pub deadline: At,
    #[n(5)]
    pub last_send: LastSend,
    #[n(6)]
    pub verdict: Verdict,
    /// semel itself sent it again, after a doubt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[n(7)]
    pub resend: bool,
    /// The model's id of the call. Never identity; the same id again means that a transport repeated itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[n(8)]
    pub call_id: Option<String>,
    /// Whose call it was: a fence stops the attempts of its run, whichever run the effect began in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[n(9)]
    pub run: Option<Run>,
    /// The epoch of the store in which it was claimed.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[n(10)]
    pub epoch: u64,
    /// When its sender was proven unable to send any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[n(11)]
    pub gone_at: Option<At>,
    /// The caller's trace, so that a repeat can point to it. `None`: the effect's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[n(12)]
    pub trace: Option<u128>,
    /// When it was claimed, by the clock that nobody can set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[n(13)]
    pub uptime: Option<Uptime>,
}

/// An attempt without a timeout that is in flight for so long is in doubt even if its holder lives. A holder that works
/// ends it far sooner, once its upstream is silent.
pub const IN_FLIGHT_MAX: Duration = Duration::from_secs(24 * 3600);

impl Attempt {
    /// The deadline that its rule or its caller has set.
    pub fn timeout_at(&self) -> Option<At> {
        (self.deadline.since(self.claimed_at) < IN_FLIGHT_MAX).then_some(self.deadline)
    }
}

/// Until when the holder of an attempt may still send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
#[serde(rename_all = "snake_case")]
#[cbor(flat)]
pub enum LastSend {
    /// It checks this instant at the last moment before sending.
    #[n(1)]
    By(#[n(0)] At),
    /// As long as it lives: a child process may act at any time.
    #[n(2)]
    WhileAlive,
}

/// The verdict on one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Encode, Decode)]
#[serde(rename_all = "snake_case")]
#[cbor(index_only)]
pub enum Verdict {
    /// Not answered yet.
    #[n(1)]
    Open,
    /// Its answer was lost or ambiguous: it may have been carried out.
    #[n(2)]
    Unproven,
    #[n(3)]
    Applied,
    #[n(4)]
    NotApplied,
    /// The tool said that it failed, and its word was taken.
    #[n(5)]
    Reported,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
#[serde(tag = "is", rename_all = "snake_case")]
#[cbor(flat)]
pub enum State {
    #[n(1)]
    InFlight {
        #[n(0)]
        attempt: AttemptNo,
    },
    #[n(2)]
    Applied(#[n(0)] Applied),
    #[n(3)]
    NotApplied(#[n(0)] NotApplied),
    #[n(4)]
    InDoubt(#[n(0)] InDoubt),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
pub struct Applied {
    #[n(0)]
    pub at: At,
    #[n(1)]
    pub evidence: Evidence,
    /// The attempt that did it; unknown when a probe or a person said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[n(2)]
    pub by: Option<AttemptNo>,
    #[n(3)]
    pub word: EffectWord,
    #[n(4)]
    pub reply: Reply,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[n(5)]
    pub ruling: Option<Ruling>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
pub struct NotApplied {
    #[n(0)]
    pub at: At,
    #[n(1)]
    pub why: NotAppliedWhy,
    #[n(2)]
    pub reply: Reply,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[n(3)]
    pub ruling: Option<Ruling>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
pub struct InDoubt {
    #[n(0)]
    pub since: At,
    #[n(1)]
    pub why: Doubt,
}

/// How well we know that it happened, weakest first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Encode, Decode,
)]
#[serde(rename_all = "snake_case")]
#[cbor(index_only)]
pub enum Evidence {
    /// The upstream took it and has not done it yet.
    #[n(1)]
    Accepted,
    /// The upstream said that it did it.
    #[n(2)]
    Reported,
    /// A person or an agent decided so.
    #[n(3)]
    Ruled,
    /// A probe found it.
    #[n(4)]
    Probed,
    /// A probe after a reported success agreed.
    #[n(5)]
    Confirmed,
}

word_table!(Evidence {
    Accepted = "accepted", Reported = "reported", Ruled = "ruled", Probed = "probed", Confirmed = "confirmed",
});

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
#[serde(rename_all = "snake_case")]
#[cbor(flat)]
pub enum NotAppliedWhy {
    /// The upstream refused, in the words given.
    #[n(1)]
    Refused(#[n(0)] String),
    /// The upstream said that it failed, in the words given. Whether it changed anything is not known; its word is taken
    /// where nothing says that the effect must happen only once.
    #[n(2)]
    Reported(#[n(0)] String),
    /// Zero bytes left, or a protocol-level refusal.
    #[n(3)]
    NeverSent(#[n(0)] String),
    #[n(4)]
    AwaitingInput,
    #[n(5)]
    Cancelled,
    /// A probe, believed under rule 5, did not find it.
    #[n(6)]
    Probed,
    #[n(7)]
    Ruled,
    /// A success that a confirm disproved. Never re-run automatically.
    #[n(8)]
    Refuted(#[n(0)] String),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
#[serde(rename_all = "snake_case")]
#[cbor(flat)]
pub enum Doubt {
    /// The process that held the attempt is gone.
    #[n(1)]
    HolderDied,
    /// It has not been heard of, and may still be there.
    #[n(8)]
    HolderSilent,
    #[n(2)]
    DeadlinePassed,
    /// The answer does not tell, for this reason.
    #[n(3)]
    Ambiguous(#[n(0)] String),
    /// The store may have forgotten a claim of this intent.
    #[n(4)]
    Epoch,
    #[n(5)]
    Reopened(#[n(0)] Reason),
    /// A newer semel wrote a state that this one does not know.
    #[n(6)]
    WrittenByNewer,
    /// Its record cannot be read. Nothing is known of it but that it was claimed.
    #[n(7)]
    Damaged,
}

/// The part of an upstream's answer that the ledger keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
#[serde(rename_all = "snake_case")]
#[cbor(flat)]
pub enum Reply {
    /// It was recorded. That retention has dropped it since is seen by its absence, so pruning rewrites no fact.
    #[n(1)]
    Kept,
    /// Nobody knows it: a probe or a person answered.
    #[n(2)]
    Unknown,
    /// Larger than the cap, so only the fact is kept.
    #[n(3)]
    TooLarge(#[n(0)] u64),
}

/// The decision of a person or an agent about a doubt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
pub struct Ruling {
    #[n(0)]
    pub by: String,
    #[n(1)]
    pub reason: Reason,
    #[n(2)]
    pub at: At,
}

impl Occurrence {
    /// Its reason, if there is one, makes a retry with the same reason the same occurrence; so it is kept for the very
    /// first effect too.
    pub fn first(reason: Option<Reason>) -> Occurrence {
        let (earlier, calls) = (Vec::new(), Vec::new());
        Occurrence { number: 1, reason, earlier, calls, before: None, by_permission: false }
    }

    /// The occurrence that a call with these marks opens after an effect that happened.
    pub fn after(newest: &Effect, reason: Option<Reason>, marks: &Marks) -> Occurrence {
        let Occurrence { number, reason: last_reason, mut earlier, mut calls, .. } =
            newest.occurrence.clone();
        earlier.extend(last_reason.map(|reason| (number, reason)));
        calls.extend(newest.calls().map(|id| (number, CallMark::of(id, &newest.marks))));
        calls.drain(..calls.len().saturating_sub(EARLIER_CALLS_KEPT));
        let uptime = newest.newest_attempt().and_then(|attempt| attempt.uptime);
        let before = newest.delivered_at.map(|delivered_at| PreviousSuccess { number, delivered_at, uptime });
        // A permission is for the call that happened, and for nothing else.
        let by_permission =
            newest.repeat_permitted.is_some() && newest.marks.fingerprint == marks.fingerprint;
        Occurrence { number: number + 1, reason, earlier, calls, before, by_permission }
    }

    /// Nothing came of it so far. A call that tries it now gives its reason: the retry must find it, and nobody else's
    /// may.
    pub fn tried_by(&mut self, reason: Option<Reason>) {
        let own = self.number;
        self.earlier.retain(|(number, _)| *number != own);
        self.reason = reason;
    }

    /// The call with this reason was answered with this effect, and its retry must be too. Of one that does not fit any
    /// more the retry is refused, as every new reason is.
    pub fn adopt(&mut self, reason: &Reason) {
        let known =
            self.reason.as_ref() == Some(reason) || self.earlier.iter().any(|(_, known)| known == reason);
        if !known && self.earlier.len() < EARLIER_REASONS_KEPT {
            self.earlier.push((self.number, reason.clone()));
        }
    }
}

impl Effect {
    /// The model's ids of the calls that it was made for. One that was refused has had its answer, and is none of them.
    pub fn calls(&self) -> impl Iterator<Item = &str> {
        let failed = |verdict| matches!(verdict, Verdict::NotApplied | Verdict::Reported);
        let meant = self.attempts.iter().filter(move |attempt| !failed(attempt.verdict));
        meant.filter_map(|attempt| attempt.call_id.as_deref())
    }

    /// An effect whose record is damaged: claimed at some time, by nobody knows whom.
    pub fn unreadable(id: EffectId, number: u32, since: At) -> Effect {
        let nothing = Digest([0; 32]);
        let facts = Facts {
            action: "(unreadable)".into(),
            class: Class::Consequential,
            tier: Tier::Opaque,
            tenant: String::new(),
            run: None,
            digest: IntentDigest(nothing),
            caller_key: true,
            by_joining_key: false,
            subject: "its record is damaged".into(),
            rule: "default".into(),
            undoes: None,
            principal: 0,
            upstream_key: 0,
            authority: 0,
            reading: 0,
        };
        Effect {
            id,
            occurrence: Occurrence { number, ..Occurrence::first(None) },
            facts: Arc::new(facts),
            marks: Arc::new(Marks::unknown()),
            attempts: Vec::new(),
            state: State::InDoubt(InDoubt { since, why: Doubt::Damaged }),
            opened_at: since,
            epoch: 0,
            delivered_at: None,
            undo: None,
            undone: None,
            repeat_permitted: None,
            refusals: 0,
        }
    }

    pub fn is_damaged(&self) -> bool {
        matches!(&self.state, State::InDoubt(doubt) if doubt.why == Doubt::Damaged)
    }

    pub fn is_open(&self) -> bool {
        matches!(self.state, State::InFlight { .. } | State::InDoubt(_))
    }

    /// Whether an attempt before the one in flight may have been carried out.
    pub fn has_unproven(&self) -> bool {
        self.attempts.iter().any(|attempt| attempt.verdict == Verdict::Unproven)
    }

    pub fn attempt(&self, number: AttemptNo) -> Option<&Attempt> {
        self.attempts.iter().find(|attempt| attempt.number == number)
    }

    pub fn newest_attempt(&self) -> Option<&Attempt> {
        self.attempts.last()
    }

    /// The attempt in flight, if there is one.
    pub fn open_attempt(&self) -> Option<&Attempt> {
        match self.state {
            State::InFlight { attempt } => self.attempt(attempt),
            _ => None,
        }
    }

    /// The call that takes it back, unless that was made already.
    pub fn undoable(&self) -> Option<&UndoCall> {
        match (&self.state, &self.undo, self.undone) {
            (State::Applied(_), Some(Undo::By(call)), None) => Some(call),
            _ => None,
        }
    }

    /// Rule 9: whether no claim can have been lost that would have changed what this state allows.
    pub fn is_whole_in(&self, epoch: u64) -> bool {
        match self.state {
            State::InFlight { .. } => true,
            // Whatever was lost of this effect, it is settled; the next one may have been claimed after it, unless
            // this one was certain not to have happened in this very epoch. Claims prove that; resends do not.
            State::Applied(_) => {
                self.attempts.iter().any(|attempt| !attempt.resend && attempt.epoch >= epoch)
            }
            State::NotApplied(_) | State::InDoubt(_) => self.epoch >= epoch,
        }
    }

    pub fn resends(&self) -> u32 {
        self.attempts.iter().filter(|attempt| attempt.resend).count() as u32
    }

    /// The re-sends of the last while. A clock that went back makes them more, not fewer.
    pub fn resends_within(&self, span: Duration, now: At) -> u32 {
        let young = |attempt: &&Attempt| attempt.resend && now.since(attempt.claimed_at) < span;
        self.attempts.iter().filter(young).count() as u32
    }

    /// When this effect last changed its state.
    pub fn changed_at(&self) -> At {
        match &self.state {
            State::InFlight { .. } => {
                self.newest_attempt().map_or(self.opened_at, |attempt| attempt.claimed_at)
            }
            State::Applied(applied) => applied.at,
            State::NotApplied(not_applied) => not_applied.at,
            State::InDoubt(doubt) => doubt.since,
        }
    }

    /// Rule 5: whether a probe's "no" counts now. It does only if every attempt that may have been carried out
    /// is past its last moment for sending, or its holder is proven dead, and `quiet` has elapsed since, and since an
    /// answer was last waited for.
    pub fn may_believe_no(&self, quiet: Duration, now: At) -> bool {
        let gone_since = |attempt: &Attempt| match (attempt.gone_at, attempt.last_send) {
            (Some(gone), LastSend::By(last)) => Some(gone.min(last)),
            (Some(gone), LastSend::WhileAlive) => Some(gone),
            (None, LastSend::By(last)) => Some(last),
            (None, LastSend::WhileAlive) => None,
        };
        // A claim that the store forgot: its sender is unknown, so it gets the time any sender has, counted from when
        // the loss was seen.
        let lost = matches!(&self.state, State::InDoubt(doubt) if doubt.why == Doubt::Epoch);
        if lost && now < self.changed_at().plus(SEND_WITHIN + quiet) {
            return false;
        }
        // While somebody still waited for its answer the upstream may have been at work, and what stands before it
        // gives up sooner than it does. A holder that died has waited until then, which was not later than it was seen.
        let was_awaited = |why: &Doubt| match why {
            Doubt::Ambiguous(_) | Doubt::DeadlinePassed | Doubt::HolderDied | Doubt::HolderSilent => true,
            Doubt::Epoch | Doubt::Reopened(_) | Doubt::WrittenByNewer | Doubt::Damaged => false,
        };
        if let State::InDoubt(InDoubt { since, why }) = &self.state
            && was_awaited(why)
            && now < since.plus(quiet)
        {
            return false;
        }
        let mut unproven =
            self.attempts.iter().filter(|attempt| attempt.verdict == Verdict::Unproven).peekable();
        if unproven.peek().is_none() {
            return now >= self.changed_at().plus(SEND_WITHIN + quiet);
        }
        unproven.all(|attempt| gone_since(attempt).is_some_and(|gone| now >= gone.plus(quiet)))
    }

    /// The same by the uptime of the machine, as far as that can tell. A wall clock that was set forward, perhaps before this
    /// process began, makes attempts look older than they are; so does one that is ahead of the sender's.
    pub fn has_been_quiet(&self, quiet: Duration, now: At, uptime: Option<Uptime>) -> bool {
        let mut unproven = self.attempts.iter().filter(|attempt| attempt.verdict == Verdict::Unproven);
        unproven.all(|attempt| {
            let sends_for = match (attempt.gone_at, attempt.last_send) {
                (None, LastSend::By(last)) => Some(last.since(attempt.claimed_at)),
                _ => None,
            };
            let silence = sends_for.unwrap_or_default() + quiet;
            let Some((here, there)) = uptime.zip(attempt.uptime) else { return true };
            match here.since(there) {
                Some(age) => age >= silence,
                // Another boot, or another machine. A death that was seen was seen by a lock, not by a clock.
                None => sends_for.is_none() || now >= attempt.claimed_at.plus(silence + CLOCKS_DIFFER_MAX),
            }
        })
    }
}

/// The clocks of two hosts differ by no more: a host is refused whose clock is further than half of this from the clock of
/// the ledger's server.
pub const CLOCKS_DIFFER_MAX: Duration = Duration::from_secs(10);

/// The last moment for sending comes this long after the claim. Everything that can be slow (resolving,
/// connecting, TLS) happens before the claim, so a sender needs milliseconds; what is later was paused.
pub const SEND_WITHIN: Duration = Duration::from_secs(10);
