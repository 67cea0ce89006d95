//! A model of our own behind `semel serve`.

use crate::home::Home;
use crate::serve::served::Served;
use semel_testkit::http::{FakeModel, FakeModelApi, RawClient, Response};

pub use semel_testkit::http::fake_model::{request, streamed};

use serde_json::Value;

pub struct Stage {
    pub home: Home,
    pub model: FakeModel,
    pub served: Served,
}

impl Stage {
    pub fn new() -> Stage {
        Stage::with("")
    }

    /// With further lines of policy.
    pub fn with(policy: &str) -> Stage {
        let (home, model) = (Home::new(), FakeModel::start());
        let served = Served::start(&home, &text(&model, policy));
        Stage { home, model, served }
    }

    /// With a place at which semel fails.
    pub fn failing_at(point: &str) -> Stage {
        let (home, model) = (Home::new(), FakeModel::start());
        let served = Served::start_with(&home, &text(&model, ""), &[("SEMEL_FAILPOINTS", point)]);
        Stage { home, model, served }
    }

    /// With a collector of spans.
    pub fn told_to(collector: &str) -> Stage {
        let (home, model) = (Home::new(), FakeModel::start());
        let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", collector)];
        let served = Served::start_with(&home, &text(&model, ""), &variables);
        Stage { home, model, served }
    }

    /// Another process on the same ledger.
    pub fn another(&self, policy: &str) -> Served {
        Served::start(&self.home, &text(&self.model, policy))
    }

    pub fn ask(&self, api: FakeModelApi, body: &Value) -> RawClient {
        ask(&self.served, api, "", body)
    }

    pub fn answer(&self, api: FakeModelApi, body: &Value) -> Response {
        self.ask(api, body).answer()
    }

    /// How many effects the ledger holds in this state.
    pub fn count(&self, state: &str) -> usize {
        let listed = self.home.json(["ledger", "list", "--state", state]);
        listed["items"].as_array().map_or(0, Vec::len)
    }
}

pub fn ask(served: &Served, api: FakeModelApi, headers: &str, body: &Value) -> RawClient {
    let first = format!("POST {} HTTP/1.1", api.path());
    let headers = format!("Authorization: Bearer sk-test\r\nContent-Type: application/json\r\n{headers}");
    served.ask_raw(&first, &headers, &body.to_string())
}

fn text(model: &FakeModel, policy: &str) -> String {
    let url = model.url();
    format!(
        "[serve]\nrequire_token = false\n\
         [upstream.openai]\nurl = \"{url}\"\nspeaks = \"openai\"\n\
         [upstream.anthropic]\nurl = \"{url}\"\nspeaks = \"anthropic\"\n{policy}"
    )
}
