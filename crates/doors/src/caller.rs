//! The caller of a request.

use crate::http::server::Revocable;
use semel_core::ids::Run;
use semel_core::own_tokens::OWN_TOKENS;
use std::process::Command;

/// A server or a question gets no token of semel's own.
pub fn without_own_tokens(command: &mut Command) -> &mut Command {
    OWN_TOKENS.iter().fold(command, |command, name| command.env_remove(name))
}

/// From the credential and the surroundings; never from what a message says.
#[derive(Debug, Clone)]
pub struct Caller {
    pub tenant: String,
    pub principal: String,
    /// The run that a flag or a header names: stronger than anything in a call.
    pub run: Option<Run>,
    /// The run that the environment names: what holds where a call names none.
    pub surrounding_run: Option<Run>,
    /// Its token, where that can be revoked while its call waits.
    pub token: Option<Revocable>,
}

impl Caller {
    /// A name that two callers have only if they are the same: principals of two tenants may be called alike.
    pub fn whose(&self) -> String {
        format!("{}/{}", self.tenant, self.principal)
    }
}
