//! The head of a request, and how its body is written.

use bytes::{BufMut, Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, Request};
use http_body::Body;
use std::io::Write as _;

/// How a body says where it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// So many bytes are still to come.
    Length(u64),
    Chunked,
}

#[derive(Debug)]
pub struct Question {
    pub head: Bytes,
    pub extent: Extent,
}

impl Question {
    /// Its head says of its body what that knows of itself, whatever its headers say.
    pub fn of<B: Body>(request: &Request<B>) -> Question {
        let extent = match request.body().size_hint().exact() {
            Some(length) => Extent::Length(length),
            None => Extent::Chunked,
        };
        let headers = request.headers();
        let mut head = BytesMut::with_capacity(length(request.uri(), headers));
        head.put_slice(request.method().as_str().as_bytes());
        head.put_u8(b' ');
        let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
        head.put_slice(target.as_bytes());
        head.put_slice(b" HTTP/1.1\r\n");
        for (name, value) in headers {
            if *name != CONTENT_LENGTH && *name != TRANSFER_ENCODING {
                line(&mut head, name.as_str(), value.as_bytes());
            }
        }
        match extent {
            // Where nothing comes, it is said only if somebody wants it said.
            Extent::Length(0) if !headers.contains_key(CONTENT_LENGTH) => {}
            Extent::Length(length) => {
                let mut writer = (&mut head).writer();
                let _never_fails = write!(writer, "{CONTENT_LENGTH}: {length}\r\n");
            }
            Extent::Chunked => line(&mut head, TRANSFER_ENCODING.as_str(), b"chunked"),
        }
        head.put_slice(b"\r\n");
        Question { head: head.freeze(), extent }
    }
}

fn line(head: &mut BytesMut, name: &str, value: &[u8]) {
    head.put_slice(name.as_bytes());
    head.put_slice(b": ");
    head.put_slice(value);
    head.put_slice(b"\r\n");
}

/// Room for all of it, and a little more.
fn length(uri: &http::Uri, headers: &HeaderMap) -> usize {
    let lines = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    uri.path_and_query().map_or(1, |target| target.as_str().len()) + lines.sum::<usize>() + 80
}
