//! Answers that are read.

use super::super::*;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, StatusCode};

/// What was read of an answer that came in these parts.
#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    status: u16,
    body: Vec<u8>,
    trailers: HeaderMap,
    /// What came behind it.
    behind: Vec<u8>,
    keeps_open: bool,
    /// It says itself where it ends, and has ended.
    over: bool,
}

fn read(method: &Method, parts: &[&[u8]]) -> Result<Read, Malformed> {
    let (mut came, mut head, mut read) = (Bytes::new(), None::<Head>, Read::default());
    for part in parts {
        let mut more = BytesMut::from(&came[..]);
        more.extend_from_slice(part);
        came = more.freeze();
        if head.is_none() {
            head = read_answer(&mut came, method)?;
        }
        let Some(head) = &mut head else { continue };
        (read.status, read.keeps_open) = (head.parts.status.as_u16(), head.keeps_open);
        loop {
            match head.framing.take(&mut came)? {
                Piece::Data(data) => read.body.extend_from_slice(&data),
                Piece::Trailers(trailers) => read.trailers = trailers,
                Piece::Missing | Piece::End => break,
            }
        }
        read.over = head.framing.is_over();
    }
    read.behind = came.to_vec();
    Ok(read)
}

fn whole(answer: &str) -> Result<Read, Malformed> {
    read(&Method::GET, &[answer.as_bytes()])
}

#[test]
fn however_an_answer_comes_it_is_read_alike() {
    let answers = [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 408 Request Timeout\r\n\r\n",
        "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;x=y\r\n!\r\n0\r\n\r\nmore",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: , Chunked,\r\n\r\nA\r\n0123456789\r\n0\r\nx-sum: 1\r\nx-b: 2\r\n\r\n",
        "HTTP/1.1 100 Continue\r\nx: y\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.0 200 OK\r\n\r\nall that comes",
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
    ];
    for answer in answers {
        let expected = whole(answer).unwrap();
        let bytes = answer.as_bytes();
        let one_by_one: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(&Method::GET, &one_by_one).unwrap(), expected, "{answer}");
        for first in 0..bytes.len() {
            let (before, after) = bytes.split_at(first);
            assert_eq!(read(&Method::GET, &[before, after]).unwrap(), expected, "{first} of {answer}");
        }
    }
}

#[test]
fn an_answer_ends_where_it_says() {
    let sized = whole("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello there").unwrap();
    assert_eq!((&sized.body[..], &sized.behind[..]), (&b"hello"[..], &b" there"[..]));
    assert!(sized.over && sized.keeps_open);
    let short = whole("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell").unwrap();
    assert!(!short.over);
    let chunked =
        whole("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\nx")
            .unwrap();
    assert_eq!((&chunked.body[..], &chunked.behind[..]), (&b"abcde"[..], &b"x"[..]));
    assert!(chunked.over && chunked.keeps_open);
    for cut in [
        "3\r\nab",
        "3\r\nabc",
        "3\r\nabc\r\n",
        "3\r\nabc\r\n0",
        "3\r\nabc\r\n0\r\n",
        "3\r\nabc\r\n0\r\nx: y\r\n",
    ] {
        let cut = whole(&format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{cut}")).unwrap();
        assert!(!cut.over, "{cut:?}");
    }
    let trailed =
        whole("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx-sum: 1\r\n\r\n")
            .unwrap();
    assert_eq!((trailed.trailers["x-sum"].as_bytes(), trailed.over), (&b"1"[..], true));
    let until_closed = whole("HTTP/1.1 200 OK\r\n\r\nhello").unwrap();
    assert!(!until_closed.over && !until_closed.keeps_open && until_closed.body == b"hello");
}

#[test]
fn the_answer_to_head_has_no_body_whatever_it_says() {
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    let read = read(&Method::HEAD, &[answer]).unwrap();
    assert!(read.over && read.body.is_empty());
    assert!(!read.keeps_open, "some servers send one all the same");
}

#[test]
fn a_connection_is_used_again_only_where_both_sides_say_so() {
    let cases = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", false),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: x, Close\r\nConnection: keep-alive\r\n\r\n",
            false,
        ),
        ("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", false),
        ("HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: Keep-Alive\r\n\r\n", true),
        ("HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive, close\r\n\r\n", false),
        ("HTTP/1.1 204 No Content\r\n\r\n", true),
        ("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", true),
        ("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", false),
        ("HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 0\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false),
    ];
    for (answer, keeps_open) in cases {
        let read = whole(answer).unwrap();
        assert_eq!((read.keeps_open, read.over), (keeps_open, true), "{answer}");
    }
}

#[test]
fn what_can_be_read_in_two_ways_is_not_read() {
    let head = |headers: &str| format!("HTTP/1.1 200 OK\r\n{headers}\r\n\r\nhello");
    for length in ["+5", "-5", "0x5", "5, 6", "", "5,", "18446744073709551616", "5\r\nContent-Length: 6"] {
        assert_eq!(whole(&head(&format!("Content-Length: {length}"))), Err(Malformed::Length), "{length}");
    }
    assert!(whole(&head("Content-Length: 5, 5\r\nContent-Length: 5")).unwrap().over);
    assert_eq!(whole("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), Err(Malformed::Length));
    for coding in ["chunked, gzip", "gzip, chunked", "gzip", "chunked, chunked", "xchunked"] {
        assert_eq!(whole(&head(&format!("Transfer-Encoding: {coding}"))), Err(Malformed::Coding), "{coding}");
    }
    for chunks in
        ["\r\n", "x\r\n", ";a\r\n", " \r\n", "-1\r\n", "3\r\nabcd\r\n", "11111111111111111\r\n", "3\nabc"]
    {
        let read = whole(&format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}"));
        assert_eq!(read, Err(Malformed::Chunk), "{chunks:?}");
    }
    let long_line = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;{}", "x".repeat(5_000));
    assert_eq!(whole(&long_line), Err(Malformed::Chunk));
}

#[test]
fn what_is_no_answer_is_refused() {
    assert_eq!(whole("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"), Err(Malformed::Switched));
    for answer in ["SSH-2.0-OpenSSH\r\n", "HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\na b: c\r\n\r\n"] {
        assert!(matches!(whole(answer), Err(Malformed::NotHttp(_))), "{answer}");
    }
    assert_eq!(whole("HTTP/1.1 099 No\r\n\r\n"), Err(Malformed::Header));
    for more in [0, HEADER_BYTES_MAX] {
        let flood = format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(HEADER_BYTES_MAX + more));
        assert_eq!(whole(&flood), Err(Malformed::HeadersTooLong));
        assert_eq!(whole(&format!("{flood}\r\n\r\n")), Err(Malformed::HeadersTooLong));
    }
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(101));
    assert_eq!(whole(&many), Err(Malformed::NotHttp(httparse::Error::TooManyHeaders)));
}

#[test]
fn a_reason_of_its_own_is_kept() {
    let reason = |answer: &'static str| {
        let head = read_answer(&mut Bytes::from_static(answer.as_bytes()), &Method::GET).unwrap().unwrap();
        assert_eq!(head.parts.status, StatusCode::NOT_FOUND);
        head.parts.extensions.get::<hyper::ext::ReasonPhrase>().map(|reason| reason.as_bytes().to_vec())
    };
    assert_eq!(reason("HTTP/1.1 404 Not Found\r\n\r\n"), None);
    assert_eq!(reason("HTTP/1.1 404 Gone fishing\r\n\r\n"), Some(b"Gone fishing".to_vec()));
}
