//! From `[upstream.NAME]` to APIs that can be offered.

use super::offers::{authority, headers};
use crate::commands::Context;
use anyhow::Context as _;
use semel_core::ids::Run;
use semel_core::policy::Policy;
use semel_core::policy::upstreams::HttpApi;
use semel_doors::http::client::Client;
use semel_doors::http::target::Target;
use semel_doors::proxy::Offer;
use std::collections::BTreeMap;
use std::sync::Arc;

pub fn prepare(context: &Context, policy: &Policy) -> anyhow::Result<BTreeMap<String, Arc<Offer>>> {
    let prepared = policy.upstreams.iter().map(|(name, api)| {
        let place = || format!("{}:{}: [upstream.{name}]", api.path.display(), api.line);
        Ok((name.clone(), Arc::new(offer(context, name, api).with_context(place)?)))
    });
    prepared.collect()
}

fn offer(context: &Context, name: &str, api: &HttpApi) -> anyhow::Result<Offer> {
    let target = Target::parse(&api.url).context("url")?.with_private(api.private);
    Ok(Offer {
        name: name.to_owned(),
        service: api.service.clone(),
        authority: authority(&target),
        client: Client::to(target)?,
        headers: headers(context, &api.headers, &api.headers_env)?,
        speaks: api.speaks,
        keys: api.keys.clone(),
        run: api.run.as_deref().map(Run::named).transpose().context("run")?,
    })
}
