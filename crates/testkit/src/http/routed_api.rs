//! An API that answers each path as it is told.

use super::server::FakeServer;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How one request is answered.
#[derive(Debug, Clone)]
pub struct RouteReply {
    status: u16,
    headers: &'static str,
    body: String,
    /// It is carried out, and the answer never comes.
    lost: bool,
    takes: Duration,
}

impl RouteReply {
    pub fn json(status: u16, body: &str) -> RouteReply {
        let headers = "Content-Type: application/json\r\n";
        RouteReply { status, headers, body: body.to_owned(), lost: false, takes: Duration::ZERO }
    }

    pub fn nothing() -> RouteReply {
        RouteReply { lost: true, ..RouteReply::json(200, "") }
    }

    pub fn with(self, headers: &'static str) -> RouteReply {
        RouteReply { headers, ..self }
    }

    pub fn taking(self, takes: Duration) -> RouteReply {
        RouteReply { takes, ..self }
    }
}

#[derive(Debug, Clone)]
pub struct RoutedApi {
    server: FakeServer,
    /// By method and path, the next one last; the last answer is given again and again.
    routes: Arc<Mutex<HashMap<String, Vec<RouteReply>>>>,
}

impl Deref for RoutedApi {
    type Target = FakeServer;

    fn deref(&self) -> &FakeServer {
        &self.server
    }
}

impl RoutedApi {
    pub fn start() -> RoutedApi {
        let routes: Arc<Mutex<HashMap<String, Vec<RouteReply>>>> = Arc::default();
        let reads = Arc::clone(&routes);
        let server = FakeServer::start(move |exchange| {
            let head = &exchange.request.head;
            if head.method != "GET" {
                exchange.server.count_effect();
            }
            let says = next(&reads, &format!("{} {}", head.method, head.path));
            pause(says.takes);
            if says.lost {
                return None;
            }
            exchange.reply(says.status, &format!("{}Connection: close\r\n", says.headers), &says.body)?;
            None
        });
        RoutedApi { server, routes }
    }

    /// From now on, `GET /path` is answered with these in turn, and with the last of them for ever.
    pub fn tell(&self, what: &str, says: impl IntoIterator<Item = RouteReply>) {
        let mut says: Vec<RouteReply> = says.into_iter().collect();
        says.reverse();
        self.routes.lock().expect("nobody panicked").insert(what.to_owned(), says);
    }

    /// How often it was asked for this.
    pub fn count(&self, what: &str) -> usize {
        self.requests().iter().filter(|request| request.what() == what).count()
    }
}

fn next(routes: &Mutex<HashMap<String, Vec<RouteReply>>>, what: &str) -> RouteReply {
    let mut routes = routes.lock().expect("nobody panicked");
    match routes.get_mut(what) {
        Some(list) if list.len() > 1 => list.pop().expect("it is not empty"),
        Some(list) => list.last().cloned().unwrap_or_else(|| RouteReply::json(404, "null")),
        None => RouteReply::json(404, r#"{"error": "nobody said anything"}"#),
    }
}

#[allow(clippy::disallowed_methods, reason = "a slow server takes real time")]
fn pause(span: Duration) {
    std::thread::sleep(span);
}
