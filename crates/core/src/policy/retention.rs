//! How long replies and facts are kept.

use super::rule::WINDOW_NAMED;
use std::time::Duration;

/// Counted from settlement. Open effects, and facts of explicit keys, stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    pub replies: Duration,
    /// Never less than `windows`: without its fact a repeat is another effect.
    pub facts: Duration,
    /// The longest time for which a repeat is answered from the record.
    pub windows: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        const DAY: Duration = Duration::from_secs(86_400);
        // A month covers what people look up; a year and a month covers yearly jobs that repeat themselves.
        Retention { replies: DAY * 30, facts: DAY * 400, windows: WINDOW_NAMED }
    }
}

/// Each half on its own, as one file may say one of them and the next file the other.
#[derive(Debug, Clone, Copy, Default)]
pub struct RetentionChoices {
    pub replies: Option<Duration>,
    pub facts: Option<Duration>,
}

impl RetentionChoices {
    pub fn or(self, others: RetentionChoices) -> RetentionChoices {
        RetentionChoices { replies: self.replies.or(others.replies), facts: self.facts.or(others.facts) }
    }

    pub fn complete(self, windows: Duration) -> Retention {
        let otherwise = Retention::default();
        let replies = self.replies.unwrap_or(otherwise.replies);
        // A reply without its fact cannot exist, so longer-kept replies keep their facts.
        let facts = self.facts.unwrap_or(otherwise.facts).max(replies).max(windows);
        Retention { replies, facts, windows }
    }
}
