//! The API at the other end, and what its own log says happened there.

use crate::home::Home;
use semel_testkit::http::{RawClient, Response};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// `semel-upstream` in threads of this process: its sockets are as real, and it is as new as the test.
#[derive(Debug)]
pub struct World {
    pub address: String,
    log: PathBuf,
}

/// What came of the requests of one case.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Happened {
    /// Requests that arrived, whole or not.
    pub requests: usize,
    /// Changes of the world, and runs of a model.
    pub effects: usize,
    /// Requests at the address that redirects point to.
    pub elsewhere: usize,
    /// Answers that nobody waited for.
    pub gone: usize,
}

impl World {
    pub fn start(home: &Home) -> World {
        World::start_at(home, (Ipv4Addr::LOCALHOST, 0).into())
    }

    /// Where somebody expects it.
    pub fn start_at(home: &Home, address: SocketAddr) -> World {
        let log = home.path().join(format!("upstream-{}.log", address.port()));
        let (ready, says) = std::io::pipe().expect("a pipe");
        let path = log.clone();
        std::thread::spawn(move || {
            semel_testkit::upstream::serve(address, &path, says)
                .expect("it serves as long as there are tests");
        });
        let mut line = String::new();
        BufReader::new(ready).read_line(&mut line).expect("it says where it listens");
        let said: Value = serde_json::from_str(&line).expect("JSON");
        World { address: said["address"].as_str().expect("an address").to_owned(), log }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What goes wrong from now on.
    pub fn tell(&self, plan: &Value) {
        let said = self.post("/__plan", &plan.to_string());
        assert_eq!(said.status, 200, "{said:?}");
    }

    /// One fault for the next request of that case.
    pub fn fail(&self, case: &str, mut fault: Value) {
        fault["case"] = case.into();
        self.tell(&json!({"next": [fault]}));
    }

    pub fn release(&self, name: &str) {
        self.post(&format!("/__release/{name}"), "");
    }

    fn post(&self, path: &str, body: &str) -> Response {
        let length = format!("Content-Length: {}\r\n", body.len());
        RawClient::ask(&self.address, &format!("POST {path} HTTP/1.1"), &length, body).answer()
    }

    pub fn log(&self) -> Vec<Value> {
        let log = std::fs::read(&self.log).unwrap_or_default();
        // A line that is being written is not there yet.
        let whole = log.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let lines = log[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).expect("a line of the log is JSON")).collect()
    }

    /// What came of each case; requests that name none are together under the empty name.
    pub fn happened(&self) -> BTreeMap<String, Happened> {
        let (mut cases, mut of_request) = (BTreeMap::<String, Happened>::new(), HashMap::new());
        for line in self.log() {
            let request = line["request"].as_u64().expect("every line has the number of its request");
            let named = line["case"].as_str().map(str::to_owned);
            let case = named.or_else(|| of_request.get(&request).cloned()).unwrap_or_default();
            let case = of_request.entry(request).or_insert(case);
            let happened = cases.entry(case.clone()).or_default();
            match line["at"].as_str().expect("every line says what happened") {
                "received" if line["place"] == "elsewhere" => {
                    // Some SDKs follow a redirect by themselves; what comes from semel has no token of semel's.
                    happened.elsewhere += usize::from(header(&line, "semel-token").is_none());
                }
                "received" => happened.requests += 1,
                "cut" if line.get("request_bytes").is_some() => happened.requests += 1,
                "effect" | "generation" => happened.effects += 1,
                "gone" => happened.gone += 1,
                _ => {}
            }
        }
        cases
    }

    pub fn of(&self, case: &str) -> Happened {
        self.happened().remove(case).unwrap_or_default()
    }

    /// Whether that case made the object of that id.
    pub fn made(&self, case: &str, id: Option<&str>) -> bool {
        let log = self.log();
        let of_case = |request: &Value| {
            let is = |line: &Value| {
                line["at"] == "received" && line["request"] == *request && line["case"] == case
            };
            log.iter().any(is)
        };
        let made = log.iter().filter(|line| line["at"] == "effect" || line["at"] == "generation");
        let ids = made.filter(|line| of_case(&line["request"])).map(|line| {
            if line["at"] == "effect" { line["object"]["id"].as_str() } else { line["id"].as_str() }
        });
        id.is_some() && ids.into_iter().any(|made| made == id)
    }

    pub fn effects(&self) -> usize {
        self.happened().values().map(|happened| happened.effects).sum()
    }

    /// The requests of one case as they arrived.
    pub fn received(&self, case: &str) -> Vec<Value> {
        let is = |line: &Value| line["at"] == "received" && line["case"].as_str().unwrap_or_default() == case;
        self.log().into_iter().filter(is).collect()
    }
}

/// A header of a request in the log.
pub fn header<'a>(received: &'a Value, name: &str) -> Option<&'a str> {
    let mut headers = received["headers"].as_array().into_iter().flatten();
    let found = headers.find(|pair| pair[0].as_str().is_some_and(|known| known.eq_ignore_ascii_case(name)));
    found.and_then(|pair| pair[1].as_str())
}
