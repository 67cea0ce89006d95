//! The meaning of an upstream's answer, as a door read it.

use crate::effect::{Evidence, NotAppliedWhy, Reply};
use crate::effect_word::EffectWord;
use minicbor::{Decode, Encode};

/// The verdict on one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(flat)]
pub enum Outcome {
    #[n(1)]
    Applied {
        #[n(0)]
        evidence: Evidence,
        #[n(1)]
        word: EffectWord,
        #[n(2)]
        reply: Reply,
    },
    #[n(2)]
    NotApplied {
        #[n(0)]
        why: NotAppliedWhy,
        #[n(1)]
        reply: Reply,
    },
    /// It may have been carried out. `sender_gone` only with proof that nothing can be sent for it any more.
    #[n(3)]
    InDoubt {
        #[n(0)]
        why: String,
        #[n(1)]
        sender_gone: bool,
    },
}

impl Outcome {
    /// A removal that is sent again, after a doubt, and finds nothing to remove. It has converged, and nobody knows
    /// by which attempt.
    pub fn gone() -> Outcome {
        Outcome::Applied { evidence: Evidence::Probed, word: EffectWord::Deleted, reply: Reply::Unknown }
    }
}
