//! From a name to the addresses that a target may lead to.

use crate::http::target::Target;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower_service::Service;

/// Says where names lead.
pub trait Names: Send + Sync + fmt::Debug {
    fn look_up(&self, name: Name) -> LookingUp;
}

pub type LookingUp = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

/// As this machine resolves them.
#[derive(Debug)]
pub struct SystemNames;

impl Names for SystemNames {
    fn look_up(&self, name: Name) -> LookingUp {
        let resolving = GaiResolver::new().call(name);
        Box::pin(async move { Ok(resolving.await?.collect()) })
    }
}

/// Resolves names, and lets through only addresses to which the target may lead. A connection is made to what was
/// checked; for the next one the name is asked anew, and checked anew.
#[derive(Debug, Clone)]
pub struct CheckedResolver {
    pub target: Arc<Target>,
    pub names: Arc<dyn Names>,
}

impl Service<Name> for CheckedResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let target = self.target.clone();
        let resolving = self.names.look_up(name);
        Box::pin(async move {
            let mut allowed = Vec::new();
            let mut refused = None;
            for address in resolving.await? {
                match target.allows(address.ip()) {
                    Ok(()) => allowed.push(address),
                    Err(why) => refused = Some(why),
                }
            }
            match refused {
                Some(why) if allowed.is_empty() => {
                    Err(io::Error::new(io::ErrorKind::PermissionDenied, why.to_string()))
                }
                _ => Ok(allowed.into_iter()),
            }
        })
    }
}
