//! What the ledger can say about the one intent key.

/// The identity of one claim, never used twice, not even by a store that forgot the first use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModelNonce(pub u8);

impl ModelNonce {
    pub(super) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A set of claims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Nonces(u8);

impl Nonces {
    pub(super) fn insert(&mut self, nonce: ModelNonce) {
        self.0 |= 1 << nonce.0;
    }

    pub(super) fn remove(&mut self, nonce: ModelNonce) {
        self.0 &= !(1 << nonce.0);
    }

    pub(super) fn contains(self, nonce: ModelNonce) -> bool {
        self.0 & (1 << nonce.0) != 0
    }

    pub(super) fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether a claim below `count` is in the set, which is to say one of the first `count` claims.
    pub(super) fn any_of_first(self, count: u8) -> bool {
        (0..count).any(|nonce| self.contains(ModelNonce(nonce)))
    }
}

/// The right to make one attempt: `number` fences late writers, `nonce` tells two claims apart that a
/// forgetful store gave the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModelClaim {
    pub number: u8,
    pub nonce: ModelNonce,
}

/// How the ledger knows that an effect happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ModelEvidence {
    Reported,
    /// Success of an attempt that was no longer the open one.
    LateAnswer,
    Probe,
}

/// How the ledger knows that an effect did not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Disproof {
    Refused,
    NeverSent,
    Probe,
    /// No proof at all: what [`super::Variant::TimeoutRelease`] takes for one.
    Timeout,
}

/// What the ledger says of the one intent key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Record {
    Absent,
    InFlight {
        claim: ModelClaim,
        earlier_unproven: bool,
    },
    /// `newest` is the last claim that the ledger knows, none if a failover lost the only one.
    InDoubt {
        newest: Option<ModelClaim>,
    },
    Applied {
        evidence: ModelEvidence,
        reply_kept: bool,
    },
    NotApplied {
        newest: Option<ModelClaim>,
        disproof: Disproof,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ModelLedger {
    pub record: Record,
    /// The record was last written before the store's newest epoch, so a claim may be missing from it.
    pub of_older_epoch: bool,
    /// Rises with every failover that the store admits to.
    pub epoch: u8,
    /// What a failover now would bring back: the record before the newest claim, while that claim is the
    /// newest commit.
    pub before_claim: Option<Record>,
    /// The run was cancelled.
    pub fenced: bool,
}

/// Which doubt a probe was asked about. The newest claim alone does not tell: a failover that loses a later
/// claim brings an older doubt back, word for word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ModelDoubt {
    pub newest: Option<ModelClaim>,
    pub epoch: u8,
}
