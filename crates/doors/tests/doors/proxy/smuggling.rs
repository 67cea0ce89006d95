//! One request hidden in another: what semel reads and what an upstream reads must be one thing.

use super::stage::{Stage, post};
use crate::house::TOKEN;

fn head(first: &str, rest: &str) -> String {
    format!("{first}\r\nHost: localhost\r\nSemel-Token: {TOKEN}\r\n{rest}")
}

#[test]
fn bodies_of_two_lengths_are_not_taken() {
    let stage = Stage::plain();
    let hidden = "POST /p/api/hidden HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";
    let length = hidden.len();
    for (framing, body) in [
        (format!("Content-Length: 2\r\nContent-Length: {length}\r\n\r\n"), format!("{{}}{hidden}")),
        (format!("Content-Length: +{length}\r\n\r\n"), hidden.to_owned()),
        ("Content-Length: 1,2\r\n\r\n".to_owned(), "{}".to_owned()),
        ("Transfer-Encoding: chunked, identity\r\n\r\n".to_owned(), hidden.to_owned()),
        ("Transfer-Encoding: xchunked\r\n\r\n".to_owned(), hidden.to_owned()),
        ("Content-Length: 2\r\n folded: 1\r\n\r\n".to_owned(), "{}".to_owned()),
        ("Transfer-Encoding:\r\n chunked\r\n\r\n".to_owned(), hidden.to_owned()),
        ("Content-Length : 2\r\n\r\n".to_owned(), "{}".to_owned()),
        ("X: a\0b\r\nContent-Length: 2\r\n\r\n".to_owned(), "{}".to_owned()),
        ("Transfer-Encoding: chunked\r\n\r\n".to_owned(), "zz\r\n{}\r\n0\r\n\r\n".to_owned()),
        ("Transfer-Encoding: chunked\r\n\r\n".to_owned(), "ffffffffffffffffff\r\n{}\r\n0\r\n\r\n".to_owned()),
    ] {
        let mut line = stage.connect();
        line.write(head("POST /p/api/outer HTTP/1.1", &framing) + &body);
        let answer = line.next_answer();
        assert_eq!(answer.status, 400, "{framing:?}: {answer:?}");
        assert!(line.is_closed(), "{framing:?}");
    }
    let mut old = stage.connect();
    old.write(head("POST /p/api/outer HTTP/1.0", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"));
    assert_eq!(old.answer().status, 400);
    assert_eq!(stage.api.requests().len(), 0);
}

/// hyper reads the chunks and drops the length (RFC 9112, 6.3). Whoever stands before semel may have read the length.
#[test]
fn a_length_beside_chunks_is_refused_in_any_order_and_case() {
    let stage = Stage::plain();
    let hidden = "POST /p/api/hidden HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";
    let earlier = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
    for framing in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "transfer-encoding:Chunked\r\nX: y\r\ncontent-LENGTH:12\r\n",
        "Content-Length: 5\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    ] {
        let before = stage.api.requests().len();
        let mut line = stage.connect();
        let framing = format!("Content-Type: application/json\r\n{framing}\r\n");
        // Also behind another request of its connection, read along with it.
        line.write(
            head("POST /p/api/earlier HTTP/1.1", earlier)
                + &head("POST /p/api/outer HTTP/1.1", &framing)
                + "2\r\n{}\r\n0\r\n\r\n"
                + hidden,
        );
        assert_eq!(line.next_answer().status, 201, "{framing:?}");
        let refused = line.next_answer();
        assert_eq!(refused.status, 400, "{framing:?}: {refused:?}");
        assert!(refused.body.contains("Content-Length"), "{refused:?}");
        assert!(line.is_closed(), "{framing:?}");
        assert_eq!(stage.api.requests().len(), before + 1, "{framing:?}");
        assert_eq!(stage.api.last().line(), "POST /earlier HTTP/1.1");
    }
    assert_eq!(stage.house.effects("").len(), stage.api.requests().len());
}

/// The rest of a request that was refused is nobody's request: the connection ends.
#[test]
fn what_was_refused_takes_nothing_of_the_next_request() {
    let stage = Stage::plain();
    let large = "x".repeat(300_000);
    for _ in 0..40 {
        let mut line = stage.connect();
        let framing = format!("Content-Length: {}\r\n\r\n", large.len());
        line.write(head("POST /p/nobody/x HTTP/1.1", &framing) + &large);
        assert_eq!(line.next_answer().status, 404);
        assert!(line.is_closed());
    }
    assert_eq!(stage.api.requests().len(), 0);
}

#[test]
fn an_upstream_gets_one_length_and_nothing_of_the_connection() {
    let stage = Stage::plain();
    let mut line = stage.connect();
    line.write(head(
        "POST /p/api/outer HTTP/1.1",
        "Connection: keep-alive, X-Internal, Content-Length\r\nX-Internal: 1\r\nTE: trailers\r\nProxy-Authorization: Basic x\r\nTrailer: X\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Trailer: 1\r\n\r\n",
    ));
    assert_eq!(line.next_answer().status, 201);
    let heard = stage.api.last();
    assert_eq!(heard.header("content-length"), Some("2"));
    for name in
        ["x-internal", "te", "proxy-authorization", "trailer", "transfer-encoding", "connection", "x-trailer"]
    {
        assert_eq!(heard.header(name), None, "{name}");
    }
    // The connection goes on, and the next request on it is one of its own.
    post(&mut line, "/next", "", "");
    let answer = line.next_answer();
    assert_eq!((answer.status, answer.header("semel-outcome")), (201, Some("ran")));
}

#[test]
fn a_body_that_waits_for_a_word_gets_it() {
    let stage = Stage::plain();
    let mut line = stage.connect();
    line.write(head(
        "POST /p/api/a HTTP/1.1",
        "Expect: 100-continue\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n",
    ));
    assert!(line.line().starts_with("HTTP/1.1 100"));
    assert_eq!(line.line(), "\r\n");
    line.write("{}");
    assert_eq!(line.next_answer().status, 201);
    assert_eq!(stage.api.last().header("expect"), None);
    // Who would be refused anyway is told before it sends anything.
    let mut refused = stage.connect();
    refused.write(head("POST /p/nobody/a HTTP/1.1", "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"));
    assert_eq!(refused.answer().status, 404);
}

/// The name is not one of this machine's own, and leads nowhere that it may.
#[test]
fn an_address_that_leads_where_it_should_not_is_not_connected_to() {
    let stage = Stage::with("[upstream.inside]\nurl = \"http://metadata.invalid/\"\n");
    let headers = format!("Semel-Token: {TOKEN}\r\n");
    assert_eq!(stage.house.ask("GET /p/inside/latest HTTP/1.1", &headers, "").answer().status, 502);
}
