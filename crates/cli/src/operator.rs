//! The right to rule: a person who confirms it at a terminal, or somebody with an operator token. Nobody inside a run.

use crate::args::OperatorArgs;
use crate::context::Context;
use crate::open::TENANT;
use crate::output::{Hinted, stderr_is_terminal};
use semel::command::ChangeArgs;
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::Ledger;
use semel_ledger::tokens::AccessScope;
use std::fmt::Display;
use std::io::{IsTerminal, Write};

/// A way to rule that this process has; it is not used up yet.
pub struct Operator<'a> {
    /// The token that was given; without one there is a terminal.
    token: Option<&'a str>,
}

impl<'a> Operator<'a> {
    /// Looked for before anything else is done.
    pub fn find(context: &'a Context, flag: Option<&'a str>) -> anyhow::Result<Operator<'a>> {
        let environment = &context.environment;
        if environment.effect_id.is_some() || environment.settings.run_id(None).is_some() {
            return Err(Hinted::error(
                "nothing was changed: this process belongs to a run, and only a person outside of it decides",
                "tell the user; semel ledger lists what needs a decision",
            ));
        }
        let token = flag.or(environment.operator_token.as_deref());
        if token.is_none() && !(std::io::stdin().is_terminal() && stderr_is_terminal()) {
            return Err(Hinted::error(
                "nothing was changed: only a person decides this, at a terminal or with an operator token",
                "run it in a terminal, or set SEMEL_OPERATOR_TOKEN",
            ));
        }
        Ok(Operator { token })
    }

    /// `None`: a dry run, which changes nothing and takes nobody.
    pub fn unless_dry(
        context: &'a Context,
        args: &'a OperatorArgs,
        change: &ChangeArgs,
    ) -> anyhow::Result<Option<Operator<'a>>> {
        (!change.dry_run).then(|| Operator::find(context, args.token.as_deref())).transpose()
    }

    /// Makes sure that this is wanted. Returns who wants it, as the ledger records it.
    pub fn confirm(&self, ledger: &Ledger, tenant: &str, what: impl Display) -> anyhow::Result<String> {
        self.confirm_as(AccessScope::Operator, ledger, tenant, what)
    }

    pub fn confirm_as(
        &self,
        scope: AccessScope,
        ledger: &Ledger,
        tenant: &str,
        what: impl Display,
    ) -> anyhow::Result<String> {
        let Some(token) = self.token else { return ask(what) };
        let tokens = block_on(ledger.tokens())?;
        let holder = tokens.holder(token.as_bytes(), SystemClock::start().now());
        // The command line reads the whole ledger, so the machine's own operator rules on all of it.
        let reaches = |of: &str| of == TENANT || of == tenant;
        match holder.filter(|(_, kept)| kept.scope >= scope && reaches(&kept.tenant)) {
            Some((id, kept)) => Ok(format!("operator token {}", kept.name.as_deref().unwrap_or(id))),
            None => Err(Hinted::error(
                format!("nothing was changed: this is no token of scope {scope} for tenant {tenant}"),
                "semel token list shows which there are, and until when they work; the token of semel serve works over \
                 HTTP alone",
            )),
        }
    }
}

fn ask(what: impl Display) -> anyhow::Result<String> {
    let mut err = std::io::stderr();
    let asked = write!(err, "{what} [y/N] ").and_then(|()| err.flush());
    let mut line = String::new();
    let heard = asked.and_then(|()| std::io::stdin().read_line(&mut line));
    match heard.is_ok() && matches!(line.trim(), "y" | "Y" | "yes") {
        true => Ok(format!("terminal of uid {}", rustix::process::getuid().as_raw())),
        false => Err(anyhow::anyhow!("nothing was changed: it was not confirmed")),
    }
}
