//! Ways in which an exchange with an API goes wrong.

use serde_json::{Value, json};

/// What whoever sent the request can know after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaves {
    /// A whole answer came.
    Answer,
    /// A whole answer came, and it is not true.
    Lie,
    /// It was certainly not done.
    Refusal,
    /// Nobody knows.
    Doubt,
}

#[derive(Debug)]
pub struct Fault {
    pub name: &'static str,
    pub plan: Value,
    pub leaves: Leaves,
    /// How often this one exchange changes the world.
    pub effects: usize,
    /// An API that honours keys keeps this error under the key, and gives it again.
    pub kept: bool,
}

/// An HTTP/2 connection that ends: an empty SETTINGS frame, and GOAWAY with the last stream 0 and no error.
const GOAWAY: &str = "\0\0\0\u{4}\0\0\0\0\0\0\0\u{8}\u{7}\0\0\0\0\0\0\0\0\0\0\0\0\0";

/// All of them, each met once by the first request that comes.
pub fn all() -> Vec<Fault> {
    use Leaves::{Answer, Doubt, Lie, Refusal};
    let fault = |name, leaves, effects, plan| Fault { name, plan, leaves, effects, kept: false };
    let kept = |name, plan| Fault { name, plan, leaves: Doubt, effects: 1, kept: true };
    vec![
        fault("reply lost after commit", Doubt, 1, json!({"cut_response": 0})),
        fault("reply lost by a reset", Doubt, 1, json!({"cut_response": 0, "how": "reset"})),
        fault("request reset at its first byte", Doubt, 0, json!({"cut_request": 0})),
        fault("request reset after one byte", Doubt, 0, json!({"cut_request": 1})),
        fault("request reset in the middle", Doubt, 0, json!({"cut_request": 150})),
        fault("request reset before its last byte", Doubt, 0, json!({"cut_request": -1})),
        fault("request reset after its last byte", Doubt, 1, json!({"cut_request": 1_000_000})),
        fault("response cut after one byte", Doubt, 1, json!({"cut_response": 1})),
        fault("response cut in its head", Doubt, 1, json!({"cut_response": 40})),
        fault("response cut in its body", Doubt, 1, json!({"cut_response": -20})),
        fault("response cut before its last byte", Doubt, 1, json!({"cut_response": -1})),
        fault("response reset before its last byte", Doubt, 1, json!({"cut_response": -1, "how": "reset"})),
        fault("last chunk cut", Doubt, 1, json!({"framing": "chunked", "cut_response": -3})),
        fault("black hole", Doubt, 1, json!({"hold": "never"})),
        kept("500 after commit", json!({"status": 500})),
        kept("502 after commit", json!({"status": 502})),
        kept("503 after commit", json!({"status": 503})),
        fault("500 instead of it", Doubt, 0, json!({"status": 500, "effect": "never"})),
        fault("502 instead of it", Doubt, 0, json!({"status": 502, "effect": "never"})),
        fault("503 instead of it", Doubt, 0, json!({"status": 503, "effect": "never"})),
        fault("504 instead of it", Doubt, 0, json!({"status": 504, "effect": "never"})),
        fault("429 instead of it", Refusal, 0, json!({"status": 429, "effect": "never"})),
        fault("late commit", Doubt, 1, json!({"effect": {"late_ms": 700}})),
        fault("late commit after a reset", Doubt, 1, json!({"effect": {"late_ms": 700}, "how": "reset"})),
        fault("false success", Lie, 0, json!({"effect": "never"})),
        fault("slow answer", Answer, 1, json!({"delay_ms": 700})),
        fault("interim answers first", Answer, 1, json!({"interim": [100, 103]})),
        fault("announced end of the connection", Answer, 1, json!({"close": "announced"})),
        fault("silent end of the connection", Answer, 1, json!({"close": "silent"})),
        fault("answer without a length", Answer, 1, json!({"framing": "close"})),
        fault("GOAWAY instead of an answer", Doubt, 1, json!({"raw": GOAWAY})),
        fault("nonsense instead of an answer", Doubt, 1, json!({"raw": "good morning\r\n\r\n"})),
        kept("302 after commit", json!({"redirect": 302})),
        kept("303 after commit", json!({"redirect": 303})),
        fault("307 instead of it", Refusal, 0, json!({"redirect": 307, "effect": "never"})),
        fault("308 instead of it", Refusal, 0, json!({"redirect": 308, "effect": "never"})),
    ]
}

/// The same for answers that come as streams of about a dozen events.
pub fn of_streams() -> Vec<Fault> {
    use Leaves::{Answer, Doubt, Refusal};
    let fault = |name, leaves, effects, plan| Fault { name, plan, leaves, effects, kept: false };
    vec![
        fault("reply lost after commit", Doubt, 1, json!({"cut_response": 0})),
        fault("request reset in the middle", Doubt, 0, json!({"cut_request": 150})),
        fault("response cut after one byte", Doubt, 1, json!({"cut_response": 1})),
        fault("response cut in the middle", Doubt, 1, json!({"cut_response": 700})),
        fault("drop at half the stream", Doubt, 1, json!({"stream": {"stop_after": 5}})),
        fault("reset at half the stream", Doubt, 1, json!({"stream": {"stop_after": 5}, "how": "reset"})),
        fault("good end at half the stream", Doubt, 1, json!({"stream": {"stop_after": 5}, "how": "end"})),
        fault("drop before the first event", Doubt, 1, json!({"stream": {"stop_after": 0}})),
        fault("error event at half the stream", Doubt, 1, json!({"stream": {"error_after": 5}})),
        fault("silence at half the stream", Doubt, 1, json!({"hold": "never", "stream": {"hold_after": 5}})),
        fault("black hole", Doubt, 1, json!({"hold": "never"})),
        fault("slow stream", Answer, 1, json!({"stream": {"pause_ms": 60}})),
        fault("stream without chunks", Answer, 1, json!({"framing": "close"})),
        fault("500 after commit", Doubt, 1, json!({"status": 500})),
        fault("503 instead of it", Doubt, 0, json!({"status": 503, "effect": "never"})),
        fault("429 instead of it", Refusal, 0, json!({"status": 429, "effect": "never"})),
        fault("late commit", Doubt, 1, json!({"effect": {"late_ms": 700}})),
        fault("GOAWAY instead of an answer", Doubt, 1, json!({"raw": GOAWAY})),
        fault("307 instead of it", Refusal, 0, json!({"redirect": 307, "effect": "never"})),
    ]
}

/// What the world is told, each fault for the case of its name.
pub fn plan(faults: &[Fault]) -> Value {
    let told = faults.iter().map(|fault| {
        let mut plan = fault.plan.clone();
        plan["case"] = fault.name.into();
        plan
    });
    json!({"next": told.collect::<Vec<_>>()})
}
