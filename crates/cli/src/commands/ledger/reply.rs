//! `semel ledger reply`: the recorded reply of an effect.

use super::{named, scan};
use crate::args::EffectName;
use crate::context::{Context, EXIT_FINDINGS};
use crate::effect_json::{self, ReplyKept};
use crate::output::Hinted;
use semel_doors::reply::{CommandOutput, HttpReply};
use semel_gate::clock::{Clock, SystemClock};
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

pub fn run(context: &Context, name: &EffectName) -> anyhow::Result<ExitCode> {
    let clock = SystemClock::start();
    let ledger = context.existing_ledger(&clock)?;
    let Some((key, effect)) = named::look_up(context, ledger.as_ref(), name, clock.now())? else {
        return Ok(ExitCode::from(EXIT_FINDINGS));
    };
    let ledger = ledger.expect("an effect was found in it");
    let effect = scan::now_of(&ledger, key, effect, clock.now())?;
    let (kept, bytes) = effect_json::reply(&ledger, key, &effect)?;
    if context.output.json {
        let data = bytes.as_deref().map(reply_data);
        context.output.document(&serde_json::json!({
            "effect_id": effect.id,
            "state": semel_ledger::journal::state_word(&effect.state),
            "reply": kept,
            "data": data,
        }));
    } else if let Some(bytes) = &bytes {
        write(bytes)?;
    } else {
        let state = effect.state.word();
        let why = match kept {
            ReplyKept::Pruned => "its reply is no longer kept".to_owned(),
            ReplyKept::Damaged => "its reply is damaged in the ledger".to_owned(),
            ReplyKept::TooLarge => "its reply was too large to keep".to_owned(),
            ReplyKept::Kept | ReplyKept::Unknown => {
                effect_json::why(&effect).unwrap_or_else(|| "its reply is not known".to_owned())
            }
        };
        let id = effect.id;
        let hint = format!("semel ledger show {id}");
        context
            .output
            .error(&Hinted::error(format!("{id} is {state} and has no reply to give: {why}"), hint));
    }
    Ok(if bytes.is_some() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FINDINGS) })
}

/// Data as it was: to the byte, each stream to its own. A reader that has gone is no error.
fn write(reply: &[u8]) -> std::io::Result<()> {
    let answer =
        || HttpReply::decode(reply.to_vec()).map(|kept| CommandOutput::of_stdout(kept.body.to_vec()));
    let output = CommandOutput::decode(reply).or_else(answer);
    let output = output.unwrap_or_else(|| CommandOutput::of_stdout(reply.to_vec()));
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(&output.stdout).and_then(|()| stdout.flush());
    let written = written.and_then(|()| std::io::stderr().write_all(&output.stderr));
    written.or_else(|error| if error.kind() == ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })
}

/// A recorded reply as JSON. Whatever is neither a command's output nor an answer over HTTP is shown as the text it is.
pub fn reply_data(bytes: &[u8]) -> serde_json::Value {
    if let Some(output) = CommandOutput::decode(bytes) {
        return output.data();
    }
    let answer = HttpReply::decode(bytes.to_vec()).and_then(|kept| serde_json::from_str(&kept.data()).ok());
    answer.unwrap_or_else(|| serde_json::json!({"text": String::from_utf8_lossy(bytes)}))
}
