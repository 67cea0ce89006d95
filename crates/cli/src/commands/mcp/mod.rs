//! `semel mcp`: one MCP server, guarded, in front of one client.

pub mod name;
mod not_started;
mod session;

use crate::args::McpArgs;
use crate::context::Context;
use crate::mcp_servers;
use crate::notify::{self, Telling};
use crate::open::TENANT;
use crate::probe_access;
use crate::server_identity::{self, STDIO, Start};
use crate::{server_access, server_runtime, traces};
use anyhow::{Context as _, bail};
use semel::policy_files;
use semel_core::ids::Run;
use semel_core::policy::Policy;
use semel_core::policy::servers::{McpEndpoint, McpServer};
use semel_doors::caller::Caller;
use semel_doors::http::client::Client;
use semel_doors::http::target::Target;
use semel_doors::mcp::connection::ClientConnection;
use semel_doors::mcp::link::Link;
use semel_doors::mcp::link::remote::{RemoteLink, RemoteSession};
use semel_doors::mcp::server::{Server, Settings};
use semel_doors::remote_gate::{RemoteGate, ServerTrouble};
use semel_doors::runtime::RuntimeClock;
use semel_doors::services::Services;
use session::{ServerMessages, StdioSession};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use tokio::runtime::Runtime;

pub fn run(context: &Context, args: &McpArgs) -> ExitCode {
    serve(context, args).unwrap_or_else(|error| not_started::answer(context, &error))
}

fn serve(context: &Context, args: &McpArgs) -> anyhow::Result<ExitCode> {
    // Before anything is started.
    let mut caller = caller(context, args)?;
    let policy = context.policy()?;
    let clock = RuntimeClock::start();
    let runtime = server_runtime::runtime_beside()?;
    let _in_runtime = runtime.enter();
    let traces = traces::started(context, &policy);
    let remote = asked_server(context, &runtime, &clock, &policy)?;
    let gate = match &remote {
        Some(remote) => Err(format!("it is behind {}", remote.access)),
        None => server_runtime::gate(context, &clock, &policy),
    };
    let gate = match &traces {
        Some((traces, _)) => gate.map(|gate| gate.with_observer(Arc::clone(traces) as _)),
        None => gate,
    };
    if let (Err(why), None) = (&gate, &remote) {
        // Rule 16: reads pass without a ledger; whoever looks at the log should know.
        context
            .output
            .warn(format_args!("semel: the ledger is not available, so effects will be refused: {why}"));
    }
    let (mut server, hears) = match &args.url {
        Some(url) => self::remote(context, args, url, &policy, &clock)?,
        None => child(context, args, &policy, &clock)?,
    };
    // They read the ledger itself.
    server.settings.own_tools &= remote.is_none();
    if let Some(run) = policy.mcp.get(&server.name).and_then(|configured| configured.run.as_deref())
        && caller.surrounding_run.is_none()
    {
        caller.surrounding_run = Some(Run::named(run).context("run")?);
    }
    say(context, &server.name, &policy);
    let running = mcp_servers::asked(context, &policy, &server.name, &clock)?;
    let servers = Arc::new(probe_access::servers(context, &policy, running));
    let backends = probe_access::backends(context, &policy, &servers);
    let services = Services::new(gate, policy, clock).with_backends(backends);
    let services = Arc::new(match remote {
        Some(remote) => services.with_remote(remote),
        None => services,
    });
    runtime.spawn(server_runtime::keep_retention(Arc::clone(&services)));
    runtime.spawn(server_runtime::keep_counts(Arc::clone(&services), context.output));
    runtime.spawn(server_runtime::keep_settling(Arc::clone(&services)));
    // Whoever cannot be told must not keep the server from its client.
    let listeners = notify::listeners(context, &services.policy).unwrap_or_else(|error| {
        context.output.warn(format_args!("semel: nobody is told of doubts: {error:#}"));
        Vec::new()
    });
    let telling = Telling::start(listeners, &runtime, &services, context.output);
    let connection = Arc::new(ClientConnection::new(caller));
    let session = StdioSession { services: Arc::clone(&services), server: Arc::new(server), connection };
    let code = runtime.block_on(session.run(hears))?;
    runtime.block_on(async {
        server_runtime::write_counts(&services).await;
        telling.finish().await;
        if let Some((_, exporting)) = traces {
            // Standard error is the client's log; a collector that is away is not its concern.
            let _lost = exporting.finish().await;
        }
        server_runtime::fold_back(&services);
    });
    runtime.shutdown_background();
    Ok(ExitCode::from(code))
}

/// The server that the ledger is behind, where there is one. A setting that cannot work is told before anything is
/// started; a server that is away now may be there at the first call.
fn asked_server(
    context: &Context,
    runtime: &Runtime,
    clock: &RuntimeClock,
    policy: &Policy,
) -> anyhow::Result<Option<RemoteGate>> {
    let Some(access) = server_access::of(context)? else { return Ok(None) };
    let gate = RemoteGate::new(access, Arc::new(clock.clone()), policy.mode);
    match runtime.block_on(gate.whoami()) {
        Ok(_) => {}
        Err(ServerTrouble::Setting(why)) => bail!("SEMEL_SERVER: {why}"),
        Err(ServerTrouble::Away(why)) => {
            context.output.warn(format_args!("semel: effects are refused until the server answers: {why}"));
        }
    }
    Ok(Some(gate))
}

fn caller(context: &Context, args: &McpArgs) -> anyhow::Result<Caller> {
    let named =
        |run: Option<String>, from: &'static str| run.map(|run| Run::named(&run)).transpose().context(from);
    Ok(Caller {
        tenant: TENANT.to_owned(),
        principal: TENANT.to_owned(),
        run: named(args.run.clone(), "--run")?,
        surrounding_run: named(context.environment.settings.run_id(None), "SEMEL_RUN_ID")?,
        token: None,
    })
}

/// One line for the log that clients keep: desktop programs start servers in odd directories, and then other rules
/// hold than a person thinks.
fn say(context: &Context, name: &str, policy: &Policy) {
    match policy_files::found(&context.environment.settings, context.global.policy.as_deref()).as_slice() {
        [] => context.output.say(format_args!("semel: guarding {name}; no semel.toml was found from here")),
        files => {
            let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
            let mode = serde_json::to_value(policy.mode).unwrap_or_default();
            let mode = mode.as_str().unwrap_or_default();
            context
                .output
                .say(format_args!("semel: guarding {name} in mode {mode}, by {}", files.join(", ")));
        }
    }
}

/// The policy's settings of a server of this name, and the flags.
fn settings(args: &McpArgs, configured: Option<&McpServer>) -> Settings {
    let said = configured.map_or_else(Settings::default, mcp_servers::settings);
    Settings {
        trusted: said.trusted || args.trust_annotations,
        decorate: said.decorate && !args.no_decoration,
        own_tools: said.own_tools && !args.no_tools,
        dry_run_argument: said.dry_run_argument || args.dry_run_argument,
    }
}

fn child(
    context: &Context,
    args: &McpArgs,
    policy: &Policy,
    clock: &RuntimeClock,
) -> anyhow::Result<(Server, ServerMessages)> {
    let name = name::checked(args.name.clone().unwrap_or_else(|| name::of(&args.command)))?;
    let configured = policy.mcp.get(&name);
    let mut command = match (&*args.command, configured.map(|configured| &configured.reach)) {
        ([], Some(McpEndpoint::Command { argv, env, cwd })) => {
            mcp_servers::command(context, argv, env, cwd.as_deref())
        }
        ([], Some(McpEndpoint::Url { .. })) => {
            bail!("[mcp.{name}] has a url; semel serve offers it, or give --url")
        }
        ([], None) => bail!("there is no server to start: semel mcp -- COMMAND, or [mcp.NAME] in semel.toml"),
        ([program, rest @ ..], _) => {
            let mut command = Command::new(program);
            command.args(rest);
            command
        }
    };
    let any_directory = args.any_directory;
    let start = Start { name: &name, command: &mut command, any_directory };
    let (link, output) = server_identity::launch(context, policy.mode, start, clock)?;
    let settings = settings(args, configured);
    let link = Link::Child(link);
    let server = Server::new(name, STDIO.to_owned(), settings, link, server_runtime::instance());
    Ok((server, ServerMessages::Child(output)))
}

fn remote(
    context: &Context,
    args: &McpArgs,
    url: &str,
    policy: &Policy,
    clock: &RuntimeClock,
) -> anyhow::Result<(Server, ServerMessages)> {
    let target = Target::parse(url).context("--url")?;
    let name = name::checked(args.name.clone().unwrap_or_else(|| name::of_host(target.host())))?;
    let authority = mcp_servers::authority(&target);
    let headers = mcp_servers::headers_of_flags(context, &args.header_env)?;
    let (session, queue) = RemoteSession::new(headers);
    let link = RemoteLink::for_stdio(Client::to(target)?, session, clock.clone());
    let settings = settings(args, policy.mcp.get(&name));
    let server = Server::new(name, authority, settings, Link::Remote(link), server_runtime::instance());
    Ok((server, ServerMessages::Remote(queue)))
}
