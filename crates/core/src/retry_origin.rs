//! The layer that sent a call again, as far as its headers and its answer tell. It is counted and traced; nothing is decided by it.

use crate::answer::{Answer, Code, OutcomeWord, Trouble};
use crate::word_table;

/// The layer that sent a call again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RetryOrigin {
    /// A connection was lost, and the very same message came again.
    Transport,
    /// A client library that retries by itself.
    Sdk,
    /// The framework or the model.
    Agent,
    /// Another process at the same time.
    Process,
}

word_table!(RetryOrigin { Transport = "transport", Sdk = "sdk", Agent = "agent", Process = "process" });

impl RetryOrigin {
    /// `None`: the call is no repeat, as far as anything says so.
    pub fn of(answer: &Answer, seen: SeenOfRetry) -> Option<RetryOrigin> {
        let SeenOfRetry { retries, reissued, joined_elsewhere } = seen;
        let budget_spent = |trouble: &Trouble| trouble.code == Code::BudgetSpent;
        let repeats = answer.possible_repeat
            || answer.trouble.as_ref().is_some_and(budget_spent)
            || matches!(answer.outcome, OutcomeWord::Replayed | OutcomeWord::Joined | OutcomeWord::Held);
        match () {
            () if retries > 0 => Some(RetryOrigin::Sdk),
            () if !repeats => None,
            () if reissued => Some(RetryOrigin::Transport),
            () if joined_elsewhere => Some(RetryOrigin::Process),
            () => Some(RetryOrigin::Agent),
        }
    }
}

/// The facts that tell the layers apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SeenOfRetry {
    /// How often the client library says that it has sent the call before.
    pub retries: u32,
    /// It was answered as the very call that was made before.
    pub reissued: bool,
    /// It waited for an attempt of another process.
    pub joined_elsewhere: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::Tier;
    use crate::wording;

    #[test]
    fn the_header_speaks_first_then_the_answer() {
        use RetryOrigin::{Agent, Process, Sdk, Transport};
        let seen = |retries, reissued, joined_elsewhere| SeenOfRetry { retries, reissued, joined_elsewhere };
        let answer = |outcome| Answer::of_trouble(Tier::Opaque, outcome, wording::lost_sight());
        for (outcome, seen, origin) in [
            (OutcomeWord::Ran, seen(0, false, false), None),
            (OutcomeWord::Refused, seen(0, false, false), None),
            (OutcomeWord::Ran, seen(2, false, false), Some(Sdk)),
            (OutcomeWord::Replayed, seen(1, true, false), Some(Sdk)),
            (OutcomeWord::Replayed, seen(0, true, false), Some(Transport)),
            (OutcomeWord::Joined, seen(0, false, true), Some(Process)),
            (OutcomeWord::Joined, seen(0, false, false), Some(Agent)),
            (OutcomeWord::Held, seen(0, false, false), Some(Agent)),
        ] {
            assert_eq!(RetryOrigin::of(&answer(outcome), seen), origin, "{outcome:?} {seen:?}");
        }
    }
}
