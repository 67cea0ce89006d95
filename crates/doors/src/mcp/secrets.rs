//! What a server repeats of a call's secrets, taken out before anything is written.

use crate::command::render::secret_values;
use crate::echoes::{Echoes, TooMany};
use semel_core::effect::NotAppliedWhy;
use semel_core::identity::{REDACTED, redact};
use semel_core::json::{self, Json};
use semel_core::outcome::Outcome;
use semel_core::policy::Rule;
use std::borrow::Cow;

/// The secrets that one call's arguments hold.
#[derive(Debug, Default)]
pub struct Secrets(Echoes);

impl Secrets {
    pub fn of(arguments: &Json, rule: &Rule) -> Secrets {
        Secrets(Echoes::of(secret_values(arguments, &rule.sorting.secret)))
    }

    /// JSON as it may be written. What holds no secret stays as it was spelled.
    pub fn out_of_json(&self, text: &str) -> Result<String, TooMany> {
        let mut kept = text.to_owned();
        if let Ok(value) = json::parse(text) {
            let clean = redact(&value, &[]);
            if clean != value {
                kept = clean.canonical();
            }
        }
        self.out_of_text(kept)
    }

    /// The same for what was read from an answer. Errors like to repeat what they do not accept.
    pub fn out_of(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::NotApplied { why: NotAppliedWhy::Refused(why), reply } => {
                Outcome::NotApplied { why: NotAppliedWhy::Refused(self.out_of_words(&why)), reply }
            }
            Outcome::InDoubt { why, sender_gone } => {
                Outcome::InDoubt { why: self.out_of_words(&why), sender_gone }
            }
            Outcome::Applied { .. } | Outcome::NotApplied { .. } => outcome,
        }
    }

    fn out_of_words(&self, words: &str) -> String {
        let shown = redact(&Json::str(words), &[]);
        let shown = shown.as_str().unwrap_or(words).to_owned();
        self.out_of_text(shown).unwrap_or_else(|TooMany| REDACTED.to_owned())
    }

    fn out_of_text(&self, text: String) -> Result<String, TooMany> {
        Ok(match self.0.out_of(text.as_bytes())? {
            Cow::Borrowed(_) => text,
            Cow::Owned(clean) => String::from_utf8_lossy(&clean).into_owned(),
        })
    }
}
