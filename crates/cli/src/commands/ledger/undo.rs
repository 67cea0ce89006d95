//! `semel ledger undo`: takes an effect back, once.

use super::named::{self, recognisable};
use crate::args::UndoArgs;
use crate::commands::run::respond;
use crate::context::Context;
use crate::open::TENANT;
use crate::operator::Operator;
use crate::terminal_text;
use crate::{probe_access, server_runtime};
use anyhow::Context as _;
use semel_core::answer::OutcomeWord;
use semel_core::ids::{EffectId, Reason};
use semel_core::undo::Undo;
use semel_doors::command::serve::Show;
use semel_doors::mcp::server::Servers;
use semel_doors::runtime::RuntimeClock;
use semel_doors::services::Services;
use semel_doors::undo::{UndoRequest, Undoer};
use semel_gate::Passed;
use semel_gate::clock::{Clock, SystemClock};
use serde::Serialize;
use std::process::ExitCode;
use std::sync::Arc;

#[derive(Serialize)]
struct Document<'a> {
    /// The effect that was to be taken back; `effect_id` is the undo's own.
    undoes: EffectId,
    #[serde(flatten)]
    answer: &'a semel_core::answer::Answer,
}

pub fn run(context: &Context, args: &UndoArgs) -> anyhow::Result<ExitCode> {
    // An undo is an effect of its own, whose identity is the effect that it takes back: its key needs no store.
    let operator = Operator::unless_dry(context, &args.operator, &args.change)?;
    let reason = Reason::parse(&args.reason).context("--reason")?;
    let policy = context.policy()?;
    let (effect, call, by) = {
        let clock = SystemClock::start();
        let ledger = context.existing_ledger(&clock)?;
        let (_, effect) = named::find_to_change(ledger.as_ref(), &args.name, &args.change, clock.now())?;
        let call = match &effect.undo {
            Some(Undo::By(call)) => call.to_string(),
            _ => String::new(),
        };
        let ledger = ledger.expect("an effect was found in it");
        let asks = match call.as_str() {
            "" => format!("Take {} back?", recognisable(&effect)),
            call => format!("Take {} back by {}?", recognisable(&effect), terminal_text::line(call)),
        };
        let by =
            operator.map(|operator| operator.confirm(&ledger, &effect.facts.tenant, asks)).transpose()?;
        (effect.id, call, by.unwrap_or_default())
    };
    let runtime = server_runtime::runtime()?;
    let _in_runtime = runtime.enter();
    let clock = RuntimeClock::start();
    let gate = server_runtime::gate(context, &clock, &policy).map_err(anyhow::Error::msg)?;
    let servers = Arc::new(probe_access::servers(context, &policy, Servers::new()));
    let backends = probe_access::backends(context, &policy, &servers);
    let services = Arc::new(Services::new(Ok(gate), policy, clock).with_backends(backends));
    let request = UndoRequest {
        effect,
        tenant: TENANT.to_owned(),
        principal: TENANT.to_owned(),
        by,
        reason,
        dry_run: args.change.dry_run,
        commands: Some(if context.output.json { Show::InAnswer } else { Show::Live }),
    };
    let undoer = Undoer { services: Arc::clone(&services), servers };
    let passed =
        runtime.block_on(undoer.carry_out(&request)).map_err(|semel_gate::Error::Ledger(error)| error)?;
    tell(context, effect, &call, &passed);
    if let (Ok(gate), Some(delivery)) = (&services.gate, &passed.delivery) {
        // A missing mark only means that the next undo is told the same again.
        let _unmarked = runtime.block_on(gate.delivered(delivery));
        gate.ledger.holders().release_lock();
    }
    runtime.shutdown_background();
    Ok(ExitCode::from(respond::exit_code(&passed.answer, None)))
}

fn tell(context: &Context, undoes: EffectId, call: &str, passed: &Passed) {
    let answer = &passed.answer;
    if context.output.json {
        context.output.document(&Document { undoes, answer });
        return;
    }
    let call = terminal_text::line(call);
    let by = answer.effect_id.map(|id| format!(" by {id}")).unwrap_or_default();
    match (answer.ok, answer.outcome) {
        (true, OutcomeWord::DryRun) => {
            for change in answer.dry_run.iter().flat_map(|dry_run| &dry_run.changes) {
                let what = change["what"].as_str().unwrap_or_default();
                context.output.data(terminal_text::line(what));
            }
        }
        (true, OutcomeWord::Ran) => {
            context.output.data(format_args!("Undone: {undoes}{by} ({call})"));
            respond::talk(context, answer);
        }
        (true, _) => {
            let reason = answer.reason.as_deref().unwrap_or("done before");
            context.output.data(format_args!("Undone before: {undoes}{by}; {reason}"));
        }
        (false, _) => respond::talk(context, answer),
    }
}
