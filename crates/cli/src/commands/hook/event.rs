//! `semel hook`: one event of a client, from standard input.

use super::{Place, plans};
use crate::context::Context;
use semel_doors::hook::event::{EVENT_BYTES_MAX, HookEvent};
use semel_doors::hook::plan::FoundFrom;
use semel_doors::hook::serve::HookDoor;
use semel_gate::clock::{Clock, SystemClock};
use std::io::Read as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// Every client takes it for a refusal, and shows its model what stands on standard error.
const EXIT_DENIED: u8 = 2;

pub fn event(context: &Context) -> ExitCode {
    match answer(context) {
        Ok(Some(answer)) => {
            context.output.line(&answer);
            ExitCode::SUCCESS
        }
        Ok(None) => ExitCode::SUCCESS,
        Err(why) => {
            context.output.warn(format_args!(
                "Not run: semel's hook could not work ({why}). Safe to retry: yes. Tell the user to run `semel doctor`."
            ));
            ExitCode::from(EXIT_DENIED)
        }
    }
}

fn answer(context: &Context) -> Result<Option<serde_json::Value>, String> {
    let mut bytes = Vec::new();
    let limit = EVENT_BYTES_MAX as u64 + 1;
    std::io::stdin().lock().take(limit).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() > EVENT_BYTES_MAX {
        return Err(format!("the event has more than {EVENT_BYTES_MAX} bytes"));
    }
    let event = HookEvent::read(&bytes)?;
    let mut settings = context.environment.settings.clone();
    if let Some(cwd) = event.cwd.as_ref().filter(|cwd| cwd.is_dir()) {
        settings.cwd.clone_from(cwd);
    }
    let found = FoundFrom {
        cwd: settings.cwd.clone(),
        ledger: context
            .global
            .ledger
            .as_ref()
            .map(|ledger| ledger.display().to_string())
            .or(settings.ledger.clone()),
        policy: context.global.policy.clone().or(settings.policy.clone()),
    };
    let named_run = settings.run_id(None);
    let place = Place::of(context, settings)?;
    let open = || place.gate(context);
    let door = HookDoor {
        policy: &place.policy,
        plans: plans(context)?,
        open: &open,
        named_run,
        found,
        program: std::env::current_exe().ok().and_then(quoted).unwrap_or_else(|| "semel".to_owned()),
        now: SystemClock::start().now(),
    };
    Ok(door.answer(event))
}

fn quoted(program: PathBuf) -> Option<String> {
    shlex::try_quote(program.to_str()?).ok().map(Into::into)
}
