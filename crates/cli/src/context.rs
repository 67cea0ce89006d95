//! The surroundings of every command.

use crate::args::Global;
use crate::config::Environment;
use crate::output::{Hinted, Output, counted, stderr_is_terminal};
use crate::server_access;
use semel::ledger_address::{LedgerAddress, Purpose};
use semel::policy_files::{self, Unusable};
use semel_core::policy::Policy;
use semel_gate::clock::SystemClock;
use semel_ledger::Ledger;

/// The command line's global flags, the environment and the way out, for every command.
#[derive(Debug, Clone)]
pub struct Context {
    pub global: Global,
    pub environment: Environment,
    pub output: Output,
}

/// A check found something; nothing went wrong with the checking.
pub const EXIT_FINDINGS: u8 = 1;

impl Context {
    /// Which ledger this command is about.
    pub fn ledger_address(&self) -> anyhow::Result<LedgerAddress> {
        server_access::refuse(self)?;
        let Global { ledger, policy, .. } = &self.global;
        Ok(LedgerAddress::of(&self.environment.settings, ledger.as_deref(), policy.as_deref())?)
    }

    /// The ledger, founded if there is none.
    pub fn ledger(&self, clock: &SystemClock) -> anyhow::Result<Ledger> {
        Ok(self.ledger_address()?.open(&self.environment.settings, clock, Purpose::Command)?)
    }

    /// The ledger, if there is one. One that is gone while its secret is there is opened all the same, because then it
    /// must be seen that it may have forgotten.
    pub fn existing_ledger(&self, clock: &SystemClock) -> anyhow::Result<Option<Ledger>> {
        let address = self.ledger_address()?;
        if !address.is_founded() {
            return Ok(None);
        }
        Ok(Some(address.open(&self.environment.settings, clock, Purpose::Command)?))
    }

    pub fn policy(&self) -> anyhow::Result<Policy> {
        match policy_files::load(&self.environment.settings, self.global.policy.as_deref()) {
            Ok(policy) => Ok(policy),
            Err(Unusable::File(error)) => Err(error.into()),
            Err(Unusable::Content(found)) => {
                if !self.output.json {
                    self.output.warn(found.render(stderr_is_terminal()));
                }
                let count = counted(found.len(), "finding", "findings");
                let what = format!("the policy does not hold together ({count})");
                Err(Hinted::error(what, "semel policy lint"))
            }
        }
    }
}
