//! `semel hook`, `semel began` and `semel ended`: the guard of a coding agent's shell.

mod bracket;
mod event;

pub use bracket::{again, began, ended};
pub use event::event;

use crate::context::Context;
use semel::ledger_address::{LedgerAddress, Purpose};
use semel::policy_files;
use semel::settings::Settings;
use semel_core::policy::{Mode, Policy};
use semel_doors::hook::plan::Plans;
use semel_gate::Gate;
use semel_gate::clock::SystemClock;

/// The ledger and the policy of one session's directory.
struct Place {
    settings: Settings,
    policy: Policy,
}

impl Place {
    fn of(context: &Context, settings: Settings) -> Result<Place, String> {
        let flag = context.global.policy.as_deref();
        let policy = policy_files::load(&settings, flag).map_err(|unusable| unusable.to_string())?;
        Ok(Place { settings, policy: policy.for_shell() })
    }

    fn gate(&self, context: &Context) -> Result<Gate, String> {
        if context.environment.server.is_some() {
            return Err("SEMEL_SERVER is set, and a hook cannot use a ledger behind a server".to_owned());
        }
        let clock = SystemClock::start();
        let global = &context.global;
        let address = LedgerAddress::of(&self.settings, global.ledger.as_deref(), global.policy.as_deref());
        let address = address.map_err(|error| error.to_string())?;
        let ledger =
            address.open(&self.settings, &clock, Purpose::Command).map_err(|error| error.to_string())?;
        Ok(Gate::new(ledger, clock, self.mode()))
    }

    fn mode(&self) -> Mode {
        self.policy.mode
    }
}

fn plans(context: &Context) -> Result<Plans, String> {
    let directory = context.environment.settings.state_directory().map_err(|error| error.to_string())?;
    Ok(Plans::below(&directory))
}
