//! From a request to the rule that holds for it and the intent that it is.

use super::arguments::{Arguments, BadRequest, Shape};
use super::inject;
use super::key::{self, BadKey};
use super::method::{self, NoMethod};
use super::offer::Offer;
use super::wishes::Wishes;
use crate::caller::Caller;
use http::{HeaderMap, Method};
use semel_core::digest::Secret;
use semel_core::ids::IdempotencyKey;
use semel_core::intent::{Ask, AskedBy, Intent, KeyMissing, NamedBy};
use semel_core::json::{Json, Step};
use semel_core::policy::file::Stores;
use semel_core::policy::{ActionFacts, Annotations, Policy, Rule};

/// Why a request is not understood. Nothing was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotUnderstood {
    #[error("{0}")]
    Request(#[from] BadRequest),
    #[error("{0}")]
    Method(#[from] NoMethod),
    #[error("{0}")]
    Key(#[from] BadKey),
}

/// A request, as far as rules and the ledger are concerned.
#[derive(Debug)]
pub struct Understood {
    /// The full name of what it does.
    pub action: String,
    pub rule: Rule,
    pub arguments: Arguments,
    pub key: Option<IdempotencyKey>,
    /// The client's key stands where the upstream looks for one: it can go there as it is.
    pub key_in_place: bool,
}

/// What is asked for: the methods that it may have, its place, its arguments.
#[derive(Debug)]
pub struct Asked<'a> {
    pub method: &'a Method,
    /// Methods that an upstream could take it for.
    pub others: Vec<Method>,
    pub path: &'a str,
    pub arguments: Arguments,
    pub headers: &'a HeaderMap,
}

pub fn understand(policy: &Policy, offer: &Offer, asked: Asked<'_>) -> Result<Understood, NotUnderstood> {
    let Asked { method, mut others, path, mut arguments, headers } = asked;
    if arguments.shape == Shape::Form {
        others.extend(in_form(&arguments.json)?);
    }
    let (action, mut rule) = strongest(policy, offer, method, &others, path, &arguments);
    let named = rule.sorting.key.iter().filter_map(|path| match path.steps() {
        [Step::Member(root), Step::Member(name), ..] if root == "headers" => Some(name.as_str()),
        _ => None,
    });
    arguments.with_headers(named, headers);
    rule.inject = rule.inject.filter(|inject| inject::fits(inject, &arguments));
    let in_header = key::in_header(headers, offer)?;
    let given = match &rule.inject {
        Some(inject) => inject::given(inject, &arguments, headers, offer)?,
        None => in_header.clone(),
    };
    if let Some(inject) = &rule.inject {
        inject::forget(inject, &mut arguments);
    }
    // What is said to semel counts before what is said to the upstream.
    let key_in_place = given.is_some() && (in_header.is_none() || in_header == given);
    let key = in_header.or(given);
    Ok(Understood { action, rule, arguments, key, key_in_place })
}

/// The rule of the method that is guarded most: an upstream may take either.
fn strongest(
    policy: &Policy,
    offer: &Offer,
    method: &Method,
    others: &[Method],
    path: &str,
    arguments: &Arguments,
) -> (String, Rule) {
    let only_asks = matches!(&arguments.shape, Shape::Graphql(graphql) if graphql.only_asks);
    let rule_of = |method: &Method| {
        let action = offer.action(method, path);
        let rule = policy.rule_for(&ActionFacts {
            annotations: Annotations { read_only: only_asks.then_some(true), ..Annotations::default() },
            // Semel has read the document itself.
            trusted: only_asks,
            ..ActionFacts::new(&action, &arguments.json)
        });
        (action, rule)
    };
    let own = rule_of(method);
    others.iter().map(rule_of).fold(own, |strongest, other| {
        if strongest.1.class.is_weaker_than(other.1.class) { other } else { strongest }
    })
}

fn in_form(arguments: &Json) -> Result<Vec<Method>, NoMethod> {
    match arguments.get("body").and_then(|body| body.get(method::PARAMETER)) {
        None => Ok(Vec::new()),
        Some(Json::Array(values)) => values.iter().filter_map(Json::as_str).map(method::method).collect(),
        Some(value) => Ok(vec![method::method(value.as_str().unwrap_or_default())?]),
    }
}

pub fn intent(
    understood: &Understood,
    offer: &Offer,
    caller: &Caller,
    wishes: &Wishes,
    secret: &Secret,
) -> Result<Intent, KeyMissing> {
    let Understood { action, rule, arguments, key, .. } = understood;
    let run = caller.run.as_ref().or(caller.surrounding_run.as_ref()).or(wishes.baggage.as_ref());
    let ask = Ask {
        tenant: &caller.tenant,
        principal: &caller.principal,
        authority: &offer.authority,
        action,
        arguments: &arguments.json,
        run: run.cloned(),
        key: key.clone(),
        again: wishes.again.clone(),
        asked_by: AskedBy::Agent,
        call_id: None,
        live_connection: false,
        serialize_by: None,
        replay_refusals: offer.keys.stores != Stores::Successes,
    };
    let mut intent = Intent::of(&ask, rule, secret)?;
    if intent.named_by == NamedBy::CallerKey {
        intent.window = offer.keys.life;
    }
    Ok(intent)
}
