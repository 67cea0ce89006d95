//! The right side: rows of a file, a command, a listing over HTTP or a database.

use super::postgres;
use crate::args::ReconcileArgs;
use crate::context::Context;
use crate::{mcp_servers, probe_access, server_runtime};
use anyhow::{Context as _, anyhow};
use http::{HeaderMap, HeaderValue, header};
use semel_detect::child_process::{self, run_with};
use semel_detect::reconcile::OutsideRow;
use semel_detect::reconcile::outside::{OutsideError, of_file, of_pages, of_sqlite, of_text};
use semel_doors::http::target::Target;
use semel_doors::query::listing::{self, NextPage};
use semel_doors::query::origins::{OriginOwner, Origins};
use std::io::{BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A query over a large table takes minutes.
const COMMAND_TAKES_MAX: Duration = Duration::from_secs(600);

pub fn rows(context: &Context, args: &ReconcileArgs) -> anyhow::Result<Vec<OutsideRow>> {
    let from = &args.outside;
    let query = args.query.as_deref().unwrap_or_default();
    if let Some(file) = &from.outside {
        of_file(file).with_context(|| file.display().to_string())
    } else if let Some(file) = &from.sqlite {
        of_sqlite(file, query).with_context(|| file.display().to_string())
    } else if let Some(place) = &from.postgres {
        of_command(postgres::command(context, place, query)?, Some(postgres::SCRIPT))
    } else if let Some(url) = &from.http {
        of_listing(context, args, url)
    } else {
        let text = from.command.as_deref().unwrap_or_default();
        let words = shlex::split(text).filter(|words| !words.is_empty());
        let words = words.ok_or_else(|| anyhow!("`{text}` is no command"))?;
        of_command(child_process::command(&words), None)
    }
}

fn of_command(mut command: Command, input: Option<&'static str>) -> anyhow::Result<Vec<OutsideRow>> {
    let name = command.get_program().to_string_lossy().into_owned();
    if input.is_some() {
        command.stdin(Stdio::piped());
    }
    let ran = run_with(command, COMMAND_TAKES_MAX, move |child| {
        // A program that does not read its input ends with an error, or needs none.
        let _unread = child.stdin.take().zip(input).map(|(mut to, input)| to.write_all(input.as_bytes()));
        let rows = of_text(BufReader::new(child.stdout.take().expect("it was asked for")));
        // Nobody reads the rest, so an endless one is not waited for.
        rows.inspect_err(|error| {
            if !matches!(error, OutsideError::Empty) {
                let _gone = child.kill();
            }
        })
    });
    let ran = ran.with_context(|| format!("cannot run {name}"))?;
    // Half a listing would make false successes of the other half.
    let not_whole = |why: String| anyhow!("{name} {why}; nothing was compared");
    match ran {
        None => Err(not_whole(format!("did not end within {} minutes", COMMAND_TAKES_MAX.as_secs() / 60))),
        Some((status, Ok(_) | Err(OutsideError::Empty))) if !status.success() => {
            Err(not_whole(format!("ended with {status}, so its listing may not be whole")))
        }
        Some((_, rows)) => rows.with_context(|| name),
    }
}

fn of_listing(context: &Context, args: &ReconcileArgs, url: &str) -> anyhow::Result<Vec<OutsideRow>> {
    let next = args.next.as_deref().map(NextPage::parse).transpose().context("--next")?;
    let origins = origins(context, args, url)?;
    let pages = server_runtime::runtime()?.block_on(listing::read(url, next.as_ref(), &origins));
    let pages = pages.map_err(|why| anyhow!("{why}; nothing was compared")).context("--http")?;
    of_pages(&pages).map_err(|why| anyhow!("{why}; nothing was compared")).context("--http")
}

/// An address on the command line may be one of the own network.
fn origins(context: &Context, args: &ReconcileArgs, url: &str) -> anyhow::Result<Origins> {
    let target = Target::parse(url).context("--http")?;
    let mut headers = mcp_servers::headers_of_flags(context, &args.header_env)?;
    if let Some(variable) = &args.bearer_env {
        let token = context.environment.variable(variable).context("--bearer-env")?;
        let mut value = HeaderValue::from_str(&format!("Bearer {token}")).context("--bearer-env")?;
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
    }
    let configured = probe_access::origins(context, &context.policy()?);
    let led = configured.lead(target.clone(), None).map_err(anyhow::Error::msg).context("--http")?;
    if headers.is_empty() && !matches!(configured.of(&led), OriginOwner::Unknown) {
        return Ok(configured);
    }
    let mut origins = Origins::default();
    origins.add(&target, None, true, Ok::<HeaderMap, _>(headers));
    Ok(origins)
}
