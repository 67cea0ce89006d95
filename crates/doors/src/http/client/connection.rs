//! A connection to an upstream. It has no task of its own: whoever waits for an answer moves its bytes, which spares
//! changes of task on the way of every request.

use super::Payload;
use http::{Request, Response};
use http_body::{Body, Frame};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::rt::TokioIo;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::net::TcpStream;
use tokio::runtime;

pub type Io = TokioIo<TokioIo<MaybeHttpsStream<TokioIo<TcpStream>>>>;

pub struct Connection {
    sender: SendRequest<Payload>,
    driver: Driver,
    home: runtime::Id,
}

/// What moves the bytes.
struct Driver {
    /// Never locked: it is used through `&mut` alone, and so can be part of what is shared.
    connection: Mutex<Box<http1::Connection<Io, Payload>>>,
    ended: bool,
}

impl Driver {
    fn drive(&mut self, context: &mut Context<'_>) {
        let connection = self.connection.get_mut().unwrap_or_else(PoisonError::into_inner);
        // How it ended is told to whoever waits for an answer.
        self.ended = self.ended || Pin::new(connection).poll(context).is_ready();
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("ended", &self.driver.ended).finish_non_exhaustive()
    }
}

impl Connection {
    pub fn new(sender: SendRequest<Payload>, driver: http1::Connection<Io, Payload>) -> Connection {
        let connection = Mutex::new(Box::new(driver));
        let home = runtime::Handle::current().id();
        Connection { sender, driver: Driver { connection, ended: false }, home }
    }

    /// The runtime that hears its peer, and that has the fewest wake-ups with it therefore.
    pub fn home(&self) -> runtime::Id {
        self.home
    }

    /// Whether a request can be sent on it, as far as its peer has been heard.
    pub fn is_ready(&mut self) -> bool {
        // Nobody waits for it while it is idle.
        self.driver.drive(&mut quietly());
        !self.driver.ended && self.sender.is_ready()
    }

    pub fn is_open(&self) -> bool {
        !self.driver.ended
    }

    /// Moves what is left to be moved. `false`: it cannot be used again.
    pub async fn comes_to_rest(&mut self) -> bool {
        poll_fn(|context| {
            self.driver.drive(context);
            match (self.driver.ended, self.sender.is_ready()) {
                (true, _) => Poll::Ready(false),
                (false, true) => Poll::Ready(true),
                (false, false) => Poll::Pending,
            }
        })
        .await
    }

    pub async fn send(
        &mut self,
        request: Request<Payload>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Payload>>> {
        let mut answer = pin!(self.sender.try_send_request(request));
        // Only moving bytes makes it ready, so it need not wake anybody itself.
        poll_fn(|context| {
            self.driver.drive(context);
            answer.as_mut().poll(&mut quietly())
        })
        .await
    }

    pub fn poll_frame(
        &mut self,
        body: &mut Incoming,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<bytes::Bytes>, hyper::Error>>> {
        // That somebody wants it has to be known before anything is read for him.
        match Pin::new(&mut *body).poll_frame(&mut quietly()) {
            Poll::Pending => {
                self.driver.drive(context);
                Pin::new(body).poll_frame(&mut quietly())
            }
            ready => ready,
        }
    }
}

fn quietly() -> Context<'static> {
    Context::from_waker(Waker::noop())
}
