//! `/p/NAME/…` of `semel serve`, as far as it takes a process: kills, failures, restarts, documents. All other behaviour
//! of this door is tested in process, in `crates/doors/tests`.

pub mod stage;

mod document;
mod processes;
mod read_only;
