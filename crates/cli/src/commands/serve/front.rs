//! Who is let in: the tokens, and what may be asked without one.

use semel_core::policy::Policy;
use semel_core::policy::file::MetricsFor;
use semel_core::policy::servers::Serve;
use semel_doors::hall::Hall;
use semel_doors::http::server::{Front, Keyring, ReadTokens, Token};
use std::net::SocketAddr;
use std::sync::Arc;

pub fn front(hall: &Arc<Hall>, token: Option<Token>, address: SocketAddr) -> Front {
    let Policy { serve, upstreams, .. } = &hall.policy;
    let (required, keeper) = (token.is_some(), Arc::clone(hall));
    let read: ReadTokens = Arc::new(move || {
        let hall = Arc::clone(&keeper);
        Box::pin(async move {
            let gate = hall.gate.as_ref().map_err(Clone::clone)?;
            gate.ledger.tokens().await.map_err(|error| error.to_string())
        })
    });
    let open = serve.metrics == Some(MetricsFor::Open);
    let passing = upstreams.iter().filter(|(_, api)| address.ip().is_loopback() && !api.lends_credentials());
    Front {
        hosts: hosts(serve, address),
        origins: serve.allowed_origins.clone(),
        keyring: Arc::new(Keyring::new(token, Some(read), hall.clock.clone())),
        required,
        passing: passing.map(|(name, _)| format!("/p/{name}/")).collect(),
        open: open.then(|| "/metrics".to_owned()).into_iter().collect(),
    }
}

fn hosts(serve: &Serve, address: SocketAddr) -> Vec<String> {
    let own = match address {
        SocketAddr::V4(address) => address.ip().to_string(),
        SocketAddr::V6(address) => format!("[{}]", address.ip()),
    };
    serve.allowed_hosts.iter().cloned().chain([own]).collect()
}
