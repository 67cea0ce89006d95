//! Spans, named as OpenTelemetry's conventions for generative AI name them.
//!
//! The span of an attempt has an id that follows from its record, in the caller's trace or else in one that has the
//! effect's own id. So whoever answers a repeat, in whichever process and however late, can point to it.

use semel_core::answer::OutcomeWord;
use semel_core::call_metadata::CallMetadata;
use semel_core::digest::Digest;
use semel_core::effect::{Attempt, Effect, State};
use semel_core::outcome::Outcome;
use semel_core::policy::prices::TokenUsage;
use semel_core::time::At;
use semel_gate::counts::DoorKind;
use semel_gate::events::{AnswerEvent, SettlementEvent};
use semel_ledger::entropy::{Entropy, OsEntropy};
use serde_json::{Value, json};

#[derive(Debug, Clone, PartialEq)]
pub struct TraceSpan {
    trace: u128,
    id: u64,
    parent: Option<u64>,
    name: String,
    kind: SpanKind,
    start: At,
    end: At,
    attributes: Vec<(&'static str, Value)>,
    link: Option<(u128, u64)>,
    error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SpanKind {
    Internal = 1,
    Client = 3,
}

impl TraceSpan {
    /// One attempt, from its claim to its settlement.
    pub fn of_attempt(settling: &SettlementEvent<'_>) -> Option<TraceSpan> {
        let SettlementEvent { effect, attempt, outcome, at, metadata, .. } = settling;
        let parent = metadata.and_then(|metadata| metadata.trace);
        if parent.is_some_and(|parent| !parent.sampled) {
            return None;
        }
        let error = match outcome {
            Outcome::Applied { .. } => None,
            Outcome::NotApplied { .. } => Some("not_applied".to_owned()),
            Outcome::InDoubt { .. } => Some("in_doubt".to_owned()),
        };
        let (trace, id) = place(effect, attempt);
        let mut span = TraceSpan::about(&effect.facts.action, *metadata, attempt.claimed_at, *at);
        span.attributes.extend(facts(effect));
        span.attributes.push(("semel.attempt", json!(attempt.number.0)));
        span.attributes.push(("semel.outcome", json!("ran")));
        span.attributes.push(("semel.state", json!(semel_ledger::journal::state_word(&effect.state))));
        span.attributes.extend(attempt.call_id.as_ref().map(|id| ("gen_ai.tool.call.id", json!(id))));
        span.attributes.extend(settling.used.iter().flat_map(|used| usage(*used)));
        if settling.duplicate {
            span.attributes.push(("semel.duplicate_detected", json!(true)));
        }
        Some(TraceSpan { trace, id, parent: parent.map(|parent| parent.span), error, ..span })
    }

    /// A call that got its answer without anything being sent for it, or before its own attempt had one.
    pub fn of_duplicate(answered: &AnswerEvent<'_>) -> Option<TraceSpan> {
        let AnswerEvent { intent, answer, came, at, repeated_by, looked_again, original } = answered;
        let collapsed = match answer.outcome {
            OutcomeWord::Replayed | OutcomeWord::Joined | OutcomeWord::Held => true,
            // A repeat that came to nothing, as when the budget is spent, has what it repeats to point to.
            OutcomeWord::Refused => repeated_by.is_some() && original.is_some(),
            OutcomeWord::Ran | OutcomeWord::DryRun => false,
        };
        let parent = intent.metadata.trace;
        if !(collapsed || *looked_again) || parent.is_some_and(|parent| !parent.sampled) {
            return None;
        }
        let mut span = TraceSpan::about(&intent.action, Some(&intent.metadata), *came, *at);
        span.attributes.extend(original.iter().flat_map(|(effect, _)| facts(effect)));
        let outcome = serde_json::to_value(answer.outcome).unwrap_or_default();
        span.attributes.push(("semel.outcome", outcome));
        span.attributes.extend(repeated_by.map(|origin| ("semel.repeated_by", json!(origin.word()))));
        span.attributes.extend(intent.call_id.as_ref().map(|id| ("gen_ai.tool.call.id", json!(id))));
        Some(TraceSpan {
            trace: parent.map_or_else(|| OsEntropy.bits(), |parent| parent.trace),
            id: (OsEntropy.bits() as u64).max(1),
            parent: parent.map(|parent| parent.span),
            link: original.map(|(effect, attempt)| place(effect, attempt)),
            error: answer.trouble.as_ref().map(|trouble| trouble.code.word().to_owned()),
            ..span
        })
    }

    fn about(action: &str, metadata: Option<&CallMetadata>, start: At, end: At) -> TraceSpan {
        let (name, kind, attributes) = match DoorKind::of(action) {
            DoorKind::Llm => {
                let provider = action.trim_start_matches("llm:").split('/').next().unwrap_or_default();
                let model = metadata.and_then(|metadata| metadata.model.as_deref());
                let name = model.map_or_else(|| "chat".to_owned(), |model| format!("chat {model}"));
                let mut attributes =
                    vec![("gen_ai.operation.name", json!("chat")), ("gen_ai.provider.name", json!(provider))];
                attributes.extend(model.map(|model| ("gen_ai.request.model", json!(model))));
                (name, SpanKind::Client, attributes)
            }
            _ => {
                let tool = tool(action);
                let attributes = vec![
                    ("gen_ai.operation.name", json!("execute_tool")),
                    ("gen_ai.tool.name", json!(tool)),
                    ("gen_ai.tool.type", json!("function")),
                ];
                (format!("execute_tool {tool}"), SpanKind::Internal, attributes)
            }
        };
        let end = end.max(start);
        TraceSpan {
            trace: 0,
            id: 0,
            parent: None,
            name,
            kind,
            start,
            end,
            attributes,
            link: None,
            error: None,
        }
    }

    /// In the form of OTLP over HTTP.
    pub fn json(&self) -> Value {
        let nanos = |at: At| (u128::from(at.0) * 1_000).to_string();
        let mut attributes: Vec<Value> =
            self.attributes.iter().map(|(key, value)| json!({"key": key, "value": wrapped(value)})).collect();
        if let Some(error) = &self.error {
            attributes.push(json!({"key": "error.type", "value": {"stringValue": error}}));
        }
        let links: Vec<Value> = (self.link.iter())
            .map(|(trace, id)| json!({"traceId": format!("{trace:032x}"), "spanId": format!("{id:016x}")}))
            .collect();
        json!({
            "traceId": format!("{:032x}", self.trace),
            "spanId": format!("{:016x}", self.id),
            "parentSpanId": self.parent.map_or_else(String::new, |parent| format!("{parent:016x}")),
            "name": self.name,
            "kind": self.kind as u8,
            "startTimeUnixNano": nanos(self.start),
            "endTimeUnixNano": nanos(self.end),
            "attributes": attributes,
            "links": links,
            "status": {"code": if self.error.is_some() { 2 } else { 1 }},
        })
    }
}

/// Where an attempt's span stands.
fn place(effect: &Effect, attempt: &Attempt) -> (u128, u64) {
    let id =
        Digest::of(&[b"span", &effect.id.0.to_be_bytes(), &attempt.nonce.0.to_be_bytes()]).short().max(1);
    (attempt.trace.unwrap_or(effect.id.0), id)
}

fn facts(effect: &Effect) -> Vec<(&'static str, Value)> {
    let facts = &effect.facts;
    let mut attributes = vec![
        ("semel.effect.id", json!(effect.id)),
        ("semel.action", json!(facts.action)),
        ("semel.class", json!(facts.class)),
        ("semel.tier", json!(facts.tier)),
        // Arguments are nobody's but the caller's; whoever audits compares this instead.
        ("semel.intent.digest", json!(facts.digest.to_string())),
    ];
    attributes.extend(facts.run.as_ref().map(|run| ("semel.run", json!(run.id))));
    if let State::Applied(applied) = &effect.state {
        attributes.push(("semel.evidence", json!(applied.evidence)));
    }
    attributes
}

/// The tokens of a generation. A replay of it has used none.
fn usage(tokens: TokenUsage) -> Vec<(&'static str, Value)> {
    let TokenUsage { input, cache_read, cache_write, output } = tokens;
    let mut attributes = vec![("gen_ai.usage.output_tokens", json!(output))];
    attributes.extend(input.map(|input| ("gen_ai.usage.input_tokens", json!(input))));
    let cached = [
        ("gen_ai.usage.cache_read.input_tokens", cache_read),
        ("gen_ai.usage.cache_creation.input_tokens", cache_write),
    ];
    let cached = cached.into_iter().filter(|(_, tokens)| *tokens > 0);
    attributes.extend(cached.map(|(name, tokens)| (name, json!(tokens))));
    attributes
}

/// `mcp:github/create_issue` is the tool `create_issue`, `http:POST api.stripe.com/v1/charges` is itself.
fn tool(action: &str) -> &str {
    let name = action.split_once(':').map_or(action, |(_, name)| name);
    match DoorKind::of(action) {
        DoorKind::Mcp => name.split_once('/').map_or(name, |(_, tool)| tool),
        _ => name,
    }
}

fn wrapped(value: &Value) -> Value {
    match value {
        Value::Bool(value) => json!({"boolValue": value}),
        Value::Number(number) => json!({"intValue": number.to_string()}),
        Value::String(text) => json!({"stringValue": text}),
        other => json!({"stringValue": other.to_string()}),
    }
}
