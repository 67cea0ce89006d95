//! One HTTP request of a client: who sends it, and within which connection.

use super::stream::CallStream;
use crate::call_options::CallOptions;
use crate::caller::Caller;
use crate::http::server::{Credential, caller, problem};
use crate::mcp::connection::ClientConnection;
use crate::mcp::frame::Frame;
use crate::mcp::guard::{ClientAnswer, guard};
use crate::mcp::id::Id;
use crate::mcp::limits::Limits;
use crate::mcp::link::remote::headers::SESSION;
use crate::mcp::route::GuardedCall;
use crate::services::Services;
use axum::response::Response;
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use semel_core::ids::Run;
use std::sync::Arc;

/// A client, as far as requests can tell one from another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    /// [`Caller::whose`].
    pub principal: String,
    pub session: Option<String>,
}

#[derive(Debug)]
pub struct ClientRequest {
    pub services: Arc<Services>,
    pub caller: Caller,
    pub options: CallOptions,
    pub owner: Owner,
    /// Names those whose requests have limits together.
    pub limits_of: String,
    pub method: Method,
    pub headers: HeaderMap,
}

impl ClientRequest {
    /// `run`: of requests that name none.
    pub fn read(
        services: &Arc<Services>,
        run: Option<&Run>,
        mut parts: Parts,
    ) -> Result<ClientRequest, Box<Response>> {
        let caller = caller(services.secret(), run, &mut parts)?;
        let options = CallOptions::taken(&mut parts.headers)
            .map_err(|bad| problem(StatusCode::BAD_REQUEST, &bad.to_string()))?;
        let session = parts.headers.get(SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned);
        Ok(ClientRequest {
            services: Arc::clone(services),
            owner: Owner { principal: caller.whose(), session },
            limits_of: limits_of(&caller, parts.extensions.get()),
            caller,
            options,
            method: parts.method,
            headers: parts.headers,
        })
    }

    /// The client's connection. Without a session every request stands alone, within these limits.
    pub fn connection(
        &self,
        session: Option<Arc<ClientConnection>>,
        limits: &Arc<Limits>,
    ) -> Arc<ClientConnection> {
        match session {
            Some(session) if self.caller.run.is_none() => session,
            // A header names the run of one request, so such a request stands alone too.
            session => {
                let limits =
                    session.map_or_else(|| Arc::clone(limits), |session| Arc::clone(&session.limits));
                Arc::new(ClientConnection::within(self.caller.clone(), limits))
            }
        }
    }

    /// The client no longer waits for a guarded call. `false`: the request is none.
    pub fn give_up(&self, session: Option<Arc<ClientConnection>>, limits: &Limits, id: &Id) -> bool {
        match session {
            Some(connection) => connection.give_up(id),
            // Two clients of one principal may use the same id, so the answer still goes to the one that reads.
            None => limits.guarded.has(&self.owner.principal, id),
        }
    }

    /// Takes a call through the gate in a task of its own: a client that goes away does not stop what was sent.
    /// `held` is dropped at its end.
    pub fn guard(&self, mut guarded: Box<GuardedCall>, stream: Arc<CallStream>, held: impl Send + 'static) {
        guarded.token = self.caller.token.clone();
        let (services, working) = (Arc::clone(&self.services), self.services.in_flight.begin());
        tokio::spawn(async move {
            let id = guarded.call.id.clone();
            tokio::select! {
                answer = guard(&services, *guarded) => stream.end(answer),
                () = services.in_flight.given_up() => stream.end(Some(unfinished(&id))),
            }
            drop((held, working));
        });
    }
}

/// The last answer to a client that waits while semel ends: some wait for ever on a stream that ends without one.
pub fn unfinished(id: &Id) -> ClientAnswer {
    let words =
        "semel ended before this call did; what became of it is not known yet. Look first, do not repeat it";
    ClientAnswer::plain(Frame::refusal(id, -32603, words, None))
}

/// Holders of tokens have each their own limits. All others have them together: a credential that is not semel's can be
/// made up anew for each request.
pub fn limits_of(caller: &Caller, credential: Option<&Credential>) -> String {
    match credential {
        Some(Credential::Holder(_)) => caller.whose(),
        Some(Credential::Passed(_) | Credential::None) | None => String::new(),
    }
}
