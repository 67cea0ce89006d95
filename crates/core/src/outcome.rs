//! The meaning of an upstream's answer, as a door read it.

use crate::effect::{Evidence, NotAppliedWhy, Reply};
use crate::effect_word::EffectWord;

/// The verdict on one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Applied {
        evidence: Evidence,
        word: EffectWord,
        reply: Reply,
    },
    NotApplied {
        why: NotAppliedWhy,
        reply: Reply,
    },
    /// It may have been carried out. `sender_gone` only with proof that nothing can be sent for it any more.
    InDoubt {
        why: String,
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
