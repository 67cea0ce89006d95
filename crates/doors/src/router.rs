//! Which door a request goes to.

use crate::http::server::Answers;
use crate::llm::{self, LiveAnswers};
use crate::proxy;
use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::Request;
use std::sync::Arc;
use tower_service::Service;

/// All doors of one server.
#[derive(Debug)]
pub struct DoorRouter {
    /// By far the most requests are for them, so they need no table of routes.
    apis: proxy::Offers,
    /// Answers of models that are coming.
    lives: Arc<LiveAnswers>,
    /// To all the other doors.
    others: Router,
}

impl DoorRouter {
    pub fn new(apis: proxy::Offers, others: Router) -> DoorRouter {
        DoorRouter { apis, lives: Arc::default(), others }
    }
}

impl Answers for DoorRouter {
    async fn answer(&self, request: Request<Body>) -> Response {
        if !request.uri().path().starts_with(proxy::PATH) {
            return self.others.clone().call(request).await.unwrap_or_else(|never| match never {});
        }
        let (parts, body) = request.into_parts();
        match proxy::open(&self.apis, parts) {
            // Generations are few, and boxed so that a request that only passes is small.
            Ok(opened) if llm::is_generation(&opened) => {
                Box::pin(llm::serve::answer(&self.apis.services, &self.lives, opened, body)).await
            }
            Ok(opened) => proxy::serve(&self.apis, opened, body).await,
            Err(refusal) => refusal.respond(body),
        }
    }
}
