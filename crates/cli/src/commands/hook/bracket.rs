//! `semel began ID && COMMAND && semel ended ID`: the claim and the settlement, in the client's own shell.

use super::{Place, plans};
use crate::commands::run::respond::{EXIT_SEMEL_FAILED, exit_code};
use crate::context::Context;
use semel::settings::Settings;
use semel_core::answer::Code;
use semel_doors::hook::plan::{Plan, Plans, Stage};
use semel_doors::hook::shell::{Begun, ShellCall, settle, succeeded};
use semel_doors::hook::{ending, render};
use semel_doors::reply::CommandOutput;
use semel_gate::clock::block_on;

/// Takes the claim. Anything but 0 keeps the command from running.
pub fn began(context: &Context, id: &str) -> u8 {
    match take(context, id) {
        Ok(code) => code,
        // Nothing can leave such a sandbox, so nothing can be done twice from it.
        Err(_) if context.environment.sandbox_without_network => 0,
        Err(why) => {
            context.output.warn(format_args!("semel: Not run: {why}. Safe to retry: yes."));
            EXIT_SEMEL_FAILED
        }
    }
}

fn take(context: &Context, id: &str) -> Result<u8, String> {
    let plans = plans(context)?;
    let plan = plans
        .read(id)
        .ok_or("the plan of this command is gone; run the command again without `semel began`")?;
    let place = place(context, &plan)?;
    let gate = place.gate(context)?;
    let call = ShellCall::of(&plan, &place.policy, Some(&context.environment.settings.cwd))?;
    let begun = block_on(call.begin(&gate)).map_err(|error| error.to_string())?;
    Ok(match begun {
        Begun::Run(claim) => {
            let began = Plan { stage: Stage::Began { claim: claim.clone() }, ..plan.clone() };
            if let Err(error) = plans.write(&began) {
                let _lapses = block_on(settle(
                    &gate,
                    &claim,
                    semel_doors::hook::shell::never_sent("its plan was not written"),
                ));
                return Err(error.to_string());
            }
            0
        }
        Begun::Unrecorded => 0,
        Begun::Held(answer) => {
            context.output.warn(format_args!("semel: {}", render::held(&answer, &plan.line)));
            exit_code(&answer, None)
        }
        Begun::Done(passed) => {
            let output = semel_doors::hook::shell::recorded(&passed).and_then(CommandOutput::decode);
            context
                .output
                .warn(format_args!("semel: {}", render::done(&passed, output.as_ref(), &plan.line)));
            Code::Lookalike.exit().unwrap_or(EXIT_SEMEL_FAILED)
        }
    })
}

/// Settles as applied. It says nothing and never fails: the command has ended well, and its exit code is the line's.
pub fn ended(context: &Context, id: &str) {
    let _a_doubt_at_the_deadline = settle_applied(context, id);
}

fn settle_applied(context: &Context, id: &str) -> Result<(), String> {
    let plans: Plans = plans(context)?;
    let plan = plans.read(id).ok_or("the plan is gone")?;
    let Stage::Began { claim } = &plan.stage else { return Ok(()) };
    let place = place(context, &plan)?;
    let gate = place.gate(context)?;
    let call = ShellCall::of(&plan, &place.policy, None)?;
    block_on(settle(&gate, claim, succeeded(ending::word(&call)))).map_err(|error| error.to_string())?;
    let ended = Plan { stage: Stage::Ended { claim: claim.clone() }, ..plan.clone() };
    plans.write(&ended).map_err(|error| error.to_string())
}

/// `semel again EFFECT -- LINE` is for the hook, which takes it out of the line before the client's permission check.
pub fn again(context: &Context) -> u8 {
    context.output.warn(
        "semel: Not run: `semel again` works in the shell of a coding agent that has semel's hook. Safe to retry: yes. \
         Elsewhere: semel run --again WHY -- COMMAND",
    );
    EXIT_SEMEL_FAILED
}

/// The ledger and the policy that the hook has found for it.
fn place(context: &Context, plan: &Plan) -> Result<Place, String> {
    let found = &plan.found;
    let own = &context.environment.settings;
    let settings = Settings {
        cwd: found.cwd.clone(),
        ledger: found.ledger.clone().or(own.ledger.clone()),
        policy: found.policy.clone().or(own.policy.clone()),
        ..own.clone()
    };
    Place::of(context, settings)
}
