//! An undo by an HTTP request, which goes the way of the HTTP door: sent once, and read by the same table.

use crate::http::client::Client;
use crate::http::target::Target;
use crate::proxy::Offer;
use crate::proxy::arguments::{Arguments, BodyShape};
use crate::proxy::graphql;
use crate::proxy::guarded::GuardedRequest;
use crate::proxy::intent::UnderstoodRequest;
use crate::proxy::offer::OfferSettings;
use crate::proxy::path::UpstreamPath;
use crate::query::Credentials;
use crate::query::http::{address, request};
use crate::query::origins::UrlOrigin;
use crate::services::Services;
use crate::wire::form;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use semel_core::intent::Intent;
use semel_core::json::{self, Json};
use semel_core::policy::graphql::GraphqlRequest;
use semel_core::policy::{Policy, Rule};
use semel_core::undo::BodyForm;
use semel_core::undo::UndoBody;
use semel_gate::clock::Clock;
use std::sync::Arc;

/// An undo as the gate takes it.
#[derive(Debug)]
pub struct PreparedUndo {
    pub action: String,
    pub arguments: Json,
    /// Tells two servers of one name apart.
    pub authority: String,
    pub rule: Rule,
}

/// The call of an undo by HTTP.
#[derive(Debug, Clone, Copy)]
pub struct UndoCallHttp<'a> {
    pub method: &'a str,
    pub url: &'a str,
    pub body: Option<&'a UndoBody>,
}

impl UndoCallHttp<'_> {
    /// The request for the gate; or why there is none.
    pub fn guarded(
        &self,
        services: &Arc<Services>,
        undo: &PreparedUndo,
        intent: Intent,
    ) -> Result<GuardedRequest, String> {
        let (target, mut headers) = address(self.url, &services.backends.origins, Credentials::None)?;
        let (kind, body) = self.content();
        headers.extend(kind.map(|kind| (header::CONTENT_TYPE, HeaderValue::from_static(kind))));
        let (parts, body) = request(self.method, &target, headers, body)?.into_parts();
        let client = Client::to(target).map_err(|error| error.to_string())?;
        let path = client.target().uri().path().to_owned();
        let settings = OfferSettings {
            client: client.clone(),
            authority: undo.authority.clone(),
            headers: HeaderMap::new(),
            run: None,
        };
        let offer = Offer::of_url(settings, &services.policy).map_err(|error| error.to_string())?;
        let understood = UnderstoodRequest {
            action: undo.action.clone(),
            rule: Arc::new(undo.rule.clone()),
            arguments: Arguments {
                json: undo.arguments.clone(),
                shape: BodyShape::Opaque,
                asked: self.asked(&path),
            },
            key: None,
            key_in_place: false,
            may_be_another: false,
        };
        Ok(GuardedRequest {
            services: Arc::clone(services),
            offer: Arc::new(offer),
            client,
            method: parts.method,
            uri: parts.uri,
            path,
            headers: parts.headers,
            body,
            turn: None,
            understood,
            intent,
            received_at: services.clock.elapsed(),
            token: None,
        })
    }

    /// The action as rules name it: with the service's name where the address is a configured API's.
    pub fn action(&self, policy: &Policy) -> String {
        let (method, url) = (self.method, self.url);
        let Ok(target) = Target::parse(url) else { return format!("http:{method} {url}") };
        let origin = UrlOrigin::of(&target);
        let same = |api: &str| Target::parse(api).is_ok_and(|api| UrlOrigin::of(&api) == origin);
        let api = policy.upstreams.values().find(|api| same(&api.url));
        let service = api.map_or_else(|| target.authority().to_owned(), |api| api.service.clone());
        format!("http:{method} {service}{}", target.uri().path())
    }

    /// The request as rules of the HTTP door see it.
    pub fn arguments(&self) -> Json {
        let (kind, body) = self.content();
        let kind = kind.map(|kind| (header::CONTENT_TYPE, HeaderValue::from_static(kind)));
        let read = || {
            let target = Target::parse(self.url).ok()?;
            let path = target.uri().path_and_query()?.as_str();
            let path = UpstreamPath::at("", path).ok()?;
            Arguments::read(&path, target.uri().query(), &HeaderMap::from_iter(kind), &body).ok()
        };
        read().map_or_else(|| Json::object([("path", Json::str(self.url))]), |arguments| arguments.json)
    }

    /// The body with its type.
    fn content(&self) -> (Option<&'static str>, Bytes) {
        match self.body {
            None => (None, Bytes::new()),
            Some(UndoBody { form: BodyForm::Json, members }) => {
                (Some("application/json"), Bytes::from(members.clone()))
            }
            Some(UndoBody { form: BodyForm::Urlencoded, members }) => {
                (Some("application/x-www-form-urlencoded"), Bytes::from(urlencoded(members)))
            }
        }
    }

    /// The question of a GraphQL document, by which its answer is read.
    fn asked(&self, path: &str) -> GraphqlRequest {
        let body = self.body.and_then(|body| json::parse(&body.members).ok());
        body.map_or(GraphqlRequest::Unknown, |body| graphql::asked(path, None, &body))
    }
}

/// Whether these are the arguments of a request in GraphQL. An undo is never a mere question.
pub fn speaks_graphql(arguments: &Json) -> bool {
    arguments.get("path").and_then(Json::as_str).is_some_and(graphql::is_graphql)
}

/// One object as the fields of a web form.
fn urlencoded(members: &str) -> String {
    let Ok(Json::Object(members)) = json::parse(members) else { return String::new() };
    let fields = members.iter().map(|(name, value)| {
        let value = value.as_str().map_or_else(|| value.canonical(), str::to_owned);
        format!("{}={}", form::encoded(name), form::encoded(&value))
    });
    fields.collect::<Vec<_>>().join("&")
}
