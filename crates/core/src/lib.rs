//! Decides: intent, canonical form, keys, policy, lifecycle, decision, answer.
//!
//! Core is pure. It refuses to know about IO, async, clocks, randomness and the environment: time and random
//! names come in as arguments, and what must be done goes out as a value.
mod word_table;

pub mod address;
pub mod answer;
pub mod call_metadata;
pub mod class;
pub mod decide;
pub mod digest;
pub mod effect;
pub mod effect_word;
pub mod identity;
pub mod ids;
pub mod intent;
pub mod json;
pub mod judgement;
pub mod lifecycle;
pub mod normalise;
pub mod outcome;
pub mod own_tokens;
pub mod policy;
pub mod redact;
pub mod retry_origin;
pub mod shell;
pub mod subject;
pub mod time;
pub mod undo;
pub mod wording;
pub mod words;
