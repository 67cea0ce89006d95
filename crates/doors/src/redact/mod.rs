//! The secrets of a call, taken out of everything that is written about it: values that its request held (`values`), names
//! that give a secret away (`names`), parts of an answer that a rule marks ([`SecretParts`]).

pub mod body;
pub mod names;
pub mod result;
mod values;

pub use semel_core::redact::{MayHoldSecret, SecretParts};
pub use values::KnownSecrets;

use semel_core::effect::NotAppliedWhy;
use semel_core::json::Json;
use semel_core::outcome::Outcome;
use semel_core::policy::Rule;
use semel_core::redact::{REDACTED, redact, secret_values};
use std::borrow::Cow;

#[derive(Debug, Default)]
pub struct Secrets {
    /// Those that the request held: upstreams like to repeat it.
    values: KnownSecrets,
    /// Where the rule says that an answer holds one.
    parts: SecretParts,
}

impl Secrets {
    pub fn of(arguments: &Json, rule: &Rule) -> Secrets {
        let values = KnownSecrets::of(secret_values(arguments, &rule.sorting.secret));
        Secrets { values, parts: SecretParts::of(rule) }
    }

    /// Whether the rule calls a part of an answer secret.
    pub fn has_parts(&self) -> bool {
        !self.parts.is_empty()
    }

    /// A line for people, as it may be kept. Where it tells what an answer said, it is made of an answer that may be.
    pub fn out_of_line<'a>(&self, line: &'a str) -> Cow<'a, str> {
        let shown = redact(&Json::str(line), &[]);
        let shown = shown.as_str().filter(|shown| *shown != line).map(str::to_owned);
        let line = shown.map_or(Cow::Borrowed(line), Cow::Owned);
        match self.values.out_of(line.as_bytes()) {
            Ok(Cow::Borrowed(_)) => line,
            Ok(Cow::Owned(clean)) => Cow::Owned(String::from_utf8_lossy(&clean).into_owned()),
            Err(MayHoldSecret) => Cow::Borrowed(REDACTED),
        }
    }

    /// The same for the reasons of an outcome. Errors like to repeat what they do not accept.
    pub fn out_of_outcome(&self, outcome: Outcome) -> Outcome {
        let clean = |why: String| self.out_of_line(&why).into_owned();
        match outcome {
            Outcome::NotApplied { why: NotAppliedWhy::Refused(why), reply } => {
                Outcome::NotApplied { why: NotAppliedWhy::Refused(clean(why)), reply }
            }
            Outcome::NotApplied { why: NotAppliedWhy::Reported(why), reply } => {
                Outcome::NotApplied { why: NotAppliedWhy::Reported(clean(why)), reply }
            }
            Outcome::InDoubt { why, sender_gone } => Outcome::InDoubt { why: clean(why), sender_gone },
            Outcome::Applied { .. } | Outcome::NotApplied { .. } => outcome,
        }
    }
}
