//! `semel mcp`: one MCP server, guarded, in front of one client.

mod name;
mod session;

use super::Context;
use super::serve::offers;
use crate::args::Mcp as Args;
use crate::house::TENANT;
use crate::served;
use anyhow::{Context as _, bail};
use semel_core::ids::Run;
use semel_doors::http::client::Client;
use semel_doors::http::target::Target;
use semel_doors::mcp::busy::Busy;
use semel_doors::mcp::connection::Connection;
use semel_doors::mcp::door::Door;
use semel_doors::mcp::intent::Caller;
use semel_doors::mcp::link::Link;
use semel_doors::mcp::link::child::ChildLink;
use semel_doors::mcp::link::remote::{RemoteLink, Session as RemoteSession};
use semel_doors::mcp::server::{Server, Settings};
use semel_doors::runtime::RuntimeClock;
use session::{Hears, Session};
use std::process::{Command, ExitCode};
use std::sync::Arc;

pub fn run(context: &Context, args: &Args) -> anyhow::Result<ExitCode> {
    let caller = caller(context, args)?;
    let policy = context.policy()?;
    let clock = RuntimeClock::start();
    let runtime = served::runtime()?;
    let _in_runtime = runtime.enter();
    let gate = served::gate(context, &clock, &policy);
    if let Err(why) = &gate {
        // Rule 16: reads pass without a ledger; whoever looks at the log should know.
        context
            .output
            .warn(format_args!("semel: the ledger is not available, so effects will be refused: {why}"));
    }
    let (server, hears) = match &args.url {
        Some(url) => remote(context, args, url, &clock)?,
        None => child(args, &clock)?,
    };
    let servers = offers::asked(context, &policy, &server.name, &clock)?;
    let door = Arc::new(Door { gate, policy, clock, servers, busy: Busy::default() });
    let connection = Arc::new(Connection::new(caller));
    let session = Session { door, server: Arc::new(server), connection };
    runtime.spawn(served::keep_retention(Arc::clone(&session.door)));
    let code = runtime.block_on(session.run(hears))?;
    runtime.shutdown_background();
    Ok(ExitCode::from(code))
}

fn caller(context: &Context, args: &Args) -> anyhow::Result<Caller> {
    let named =
        |run: Option<String>, from: &'static str| run.map(|run| Run::named(&run)).transpose().context(from);
    Ok(Caller {
        tenant: TENANT.to_owned(),
        principal: TENANT.to_owned(),
        run: named(args.run.clone(), "--run")?,
        surrounding_run: named(context.environment.run_id(None), "SEMEL_RUN_ID")?,
    })
}

fn settings(args: &Args) -> Settings {
    Settings {
        trusted: args.trust_annotations,
        pin: args.pin,
        decorate: !args.no_decoration,
        own_tools: !args.no_tools,
        dry_run_argument: args.dry_run_argument,
    }
}

fn child(args: &Args, clock: &RuntimeClock) -> anyhow::Result<(Server, Hears)> {
    let Some((program, rest)) = args.command.split_first() else {
        bail!("there is no server to start: semel mcp -- COMMAND");
    };
    let started = ChildLink::start(Command::new(program).args(rest), clock.clone());
    let (link, output) =
        started.with_context(|| format!("cannot start the server {}", program.to_string_lossy()))?;
    let name = args.name.clone().unwrap_or_else(|| name::of(&args.command));
    let server = Server::new(name, String::new(), settings(args), Link::Child(link), served::instance());
    Ok((server, Hears::Child(output)))
}

fn remote(
    context: &Context,
    args: &Args,
    url: &str,
    clock: &RuntimeClock,
) -> anyhow::Result<(Server, Hears)> {
    let target = Target::parse(url).context("--url")?;
    let name = args.name.clone().unwrap_or_else(|| name::of_host(target.host()));
    let authority = offers::authority(&target);
    let from_env = args.header_env.iter().map(|pair| match pair.split_once('=') {
        Some((header, variable)) => Ok((header.to_owned(), variable.to_owned())),
        None => bail!("--header-env {pair}: it has the form NAME=VARIABLE"),
    });
    let from_env: Vec<_> = from_env.collect::<anyhow::Result<_>>()?;
    let (session, queue) = RemoteSession::new(offers::headers(context, &[], &from_env)?);
    let link = RemoteLink::for_stdio(Client::to(target)?, session, clock.clone());
    let server = Server::new(name, authority, settings(args), Link::Remote(link), served::instance());
    Ok((server, Hears::Remote(queue)))
}
