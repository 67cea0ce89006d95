use super::stage::Stage;
use crate::house::Home;
use crate::house::House;
use semel_testkit::http::ScriptedApi;

#[test]
fn a_read_passes_as_it_came_and_leaves_no_record() {
    let stage = Stage::with("headers_env = { X-Key = \"UPSTREAM_TOKEN\" }\n");
    let headers = "Authorization: Bearer user\r\nX-Unknown: u\r\nConnection: X-Hop\r\nX-Hop: 1\r\nX-Key: mine\r\nSemel-Again: no\r\nAccept-Encoding: gzip\r\n";
    for _ in 0..2 {
        let answer = stage.send("GET", "/a%20b?x=%2F&y", headers, "");
        assert_eq!((answer.status, answer.body.as_str()), (200, "hello world"));
        assert_eq!(answer.header("x-own"), Some("1"));
        assert_eq!(answer.header("set-cookie"), Some("a=b"));
        assert_eq!((answer.header("semel-outcome"), answer.header("keep-alive")), (None, None));
    }
    assert_eq!(stage.api.requests().len(), 2);
    let heard = stage.api.last();
    assert_eq!(heard.line(), "GET /a%20b?x=%2F&y HTTP/1.1");
    let host = stage.api.host();
    for (name, value) in [
        ("host", Some(host.as_str())),
        ("x-unknown", Some("u")),
        ("accept-encoding", Some("gzip")),
        // What semel shows itself stands for all that a client could show.
        ("x-key", Some("Bearer operator")),
        ("authorization", None),
        ("x-hop", None),
        ("semel-again", None),
        ("semel-token", None),
    ] {
        assert_eq!(heard.header(name), value, "{name}");
    }
    assert!(stage.house.effects("").is_empty());
}

#[test]
fn a_question_about_a_body_has_its_length_and_no_body() {
    let stage = Stage::plain();
    let answer = stage.send("HEAD", "/x", "", "");
    assert_eq!((answer.status, answer.body.as_str()), (200, ""));
    assert_eq!(answer.header("content-length"), Some("11"));
    assert_eq!(stage.send("OPTIONS", "/x", "", "").body, "hello world");
    assert_eq!(stage.api.last().line(), "OPTIONS /x HTTP/1.1");
}

#[test]
fn a_read_may_have_a_body_which_passes_while_it_comes() {
    let stage = Stage::plain();
    let body = "4\r\nwiki\r\n0\r\n\r\n";
    let headers = "Transfer-Encoding: chunked\r\nContent-Length-Not: 1\r\n";
    assert_eq!(stage.send("GET", "/search", headers, body).status, 200);
    assert_eq!(stage.api.last().text(), "wiki");
}

#[test]
fn a_path_that_could_mean_two_places_reaches_no_upstream() {
    let stage = Stage::plain();
    for path in ["/a/../b", "/a/%2e%2e/b", "/a%2fb", "/a%5Cb", "/..;/b", "/a%00", "/a%zz", "/./a"] {
        let answer = stage.get(path);
        assert_eq!(answer.status, 400, "{path}: {answer:?}");
        assert!(answer.body.contains("nothing was sent"), "{answer:?}");
    }
    for (first, status) in [("TRACE", 405), ("GET", 400)] {
        let headers = if first == "GET" { "Connection: Upgrade\r\nUpgrade: websocket\r\n" } else { "" };
        assert_eq!(stage.send(first, "/x", headers, "").status, status);
    }
    assert_eq!(stage.get("/x").status, 200);
    assert_eq!(stage.api.requests().len(), 1);
    let unknown = stage.house.ask("GET /p/other/x HTTP/1.1", "Semel-Token: a-token-of-this-test\r\n", "");
    assert_eq!(unknown.answer().status, 404);
}

#[test]
fn redirects_are_given_back_and_not_followed() {
    let stage = Stage::plain();
    let inside = stage.get("/moved");
    assert_eq!((inside.status, inside.header("location")), (302, Some("/p/api/there?x=1")));
    let outside = stage.get("/away");
    assert_eq!((outside.status, outside.header("location")), (307, Some("http://169.254.169.254/latest")));
    assert_eq!(stage.api.requests().len(), 2);
}

#[test]
fn another_method_behind_a_read_makes_it_no_read() {
    let stage = Stage::plain();
    for (path, headers) in [
        ("/x", "X-HTTP-Method-Override: DELETE\r\n"),
        ("/x", "X-Method-Override: post\r\n"),
        ("/x?_method=patch", ""),
    ] {
        let answer = stage.send("GET", path, headers, "");
        assert_eq!(answer.header("semel-outcome"), Some("ran"), "{path} {headers}: {answer:?}");
    }
    let harmless = stage.send("GET", "/x", "X-HTTP-Method-Override: HEAD\r\n", "");
    assert_eq!(harmless.header("semel-outcome"), None);
}

#[test]
fn reads_pass_without_a_ledger_and_writes_do_not() {
    let (home, api) = (Home::new(), ScriptedApi::start());
    std::fs::write(home.ledger(), "this is no database, and too short for one").expect("a file");
    let house = House::start(&home, &format!("[upstream.api]\nurl = \"{}\"\n", api.url()));
    let ask = |method, body| super::stage::ask(&house, method, "/x", super::stage::JSON, body).answer();
    assert_eq!(ask("GET", "").status, 200);
    let refused = ask("POST", "{}");
    assert_eq!(super::stage::became(&refused), (503, "refused".into(), "ledger_unavailable".into()));
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!((api.effects(), api.requests().len()), (0, 1));
}

#[test]
fn reads_use_a_connection_again_and_each_effect_has_one_of_its_own() {
    let stage = Stage::plain();
    for i in 0..5 {
        assert_eq!(stage.get(&format!("/{i}")).status, 200);
        assert_eq!(stage.charge(&format!("key-{i}"), "{}").status, 201);
    }
    assert_eq!(stage.api.connections(), 6, "one for the reads, and five for the effects");
}
