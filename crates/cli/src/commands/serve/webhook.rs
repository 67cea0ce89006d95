//! From `[serve.webhook]` to whoever is told.

use crate::context::Context;
use anyhow::Context as _;
use semel_core::policy::servers::Serve;
use semel_doors::http::client::Client;
use semel_doors::http::target::Target;
use semel_doors::telemetry::WebhookSender;

pub fn of(context: &Context, serve: &Serve) -> anyhow::Result<Option<WebhookSender>> {
    let Some(configured) = &serve.webhook else { return Ok(None) };
    let about = "[serve.webhook]";
    let target =
        Target::parse(&configured.url).context("url").context(about)?.with_private(configured.private);
    let variable = configured.secret_env.as_deref();
    let secret = variable.map(|name| context.environment.variable(name)).transpose();
    let secret = secret.context("secret_env").context(about)?;
    let webhook = WebhookSender::new(Client::to(target)?, secret.as_deref());
    Ok(Some(webhook.context("secret_env").context(about)?))
}
