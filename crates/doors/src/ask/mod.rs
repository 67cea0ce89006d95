//! Asking through a call that a rule names: an MCP tool, an HTTP request, a command. What is asked here only reads.
//!
//! In the order in which data flows: `matter` is what is asked about, `means` what there is to ask with; `tool`, `http`
//! and `command` ask; `heard` is what came back, as expressions see it; `told` is what that says.
pub mod asks;
mod command;
pub mod following;
pub mod heard;
pub mod http;
pub mod matter;
pub mod means;
pub mod origins;
mod pages;
pub mod told;
mod tool;

pub use matter::{Lent, Matter};
pub use means::Means;
pub use told::{Reply, Told};

use crate::process::child::Signals;
use heard::Heard;
use semel_core::policy::Policy;
use semel_core::policy::rule::{Call, Confirm, Probe};
use std::future::Future;
use std::time::Duration;

/// A question is a read; one that takes longer has no answer.
pub const TAKES_MAX: Duration = Duration::from_secs(30);

/// A page that somebody wants to look at fits; what is longer is a truncated answer in the making.
pub const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// Whoever asks, about one matter.
#[derive(Debug, Clone, Copy)]
pub struct Asker<'a> {
    pub means: &'a Means,
    /// Says of an MCP tool whether it only reads.
    pub policy: &'a Policy,
    pub matter: Matter<'a>,
    /// A program that does one thing forwards its signals to whatever it runs.
    pub signals: Option<&'a Signals>,
}

impl Asker<'_> {
    /// Did it happen?
    pub async fn probe(&self, probe: &Probe) -> Told {
        match self.hear(&probe.call).await {
            Ok(heard) => told::of_probe(probe, &self.matter, &heard),
            Err(why) => Told::Unknown(why),
        }
    }

    /// It said yes: is it true? An error means that nobody can tell.
    pub async fn confirms(&self, confirm: &Confirm) -> Result<bool, String> {
        let heard = self.hear(&confirm.call).await?;
        told::of_confirm(confirm, &self.matter, &heard)
    }

    async fn hear(&self, call: &Call) -> Result<Heard, String> {
        match call {
            Call::Mcp { tool, args } => in_runtime(tool::ask(self, tool, args)).await?,
            Call::Http { method, url, .. } => {
                let url = url.render_url(&self.matter.places()).map_err(|missing| missing.to_string())?;
                in_runtime(http::ask(method, &url, self)).await?
            }
            Call::Command { argv } => command::ask(argv, self).await,
        }
    }
}

/// Sockets and server processes need a runtime. A program that does one thing at a time has none, and starts one for as
/// long as it asks.
async fn in_runtime<F: Future>(asking: F) -> Result<F::Output, String> {
    if tokio::runtime::Handle::try_current().is_ok() {
        return Ok(asking.await);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Ok(runtime.map_err(|error| error.to_string())?.block_on(asking))
}
