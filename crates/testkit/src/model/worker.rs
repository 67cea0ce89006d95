//! Where a gate process can stand.

use super::record::{ModelClaim, ModelDoubt, ModelNonce};

/// How an attempt ended, as its sender knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ModelAnswer {
    Success,
    Refused,
    NeverSent,
}

/// What goes out to the caller, where it asserts something. "Wait" and "in doubt" assert nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ModelReply {
    Success {
        replayed: bool,
    },
    /// It certainly did not happen, by any of the first `covers` claims.
    NotApplied {
        covers: u8,
    },
}

/// Where a gate process stands. It may stand still anywhere for as long as it likes: a pause is a step not
/// taken yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ModelWorker {
    Idle,
    /// Holds a request and has written nothing. `saw_fence` is kept only by the variant that relies on it.
    Admitted {
        saw_fence: bool,
    },
    /// Has sent without a claim, which only a broken variant does.
    SentUnclaimed {
        nonce: ModelNonce,
    },
    Claimed {
        claim: ModelClaim,
    },
    /// Has looked at its deadline for the last time, and may send.
    Checked {
        claim: ModelClaim,
    },
    Waiting {
        claim: ModelClaim,
    },
    Answered {
        claim: ModelClaim,
        answer: ModelAnswer,
    },
    Replying {
        reply: ModelReply,
    },
    /// Has asked the upstream about this doubt. A "no" is here only if it counted when the question was
    /// asked.
    Probed {
        doubt: ModelDoubt,
        found: bool,
    },
}

impl ModelWorker {
    /// The claim that dies with this process.
    pub(super) fn nonce(self) -> Option<ModelNonce> {
        match self {
            Self::Claimed { claim }
            | Self::Checked { claim }
            | Self::Waiting { claim }
            | Self::Answered { claim, .. } => Some(claim.nonce),
            Self::SentUnclaimed { nonce } => Some(nonce),
            Self::Idle | Self::Admitted { .. } | Self::Replying { .. } | Self::Probed { .. } => None,
        }
    }
}
