use crate::home::Home;
use crate::serve::served::{Answer, Served};

fn get(served: &Served, path: &str) -> Answer {
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
