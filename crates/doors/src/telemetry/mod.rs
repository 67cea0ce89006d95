//! Questions of an operator's machines: is it alive, is it ready, how much was done; and what is told without being
//! asked.

mod health;
mod metrics;
mod post;
mod span;
mod traces;
mod webhook;

pub use health::{ServerHealth, router};
pub use traces::{Collector, Exporting, Traces};
pub use webhook::WebhookSender;
