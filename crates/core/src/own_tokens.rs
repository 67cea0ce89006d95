//! The variables that hold secrets of semel's own. Core names them, and reads none.

/// Holds the token of whoever rules without a terminal. Nothing that semel starts gets to see it.
pub const OPERATOR_TOKEN: &str = "SEMEL_OPERATOR_TOKEN";

/// Holds the token that `semel serve` is asked with. Nothing that semel starts gets to see it either.
pub const SERVE_TOKEN: &str = "SEMEL_SERVE_TOKEN";

/// Holds the token that `semel run` and `semel mcp` show to the server of `SEMEL_SERVER`. Commands get to see it, because
/// they may call semel themselves; servers and questions do not.
pub const CLIENT_TOKEN: &str = "SEMEL_TOKEN";

/// Names a file with the same token, for the same readers.
pub const CLIENT_TOKEN_FILE: &str = "SEMEL_TOKEN_FILE";

/// The address of the ledger, with its password where it has one. Commands get to see it, as they do the token.
pub const LEDGER: &str = "SEMEL_LEDGER";

/// No server, question or program under trial gets any of these.
pub const OWN_TOKENS: [&str; 5] = [OPERATOR_TOKEN, SERVE_TOKEN, CLIENT_TOKEN, CLIENT_TOKEN_FILE, LEDGER];
