//! One API that is offered.

use crate::http::client::Client;
use http::HeaderMap;
use semel_core::ids::Run;
use semel_core::policy::file::Speaks;
use semel_core::policy::upstreams::Keys;

#[derive(Debug)]
pub struct Offer {
    pub name: String,
    /// What stands for the host in the names of actions.
    pub service: String,
    pub client: Client,
    /// Tells two APIs of one name apart: scheme, host, port and path.
    pub authority: String,
    /// Put into every request, in place of the client's.
    pub headers: HeaderMap,
    pub speaks: Speaks,
    pub keys: Keys,
    /// The run of calls that name none.
    pub run: Option<Run>,
}

impl Offer {
    /// The name of what a request does: `http:POST api.stripe.com/v1/charges`.
    pub fn action(&self, method: &http::Method, path: &str) -> String {
        format!("http:{method} {}{path}", self.service)
    }
}
