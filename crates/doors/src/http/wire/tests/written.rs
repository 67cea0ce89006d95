//! Heads as they are written.

use super::super::*;
use http::{HeaderMap, Request, Response, StatusCode, Version};
use http_body::SizeHint;
use hyper::ext::ReasonPhrase;
use semel_core::time::At;

#[test]
fn a_question_says_of_its_body_what_that_is() {
    let written = |request: Request<axum::body::Body>| {
        let Question { head, extent } = Question::of(&request);
        (String::from_utf8(head.to_vec()).unwrap(), extent)
    };
    let body = |text: &'static str| axum::body::Body::from(text);
    let arriving = axum::body::Body::new(crate::http::body::Piped::new().1);
    let post = || Request::post("http://host/a?b=c").header("x-one", "1").header("x-one", "2");
    let (head, extent) = written(post().header("content-length", "99").body(body("hello")).unwrap());
    assert_eq!(head, "POST /a?b=c HTTP/1.1\r\nx-one: 1\r\nx-one: 2\r\ncontent-length: 5\r\n\r\n");
    assert_eq!(extent, Extent::Length(5));
    let (head, extent) = written(post().header("content-length", "9").body(arriving).unwrap());
    assert_eq!(head, "POST /a?b=c HTTP/1.1\r\nx-one: 1\r\nx-one: 2\r\ntransfer-encoding: chunked\r\n\r\n");
    assert_eq!(extent, Extent::Chunked);
    let (head, _) = written(Request::get("/").body(body("")).unwrap());
    assert_eq!(head, "GET / HTTP/1.1\r\n\r\n");
    let (head, _) = written(Request::delete("/").header("content-length", "0").body(body("")).unwrap());
    assert_eq!(head, "DELETE / HTTP/1.1\r\ncontent-length: 0\r\n\r\n");
    let (head, _) = written(Request::put("/").body(body("")).unwrap());
    assert_eq!(head, "PUT / HTTP/1.1\r\ncontent-length: 0\r\n\r\n");
}

/// Some afternoon.
const NOW: At = At(1_794_933_000_000_000);

fn answered(status: u16, headers: &[(&'static str, &'static str)], body: SizeHint, asker: Asker) -> Answer {
    let (mut parts, ()) = Response::new(()).into_parts();
    parts.status = StatusCode::from_u16(status).unwrap();
    let named = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
    parts.headers = named.collect::<HeaderMap>();
    Answer::of(&parts, body, asker, NOW)
}

fn lines(answer: &Answer) -> Vec<String> {
    let head = String::from_utf8(answer.head.to_vec()).unwrap();
    let (head, behind) = head.split_once("\r\n\r\n").unwrap();
    assert_eq!(behind, "");
    head.split("\r\n").map(str::to_owned).collect()
}

const ASKER: Asker = Asker { wants_body: true, version: Version::HTTP_11, stays: true };

#[test]
fn an_answer_says_of_its_body_and_its_connection_what_these_are() {
    let dated = ("date", "Tue, 17 Nov 2026 16:30:00 GMT");
    let date = "date: Tue, 17 Nov 2026 16:30:00 GMT";
    let (sized, arriving) = (SizeHint::with_exact(5), SizeHint::default());
    let head = Asker { wants_body: false, ..ASKER };
    let old = Asker { version: Version::HTTP_10, ..ASKER };
    let leaves = Asker { stays: false, ..ASKER };
    let lies =
        [("content-length", "9"), ("transfer-encoding", "gzip"), ("connection", "keep-alive, x"), dated];
    let closes = [("connection", "Close"), dated];
    let length = ("content-length", "9");
    let cases: [(_, &[_], _, _, &[_], _, _); 13] = [
        (
            200,
            &[dated],
            sized,
            ASKER,
            &["HTTP/1.1 200 OK", date, "content-length: 5"],
            Some(Extent::Length(5)),
            true,
        ),
        (
            200,
            &lies,
            sized,
            ASKER,
            &["HTTP/1.1 200 OK", date, "content-length: 5"],
            Some(Extent::Length(5)),
            true,
        ),
        (
            200,
            &lies,
            arriving,
            ASKER,
            &["HTTP/1.1 200 OK", date, "transfer-encoding: chunked"],
            Some(Extent::Chunked),
            true,
        ),
        (
            200,
            &closes,
            sized,
            ASKER,
            &["HTTP/1.1 200 OK", date, "content-length: 5", "connection: close"],
            Some(Extent::Length(5)),
            false,
        ),
        (
            200,
            &[dated],
            sized,
            leaves,
            &["HTTP/1.1 200 OK", date, "content-length: 5", "connection: close"],
            Some(Extent::Length(5)),
            false,
        ),
        (
            200,
            &[dated],
            sized,
            old,
            &["HTTP/1.1 200 OK", date, "content-length: 5", "connection: keep-alive"],
            Some(Extent::Length(5)),
            true,
        ),
        (
            200,
            &[dated],
            arriving,
            old,
            &["HTTP/1.1 200 OK", date, "connection: close"],
            Some(Extent::UntilClosed),
            false,
        ),
        (204, &[length, dated], sized, ASKER, &["HTTP/1.1 204 No Content", date], None, true),
        (
            304,
            &[length, dated],
            arriving,
            ASKER,
            &["HTTP/1.1 304 Not Modified", date, "content-length: 9"],
            None,
            true,
        ),
        (
            200,
            &[length, dated],
            SizeHint::with_exact(0),
            head,
            &["HTTP/1.1 200 OK", date, "content-length: 9"],
            None,
            true,
        ),
        (200, &[dated], sized, head, &["HTTP/1.1 200 OK", date, "content-length: 5"], None, true),
        (200, &[dated], arriving, head, &["HTTP/1.1 200 OK", date], None, true),
        (
            499,
            &[dated],
            SizeHint::with_exact(0),
            ASKER,
            &["HTTP/1.1 499 ", date, "content-length: 0"],
            Some(Extent::Length(0)),
            true,
        ),
    ];
    for (status, headers, body, asker, expected, extent, stays) in cases {
        let answer = answered(status, headers, body, asker);
        assert_eq!(lines(&answer), expected, "{status} {headers:?}");
        assert_eq!((answer.extent, answer.stays), (extent, stays), "{status} {headers:?}");
    }
    let undated = answered(200, &[], sized, ASKER);
    assert_eq!(
        lines(&undated),
        ["HTTP/1.1 200 OK", "date: Tue, 17 Nov 2026 16:30:00 GMT", "content-length: 5"]
    );
}

#[test]
fn a_reason_of_its_own_is_given_on() {
    let (mut parts, ()) = Response::new(()).into_parts();
    parts.extensions.insert(ReasonPhrase::from_static(b"Gone fishing"));
    let answer = Answer::of(&parts, SizeHint::with_exact(0), ASKER, NOW);
    assert_eq!(lines(&answer)[0], "HTTP/1.1 200 Gone fishing");
}
