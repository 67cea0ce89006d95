//! The backends of probes: the configured servers, their credentials, this machine's commands.

use crate::config::Environment;
use crate::context::Context;
use crate::mcp_servers;
use semel::settings::Settings;
use semel_core::policy::servers::{McpEndpoint, McpServer};
use semel_core::policy::{Mode, Policy};
use semel_doors::http::target::Target;
use semel_doors::mcp::configured::{ConfiguredServers, StartServer, StartingServer};
use semel_doors::mcp::server::Servers;
use semel_doors::query::Backends;
use semel_doors::query::backends::Shell;
use semel_doors::query::origins::Origins;
use semel_doors::query::tools::ToolServers;
use semel_doors::runtime::RuntimeClock;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The configured servers, of which some run. Another one is started, or a session with it begun, when it is asked.
pub fn servers(context: &Context, policy: &Policy, running: Servers) -> ConfiguredServers {
    let starter = ServerStarter { context: context.clone(), servers: policy.mcp.clone(), mode: policy.mode };
    ConfiguredServers { running, starter: Some(Box::new(starter)) }
}

/// For a program that does one thing: no server runs yet.
pub fn alone(context: &Context, policy: &Policy) -> Backends {
    backends(context, policy, &Arc::new(servers(context, policy, Servers::new())))
}

pub fn backends(context: &Context, policy: &Policy, servers: &Arc<ConfiguredServers>) -> Backends {
    let tools: Arc<dyn ToolServers> = Arc::<ConfiguredServers>::clone(servers);
    Backends { tools: Some(tools), origins: origins(context, policy), shell: shell(context) }
}

/// The servers of `[mcp.NAME]`.
#[derive(Debug)]
struct ServerStarter {
    context: Context,
    servers: BTreeMap<String, McpServer>,
    mode: Mode,
}

impl StartServer for ServerStarter {
    fn start(&self, name: &str) -> Option<StartingServer> {
        let configured = self.servers.get(name)?;
        Some(match mcp_servers::ask(&self.context, name, configured, self.mode, &RuntimeClock::start()) {
            Ok(starting) => starting,
            Err(error) => Box::pin(std::future::ready(Err(format!("[mcp.{name}]: {error:#}")))),
        })
    }
}

/// Where nothing is asked, and a command is only to be found and run.
pub fn commands(context: &Context) -> Backends {
    Backends { shell: shell(context), ..Backends::default() }
}

fn shell(context: &Context) -> Shell {
    let Environment { search, curl_home, settings, .. } = &context.environment;
    let Settings { cwd, home, xdg_config, .. } = settings;
    let places = [(curl_home, ".curlrc"), (xdg_config, "curlrc"), (home, ".curlrc")];
    let curl_settings = places.iter().filter_map(|(home, name)| Some(home.as_ref()?.join(name))).collect();
    Shell { search: search.clone(), cwd: cwd.clone(), curl_settings }
}

pub fn origins(context: &Context, policy: &Policy) -> Origins {
    let mut origins = Origins::default();
    let apis = policy
        .upstreams
        .values()
        .map(|api| (&api.url, Some(api.service.as_str()), api.private, &api.headers, &api.headers_env));
    let servers = policy.mcp.values().filter_map(|server| match &server.reach {
        McpEndpoint::Url { url, private, headers, headers_env } => {
            Some((url, None, *private, headers, headers_env))
        }
        McpEndpoint::Command { .. } => None,
    });
    for (url, service, private, fixed, from_env) in apis.chain(servers) {
        // An address that is none is found where it is offered.
        let Ok(target) = Target::parse(url) else { continue };
        let headers = mcp_servers::headers(context, fixed, from_env, mcp_servers::in_policy);
        let headers = headers.map_err(|error| format!("{error:#}"));
        origins.add(&target, service, private, headers);
    }
    origins
}
