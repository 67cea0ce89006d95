use crate::home::Home;
use crate::serve::served::{SESSION, Served, TOKEN, calling};
use semel_testkit::http::{FakeMcpServer, RawClient, Response};
use serde_json::json;

fn get(served: &Served, path: &str) -> Response {
    served.ask_raw(&format!("GET {path} HTTP/1.1"), "", "").answer()
}

#[test]
fn a_server_is_ready_only_while_its_ledger_takes_durable_writes() {
    let home = Home::new();
    let served = Served::start(&home, "");
    assert_eq!((get(&served, "/livez").status, get(&served, "/readyz").status), (200, 200));
    assert_eq!(get(&served, "/readyz").body, "ok\n");
    // Where the file is, another one lies now: what is written to the old one is lost.
    let file = home.state().join("ledger.db");
    std::fs::rename(&file, home.state().join("away.db")).expect("it is there");
    home.wait_until("it is not ready", || get(&served, "/readyz").status == 503);
    let answer = get(&served, "/readyz");
    assert!(answer.head.contains("retry-after: 1") && answer.body.contains("moved"), "{answer:?}");
    assert_eq!(get(&served, "/livez").status, 200, "it is alive all the same");
    std::fs::rename(home.state().join("away.db"), &file).expect("it is there");
    home.wait_until("it is ready again", || get(&served, "/readyz").status == 200);
    assert_eq!(served.ask_raw("GET /readyz HTTP/1.1", "Host: evil.test\r\n", "").answer().status, 403);
    assert_eq!(served.ask_raw("POST /readyz HTTP/1.1", "", "").answer().status, 405);
}

#[test]
fn a_crowd_is_refused_and_the_server_is_alive_all_the_same() {
    let home = Home::new();
    let upstream = FakeMcpServer::start();
    // Room for sixteen connections, of which one is there to be refused.
    let served = Served::start_with_files(&home, &format!("[mcp.bank]\nurl = \"{}\"\n", upstream.url()), 160);
    let call = |n: u64| {
        let message = calling(n, "charge", json!({"waits": true, "n": n})).to_string();
        served.ask_raw("POST /mcp/bank HTTP/1.1", &format!("Semel-Token: {TOKEN}\r\n{SESSION}"), &message)
    };
    let waiting: Vec<RawClient> = (0..15).map(call).collect();
    home.wait_until("all are sent", || upstream.effects() == 15);
    let refused = call(15).answer();
    assert_eq!((refused.status, upstream.effects()), (503, 15), "{refused:?}");
    assert!(refused.head.contains("retry-after: 1"), "{refused:?}");
    assert_eq!(get(&served, "/livez").status, 200);
    upstream.release();
    assert!(waiting.into_iter().all(|asked| asked.answer().status == 200));
}
