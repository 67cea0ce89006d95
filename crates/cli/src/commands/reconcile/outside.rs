//! The right side: rows of a file, a command, a listing over HTTP or a database.

use super::postgres;
use crate::args::ReconcileArgs;
use crate::context::Context;
use crate::{mcp_servers, probe_access, server_runtime};
use anyhow::{Context as _, anyhow};
use http::{HeaderMap, HeaderValue, header};
use semel_detect::reconcile::OutsideRow;
use semel_detect::reconcile::outside::{of_file, of_page, of_sqlite, of_text};
use semel_doors::caller::{OPERATOR_TOKEN, SERVE_TOKEN};
use semel_doors::http::target::Target;
use semel_doors::query::listing::{self, NextPage};
use semel_doors::query::origins::{OriginOwner, Origins};
use std::io::BufReader;
use std::process::{Command, Stdio};

pub fn rows(context: &Context, args: &ReconcileArgs) -> anyhow::Result<Vec<OutsideRow>> {
    let from = &args.outside;
    let query = args.query.as_deref().unwrap_or_default();
    if let Some(file) = &from.outside {
        of_file(file).with_context(|| file.display().to_string())
    } else if let Some(file) = &from.sqlite {
        of_sqlite(file, query).with_context(|| file.display().to_string())
    } else if let Some(place) = &from.postgres {
        of_command(postgres::command(context, place, query)?)
    } else if let Some(url) = &from.http {
        of_listing(context, args, url)
    } else {
        let text = from.command.as_deref().unwrap_or_default();
        let words = shlex::split(text).filter(|words| !words.is_empty());
        let words = words.ok_or_else(|| anyhow!("`{text}` is no command"))?;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        of_command(command)
    }
}

fn of_command(mut command: Command) -> anyhow::Result<Vec<OutsideRow>> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.env_remove(OPERATOR_TOKEN).env_remove(SERVE_TOKEN);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot run {name}"))?;
    let output = child.stdout.take().expect("it was asked for");
    let rows = of_text(BufReader::new(output));
    // Half a listing would make false successes of the other half.
    let status = child.wait()?;
    if !status.success() {
        return Err(anyhow!(
            "{name} ended with {status}, so its listing may not be whole; nothing was compared"
        ));
    }
    rows.with_context(|| name)
}

fn of_listing(context: &Context, args: &ReconcileArgs, url: &str) -> anyhow::Result<Vec<OutsideRow>> {
    let next = args.next.as_deref().map(NextPage::parse).transpose().context("--next")?;
    let origins = origins(context, args, url)?;
    let pages = server_runtime::runtime()?.block_on(listing::read(url, next.as_ref(), &origins));
    let pages = pages.map_err(|why| anyhow!("{why}; nothing was compared")).context("--http")?;
    let mut rows = Vec::new();
    for (number, page) in (1..).zip(&pages) {
        let of_page = of_page(page).with_context(|| format!("--http: page {number}"))?;
        rows.extend(
            of_page
                .into_iter()
                .map(|row| OutsideRow { place: format!("page {number}, {}", row.place), ..row }),
        );
    }
    Ok(rows)
}

/// Whoever names an address on the command line may look into the own network with it.
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
