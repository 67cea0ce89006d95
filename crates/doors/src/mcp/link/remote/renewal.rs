//! A new session where the server has forgotten the old one. Towards a remote server semel is the HTTP client, and the
//! protocol has that one begin anew: the client on the pipes knows of no session.

use super::exchange::AskedRequest;
use super::headers::SESSION;
use super::link::{RemoteCaller, RemoteLink};
use super::session::{INITIALIZE, RemoteSession, SET_LEVEL, SUBSCRIBE, version_in};
use crate::mcp::id::Id;
use crate::mcp::message::{Message, MessageKind, text};
use crate::wire::members::quoted;
use bytes::Bytes;
use http::HeaderValue;
use std::sync::Arc;
use std::time::Duration;

/// A server that has not begun a session by then is said to begin none.
const TAKES_MAX: Duration = Duration::from_secs(20);

impl RemoteLink {
    /// Begins a new session if the server has forgotten the one there was. An error: there is none, and nothing was
    /// sent but the wish for one.
    pub(super) async fn ensure_session(&self) -> Result<(), String> {
        let RemoteCaller::Session(session) = &self.caller else { return Ok(()) };
        let before = {
            let renewal = &session.lock().renewal;
            match renewal.lost {
                true => renewal.tries,
                false => return Ok(()),
            }
        };
        let (link, session) = (self.clone(), Arc::clone(session));
        // Other requests wait for it too, also where this one is dropped.
        let renewed = tokio::spawn(async move { link.renew(&session, before).await });
        renewed.await.unwrap_or_else(|_| Err(no_session("semel is ending")))
    }

    /// One try for all who wait for it.
    async fn renew(&self, session: &RemoteSession, tries: u64) -> Result<(), String> {
        let _one_at_a_time = session.renewing.lock().await;
        {
            let renewal = &session.lock().renewal;
            if !renewal.lost {
                return Ok(());
            }
            if renewal.tries != tries {
                return Err(renewal.failed.clone());
            }
        }
        let begun = match tokio::time::timeout(TAKES_MAX, self.begin_anew(session)).await {
            Ok(begun) => begun,
            Err(_) => Err("it did not answer".to_owned()),
        };
        let listens = {
            let state = &mut *session.lock();
            state.renewal.tries += 1;
            match &begun {
                Ok(_) => state.renewal.lost = false,
                Err(why) => state.renewal.failed = no_session(why),
            }
            state.hearing.is_some()
        };
        let opening = session.lock().renewal.opening.take();
        if let (Err(_), Some(id)) = (&begun, opening) {
            // The server would keep it for no client.
            let mut unwanted = session.headers(None);
            unwanted.insert(SESSION, id);
            self.goodbye(unwanted).await;
        }
        let hello = begun.map_err(|why| no_session(&why))?;
        session.tell_renewed(&hello);
        if listens {
            self.open_own_stream();
        }
        Ok(())
    }

    /// Introduces the client once more, in its own words. Gives what the server says of itself.
    async fn begin_anew(&self, session: &RemoteSession) -> Result<String, String> {
        let (hello, number, agreed) = {
            let state = session.lock();
            (state.renewal.hello.clone(), state.renewal.number + 1, state.version.clone())
        };
        let hello = hello.ok_or("the client has not introduced itself")?;
        let name = format!("session{number}");
        let (answer, id) = self.request_anew(&Id::own(&name, 0), INITIALIZE, &hello).await?;
        session.lock().renewal.opening = id.clone();
        let result = answer.body.as_ref().map_or("null", text).to_owned();
        if !matches!(answer.kind, MessageKind::Response { failed: false, .. }) {
            return Err(format!("it answers initialize with the error {result}"));
        }
        let version = version_in(&result);
        if version != agreed {
            let [agreed, now] =
                [agreed, version].map(|version| match version.as_ref().map(|text| text.to_str()) {
                    Some(Ok(version)) => version.to_owned(),
                    _ => "no version".to_owned(),
                });
            return Err(format!("it spoke MCP {agreed} with this client, and wants to speak {now} now"));
        }
        let (level, subscriptions) = {
            let state = &mut *session.lock();
            state.id = id;
            state.renewal.number = number;
            (state.renewal.level.clone(), state.renewal.subscriptions.clone())
        };
        self.initialized().await?;
        let again = level.into_iter().map(|level| (SET_LEVEL, level));
        let again = again.chain(subscriptions.into_iter().map(|params| (SUBSCRIBE, params)));
        for ((method, params), n) in again.zip(1..) {
            // A resource that it no longer offers is gone.
            let _not_any_more = self.request_anew(&Id::own(&name, n), method, &params).await;
        }
        Ok(result)
    }

    async fn initialized(&self) -> Result<(), String> {
        let notice = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let notice =
            Message::parse(Bytes::from_static(notice.as_bytes())).map_err(|problem| problem.to_string())?;
        let prepared = self.client.prepare_read().await.map_err(|error| error.to_string())?;
        let response =
            self.client.send(prepared, self.post(&notice)).await.map_err(|error| error.to_string())?;
        match response.status() {
            status if status.is_success() => Ok(()),
            status => Err(format!("HTTP {} to notifications/initialized", status.as_u16())),
        }
    }

    /// A request of semel's own, and the session that its answer names.
    async fn request_anew(
        &self,
        id: &Id,
        method: &str,
        params: &Bytes,
    ) -> Result<(Message, Option<HeaderValue>), String> {
        let request =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{},"params":{}}}"#, quoted(method), text(params));
        let request = Message::parse(Bytes::from(request)).map_err(|problem| problem.to_string())?;
        let prepared = self.client.prepare_read().await.map_err(|error| error.to_string())?;
        let response =
            self.client.send(prepared, self.post(&request)).await.map_err(|error| error.to_string())?;
        let session = response.headers().get(SESSION).cloned();
        let answer =
            self.read(AskedRequest { id, news: None }, response, None).await.exchange.into_reply()?;
        Ok((answer, session))
    }
}

fn no_session(why: &str) -> String {
    format!("the server has forgotten the session, and there is no new one: {why}")
}
