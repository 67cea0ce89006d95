//! Questions of an operator's machines: is it alive, is it ready, how much was done; and spans.

mod health;
mod metrics;
pub(crate) mod post;
mod span;
mod traces;

pub use health::{ServerHealth, router};
pub use traces::{Collector, Exporting, Traces};
