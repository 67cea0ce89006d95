//! `semel serve`: the configured servers, guarded, over HTTP.

mod admission;
mod tls;
mod token;
mod upstreams;

use crate::args::ServeArgs;
use crate::context::Context;
use crate::notify::{self, Telling};
use crate::output::Hinted;
use crate::probe_access;
use crate::{mcp_servers, server_access, server_runtime, traces};
use anyhow::Context as _;
use axum::Router;
use axum::routing::get;
use http::StatusCode;
use semel::policy_files;
use semel_core::policy::servers::{LISTEN, Serve};
use semel_doors::api::{self, ApiServer};
use semel_doors::http::server::{self, OperatorToken, Room, ServerLoad, ServerSetup, Workers};
use semel_doors::mcp::link::Link;
use semel_doors::mcp::serve::http as mcp;
use semel_doors::proxy;
use semel_doors::router::DoorRouter;
use semel_doors::runtime::RuntimeClock;
use semel_doors::services::Services;
use semel_doors::telemetry::{self, ServerHealth};
use semel_doors::undo::Undoer;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// Beside the first. While one waits for the ledger, the other serves; more would only take memory.
const THREADS_MORE: usize = 1;

pub fn run(context: &Context, args: &ServeArgs) -> anyhow::Result<ExitCode> {
    server_access::refuse(context)?;
    let policy = context.policy()?;
    let address = address(args, &policy.serve)?;
    let tls = tls::of(&policy.serve)?;
    let clock = RuntimeClock::start();
    let runtime = server_runtime::runtime()?;
    let _in_runtime = runtime.enter();
    // The ledger's place is made and checked here, before a token is put beside it.
    let traces = traces::started(context, &policy);
    let gate = server_runtime::gate(context, &clock, &policy);
    let gate = match &traces {
        Some((traces, _)) => gate.map(|gate| gate.with_observer(Arc::clone(traces) as _)),
        None => gate,
    };
    if let Err(why) = &gate {
        // Where others share the ledger, others serve too, and something starts this process again.
        if context.environment.settings.shared_ledger {
            anyhow::bail!("the ledger is not available, and nothing was sent: {why}");
        }
        let said = format_args!("semel: the ledger is not available, so effects will be refused: {why}");
        context.output.warn(said);
    }
    if !policy.warnings.is_empty() {
        context.output.warn(policy.warnings.render(false).trim_end());
    }
    if tls.is_none() && !address.ip().is_loopback() {
        let what = "other machines reach it without TLS, and whoever is on the way reads their tokens";
        context.output.warn(format_args!(
            "semel: {what}; set tls under [serve], or let a proxy with TLS be the only way to it"
        ));
    }
    let (token, token_file) = token(context, &policy.serve)?;
    let mcp_servers::PreparedServers { servers, all, offers } =
        mcp_servers::prepare(context, &policy, &clock)?;
    let apis = upstreams::prepare(context, &policy)?;
    let mcp = offers.keys().map(|name| format!("mcp/{name}"));
    let paths: Vec<String> = mcp.chain(apis.keys().map(|name| format!("p/{name}/"))).collect();
    let nothing_here = proxy::nothing_here(apis.keys());
    let servers = Arc::new(probe_access::servers(context, &policy, servers));
    let backends = probe_access::backends(context, &policy, &servers);
    let services = Arc::new(Services::new(gate, policy, clock).with_backends(backends));
    runtime.spawn(server_runtime::keep_retention(Arc::clone(&services)));
    runtime.spawn(server_runtime::keep_counts(Arc::clone(&services), context.output));
    runtime.spawn(server_runtime::keep_settling(Arc::clone(&services)));
    let listeners = notify::listeners(context, &services.policy)?;
    let telling = Telling::start(listeners, &runtime, &services, context.output);
    let admission = admission::admission(&services, token, address);
    let undoer = Undoer { services: Arc::clone(&services), servers };
    let load = ServerLoad::within(Room::for_files(server_runtime::open_files()));
    let router = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .merge(telemetry::router(Arc::new(ServerHealth::new(Arc::clone(&services), load.clone()))))
        .merge(mcp::router(Arc::new(mcp::ServerOffers { services: Arc::clone(&services), by_name: offers })))
        .merge(api::router(Arc::new(ApiServer::new(Arc::clone(&services), undoer))))
        .fallback(move || async move { server::problem(StatusCode::NOT_FOUND, &nothing_here) });
    runtime.block_on(async {
        let listener = server::listen(address).map_err(|error| {
            Hinted::error(
                format!("cannot listen on {address}: {error}"),
                "semel serve --listen 127.0.0.1:PORT",
            )
        })?;
        let reload = tls.as_ref().map(|tls| tls::keep(Arc::clone(tls), context.output));
        let signalled = server_runtime::signals(reload)?;
        // A reader of this line may ask it to end at once.
        let scheme = if tls.is_some() { "https" } else { "http" };
        say(context, scheme, listener.local_addr()?, token_file.as_deref(), &paths);
        let stop = async { drop(signalled.await) };
        let grace = services.policy.serve.grace.unwrap_or(server::GRACE);
        let apis = proxy::Offers::new(Arc::clone(&services), apis);
        let workers = Workers::with(THREADS_MORE).context("another thread")?;
        let doors = DoorRouter::new(apis, router);
        let served = ServerSetup { tls, admission, doors, load, workers, grace };
        let settled = async || services.in_flight.idle().await;
        server::serve(listener, served, stop, settled, || services.in_flight.give_up()).await;
        server_runtime::write_rest(&services, context.output).await;
        telling.finish().await;
        if let Some((_, exporting)) = traces {
            let lost = exporting.finish().await;
            if lost > 0 {
                context.output.warn(format_args!("semel: spans that did not reach the collector: {lost}"));
            }
        }
        for server in &all {
            if let Link::Child(child) = &server.link {
                child.close();
                server_runtime::end(child).await;
            }
        }
        server_runtime::fold_back(&services);
        anyhow::Ok(())
    })?;
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}

/// An address that other machines can reach needs the operator's word and a token.
fn address(args: &ServeArgs, serve: &Serve) -> anyhow::Result<SocketAddr> {
    let address = args.listen.or(serve.listen).unwrap_or(LISTEN);
    if !address.ip().is_loopback() {
        if serve.allow_remote != Some(true) {
            return Err(Hinted::error(
                format!("{address} can be reached by other machines"),
                "if that is meant: allow_remote = true under [serve] in semel.toml",
            ));
        }
        if serve.require_token == Some(false) {
            return Err(Hinted::error(
                format!("{address} can be reached by other machines, and require_token is false"),
                "a server without a token listens on 127.0.0.1 or [::1]",
            ));
        }
    }
    Ok(address)
}

/// The token, and the file that it lies in.
fn token(context: &Context, serve: &Serve) -> anyhow::Result<(Option<OperatorToken>, Option<PathBuf>)> {
    if serve.require_token == Some(false) {
        return Ok((None, None));
    }
    if let Some(text) = &context.environment.serve_token {
        return Ok((Some(token::of(text).context("SEMEL_SERVE_TOKEN")?), None));
    }
    let file = context.ledger_address()?.directory().join("serve.token");
    Ok((Some(token::kept(&file)?), Some(file)))
}

fn say(
    context: &Context,
    scheme: &str,
    address: SocketAddr,
    token_file: Option<&std::path::Path>,
    paths: &[String],
) {
    if context.output.json {
        let under = |prefix: &str| -> Vec<String> {
            let own = paths.iter().filter(|path| path.starts_with(prefix));
            own.map(|path| format!("{scheme}://{address}/{path}")).collect()
        };
        let document = serde_json::json!({
            "listen": address.to_string(), "token_file": token_file, "mcp": under("mcp/"), "apis": under("p/"),
        });
        context.output.line(&document);
        return;
    }
    context.output.say(format_args!("semel: listening on {scheme}://{address}"));
    for path in paths {
        context.output.say(format_args!("  {scheme}://{address}/{path}"));
    }
    match token_file {
        Some(file) => context.output.say(format_args!("  clients show the token in {}", file.display())),
        None if context.environment.serve_token.is_some() => {
            context.output.say("  clients show the token of SEMEL_SERVE_TOKEN");
        }
        None => context.output.say("  clients need no token"),
    }
    if paths.is_empty() {
        let files = policy_files::found(&context.environment.settings, context.global.policy.as_deref());
        let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        context.output.say(match files.is_empty() {
            true => {
                "  it answers /api/v1 and SEMEL_SERVER alone: no semel.toml was found from here".to_owned()
            }
            false => {
                format!(
                    "  it answers /api/v1 and SEMEL_SERVER alone: no [mcp.NAME] and no [upstream.NAME] in {}",
                    files.join(", ")
                )
            }
        });
    }
}
