//! Spans on their way to a collector, as OTLP over HTTP with JSON. Nobody waits for them, and a collector that is away
//! costs spans and nothing else.

use super::post::post;
use super::span::TraceSpan;
use crate::http::client::Client;
use bytes::Bytes;
use http::HeaderMap;
use semel_gate::events::{GateEvent, Observer};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Spans that wait to be sent. More are dropped: memory is worth more than they are.
const WAITING_MAX: usize = 4_096;

/// Spans in one request.
const BATCH_MAX: usize = 512;

/// How long the first of a batch waits for others.
const GATHERS: Duration = Duration::from_secs(1);

/// A collector that restarts is away for seconds.
const TRIES: u32 = 3;
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// How long a program that ends waits for its last spans.
const FINISHES: Duration = Duration::from_secs(3);

/// Where spans go.
#[derive(Debug)]
pub struct Collector {
    pub client: Client,
    pub headers: HeaderMap,
    pub service: String,
}

/// Takes spans from the gate.
#[derive(Debug)]
pub struct Traces {
    spans: mpsc::Sender<TraceSpan>,
    counts: Arc<SpanCounts>,
}

/// Spans told, and spans that the collector has taken. The difference is lost once nothing is sent any more, for
/// whatever reason.
#[derive(Debug, Default)]
struct SpanCounts {
    told: AtomicU64,
    arrived: AtomicU64,
}

/// Takes them to the collector, in a task of its own.
#[derive(Debug)]
pub struct Exporting {
    end: oneshot::Sender<()>,
    task: JoinHandle<()>,
    counts: Arc<SpanCounts>,
}

/// The state of the task.
struct Exporter {
    waiting: mpsc::Receiver<TraceSpan>,
    collector: Collector,
    counts: Arc<SpanCounts>,
}

impl Traces {
    /// Within a runtime.
    pub fn start(collector: Collector) -> (Arc<Traces>, Exporting) {
        let (spans, waiting) = mpsc::channel(WAITING_MAX);
        let (end, ended) = oneshot::channel();
        let counts = Arc::<SpanCounts>::default();
        let exporter = Exporter { waiting, collector, counts: Arc::clone(&counts) };
        let task = tokio::spawn(exporter.export(ended));
        (Arc::new(Traces { spans, counts: Arc::clone(&counts) }), Exporting { end, task, counts })
    }
}

impl Exporting {
    /// Sends what is left, before a program ends. Returns how many spans never reached the collector.
    pub async fn finish(self) -> u64 {
        let _gone = self.end.send(());
        let _slow = tokio::time::timeout(FINISHES, self.task).await;
        let SpanCounts { told, arrived } = &*self.counts;
        told.load(Ordering::Relaxed).saturating_sub(arrived.load(Ordering::Relaxed))
    }
}

impl Exporter {
    async fn export(mut self, mut ended: oneshot::Receiver<()>) {
        let mut batch = Vec::new();
        loop {
            let first = tokio::select! {
                span = self.waiting.recv() => span,
                _ = &mut ended => None,
            };
            let Some(first) = first else { break };
            batch.push(first);
            let gathered = async {
                while batch.len() < BATCH_MAX
                    && let Some(span) = self.waiting.recv().await
                {
                    batch.push(span);
                }
            };
            tokio::select! {
                () = gathered => {}
                () = tokio::time::sleep(GATHERS) => {}
                _ = &mut ended => break,
            }
            self.send(&std::mem::take(&mut batch)).await;
        }
        while let Ok(span) = self.waiting.try_recv() {
            batch.push(span);
        }
        for part in batch.chunks(BATCH_MAX) {
            self.send(part).await;
        }
    }

    async fn send(&self, batch: &[TraceSpan]) {
        let spans: Vec<_> = batch.iter().map(TraceSpan::json).collect();
        let resource = json!({"attributes": [
            {"key": "service.name", "value": {"stringValue": self.collector.service}},
            {"key": "service.version", "value": {"stringValue": env!("CARGO_PKG_VERSION")}},
        ]});
        let scope = json!({"name": "semel", "version": env!("CARGO_PKG_VERSION")});
        let scoped = json!([{"scope": scope, "spans": spans}]);
        let document = json!({"resourceSpans": [{"resource": resource, "scopeSpans": scoped}]});
        let body = Bytes::from(document.to_string());
        for attempt in 1..=TRIES {
            match post(&self.collector.client, &self.collector.headers, body.clone()).await {
                Ok(status) if status.is_success() => {
                    self.counts.arrived.fetch_add(batch.len() as u64, Ordering::Relaxed);
                    return;
                }
                // It has them and does not want them.
                Ok(status) if !matches!(status.as_u16(), 429 | 502 | 503 | 504) => return,
                // A span that comes twice is the same span.
                _ if attempt < TRIES => tokio::time::sleep(TRY_AGAIN_AFTER * attempt).await,
                _ => {}
            }
        }
    }
}

impl Observer for Traces {
    fn observe(&self, event: &GateEvent<'_>) {
        let span = match event {
            GateEvent::Settled(settling) => TraceSpan::of_attempt(settling),
            GateEvent::Answered(answered) => TraceSpan::of_duplicate(answered),
            _ => None,
        };
        if let Some(span) = span {
            self.counts.told.fetch_add(1, Ordering::Relaxed);
            let _full = self.spans.try_send(span);
        }
    }
}
