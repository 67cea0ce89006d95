//! `semel ledger same-server`: a server on stdio that is started otherwise than before is still the same one.

use crate::args::OperatorArgs;
use crate::context::Context;
use crate::open::TENANT;
use crate::operator::Operator;
use crate::output::Hinted;
use crate::server_identity::described;
use crate::terminal_text;
use semel_gate::clock::{Clock, SystemClock, block_on};
use std::process::ExitCode;

pub fn run(context: &Context, name: &str, args: &OperatorArgs) -> anyhow::Result<ExitCode> {
    let operator = Operator::find(context, args.token.as_deref())?;
    let clock = SystemClock::start();
    let nothing_refused = || {
        Hinted::error(
            format!("no start of a server {name} was refused"),
            "start it first; a start that differs from the one before is refused, and can then be accepted",
        )
    };
    let ledger = context.existing_ledger(&clock)?.ok_or_else(nothing_refused)?;
    let known = block_on(ledger.known_server(name))?.ok_or_else(nothing_refused)?;
    let refused = known.refused.as_ref().ok_or_else(nothing_refused)?;
    let (before, now) = (described(&known.start), described(refused));
    let name_shown = terminal_text::line(name);
    let what = format!("{name_shown} was {before}. Is {now} the same server?");
    let by = operator.confirm(&ledger, TENANT, what)?;
    if !block_on(ledger.accept_server(name, refused, &by, clock.now()))? {
        anyhow::bail!("nothing was changed: {name_shown} was started otherwise once more meanwhile");
    }
    if context.output.json {
        context.output.document(
            &serde_json::json!({"server": name, "command": refused.shown, "directory": refused.directory}),
        );
    } else {
        context.output.data(format_args!("{name_shown} is now {now}. Its effects and doubts stay."));
    }
    Ok(ExitCode::SUCCESS)
}
