//! The model door: APIs that generate, guarded at `/p/NAME/`, so that one request has one answer.
//!
//! Generations have the class *generate*: a request in flight is joined from its first byte, an answer that
//! reached nobody is handed over, and a delivered answer is not reused unless the caller names the step.

pub mod api;
mod attachment;
mod call;
mod classify;
mod form;
mod intent;
mod joined_body;
mod live_answer;
mod meter;
mod read;
mod recording;
mod render;
mod request;
pub mod serve;
mod stop;
mod upstream;
pub mod usage;

pub use api::is_generation;
pub use live_answer::LiveAnswers;
