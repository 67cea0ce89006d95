//! `/p/NAME/…` of `semel serve`, before an API of our own that counts what it was made to do.

mod api;
mod stage;

mod bodies;
mod doubts;
mod keys;
mod passing;
mod presets;
mod questions;
