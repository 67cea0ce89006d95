//! What rules may ask with: the configured servers, their credentials, this machine's commands.

use crate::config::Environment;
use crate::context::Context;
use crate::mcp_servers;
use semel_core::policy::servers::{McpServer, Reach};
use semel_core::policy::{Mode, Policy};
use semel_doors::ask::Means;
use semel_doors::ask::means::{Shell, Starting, Starts};
use semel_doors::ask::origins::Origins;
use semel_doors::http::target::Target;
use semel_doors::mcp::server::Servers;
use semel_doors::runtime::RuntimeClock;
use std::collections::BTreeMap;

/// For a program that serves: these servers run.
pub fn serving(context: &Context, policy: &Policy, servers: Servers) -> Means {
    Means { servers, ..alone(context, policy) }
}

/// For a program that does one thing: a server is started, or a session with it begun, when somebody asks it.
pub fn alone(context: &Context, policy: &Policy) -> Means {
    let configured = Configured { context: context.clone(), servers: policy.mcp.clone(), mode: policy.mode };
    let origins = origins(context, policy);
    Means { servers: Servers::new(), starts: Some(Box::new(configured)), origins, shell: shell(context) }
}

/// The servers of `[mcp.NAME]`.
#[derive(Debug)]
struct Configured {
    context: Context,
    servers: BTreeMap<String, McpServer>,
    mode: Mode,
}

impl Starts for Configured {
    fn start(&self, name: &str) -> Option<Starting> {
        let configured = self.servers.get(name)?;
        Some(match mcp_servers::ask(&self.context, name, configured, self.mode, &RuntimeClock::start()) {
            Ok(starting) => starting,
            Err(error) => Box::pin(std::future::ready(Err(format!("[mcp.{name}]: {error:#}")))),
        })
    }
}

/// Where nothing is asked, and a command is only to be found and run.
pub fn commands(context: &Context) -> Means {
    Means { shell: shell(context), ..Means::default() }
}

fn shell(context: &Context) -> Shell {
    let Environment { search, cwd, home, xdg_config, curl_home, .. } = &context.environment;
    let places = [(curl_home, ".curlrc"), (xdg_config, "curlrc"), (home, ".curlrc")];
    let curl_settings = places.iter().filter_map(|(home, name)| Some(home.as_ref()?.join(name))).collect();
    Shell { search: search.clone(), cwd: cwd.clone(), curl_settings }
}

fn origins(context: &Context, policy: &Policy) -> Origins {
    let mut origins = Origins::default();
    let apis = policy
        .upstreams
        .values()
        .map(|api| (&api.url, Some(api.service.as_str()), api.private, &api.headers, &api.headers_env));
    let servers = policy.mcp.values().filter_map(|server| match &server.reach {
        Reach::Url { url, private, headers, headers_env } => {
            Some((url, None, *private, headers, headers_env))
        }
        Reach::Command { .. } => None,
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
