//! Which door a request goes to.

use crate::http::server::Answers;
use crate::proxy;
use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::Request;
use tower_service::Service;

/// All doors of one server.
#[derive(Debug)]
pub struct Entrance {
    /// By far the most requests are for them, so they need no router.
    pub apis: proxy::Offers,
    /// To all the others.
    pub router: Router,
}

impl Answers for Entrance {
    async fn answer(&self, request: Request<Body>) -> Response {
        if request.uri().path().starts_with(proxy::PATH) {
            let (parts, body) = request.into_parts();
            return proxy::serve(&self.apis, parts, body).await;
        }
        self.router.clone().call(request).await.unwrap_or_else(|never| match never {})
    }
}
