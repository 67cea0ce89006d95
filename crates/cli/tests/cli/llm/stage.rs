//! A model of our own behind `semel serve`, and a client that shows every byte.

use super::model::{Api, Model};
use crate::home::Home;
use crate::serve::served::{Answer, Asked, Served};
use serde_json::{Value, json};

pub struct Stage {
    pub home: Home,
    pub model: Model,
    pub served: Served,
}

impl Stage {
    pub fn new() -> Stage {
        Stage::with("")
    }

    /// With further lines of policy.
    pub fn with(policy: &str) -> Stage {
        let (home, model) = (Home::new(), Model::start());
        let served = Served::start(&home, &text(&model, policy));
        Stage { home, model, served }
    }

    /// With a place at which semel fails.
    pub fn failing_at(point: &str) -> Stage {
        let (home, model) = (Home::new(), Model::start());
        let served = Served::start_with(&home, &text(&model, ""), &[("SEMEL_FAILPOINTS", point)]);
        Stage { home, model, served }
    }

    /// With a collector of spans.
    pub fn told_to(collector: &str) -> Stage {
        let (home, model) = (Home::new(), Model::start());
        let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", collector)];
        let served = Served::start_with(&home, &text(&model, ""), &variables);
        Stage { home, model, served }
    }

    /// Another process on the same ledger.
    pub fn another(&self, policy: &str) -> Served {
        Served::start(&self.home, &text(&self.model, policy))
    }

    pub fn ask(&self, api: Api, body: &Value) -> Asked {
        ask(&self.served, api, "", body)
    }

    pub fn answer(&self, api: Api, body: &Value) -> Answer {
        self.ask(api, body).answer()
    }

    pub fn answer_with(&self, api: Api, headers: &str, body: &Value) -> Answer {
        ask(&self.served, api, headers, body).answer()
    }

    /// How many effects the ledger holds in this state.
    pub fn count(&self, state: &str) -> usize {
        let listed = self.home.json(["ledger", "list", "--state", state]);
        listed["items"].as_array().map_or(0, Vec::len)
    }
}

pub fn ask(served: &Served, api: Api, headers: &str, body: &Value) -> Asked {
    let first = format!("POST {} HTTP/1.1", api.path());
    let headers = format!("Authorization: Bearer sk-test\r\nContent-Type: application/json\r\n{headers}");
    served.ask_raw(&first, &headers, &body.to_string())
}

fn text(model: &Model, policy: &str) -> String {
    let url = model.url();
    format!(
        "[serve]\nrequire_token = false\n\
         [upstream.openai]\nurl = \"{url}\"\nspeaks = \"openai\"\n\
         [upstream.anthropic]\nurl = \"{url}\"\nspeaks = \"anthropic\"\n{policy}"
    )
}

/// A request to a model that does what it is called.
pub fn request(model: &str) -> Value {
    json!({"model": model, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 100})
}

pub fn streamed(model: &str) -> Value {
    let mut request = request(model);
    request["stream"] = json!(true);
    request
}

/// Reads chunks of a stream until it has said this.
pub fn read_until(asked: &mut Asked, text: &str) -> String {
    let mut heard = String::new();
    while !heard.contains(text) {
        let chunk = asked.chunk();
        assert!(!chunk.is_empty(), "it ended before {text:?}: {heard}");
        heard.push_str(&chunk);
    }
    heard
}

/// Reads what comes until the connection ends in the middle.
pub fn broken(mut asked: Asked) -> String {
    asked.head();
    broken_rest(asked)
}

/// The same of one that has begun.
pub fn broken_rest(mut asked: Asked) -> String {
    let mut heard = String::new();
    while let Some(chunk) = asked.chunk_if_any() {
        assert!(!chunk.is_empty(), "a cut answer must not look whole: {heard}");
        heard.push_str(&chunk);
    }
    heard
}

/// Two generations of 9 tokens in and 5 out, and three answers that needed none: two of a step that is known, and one
/// that an SDK's retry joins.
pub fn five_of_which_two_are_generated(stage: &mut Stage) {
    for _ in 0..3 {
        assert_eq!(stage.answer_with(Api::Messages, "Semel-Step: one\r\n", &request("m")).status, 200);
    }
    let mut first = stage.ask(Api::Responses, &streamed("waits"));
    first.head();
    first.chunk();
    let mut retry = ask(&stage.served, Api::Responses, "x-stainless-retry-count: 1\r\n", &streamed("waits"));
    retry.head();
    stage.model.release();
    read_to_end(&mut first);
    read_to_end(&mut retry);
    wait(|| stage.count("in_flight") == 0);
}

/// The rest of a stream.
pub fn read_to_end(asked: &mut Asked) -> String {
    let mut heard = String::new();
    loop {
        let chunk = asked.chunk();
        if chunk.is_empty() {
            return heard;
        }
        heard.push_str(&chunk);
    }
}

pub fn wait(mut so: impl FnMut() -> bool) {
    for _ in 0..3_000 {
        if so() {
            return;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(10));
    }
    panic!("it did not come to pass");
}
