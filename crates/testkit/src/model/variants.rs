//! The upstream kinds, and the ways to break exactly one rule.

/// What the upstream offers to whoever wants to know whether an effect happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UpstreamVariant {
    /// Nothing: a lost answer stays lost.
    Opaque,
    /// A read-only question, whose answer may lag behind the truth.
    Probed,
    /// It remembers an idempotency key, for a while.
    Keyed,
}

/// The rules as designed, or with one of them replaced by a plausible mistake.
///
/// A model that has never refused anything is no evidence, so every mistake here must be caught.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Variant {
    /// Every rule as designed.
    Correct,
    /// A passed deadline lets the next caller run the effect again.
    LeaseReexecute,
    /// A passed deadline frees the intent, as though nothing had been sent.
    TimeoutRelease,
    /// The first byte leaves before the claim is durable.
    SendBeforeClaim,
    /// A failover that lost a claim goes unnoticed: no epoch guard.
    FailoverLosesClaim,
    /// Retention deletes the fact of an applied effect along with its reply.
    PruneToAbsent,
    /// Retention deletes an effect that is still in doubt.
    PruneInDoubt,
    /// A library under the gate re-sends a request after a reset.
    TransparentResend,
    /// The run's fence is read on admission and not in the claim's own commit.
    CancelCheckOutsideTransaction,
    /// The caller hears of success before the settlement is durable.
    ReplyBeforeSettle,
    /// A probe's "no" counts although the sender may still send.
    NaiveProbe,
    /// A probe's "no" counts although the quiet time has not elapsed.
    StaleProbe,
    /// A settlement overwrites whatever the record says by now.
    SettleWithoutCompareAndSwap,
    /// Each attempt sends an idempotency key of its own.
    DownstreamKeyPerAttempt,
    /// A re-send relies on a key that the upstream may have forgotten.
    DownstreamKeyLifeLapsed,
    /// "Never sent" frees the intent although an earlier attempt is unproven.
    ReleaseIgnoresPriorAttempt,
    /// "Refused" frees the intent although an earlier attempt is unproven.
    FailureIgnoresPriorAttempt,
    /// The resolver re-sends for a run that was cancelled.
    ResolverIgnoresCancel,
    /// The epoch guard distrusts what is absent, and trusts an old "not applied".
    ///
    /// Not one of the classic mistakes, but what rule 9 says if taken by the letter. A failover can lose the
    /// claim of a second attempt just as well as that of a first one, and what it uncovers then is not an
    /// absence.
    EpochGuardsAbsenceOnly,
    /// A probe's "no" counts for a doubt of a later epoch than the one it was asked in.
    ///
    /// An early version of this model did so, and the search objected. A failover that loses the claim of a second
    /// attempt brings back the very doubt that the probe was asked about, attempt number and all.
    ProbeOutlivesEpoch,
}

impl Variant {
    /// Every broken variant, in the order of the declaration.
    pub const BROKEN: [Self; 19] = [
        Self::LeaseReexecute,
        Self::TimeoutRelease,
        Self::SendBeforeClaim,
        Self::FailoverLosesClaim,
        Self::PruneToAbsent,
        Self::PruneInDoubt,
        Self::TransparentResend,
        Self::CancelCheckOutsideTransaction,
        Self::ReplyBeforeSettle,
        Self::NaiveProbe,
        Self::StaleProbe,
        Self::SettleWithoutCompareAndSwap,
        Self::DownstreamKeyPerAttempt,
        Self::DownstreamKeyLifeLapsed,
        Self::ReleaseIgnoresPriorAttempt,
        Self::FailureIgnoresPriorAttempt,
        Self::ResolverIgnoresCancel,
        Self::EpochGuardsAbsenceOnly,
        Self::ProbeOutlivesEpoch,
    ];
}
