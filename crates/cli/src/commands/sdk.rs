//! `semel sdk --stdio`: the sidecar of a program that uses one of the SDKs.

use crate::context::Context;
use crate::notify::{self, Telling};
use crate::{probe_access, server_runtime};
use rustix::process::{Pid, getppid};
use semel_core::wording;
use semel_doors::api::ApiServer;
use semel_doors::mcp::line_reader::LineReader;
use semel_doors::mcp::server::Servers;
use semel_doors::runtime::RuntimeClock;
use semel_doors::services::Services;
use semel_doors::sidecar::{ProgramInput, Sidecar};
use semel_doors::undo::Undoer;
use semel_gate::clock::Clock;
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT};
use std::fs::File;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a program that has closed its pipe may take to be seen dead: its descriptors go first, then it.
const PARENT_DIES_WITHIN: Duration = Duration::from_secs(1);
const PARENT_LOOKS_EVERY: Duration = Duration::from_millis(10);

pub fn run(context: &Context) -> anyhow::Result<ExitCode> {
    let parent = getppid();
    let refuse = |code: &str, detail: String| {
        let next_step = match code {
            "policy_invalid" => "semel policy lint",
            _ => "semel doctor",
        };
        context.output.line(&json!({"code": code, "detail": detail, "next_step": next_step}));
        Ok(ExitCode::FAILURE)
    };
    let policy = match context.policy() {
        Ok(policy) => policy,
        Err(error) => return refuse("policy_invalid", format!("{error:#}")),
    };
    let clock = RuntimeClock::start();
    let runtime = server_runtime::runtime_beside()?;
    let _in_runtime = runtime.enter();
    let gate = match server_runtime::gate(context, &clock, &policy) {
        Ok(gate) => gate,
        Err(why) => return refuse("ledger_unavailable", wording::ledger_unavailable(&why).what_happened),
    };
    let servers = Arc::new(probe_access::servers(context, &policy, Servers::new()));
    let backends = probe_access::backends(context, &policy, &servers);
    let services = Arc::new(Services::new(Ok(gate), policy, clock).with_backends(backends));
    runtime.spawn(server_runtime::keep_retention(Arc::clone(&services)));
    runtime.spawn(server_runtime::keep_counts(Arc::clone(&services), context.output));
    runtime.spawn(server_runtime::keep_settling(Arc::clone(&services)));
    let telling =
        Telling::start(notify::listeners(context, &services.policy)?, &runtime, &services, context.output);
    // A terminal interrupts the program and its sidecar alike. What the program makes of it, it says over the pipe.
    let unheard = Arc::default();
    for signal in [SIGINT, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&unheard))?;
    }
    let api =
        Arc::new(ApiServer::new(Arc::clone(&services), Undoer { services: Arc::clone(&services), servers }));
    let output = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
    let sidecar = Sidecar::new(api, output, runtime.handle().clone())?;
    // Before the first line is read, so that it is the first that is written.
    sidecar.say_ready();
    let (ended, at_end) = oneshot::channel();
    let input = ProgramInput { sidecar: Arc::clone(&sidecar), ended };
    let reader = LineReader::new(std::io::stdin().as_fd().try_clone_to_owned()?, input);
    let handle = runtime.handle().clone();
    std::thread::Builder::new()
        .name("pipes".into())
        .spawn(move || LineReader::read_and_run_tasks(vec![reader], &handle))?;
    runtime.block_on(async {
        let _dropped = at_end.await;
        sidecar.close(has_died(parent, &services)).await;
        server_runtime::write_counts(&services).await;
        telling.finish().await;
        server_runtime::fold_back(&services);
    });
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}

/// Whether the program that started this process is gone. One that has only closed its pipe may still be calling a tool.
async fn has_died(parent: Option<Pid>, services: &Services) -> bool {
    let mut left = PARENT_DIES_WITHIN;
    while getppid() == parent && !left.is_zero() {
        services.clock.sleep(PARENT_LOOKS_EVERY).await;
        left = left.saturating_sub(PARENT_LOOKS_EVERY);
    }
    getppid() != parent
}
