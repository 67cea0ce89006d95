use crate::api::client::{ApiClient, charge};
use crate::home::Home;
use crate::mcp::peers;
use crate::serve::served::{Served, TOKEN};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Stdio};

pub const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Somebody who is told, as a process.
pub struct Listener {
    child: Child,
}

impl Listener {
    pub fn start(home: &Home, port: u16, refuses: u32) -> Listener {
        Listener::refusing(home, port, refuses, 503)
    }

    /// The first few are refused with this status.
    fn refusing(home: &Home, port: u16, refuses: u32, status: u16) -> Listener {
        let python = peers::installed("openapi").join("python/bin/python").to_string_lossy().into_owned();
        let words =
            [python, peers::script("webhook.py"), port.to_string(), refuses.to_string(), status.to_string()];
        let mut command = home.program(&words);
        let mut child = command.env("HOOK_SECRET", SECRET).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let output = child.stdout.take().expect("its output is a pipe");
        BufReader::new(output).read_line(&mut line).expect("it says its port");
        assert_eq!(line.trim(), port.to_string());
        Listener { child }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// A port that nobody listens on.
pub fn port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .expect("a free port")
        .port()
}

fn serve(home: &Home, port: u16) -> Served {
    let policy = format!("[notify]\nurl = \"http://127.0.0.1:{port}/hook\"\nsecret_env = \"HOOK\"\n");
    Served::start_with(home, &policy, &[("HOOK", SECRET)])
}

fn heard(home: &Home) -> Vec<Value> {
    let heard = std::fs::read_to_string(home.work().join("heard")).unwrap_or_default();
    heard.lines().map(|line| serde_json::from_str(line).expect("a message is JSON")).collect()
}

pub fn told(home: &Home) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    heard(home)
        .iter()
        .map(|message| (text(&message["type"]), text(&message["data"]["effect"]["effect_id"])))
        .collect()
}

#[test]
fn every_new_doubt_is_told_once_whichever_process_made_it() {
    let home = Home::new();
    let old = home.doubt("old");
    let port = port();
    let _listener = Listener::start(&home, port, 1);
    let _servers = [serve(&home, port), serve(&home, port)];
    // Of another process, whose command died.
    let new = home.doubt("new");
    // Of a process that died itself, with all that it had started, and told nobody.
    let ran = home.semel(["run", "--key", "killed", "--", "sh", "-c", "kill -9 $PPID"]);
    assert_eq!(ran.code, None, "{ran:?}");
    home.wait_until("both are told", || told(&home).len() >= 2);
    let doubts = home.json(["ledger", "list", "--state", "in_doubt"]);
    let ids: BTreeSet<String> = doubts["items"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|effect| effect["effect_id"].as_str().unwrap().to_owned())
        .collect();
    assert!(ids.contains(&old) && ids.contains(&new) && ids.len() == 3);
    let expected: BTreeSet<(String, String)> =
        ids.into_iter().filter(|id| *id != old).map(|id| ("effect.in_doubt".to_owned(), id)).collect();
    assert_eq!(told(&home).into_iter().collect::<BTreeSet<_>>(), expected, "what is old is no news");
    let first = &heard(&home)[0];
    assert_eq!(
        (&first["data"]["tenant"], &first["data"]["effect"]["state"]),
        (&json!("local"), &json!("in_doubt"))
    );
    // Of two servers one tells: nothing comes twice while nobody dies.
    home.doubt("one more");
    home.wait_until("it is told", || told(&home).len() >= 3);
    assert_eq!(heard(&home).len(), 3);
}

#[test]
fn what_could_not_be_told_is_told_by_whoever_serves_next() {
    let home = Home::new();
    let port = port();
    let mut served = serve(&home, port);
    home.wait_until("it has begun to look", || {
        served.ask_raw("GET /readyz HTTP/1.1", "", "").answer().status == 200
            && home.semel(["ledger", "list"]).code == Some(0)
            && outbox_is_taken(&home)
    });
    let doubts: Vec<String> = (0..3).map(|n| home.doubt(&n.to_string())).collect();
    served.kill();
    let doubts: Vec<String> = doubts.into_iter().chain([home.doubt("while nobody serves")]).collect();
    let _listener = Listener::start(&home, port, 0);
    let _served = serve(&home, port);
    home.wait_until("all are told", || told(&home).len() >= 4);
    let ids: Vec<String> = told(&home).into_iter().map(|(_, id)| id).collect();
    assert_eq!(ids, doubts, "in their order");
    let names: BTreeSet<String> = heard(&home).iter().map(|message| message["id"].to_string()).collect();
    assert_eq!(names.len(), 4);
}

/// Whether somebody has begun to tell: before that, what happens is old.
fn outbox_is_taken(home: &Home) -> bool {
    home.query("select count(*) from cell where cast(body as text) like '%\"sent_to\"%'") == "1"
}

#[test]
fn a_duplicate_is_told_as_loudly_as_can_be() {
    let home = Home::new();
    let port = port();
    let _listener = Listener::start(&home, port, 0);
    let served = serve(&home, port);
    home.wait_until("it has begun to look", || outbox_is_taken(&home));
    let admin = ApiClient::new(&served.address, TOKEN);
    let mut wish = charge("ann");
    wish["run"] = json!("r");
    let first = admin.claim(wish.clone());
    admin.settle(&first, "not_applied", json!("declined"));
    let second = admin.claim(wish);
    admin.settle(&second, "applied", json!(1));
    let late = admin.settle(&first, "applied", json!(2));
    assert!(late.json()["reason"].as_str().is_some_and(|why| why.contains("duplicate_detected")), "{late:?}");
    home.wait_until("it is told", || !told(&home).is_empty());
    let id = first["effect_id"].as_str().expect("an id").to_owned();
    // Whoever has forgotten it reads it first.
    let markdown = home.semel(["ledger", "--run", "r", "--markdown"]).stdout;
    assert!(markdown.contains("## Happened twice (1)") && !markdown.contains("## Done"), "{markdown}");
    assert!(markdown.contains(&id), "{markdown}");
    assert_eq!(told(&home), [("effect.duplicate_detected".to_owned(), id)]);
    assert_eq!(admin.get("/stats").json()["total"]["duplicates_detected"], json!(1));
}

#[test]
fn a_listener_that_is_away_is_said_once_and_so_is_its_return() {
    let home = Home::new();
    let port = port();
    let served = serve(&home, port);
    home.wait_until("it has begun to look", || outbox_is_taken(&home));
    let said = |what: &str| served.said().matches(what).count();
    home.doubt("k");
    home.wait_until("it is said", || said("cannot be told") == 1);
    let listener = Listener::start(&home, port, 2);
    home.wait_until("it is told", || told(&home).len() == 1);
    home.wait_until("that is said, too", || said("is told again") == 1);
    assert_eq!(said("cannot be told"), 1, "however often it was tried: {}", served.said());
    // Where it is, and not its path, which may be a secret.
    assert!(served.said().contains(&format!("http://127.0.0.1:{port} ")), "{}", served.said());
    assert!(!served.said().contains("/hook"), "{}", served.said());
    drop(listener);
    home.doubt("another");
    home.wait_until("the next outage is said", || said("cannot be told") == 2);
}

#[test]
fn a_secret_that_nobody_could_check_is_refused_at_the_start() {
    let home = Home::new();
    home.file("semel.toml", "[notify]\nurl = \"https://example.com/hook\"\nsecret_env = \"HOOK\"\n");
    for (secret, why) in [("whsec_!", "base 64"), ("", "HOOK is not set")] {
        let mut command = home.command(["serve", "--listen", "127.0.0.1:0"]);
        let ran = crate::home::Ran::of(command.env("HOOK", secret).output().expect("semel starts"));
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains("[notify]") && ran.stderr.contains(why), "{ran:?}");
    }
    assert_eq!(home.semel(["policy", "lint"]).code, Some(0));
    home.file("semel.toml", "[notify]\nurl = \"https://example.com/hook\"\nsecret = \"x\"\n");
    let unknown = home.semel(["policy", "lint"]);
    assert!(unknown.stdout.contains("secret_env"), "{unknown:?}");
}

#[test]
fn a_message_that_the_listener_cannot_take_keeps_no_other_waiting() {
    let home = Home::new();
    let port = port();
    let served = serve(&home, port);
    home.wait_until("it has begun to look", || outbox_is_taken(&home));
    let _listener = Listener::refusing(&home, port, 5, 422);
    let doubts = [home.doubt("refused"), home.doubt("taken")];
    home.wait_until("the other is told", || !told(&home).is_empty());
    assert_eq!(told(&home), [("effect.in_doubt".to_owned(), doubts[1].clone())]);
    home.wait_until("it is said which is not", || {
        let said = served.said();
        said.contains("answers 422") && said.contains("is not told") && said.contains(&doubts[0])
    });
}

#[test]
fn a_redirect_is_not_followed_and_the_message_is_brought_again_where_it_belongs() {
    for status in [302, 307] {
        let home = Home::new();
        let port = port();
        let _served = serve(&home, port);
        home.wait_until("it has begun to look", || outbox_is_taken(&home));
        let _listener = Listener::refusing(&home, port, 1, status);
        let doubt = home.doubt("k");
        home.wait_until("it is told", || !heard(&home).is_empty());
        assert_eq!(told(&home), [("effect.in_doubt".to_owned(), doubt)], "{status}");
        assert_eq!(
            heard(&home)[0]["path"],
            "/hook",
            "{status}: whoever it leads to was not chosen by the operator"
        );
    }
}
