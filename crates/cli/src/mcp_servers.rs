//! From `[mcp.NAME]` to servers that can be offered.

use crate::context::Context;
use crate::output::Output;
use crate::server_identity::{self, STDIO, Start};
use crate::server_runtime;
use anyhow::{Context as _, bail};
use http::{HeaderMap, HeaderName, HeaderValue};
use semel_core::ids::Run;
use semel_core::policy::servers::{McpEndpoint, McpServer};
use semel_core::policy::{Mode, Policy};
use semel_doors::http::client::Client;
use semel_doors::http::target::Target;
use semel_doors::mcp::configured::StartingServer;
use semel_doors::mcp::era;
use semel_doors::mcp::frame_writer::FrameWriter;
use semel_doors::mcp::link::Link;
use semel_doors::mcp::link::remote::{RemoteLink, RemoteSession};
use semel_doors::mcp::link::request::Listener;
use semel_doors::mcp::message::Message;
use semel_doors::mcp::serve::http::{ChildEra, ChildServer, Children, Remote, ServerBackend, ServerOffer};
use semel_doors::mcp::server::Servers;
use semel_doors::mcp::server::{Server, Settings};
use semel_doors::runtime::RuntimeClock;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// The servers as the door knows them, and as they are offered.
#[derive(Debug)]
pub struct PreparedServers {
    /// Those that run: what semel itself asks. With remote ones it begins a session of its own.
    pub servers: Servers,
    /// Every server there is to end.
    pub all: Vec<Arc<Server>>,
    pub offers: BTreeMap<String, ServerOffer>,
}

/// One of them; a server on stdio has a process for each era.
struct OfferedServer {
    server: Arc<Server>,
    also: Option<Arc<Server>>,
    offer: ServerOffer,
}

pub fn prepare(context: &Context, policy: &Policy, clock: &RuntimeClock) -> anyhow::Result<PreparedServers> {
    let mut prepared = PreparedServers { servers: Servers::new(), all: Vec::new(), offers: BTreeMap::new() };
    for (name, configured) in &policy.mcp {
        let place = || format!("{}:{}: [mcp.{name}]", configured.path.display(), configured.line);
        let OfferedServer { server, also, offer } =
            offer(context, name, configured, policy.mode, clock).with_context(place)?;
        prepared.all.extend([Arc::clone(&server)].into_iter().chain(also));
        if let Link::Child(_) = server.link {
            prepared.servers.insert(name.clone(), server);
        }
        prepared.offers.insert(name.clone(), offer);
    }
    Ok(prepared)
}

/// The servers on stdio that the policy's questions go to, but for the one that is guarded itself: they run as long as
/// semel does. With remote ones a session is begun for each question.
pub fn asked(
    context: &Context,
    policy: &Policy,
    guarded: &str,
    clock: &RuntimeClock,
) -> anyhow::Result<Servers> {
    let asked = policy.asked_servers();
    let mut servers = Servers::new();
    for (name, configured) in &policy.mcp {
        let on_stdio = matches!(configured.reach, McpEndpoint::Command { .. });
        if name != guarded && on_stdio && asked.contains(name.as_str()) {
            let place = || format!("{}:{}: [mcp.{name}]", configured.path.display(), configured.line);
            let child =
                start(context, name, configured, policy.mode, clock, ChildEra::Either).with_context(place)?;
            servers.insert(name.clone(), Arc::clone(child.server()));
            let output = context.output;
            tokio::spawn(async move { say(output, child.greet().await) });
        }
    }
    Ok(servers)
}

/// Begins to speak with a server that only semel itself asks. Within a runtime.
pub fn ask(
    context: &Context,
    name: &str,
    configured: &McpServer,
    mode: Mode,
    clock: &RuntimeClock,
) -> anyhow::Result<StartingServer> {
    if let McpEndpoint::Command { .. } = &configured.reach {
        let child = start(context, name, configured, mode, clock, ChildEra::Either)?;
        let server = Arc::clone(child.server());
        return Ok(Box::pin(async move { child.greet().await.map(|()| server) }));
    }
    let McpEndpoint::Url { url, private, headers: fixed, headers_env } = &configured.reach else {
        bail!("there is no url")
    };
    let target = Target::parse(url).context("url")?.with_private(*private);
    let authority = authority(&target);
    let (session, queue) = RemoteSession::new(headers(context, fixed, headers_env, in_policy)?);
    let link = RemoteLink::for_stdio(Client::to(target)?, session, clock.clone());
    link.listen(queue, Deaf);
    let (name, link) = (name.to_owned(), Link::Remote(link));
    let server =
        Arc::new(Server::new(name, authority, settings(configured), link, server_runtime::instance()));
    Ok(Box::pin(async move { era::introduce_either(&server).await.map(|_| server) }))
}

/// Messages that a server sends of its own accord while it is asked concern nobody.
struct Deaf;

impl Listener for Deaf {
    fn message(&mut self, _: Message) -> Option<FrameWriter> {
        None
    }

    fn stray(&mut self, _: &str) -> Option<FrameWriter> {
        None
    }
}

/// Starts a process that speaks one era.
fn start(
    context: &Context,
    name: &str,
    configured: &McpServer,
    mode: Mode,
    clock: &RuntimeClock,
    era: ChildEra,
) -> anyhow::Result<Arc<ChildServer>> {
    let McpEndpoint::Command { argv, env, cwd } = &configured.reach else { bail!("there is no command") };
    let mut command = command(context, argv, env, cwd.as_deref());
    let start = Start { name, command: &mut command, any_directory: false };
    let (link, output) = server_identity::launch(context, mode, start, clock).context("command")?;
    let (name, link) = (name.to_owned(), Link::Child(link));
    let server = Server::new(name, STDIO.to_owned(), settings(configured), link, server_runtime::instance());
    Ok(ChildServer::new(Arc::new(server), output, era)?)
}

/// The command of `[mcp.NAME]`.
pub fn command(context: &Context, argv: &[String], env: &[(String, String)], cwd: Option<&Path>) -> Command {
    let cwd = cwd.map_or_else(
        || context.environment.settings.cwd.clone(),
        |cwd| context.environment.settings.cwd.join(cwd),
    );
    let mut command = Command::new(argv.first().map(String::as_str).unwrap_or_default());
    command.args(argv.iter().skip(1)).envs(env.iter().map(|(name, value)| (name, value))).current_dir(&cwd);
    command
}

fn offer(
    context: &Context,
    name: &str,
    configured: &McpServer,
    mode: Mode,
    clock: &RuntimeClock,
) -> anyhow::Result<OfferedServer> {
    let settings = settings(configured);
    let run = configured.run.as_deref().map(Run::named).transpose().context("run")?;
    match &configured.reach {
        McpEndpoint::Url { url, private, headers: fixed, headers_env } => {
            let target = Target::parse(url).context("url")?.with_private(*private);
            let authority = authority(&target);
            let client = Client::to(target)?;
            let headers = headers(context, fixed, headers_env, in_policy)?;
            let link = RemoteLink::for_client(client.clone(), headers.clone(), None, clock.clone());
            let server = Server::new(
                name.to_owned(),
                authority,
                settings,
                Link::Remote(link),
                server_runtime::instance(),
            );
            let server = Arc::new(server);
            let backend = ServerBackend::Remote(Box::new(Remote::new(Arc::clone(&server), client, headers)));
            Ok(OfferedServer { server, also: None, offer: ServerOffer { backend, run } })
        }
        McpEndpoint::Command { .. } => {
            let start = |era| start(context, name, configured, mode, clock, era);
            let (session, stateless) = (start(ChildEra::Session)?, start(ChildEra::Stateless)?);
            let server = Arc::clone(session.server());
            let also = Some(Arc::clone(stateless.server()));
            let children = Arc::new(Children::new(session, stateless));
            greet(context, name, Arc::clone(&children));
            let offer = ServerOffer { backend: ServerBackend::Child(children), run };
            Ok(OfferedServer { server, also, offer })
        }
    }
}

/// Begins to speak with a server, so that whoever comes first need not wait for it.
fn greet(context: &Context, name: &str, children: Arc<Children>) {
    let (output, name) = (context.output, name.to_owned());
    tokio::spawn(async move {
        say(output, children.greet().await);
        let status = children.end().await;
        output.warn(format_args!(
            "semel: the server {name} has ended ({status}); its calls are refused until `semel serve` is started again"
        ));
    });
}

fn say(output: Output, greeted: Result<(), String>) {
    if let Err(why) = greeted {
        output.warn(format_args!("semel: {why}"));
    }
}

/// Scheme, host, port and path: what tells two remote servers of one name apart. A slash more makes no other place.
pub fn authority(target: &Target) -> String {
    let uri = target.uri();
    let segments: Vec<&str> = uri.path().split('/').filter(|segment| !segment.is_empty()).collect();
    format!("{}://{}/{}", uri.scheme_str().unwrap_or_default(), target.authority(), segments.join("/"))
}

pub fn settings(configured: &McpServer) -> Settings {
    let otherwise = Settings::default();
    Settings {
        trusted: configured.trusted.unwrap_or(otherwise.trusted),
        decorate: configured.decorate.unwrap_or(otherwise.decorate),
        own_tools: configured.own_tools.unwrap_or(otherwise.own_tools),
        dry_run_argument: configured.dry_run_argument.unwrap_or(otherwise.dry_run_argument),
    }
}

/// The headers of every request; values from the environment are never shown. `said` is how the person wrote
/// a pair of header and variable.
pub fn headers(
    context: &Context,
    fixed: &[(String, String)],
    from_env: &[(String, String)],
    said: impl Fn(&str, &str) -> String,
) -> anyhow::Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    let mut put = |name: &str, value: &str| -> anyhow::Result<()> {
        let about = || format!("the header {name}");
        let header: HeaderName = name.parse().with_context(about)?;
        let mut value = HeaderValue::from_str(value).with_context(about)?;
        value.set_sensitive(true);
        headers.insert(header, value);
        Ok(())
    };
    for (name, value) in fixed {
        put(name, value)?;
    }
    for (name, variable) in from_env {
        put(name, &context.environment.variable(variable).with_context(|| said(name, variable))?)?;
    }
    Ok(headers)
}

/// The headers of `--header-env NAME=VARIABLE`.
pub fn headers_of_flags(context: &Context, pairs: &[String]) -> anyhow::Result<HeaderMap> {
    let from_env = pairs.iter().map(|pair| match pair.split_once('=') {
        Some((header, variable)) => Ok((header.to_owned(), variable.to_owned())),
        None => bail!("--header-env {pair}: it has the form NAME=VARIABLE"),
    });
    let from_env: Vec<_> = from_env.collect::<anyhow::Result<_>>()?;
    headers(context, &[], &from_env, |name, variable| format!("--header-env {name}={variable}"))
}

/// How `semel.toml` says that a header comes from a variable.
pub fn in_policy(name: &str, variable: &str) -> String {
    format!("headers_env = {{ {name} = \"{variable}\" }}")
}
