//! `semel audit --follow`: tells each duplicate when it happens, here and to whoever the policy names.

use super::screen;
use crate::context::Context;
use crate::notify;
use crate::output::reader_left_within;
use anyhow::Context as _;
use semel_core::digest::Digest;
use semel_detect::audit::finding::AuditFinding;
use semel_detect::audit::follow::Follower;
use semel_detect::audit::run::AuditOptions;
use semel_detect::judge::Judge;
use semel_detect::source::discover;
use semel_doors::notify::{Listener, Untaken};
use semel_gate::clock::{Clock, SystemClock};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// How often the files are looked at.
const LOOKS_EVERY: Duration = Duration::from_secs(1);

pub fn follow(
    context: &Context,
    paths: &[PathBuf],
    judge: &Judge,
    options: &AuditOptions,
) -> anyhow::Result<ExitCode> {
    let listeners = notify::listeners(context, &context.policy()?)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for path in paths {
        discover::candidates(path).with_context(|| path.display().to_string())?;
    }
    let mut follower = Follower::new(judge, options);
    follower.look(paths);
    context.output.say("semel: watching; a duplicate is told when it happens");
    loop {
        for finding in follower.look(paths) {
            let is_read = match context.output.json {
                true => context.output.line(&finding),
                false => context.output.data(screen::shown(&finding).trim_end()),
            };
            for listener in &listeners {
                if let Err(why) = runtime.block_on(send(listener, &finding)) {
                    context.output.warn(format_args!("semel: {} cannot be told: {why}", listener.name()));
                }
            }
            if !is_read {
                return Ok(ExitCode::SUCCESS);
            }
        }
        if reader_left_within(LOOKS_EVERY) {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// The finding, as every message is sent. It is not tried again: the screen has it too.
async fn send(listener: &Listener, finding: &AuditFinding) -> Result<(), Untaken> {
    let clock = SystemClock::start();
    let now = clock.now();
    let body = json!({"type": "audit.finding", "timestamp": now.to_string(), "data": finding}).to_string();
    let id = format!("msg_{}", &Digest::plain(body.as_bytes()).to_string()[..32]);
    listener.send(&id, &body, &clock, None).await
}
