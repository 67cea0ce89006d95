//! The caller of a request.

use crate::http::server::Revocable;
use semel_core::ids::Run;

/// Holds the token of whoever rules without a terminal. Nothing that semel starts gets to see it.
pub const OPERATOR_TOKEN: &str = "SEMEL_OPERATOR_TOKEN";

/// Holds the token that `semel serve` is asked with. Nothing that semel starts gets to see it either.
pub const SERVE_TOKEN: &str = "SEMEL_SERVE_TOKEN";

/// Holds the token that `semel run` and `semel mcp` show to the server of `SEMEL_SERVER`. Commands get to see it, because
/// they may call semel themselves; servers do not.
pub const CLIENT_TOKEN: &str = "SEMEL_TOKEN";

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
