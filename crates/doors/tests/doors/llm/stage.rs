//! The doors of models before a model of our own.

use crate::house::{Home, House};
use semel_testkit::http::{FakeModel, FakeModelApi, RawClient, Response};
use semel_testkit::wait_until;
use serde_json::Value;

pub use semel_testkit::http::fake_model::{request, streamed};

pub struct Stage {
    pub home: Home,
    pub model: FakeModel,
    pub house: House,
}

impl Stage {
    pub fn new() -> Stage {
        Stage::with("")
    }

    /// With further lines of policy.
    pub fn with(policy: &str) -> Stage {
        let (home, model) = (Home::new(), FakeModel::start());
        let house = House::start(&home, &text(&model, policy));
        Stage { home, model, house }
    }

    /// Another server on the same ledger.
    pub fn another(&self, policy: &str) -> House {
        House::start(&self.home, &text(&self.model, policy))
    }

    /// Ends semel, which writes down what it counted, and reads that.
    pub fn stats(&mut self) -> Value {
        self.house.stop();
        self.house = self.another("");
        self.house.operate("GET", "/stats", None).json()
    }

    pub fn ask(&self, api: FakeModelApi, body: &Value) -> RawClient {
        ask(&self.house, api, "", body)
    }

    pub fn answer(&self, api: FakeModelApi, body: &Value) -> Response {
        self.ask(api, body).answer()
    }

    pub fn answer_with(&self, api: FakeModelApi, headers: &str, body: &Value) -> Response {
        ask(&self.house, api, headers, body).answer()
    }

    /// How many effects the ledger holds in this state.
    pub fn count(&self, state: &str) -> usize {
        self.house.effects(&format!("?state={state}")).len()
    }

    pub fn cancel(&self, run: &str) {
        let cancelled = self.house.rule(&format!("/runs/{run}/cancel"), &serde_json::json!({}));
        assert_eq!(cancelled.status, 200, "{cancelled:?}");
    }
}

pub fn ask(house: &House, api: FakeModelApi, headers: &str, body: &Value) -> RawClient {
    let headers = format!("Authorization: Bearer sk-test\r\nContent-Type: application/json\r\n{headers}");
    house.ask(&format!("POST {} HTTP/1.1", api.path()), &headers, &body.to_string())
}

fn text(model: &FakeModel, policy: &str) -> String {
    let url = model.url();
    format!(
        "[serve]\nrequire_token = false\n\
         [upstream.openai]\nurl = \"{url}\"\nspeaks = \"openai\"\n\
         [upstream.anthropic]\nurl = \"{url}\"\nspeaks = \"anthropic\"\n{policy}"
    )
}

pub fn wait(is_so: impl FnMut() -> bool) {
    wait_until("the next step can be taken", is_so);
}
