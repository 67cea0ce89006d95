//! `SEMEL_SERVER`: the ledger is behind a `semel serve` on another machine, and this machine has a token for it.

use crate::context::Context;
use crate::output::Hinted;
use anyhow::{Context as _, bail};
use semel_core::own_tokens::{CLIENT_TOKEN, CLIENT_TOKEN_FILE};
use semel_doors::remote_gate::{BadAccess, ServerAccess};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A longer file is something else.
const TOKEN_BYTES_MAX: u64 = 4 * 1024;

/// The server that decides and records, where there is one. It comes before `ledger` in the policy, as every variable
/// does.
pub fn of(context: &Context) -> anyhow::Result<Option<ServerAccess>> {
    let environment = &context.environment;
    let Some(address) = &environment.server else { return Ok(None) };
    let other = match (&context.global.ledger, &environment.settings.ledger) {
        (Some(_), _) => Some("--ledger"),
        (None, Some(_)) => Some("SEMEL_LEDGER"),
        (None, None) => None,
    };
    if let Some(other) = other {
        return Err(Hinted::error(
            format!("SEMEL_SERVER and {other} name two ledgers"),
            format!("unset SEMEL_SERVER, or leave {other} away: a server has a ledger of its own"),
        ));
    }
    let token = match (&environment.client_token, &environment.client_token_file) {
        (Some(_), Some(_)) => {
            bail!("{CLIENT_TOKEN} and {CLIENT_TOKEN_FILE} are both set; one of them is enough")
        }
        (Some(token), None) => token.clone(),
        (None, Some(file)) => token_of(file)?,
        (None, None) => {
            return Err(Hinted::error(
                format!(
                    "SEMEL_SERVER is set, and there is no token for it in {CLIENT_TOKEN} or {CLIENT_TOKEN_FILE}"
                ),
                "on the server: semel token create --scope agent --name NAME",
            ));
        }
    };
    match ServerAccess::new(address, &token, environment.server_ca.as_deref()) {
        Ok(access) => Ok(Some(access)),
        Err(plain @ BadAccess::Plain(_)) => Err(Hinted::error(plain.to_string(), "write https://")),
        Err(bad) => Err(bad.into()),
    }
}

/// A command that needs the ledger itself.
pub fn refuse(context: &Context) -> anyhow::Result<()> {
    match &context.environment.server {
        None => Ok(()),
        Some(_) => Err(Hinted::error(
            "This command needs the ledger itself, but SEMEL_SERVER is set. Nothing was changed.",
            "run it on that server's machine, or ask its API (/api/v1/effects, /api/v1/runs; docs/api.md); without \
             SEMEL_SERVER it is about this machine's own ledger",
        )),
    }
}

fn token_of(file: &Path) -> anyhow::Result<String> {
    let what = || format!("{CLIENT_TOKEN_FILE}: {} cannot be read", file.display());
    let found = file.metadata().with_context(what)?;
    if found.mode() & 0o004 != 0 {
        return Err(Hinted::error(
            format!("{CLIENT_TOKEN_FILE}: other users can read {}", file.display()),
            format!("chmod o= {}", file.display()),
        ));
    }
    if found.len() > TOKEN_BYTES_MAX {
        bail!("{CLIENT_TOKEN_FILE}: {} is no token", file.display());
    }
    Ok(std::fs::read_to_string(file).with_context(what)?.trim().to_owned())
}
