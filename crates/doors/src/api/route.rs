//! A row of the table of routes.

use super::problem::{Problem, status_of};
use super::request::{ApiRequest, RouteAccess};
use super::server::ApiServer;
use axum::response::Response;
use http::{Method, StatusCode};
use schemars::{Schema, SchemaGenerator};
use semel_core::answer::Code;
use semel_ledger::tokens::AccessScope;
use std::collections::BTreeSet;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

pub use crate::remote_gate::forms::BASE;

pub type Handling = Pin<Box<dyn Future<Output = Result<Response, Problem>> + Send>>;
pub type Handler = fn(Arc<ApiServer>, ApiRequest) -> Handling;
pub type FormSchema = fn(&mut SchemaGenerator) -> Schema;

#[derive(Clone)]
pub struct Route {
    pub method: Method,
    pub path: &'static str,
    /// The least that a token must have.
    pub scope: AccessScope,
    pub id: &'static str,
    pub summary: &'static str,
    pub query: Option<FormSchema>,
    pub body: Option<FormSchema>,
    /// The request may also have no body.
    pub body_optional: bool,
    pub gives: FormSchema,
    /// It can also be had as Markdown.
    pub markdown: bool,
    /// It can also say what it would do, and do nothing.
    pub has_dry_run: bool,
    /// How it refuses what is well-formed, beside what every route of its form may say.
    pub refuses: &'static [StatusCode],
    /// The codes that an answer about an effect may have here.
    pub codes: &'static [Code],
    pub handler: Handler,
}

impl Route {
    /// A row without what few have.
    pub fn new(
        method: Method,
        path: &'static str,
        scope: AccessScope,
        id: &'static str,
        summary: &'static str,
        gives: FormSchema,
        handler: Handler,
    ) -> Route {
        Route {
            method,
            path,
            scope,
            id,
            summary,
            query: None,
            body: None,
            body_optional: false,
            gives,
            markdown: false,
            has_dry_run: false,
            refuses: &[],
            codes: &[],
            handler,
        }
    }

    /// A request that only reads may ask for a dry run everywhere.
    pub fn access(&self) -> RouteAccess {
        RouteAccess { scope: self.scope, has_dry_run: self.has_dry_run || self.method == Method::GET }
    }

    /// All statuses that it answers with.
    pub fn statuses(&self) -> BTreeSet<StatusCode> {
        // The caller, its name, and whether there is room and a ledger, are checked for every request.
        let mut all = BTreeSet::from([
            StatusCode::OK,
            StatusCode::BAD_REQUEST,
            StatusCode::UNAUTHORIZED,
            StatusCode::FORBIDDEN,
            StatusCode::SERVICE_UNAVAILABLE,
        ]);
        if self.body.is_some() {
            all.extend([StatusCode::PAYLOAD_TOO_LARGE, StatusCode::UNSUPPORTED_MEDIA_TYPE]);
        }
        all.extend(self.refuses);
        all.extend(self.codes.iter().map(|code| status_of(*code)));
        all
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.method, self.path, self.scope)
    }
}
