//! The official SDKs, driven by the scripts of `crates/testkit/peers`.

use crate::home::{Home, Ran};
use crate::mcp::peers::{installed, script};
use serde_json::{Value, json};
use std::fmt;
use std::process::Command;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    OpenAi,
    Anthropic,
    Stripe,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    Python,
    Node,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sdk {
    pub api: Api,
    pub language: Language,
}

pub const STRIPE_PYTHON: Sdk = Sdk { api: Api::Stripe, language: Language::Python };
pub const STRIPE_NODE: Sdk = Sdk { api: Api::Stripe, language: Language::Node };
pub const OPENAI_PYTHON: Sdk = Sdk { api: Api::OpenAi, language: Language::Python };
pub const OPENAI_NODE: Sdk = Sdk { api: Api::OpenAi, language: Language::Node };
pub const ANTHROPIC_PYTHON: Sdk = Sdk { api: Api::Anthropic, language: Language::Python };
pub const ANTHROPIC_NODE: Sdk = Sdk { api: Api::Anthropic, language: Language::Node };

impl fmt::Display for Sdk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} in {:?}", self.api, self.language)
    }
}

impl Api {
    /// What it is called in paths of `semel serve`.
    pub fn name(self) -> &'static str {
        match self {
            Api::OpenAi => "openai",
            Api::Anthropic => "anthropic",
            Api::Stripe => "stripe",
        }
    }

    /// What a user's base URL ends with.
    fn below(self) -> &'static str {
        if self == Api::OpenAi { "/v1" } else { "" }
    }

    /// Where this SDK is pointed to, behind semel at that address.
    pub fn guarded(self, semel: &str) -> String {
        format!("http://{semel}/p/{}{}", self.name(), self.below())
    }

    pub fn direct(self, world: &str) -> String {
        format!("http://{world}{}", self.below())
    }
}

/// Tries something with several SDKs at once: they wait more than they work.
pub fn with_each<const N: usize>(sdks: [Sdk; N], try_with: impl Fn(Sdk) + Sync) {
    std::thread::scope(|scope| {
        for sdk in sdks {
            let try_with = &try_with;
            scope.spawn(move || try_with(sdk));
        }
    });
}

/// What one step brought its caller.
#[derive(Debug, Clone)]
pub struct Brought(pub Value);

/// What the caller got, and each answer on the way to it.
impl fmt::Display for Brought {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut result = if self.ok() { self.value() } else { &self.0["error"] }.clone();
        result.as_object_mut().and_then(|result| result.remove("types"));
        write!(f, "{result} after")?;
        for attempt in self.attempts() {
            let said = |name: &str| attempt["headers"][name].as_str().unwrap_or("-");
            let failed = attempt["error"].as_str().unwrap_or_default();
            write!(
                f,
                " [{} {} {}{failed}]",
                attempt["status"],
                said("semel-outcome"),
                said("idempotent-replayed")
            )?;
        }
        Ok(())
    }
}

impl Brought {
    pub fn ok(&self) -> bool {
        self.0["ok"] == true
    }

    pub fn value(&self) -> &Value {
        &self.0["value"]
    }

    /// The id of the object or of the answer.
    pub fn id(&self) -> Option<&str> {
        self.0["value"]["id"].as_str()
    }

    /// Of the error that the caller saw.
    pub fn status(&self) -> Option<u64> {
        self.0["error"]["status"].as_u64()
    }

    pub fn attempts(&self) -> &[Value] {
        self.0["attempts"].as_array().map_or(&[], Vec::as_slice)
    }

    pub fn last(&self) -> &Value {
        self.attempts().last().unwrap_or(&Value::Null)
    }

    /// The digest of the last body, byte for byte.
    pub fn body(&self) -> &str {
        self.last()["body_sha256"].as_str().unwrap_or_default()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.last()["headers"][name].as_str()
    }
}

impl Sdk {
    /// Takes all steps at once, each with a client of its own.
    pub fn together(self, home: &Home, base: &str, steps: &[Value], more: &Value) -> Vec<Brought> {
        let together = self.drive(home, base, &json!([steps]), more)[0].take();
        brought(together)
    }

    /// Takes the steps one after the other.
    pub fn in_turn(self, home: &Home, base: &str, steps: &[Value], more: &Value) -> Vec<Brought> {
        brought(self.drive(home, base, &json!(steps), more))
    }

    /// The steps of each case one after the other, and all cases at once.
    pub fn cases(self, home: &Home, base: &str, cases: &[Vec<Value>], more: &Value) -> Vec<Vec<Brought>> {
        let steps: Vec<Value> = cases.iter().map(|steps| json!({"in_turn": steps})).collect();
        let mut together = self.drive(home, base, &json!([steps]), more)[0].take();
        let cases = together.as_array_mut().map(std::mem::take).unwrap_or_default();
        cases.into_iter().map(brought).collect()
    }

    fn drive(self, home: &Home, base: &str, steps: &Value, more: &Value) -> Value {
        let mut plan = json!({"base_url": base, "retries": 2, "timeout_s": 10, "steps": steps});
        for (name, value) in more.as_object().into_iter().flatten() {
            plan[name] = value.clone();
        }
        let apis = installed("apis");
        let (program, ending) = match self.language {
            Language::Python => (apis.join("python/bin/python"), "py"),
            Language::Node => (apis.join("node"), "mjs"),
        };
        let mut command = Command::new(program);
        home.furnish(&mut command).env("SEMEL_APIS", &apis);
        command.arg(script(&format!("{}_sdk.{ending}", self.api.name()))).arg(plan.to_string());
        let ran = Ran::of(command.output().expect("the driver starts"));
        assert_eq!(ran.code, Some(0), "{self}: {ran:?}");
        ran.json()
    }
}

fn brought(steps: Value) -> Vec<Brought> {
    match steps {
        Value::Array(steps) => steps.into_iter().map(Brought).collect(),
        other => panic!("what came of several steps is a list: {other}"),
    }
}
