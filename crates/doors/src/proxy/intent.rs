//! From a request to the rule that holds for it and the intent that it is.

use super::arguments::{Arguments, BadArguments, BodyShape};
use super::graphql;
use super::inject;
use super::key::{self, BadKey};
use super::method::{self, NoMethod};
use super::offer::Offer;
use crate::call_options::CallOptions;
use crate::caller::Caller;
use crate::http::headers::all;
use crate::http::server::shown;
use http::{HeaderMap, Method};
use semel_core::digest::Secret;
use semel_core::ids::IdempotencyKey;
use semel_core::intent::{Ask, AskedBy, Intent, KeyMissing, NamedBy, upstream_key};
use semel_core::json::{Json, PathStep};
use semel_core::policy::file::{ServerError, Stores};
use semel_core::policy::rule::KeyForm;
use semel_core::policy::rule::{Inject, InjectInto};
use semel_core::policy::{ActionFacts, Annotations, Policy, Rule};
use std::borrow::Cow;
use std::sync::Arc;

/// Why a request is not understood. Nothing was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRequest {
    #[error("{0}")]
    Request(#[from] BadArguments),
    #[error("{0}")]
    Method(#[from] NoMethod),
    #[error("{0}")]
    Key(#[from] BadKey),
}

/// A request, as far as rules and the ledger are concerned.
#[derive(Debug)]
pub struct UnderstoodRequest {
    /// The full name of what it does.
    pub action: String,
    pub rule: Arc<Rule>,
    pub arguments: Arguments,
    pub key: Option<IdempotencyKey>,
    /// The client's key stands where the upstream looks for one: it can go there as it is.
    pub key_in_place: bool,
    /// An upstream could take it for a request of another method.
    pub may_be_another: bool,
}

/// The facts of a request: the methods that it may have, its place, its arguments.
#[derive(Debug)]
pub struct RequestFacts<'a> {
    pub method: &'a Method,
    /// Methods that an upstream could take it for.
    pub others: Vec<Method>,
    pub path: &'a str,
    pub arguments: Arguments,
    pub headers: &'a HeaderMap,
}

pub fn understand(
    policy: &Policy,
    offer: &Offer,
    asked: RequestFacts<'_>,
) -> Result<UnderstoodRequest, BadRequest> {
    let RequestFacts { method, mut others, path, mut arguments, headers } = asked;
    others.extend(in_body(method, path, &arguments)?);
    let (action, mut rule) = strongest(policy, offer, method, &others, path, &arguments);
    if may_change_by_graphql(path, &arguments) {
        rule = rule.of_mutation();
    }
    if arguments.has_named_document() {
        rule = rule.of_named_document();
    }
    let named = rule.sorting.key.iter().filter_map(|path| match path.steps() {
        [PathStep::Member(root), PathStep::Member(name), ..] if root == "headers" => Some(name.as_str()),
        _ => None,
    });
    arguments.with_headers(named, headers);
    let has_its_place = rule.inject.is_some();
    if rule.inject.as_ref().is_some_and(|inject| !inject::fits(inject, &arguments)) {
        Arc::make_mut(&mut rule).inject = None;
    }
    let in_header = key::in_header(headers, offer)?;
    if !has_its_place && in_header.is_some() && offer.keys.server_error == ServerError::Resend {
        // Whoever runs a repeat of a key to its end honours the client's own.
        let into = InjectInto::Header(offer.keys.header.clone());
        let inject = Inject { into, form: KeyForm::Text, length: None, valid_for: offer.keys.life };
        Arc::make_mut(&mut rule).inject = Some(inject);
    }
    let given = match &rule.inject {
        Some(inject) => inject::given(inject, &arguments, headers, offer)?,
        None => in_header.clone(),
    };
    if let Some(inject) = &rule.inject {
        inject::forget(inject, &mut arguments);
    }
    // A key for semel counts before one for the upstream.
    let key_in_place = given.is_some() && (in_header.is_none() || in_header == given);
    let key = in_header.or(given);
    let may_be_another = others.iter().any(|other| other != method);
    Ok(UnderstoodRequest { action, rule, arguments, key, key_in_place, may_be_another })
}

/// Whether it goes where GraphQL is spoken, in whatever form, and is not certainly a question.
fn may_change_by_graphql(path: &str, arguments: &Arguments) -> bool {
    let has_document = matches!(arguments.shape, BodyShape::Graphql(_) | BodyShape::Document(_));
    (has_document || graphql::is_graphql(path)) && !arguments.asked.only_asks()
}

/// The rule of the method that is guarded most: an upstream may take either.
fn strongest(
    policy: &Policy,
    offer: &Offer,
    method: &Method,
    others: &[Method],
    path: &str,
    arguments: &Arguments,
) -> (String, Arc<Rule>) {
    let only_asks = arguments.asked.only_asks();
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

/// Frameworks look for it among the fields of a form, and some of them in any body.
fn in_body(method: &Method, path: &str, arguments: &Arguments) -> Result<Vec<Method>, NoMethod> {
    let mut methods = Vec::new();
    for (_, value) in arguments
        .json
        .get("body")
        .and_then(Json::as_object)
        .into_iter()
        .flat_map(|body| body.iter())
        .filter(|(name, _)| method::is_override(name))
    {
        let texts: Vec<&str> = match value {
            Json::Array(values) => values.iter().filter_map(Json::as_str).collect(),
            value => value.as_str().into_iter().collect(),
        };
        for named in texts.into_iter().map(method::method) {
            match (named, &arguments.shape) {
                (Ok(named), _) => methods.push(named),
                (Err(bad), BodyShape::Form | BodyShape::Document(_)) => return Err(bad),
                // Elsewhere it may mean anything.
                (Err(_), _) => {}
            }
        }
    }
    // Some servers of GraphQL read a document wherever it stands.
    if method::is_safe(method)
        && arguments.shape != BodyShape::Empty
        && may_change_by_graphql(path, arguments)
    {
        methods.push(Method::POST);
    }
    Ok(methods)
}

/// Headers by which one credential acts for several accounts. Like the credential, they say whose effect it is.
pub const ACCOUNTS: [&str; 14] = [
    "stripe-account",
    "stripe-context",
    "openai-organization",
    "openai-project",
    "chatgpt-account-id",
    "anthropic-workspace-id",
    "x-goog-user-project",
    "xero-tenant-id",
    "harvest-account-id",
    "paypal-auth-assertion",
    "x-razorpay-account",
    "x-on-behalf-of",
    "impersonate-user",
    "as-user",
];

/// The authority tells two accounts of one name apart: the upstream, the account that it is asked to act for, and the
/// credential that it is shown. A token of semel's own says who asks; at the upstream the same one may act as anybody
/// whose credential it passes on.
pub fn authority<'a>(offer: &'a Offer, headers: &HeaderMap, secret: &Secret) -> Cow<'a, str> {
    let mut authority = Cow::Borrowed(offer.authority.as_str());
    for name in ACCOUNTS {
        for value in all(headers, name) {
            let text = String::from_utf8_lossy(value.as_bytes());
            // A header holds no line break, so that no value can be taken for another header.
            authority.to_mut().push_str(&format!("\n{name}: {text}"));
        }
    }
    // Where the operator's credential is put in, the client's stays here.
    let shown = if offer.injects_credentials { Vec::new() } else { shown(headers) };
    if !shown.is_empty() {
        authority.to_mut().push_str(&format!("\ncredential: {}", secret.mac("principal", &[&shown])));
    }
    authority
}

pub fn intent(
    understood: &UnderstoodRequest,
    offer: &Offer,
    caller: &Caller,
    options: &CallOptions,
    headers: &HeaderMap,
    secret: &Secret,
) -> Result<Intent, KeyMissing> {
    let UnderstoodRequest { action, rule, arguments, key, .. } = understood;
    let run = caller.run.as_ref().or(caller.surrounding_run.as_ref()).or(options.baggage.as_ref());
    let ask = Ask {
        tenant: &caller.tenant,
        principal: &caller.principal,
        authority: &authority(offer, headers, secret),
        action,
        arguments: &arguments.json,
        run: run.cloned(),
        key: key.clone(),
        again: options.again.clone(),
        asked_by: AskedBy::Agent,
        call_id: None,
        live_connection: false,
        serialize_by: None,
        replay_refusals: offer.keys.stores != Stores::Successes,
    };
    let mut intent = Intent::of(&ask, rule, secret)?;
    if intent.named_by == NamedBy::CallerKey {
        intent.window = offer.keys.life;
        if let Some(inject) = rule.inject.as_ref().filter(|_| understood.key_in_place) {
            let as_it_came = inject::as_it_came(inject, headers, key.as_ref());
            intent.upstream_key = upstream_key(secret, &as_it_came);
        }
    }
    Ok(intent)
}
