//! `semel ledger same-server`: a server on stdio that is started otherwise than before is still the same one.

use crate::args::SameServerArgs;
use crate::context::Context;
use crate::open::TENANT;
use crate::operator::Operator;
use crate::output::Hinted;
use crate::server_identity::described;
use crate::terminal_text;
use semel::command::Change;
use semel_core::answer::EffectWord;
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::known_servers::ServerStart;
use serde_json::json;

pub fn run(context: &Context, args: &SameServerArgs) -> anyhow::Result<Change> {
    let operator = Operator::unless_dry(context, &args.operator, &args.change)?;
    let name = args.name.as_str();
    let clock = SystemClock::start();
    let nothing_refused = || {
        Hinted::error(
            format!("no start of a server {name} was refused"),
            "start it first; a start that differs from the one before is refused, and can then be accepted",
        )
    };
    let ledger = context.existing_ledger(&clock)?.ok_or_else(nothing_refused)?;
    let known = block_on(ledger.known_server(name))?.ok_or_else(nothing_refused)?;
    let name_shown = terminal_text::line(name);
    let document =
        |start: &ServerStart| json!({"server": name, "command": start.shown, "directory": start.directory});
    let Some(refused) = known.refused.as_ref() else {
        let text = format!("{name_shown} is {}; no start of it is refused.", described(&known.start));
        return Ok(Change::noop(document(&known.start), text));
    };
    let Some(operator) = operator else { return Ok(Change::would(EffectWord::Updated, document(refused))) };
    let (before, now) = (described(&known.start), described(refused));
    let what = format!("{name_shown} was {before}. Is {now} the same server?");
    let by = operator.confirm(&ledger, TENANT, what)?;
    if !block_on(ledger.accept_server(name, refused, &by, clock.now()))? {
        anyhow::bail!("nothing was changed: {name_shown} was started otherwise once more meanwhile");
    }
    let text = format!("{name_shown} is now {now}. Its effects and doubts stay.");
    Ok(Change::updated(document(refused), text))
}
