//! `semel demo`: an agent that retries, a payment tool that is killed before it answers, with semel and without.
//!
//! Nothing in it is played. The tool and every call of semel are processes, the kill is a kill, and the numbers are counted
//! in the tool's own book.

mod acts;
mod judge;
mod pay;
mod stage;
mod world;

use crate::args::{DemoArgs, DemoPart};
use crate::context::Context;
use anyhow::Context as _;
use judge::{Act, DemoVerdict};
use owo_colors::OwoColorize;
use stage::{Interrupted, Narrator};
use std::process::ExitCode;
use world::DemoWorld;

/// A count or an answer was not what it must be.
const EXIT_WRONG: u8 = 1;

pub fn demo(context: &Context, args: &DemoArgs) -> anyhow::Result<ExitCode> {
    match &args.part {
        Some(DemoPart::Pay(pay)) => Ok(pay::pay(context.output, pay)),
        None => match perform(context, args.fast) {
            Ok(verdict) => Ok(close(context, &verdict)),
            Err(error) => match error.downcast_ref::<Interrupted>() {
                // As a shell reports it.
                Some(Interrupted { signal }) => Ok(ExitCode::from(128 + u8::try_from(*signal).unwrap_or(0))),
                None => Err(error),
            },
        },
    }
}

fn perform(context: &Context, fast: bool) -> anyhow::Result<DemoVerdict> {
    let stage = Narrator::open(context.output, fast).context("signals cannot be listened for")?;
    let world = DemoWorld::create(&context.environment)?;
    // A Ctrl-C reaches the children too, and then whatever they failed at is not news.
    let acts =
        play(&stage, &world).map_err(|error| stage.interrupted().map_or(error, anyhow::Error::from))?;
    world.end()?;
    Ok(judge::judge(acts))
}

fn play(stage: &Narrator, world: &DemoWorld) -> anyhow::Result<Vec<Act>> {
    stage.line("An agent pays with a tool. Sometimes the tool is killed after the money is taken, before it answers.");
    stage.line(
        "Everything is local and temporary. Charges are counted in the tool's own book, never by semel.",
    );
    stage.line("(pay stands for semel demo pay --book FILE.)".dimmed());
    let mut ended = Vec::new();
    for (index, act) in acts::ACTS.iter().enumerate() {
        ended.push(act(stage, world, index + 1)?);
        stage.end_of_act()?;
    }
    Ok(ended)
}

fn close(context: &Context, verdict: &DemoVerdict) -> ExitCode {
    let output = context.output;
    if output.json {
        output.document(verdict);
    } else if verdict.ok {
        let next = "Next: semel run --help · semel ledger · docs/contract.md";
        output.data(format_args!("\n{}\n{next}", "Every count is as it must be.".green()));
    }
    for act in verdict.acts.iter().filter(|act| !act.ok) {
        output.warn(format_args!("{} {}: {}", "semel demo:".bold(), act.name.red(), act.detail));
    }
    if verdict.ok { ExitCode::SUCCESS } else { ExitCode::from(EXIT_WRONG) }
}
