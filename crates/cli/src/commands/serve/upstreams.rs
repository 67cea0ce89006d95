//! From `[upstream.NAME]` to APIs that can be offered.

use crate::context::Context;
use crate::mcp_servers::{authority, headers, in_policy};
use anyhow::Context as _;
use http::HeaderMap;
use semel_core::ids::Run;
use semel_core::policy::Policy;
use semel_core::policy::upstreams::HttpApi;
use semel_core::redact::is_secret_name;
use semel_doors::http::client::Client;
use semel_doors::http::target::Target;
use semel_doors::proxy::Offer;
use semel_doors::proxy::offer::OfferSettings;
use std::collections::BTreeMap;
use std::sync::Arc;

pub fn prepare(context: &Context, policy: &Policy) -> anyhow::Result<BTreeMap<String, Arc<Offer>>> {
    let prepared = policy.upstreams.iter().map(|(name, api)| {
        let place = || format!("{}:{}: [upstream.{name}]", api.path.display(), api.line);
        offer(context, policy, name, api).with_context(place)
    });
    let offers: Vec<Offer> = prepared.collect::<anyhow::Result<_>>()?;
    are_told_apart(&offers, policy)?;
    Ok(offers.into_iter().map(|offer| (offer.name.clone(), Arc::new(offer))).collect())
}

/// Two upstreams that nothing tells apart would answer for each other. Most are found where the file is read; here
/// their addresses are known as they are asked.
fn are_told_apart(offers: &[Offer], policy: &Policy) -> anyhow::Result<()> {
    let is_named = |offer: &Offer| policy.upstreams.get(&offer.name).is_some_and(|api| api.account.is_some());
    for (nth, offer) in offers.iter().enumerate().filter(|(_, offer)| !is_named(offer)) {
        let same = |other: &&Offer| other.authority == offer.authority && other.headers != offer.headers;
        if let Some(other) = offers[..nth].iter().find(same) {
            anyhow::bail!(
                "[upstream.{}] is at the address of [upstream.{}] with other headers, and nothing tells their calls \
                 apart: say account = \"{}\" in one of them, the newer one, since the other then stays who it is",
                offer.name,
                other.name,
                offer.name
            );
        }
    }
    Ok(())
}

fn offer(context: &Context, policy: &Policy, name: &str, api: &HttpApi) -> anyhow::Result<Offer> {
    let target = Target::parse(&api.url).context("url")?.with_private(api.private);
    let with = OfferSettings {
        authority: api.account.as_ref().map_or_else(|| authority(&target), |name| format!("account {name}")),
        client: Client::to(target)?,
        headers: headers_of(context, api)?,
        run: api.run.as_deref().map(Run::named).transpose().context("run")?,
    };
    Ok(Offer::new(name, api, with, policy)?)
}

/// A value from the environment is a secret; one in a file that people share is one by its name alone.
fn headers_of(context: &Context, api: &HttpApi) -> anyhow::Result<HeaderMap> {
    let mut all = headers(context, &api.headers, &api.headers_env, in_policy)?;
    for (name, _) in api.headers.iter().filter(|(name, _)| !is_secret_name(name)) {
        let from_env = api.headers_env.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        if let Some(value) = all.get_mut(name.as_str()).filter(|_| !from_env) {
            value.set_sensitive(false);
        }
    }
    Ok(all)
}
