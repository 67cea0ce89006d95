//! Whether the server can be used, before any call needs it.

use super::RemoteGate;
use super::client::{ANSWER_TAKES_MAX, Unanswered};
use super::forms::Whoami;
use serde::Deserialize;

/// Why a server is of no use, before anything was asked of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerTrouble {
    /// It cannot be reached now.
    Away(String),
    /// It will not be otherwise until somebody changes a setting.
    Setting(String),
}

impl RemoteGate {
    /// The principal, tenant and scope that the server reads from our token.
    pub async fn whoami(&self) -> Result<Whoami, ServerTrouble> {
        let reply =
            self.access.get("/whoami", ANSWER_TAKES_MAX).await.map_err(|unanswered| match unanswered {
                Unanswered::Untrusted(why) => ServerTrouble::Setting(why),
                Unanswered::NotReached(why) | Unanswered::Lost(why) => ServerTrouble::Away(why),
            })?;
        match Whoami::deserialize(&reply.body) {
            Ok(whoami) if reply.status.is_success() => Ok(whoami),
            _ if reply.is_transient() => Err(ServerTrouble::Away(reply.detail())),
            _ => Err(ServerTrouble::Setting(reply.refusal(&self.access))),
        }
    }
}
