//! The policy, what it needs from the environment, and the search path.

use super::Checks;
use crate::context::Context;
use crate::output::counted;
use semel::policy_files::{self, Unusable};
use semel_core::policy::Policy;
use semel_core::policy::diagnostic::Severity;
use semel_core::policy::servers::McpEndpoint;
use semel_ledger::server_address::ServerAddress;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

pub fn examine(context: &Context, checks: &mut Checks) {
    policy(context, checks);
    password(context, checks);
    search_path(context, checks);
}

fn policy(context: &Context, checks: &mut Checks) {
    let check = Some("semel policy lint".to_owned());
    let flag = context.global.policy.as_deref();
    let files = match policy_files::read(&context.environment.settings, flag) {
        Ok(files) => files,
        Err(error) => return checks.fail("policy", format!("{error:#}"), None),
    };
    let names: Vec<String> = files.iter().map(|file| file.path.display().to_string()).collect();
    let loaded = policy_files::load(&context.environment.settings, flag);
    if let Ok(policy) = &loaded {
        credentials(context, checks, policy);
    }
    match loaded {
        Ok(_) if names.is_empty() => checks.ok("policy", "no semel.toml from here upward: the defaults hold"),
        Ok(policy) if policy.warnings.count(Severity::Warning) == 0 => checks.ok("policy", names.join(", ")),
        Ok(policy) => {
            let warnings = policy.warnings.count(Severity::Warning);
            let detail = format!("{}: {}", names.join(", "), counted(warnings, "warning", "warnings"));
            checks.warn("policy", detail, "semel policy lint");
        }
        Err(Unusable::File(error)) => checks.fail("policy", format!("{error:#}"), None),
        Err(Unusable::Content(found)) => {
            checks.fail("policy", format!("{}: {} findings", names.join(", "), found.len()), check);
        }
    }
}

/// A policy is a file that people share, and a password in it is for nobody else.
fn password(context: &Context, checks: &mut Checks) {
    let Ok(Some((file, ledger))) =
        policy_files::ledger(&context.environment.settings, context.global.policy.as_deref())
    else {
        return;
    };
    let has_password = matches!(ServerAddress::parse(&ledger), Ok(Some(server)) if server.has_password());
    if has_password && file.metadata().is_ok_and(|found| found.mode() & 0o004 != 0) {
        let shown = file.display();
        let detail = format!("{shown} holds the password of the ledger, and other users can read it");
        checks.warn("policy", detail, &format!("chmod o= {shown}, or put the address into SEMEL_LEDGER"));
    }
}

/// The needs of `semel serve`, without which it does not start. Where it is started may know more than where this is
/// asked.
fn credentials(context: &Context, checks: &mut Checks, policy: &Policy) {
    let apis = policy.upstreams.iter().map(|(name, api)| (format!("upstream.{name}"), &api.headers_env));
    let servers = policy.mcp.iter().filter_map(|(name, server)| match &server.reach {
        McpEndpoint::Url { headers_env, .. } => Some((format!("mcp.{name}"), headers_env)),
        McpEndpoint::Command { .. } => None,
    });
    let named = apis.chain(servers).flat_map(|(place, headers)| {
        headers.iter().map(move |(_, variable)| (place.clone(), variable.as_str()))
    });
    let url = policy.notify.as_ref().and_then(|notify| notify.url.as_ref());
    let secret = url.and_then(|url| url.secret_env.as_deref());
    let named: Vec<_> = named.chain(secret.map(|secret| ("notify".to_owned(), secret))).collect();
    let missing: Vec<String> = named
        .iter()
        .filter_map(|(place, variable)| {
            Some(format!("{place}: {:#}", context.environment.variable(variable).err()?))
        })
        .collect();
    match (named.is_empty(), missing.is_empty()) {
        (true, _) => {}
        (false, true) => checks.ok("credentials", format!("{} in the environment", named.len())),
        (false, false) => {
            let hint = "semel serve needs them in its own environment; without them it does not start";
            checks.warn("credentials", missing.join("; "), hint);
        }
    }
}

fn search_path(context: &Context, checks: &mut Checks) {
    let directories: Vec<PathBuf> = std::env::split_paths(&context.environment.search).collect();
    if let Some(relative) = directories.iter().find(|directory| !directory.is_absolute()) {
        let detail = format!(
            "PATH holds {:?}, which depends on the working directory",
            relative.display().to_string()
        );
        checks.warn("path", detail, "take it out: one command name would be different programs");
        return;
    }
    match directories.iter().map(|directory| directory.join("semel")).find(|program| program.is_file()) {
        Some(program) => checks.ok("path", format!("semel is {}", program.display())),
        None => checks.warn(
            "path",
            "semel is not on PATH",
            "add its directory, or write its full path into configurations",
        ),
    }
}
