//! The admission: the tokens, and the paths that need none.

use semel_core::policy::Policy;
use semel_core::policy::file::MetricsFor;
use semel_core::policy::servers::Serve;
use semel_doors::http::server::{Admission, Keyring, OperatorToken, ReadTokens};
use semel_doors::proxy::nothing_here;
use semel_doors::services::Services;
use std::net::SocketAddr;
use std::sync::Arc;

/// Beginnings of semel's own paths.
const OWN: [&str; 3] = ["/mcp", "/api", "/metrics"];

pub fn admission(services: &Arc<Services>, token: Option<OperatorToken>, address: SocketAddr) -> Admission {
    let Policy { serve, upstreams, .. } = &services.policy;
    let (required, keeper) = (token.is_some(), Arc::clone(services));
    let read: ReadTokens = Arc::new(move || {
        let services = Arc::clone(&keeper);
        Box::pin(async move {
            let gate = services.gate.as_ref().map_err(Clone::clone)?;
            gate.ledger.tokens().await.map_err(|error| error.to_string())
        })
    });
    let open = serve.metrics == Some(MetricsFor::Open);
    let is_local = address.ip().is_loopback();
    let passing = upstreams.iter().filter(|(_, api)| is_local && !api.lends_credentials());
    // Others are not told by which paths they need no token that there is nothing there.
    let rooms = match is_local {
        true => upstreams.keys().map(|name| format!("/p/{name}/")).chain(OWN.map(str::to_owned)).collect(),
        false => vec!["/".to_owned()],
    };
    Admission {
        hosts: hosts(serve, address),
        origins: serve.allowed_origins.clone(),
        keyring: Arc::new(Keyring::new(token, Some(read), services.clock.clone())),
        required,
        passing: passing.map(|(name, _)| format!("/p/{name}/")).collect(),
        open: open.then(|| "/metrics".to_owned()).into_iter().collect(),
        rooms,
        nothing_here: nothing_here(upstreams.keys()),
        by_host: upstreams.keys().map(|name| (format!("{name}.localhost"), format!("/p/{name}"))).collect(),
    }
}

fn hosts(serve: &Serve, address: SocketAddr) -> Vec<String> {
    let own = match address {
        SocketAddr::V4(address) => address.ip().to_string(),
        SocketAddr::V6(address) => format!("[{}]", address.ip()),
    };
    serve.allowed_hosts.iter().cloned().chain([own]).collect()
}
