//! Questions that are read.

use super::super::*;
use bytes::{Bytes, BytesMut};
use http::{Method, Version};

/// What was read of a request that came in these parts.
#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    target: String,
    body: Vec<u8>,
    /// What came behind it.
    behind: Vec<u8>,
    stays: bool,
    waits_for_word: bool,
    over: bool,
}

fn read(parts: &[&[u8]]) -> Result<Read, Malformed> {
    let (mut came, mut looked_at, mut asked, mut read) = (Bytes::new(), 0, None::<Asked>, Read::default());
    for part in parts {
        let mut more = BytesMut::from(&came[..]);
        more.extend_from_slice(part);
        came = more.freeze();
        if asked.is_none() {
            // As a connection asks: what cannot have become whole is not looked at again.
            if looked_at > 0 && !has_whole_head(&came, looked_at) {
                looked_at = came.len();
                continue;
            }
            looked_at = came.len();
            asked = read_question(&mut came)?;
        }
        let Some(asked) = &mut asked else { continue };
        read.target = asked.parts.uri.to_string();
        (read.stays, read.waits_for_word) = (asked.asker.stays, asked.waits_for_word);
        loop {
            match asked.framing.take(&mut came)? {
                Piece::Data(data) => read.body.extend_from_slice(&data),
                Piece::Trailers(_) => {}
                Piece::Missing | Piece::End => break,
            }
        }
        read.over = asked.framing.is_over();
    }
    read.behind = came.to_vec();
    Ok(read)
}

fn whole(question: &str) -> Result<Read, Malformed> {
    read(&[question.as_bytes()])
}

fn post(headers: &str, body: &str) -> Result<Read, Malformed> {
    whole(&format!("POST / HTTP/1.1\r\nHost: x\r\n{headers}\r\n\r\n{body}"))
}

#[test]
fn however_a_question_comes_it_is_read_alike() {
    let questions = [
        "GET /a?b=%20c HTTP/1.1\r\nHost: x\r\n\r\n",
        "\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\nGET /next HTTP/1.1\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 5\r\nExpect: 100-Continue\r\n\r\nhello",
        "POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n1;x=y\r\n!\r\n0\r\n\r\nmore",
        "POST http://x/a HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n",
    ];
    for question in questions {
        let expected = whole(question).unwrap();
        let bytes = question.as_bytes();
        let one_by_one: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(&one_by_one).unwrap(), expected, "{question}");
        for first in 1..bytes.len() {
            let (before, after) = bytes.split_at(first);
            assert_eq!(read(&[before, after]).unwrap(), expected, "{first} of {question}");
        }
    }
}

#[test]
fn a_question_ends_where_it_says() {
    let sized = post("Content-Length: 5", "hello there").unwrap();
    assert_eq!((&sized.body[..], &sized.behind[..], sized.over), (&b"hello"[..], &b" there"[..], true));
    let chunked = post("Transfer-Encoding: chunked", "3\r\nabc\r\n0\r\n\r\nx").unwrap();
    assert_eq!((&chunked.body[..], &chunked.behind[..], chunked.over), (&b"abc"[..], &b"x"[..], true));
    let none = post("X: y", "GET").unwrap();
    assert_eq!((&none.body[..], &none.behind[..], none.over), (&b""[..], &b"GET"[..], true));
    for cut in ["3\r\nab", "3\r\nabc\r\n", "3\r\nabc\r\n0\r\n", ""] {
        assert!(!post("Transfer-Encoding: chunked", cut).unwrap().over, "{cut:?}");
    }
}

#[test]
fn a_connection_stays_where_its_client_says_so() {
    for (version, headers, stays) in [
        ("1.1", "Host: x", true),
        ("1.1", "Connection: x, Close", false),
        ("1.1", "Connection: keep-alive\r\nConnection: close", false),
        ("1.0", "Host: x", false),
        ("1.0", "Connection: Keep-Alive", true),
    ] {
        let read = whole(&format!("GET / HTTP/{version}\r\n{headers}\r\n\r\n")).unwrap();
        assert_eq!(read.stays, stays, "{version} {headers}");
    }
}

#[test]
fn a_word_is_waited_for_only_where_something_would_follow_it() {
    assert!(post("Expect: 100-continue\r\nContent-Length: 1", "").unwrap().waits_for_word);
    assert!(!post("Expect: 100-continue\r\nContent-Length: 0", "").unwrap().waits_for_word);
    assert!(!post("Content-Length: 1", "").unwrap().waits_for_word);
    let old = whole("POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n").unwrap();
    assert!(!old.waits_for_word, "it would not know the word");
}

#[test]
fn what_can_be_read_in_two_ways_is_refused() {
    for length in
        ["+5", "-5", "0x5", "5, 5", "5, 6", "", "5,", "5\r\nContent-Length: 5", "18446744073709551616"]
    {
        assert_eq!(post(&format!("Content-Length: {length}"), "hello"), Err(Malformed::Length), "{length}");
    }
    for both in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Transfer-Encoding: identity\r\nContent-Length: 5",
    ] {
        assert_eq!(post(both, "0\r\n\r\n"), Err(Malformed::Length), "{both}");
    }
    for coding in ["chunked, chunked", "chunked, identity", "gzip, chunked", "identity", "xchunked", ""] {
        assert_eq!(post(&format!("Transfer-Encoding: {coding}"), ""), Err(Malformed::Coding), "{coding}");
    }
    let twice = post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "0\r\n\r\n");
    assert_eq!(twice, Err(Malformed::Coding));
    let old = whole("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    assert_eq!(old, Err(Malformed::Length));
    for chunks in
        ["\r\n", "x\r\n", ";a\r\n", " \r\n", "-1\r\n", "3\r\nabcd\r\n", "3\nabc", "fffffffffffffffff\r\n"]
    {
        assert_eq!(post("Transfer-Encoding: chunked", chunks), Err(Malformed::Chunk), "{chunks:?}");
    }
    for chunks in ["2;\nxx\r\n95\r\n", "2;a=\rb\r\nxx\r\n", "2;\n\r\nxx\r\n"] {
        assert_eq!(post("Transfer-Encoding: chunked", chunks), Err(Malformed::Chunk), "{chunks:?}");
    }
    for trailers in ["0\r\n\n", "0\r\nX: y\n\nPOST / HTTP/1.1\r\n\r\n", "0\r\nX: y\n\r\n"] {
        assert_eq!(post("Transfer-Encoding: chunked", trailers), Err(Malformed::Line), "{trailers:?}");
    }
    for lines in [
        "GET / HTTP/1.1\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nX: a\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nX: a\r\n\n",
    ] {
        assert_eq!(whole(lines), Err(Malformed::Line), "{lines:?}");
    }
    for folded in ["X: a\r\n b", "Content-Length : 2", "X: a\0b", "X y: z"] {
        assert!(matches!(post(folded, "{}"), Err(Malformed::NotHttp(_))), "{folded:?}");
    }
}

#[test]
fn what_is_no_question_is_refused() {
    for question in
        ["SSH-2.0-OpenSSH\r\n", "\x16\x03\x01", "GET  / HTTP/1.1\r\n\r\n", "GET / HTTP/2.0\r\n\r\n"]
    {
        assert!(matches!(whole(question), Err(Malformed::NotHttp(_))), "{question:?}");
    }
    assert_eq!(whole("GET http:/// HTTP/1.1\r\n\r\n"), Err(Malformed::Header));
    for more in [0, HEADER_BYTES_MAX] {
        let flood = format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(HEADER_BYTES_MAX + more));
        assert_eq!(whole(&flood), Err(Malformed::HeadersTooLong));
        assert_eq!(whole(&format!("{flood}\r\n\r\n")), Err(Malformed::HeadersTooLong));
        let (first, rest) = flood.as_bytes().split_at(100);
        assert_eq!(read(&[first, rest]), Err(Malformed::HeadersTooLong), "in two parts");
    }
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(101));
    assert_eq!(whole(&many), Err(Malformed::NotHttp(httparse::Error::TooManyHeaders)));
}

#[test]
fn an_answer_knows_whom_it_is_for() {
    let asker = |question: &'static str| {
        read_question(&mut Bytes::from_static(question.as_bytes())).unwrap().unwrap()
    };
    let get = asker("GET / HTTP/1.1\r\n\r\n");
    assert_eq!(
        (get.parts.method, get.asker.wants_body, get.asker.version),
        (Method::GET, true, Version::HTTP_11)
    );
    let head = asker("HEAD / HTTP/1.0\r\n\r\n");
    assert_eq!(
        (head.parts.method, head.asker.wants_body, head.asker.version),
        (Method::HEAD, false, Version::HTTP_10)
    );
}
