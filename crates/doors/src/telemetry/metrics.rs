//! Counts, times and gauges in the form that Prometheus reads. Labels come from closed sets: no name of a tool, a run
//! or a tenant is ever one.

use crate::http::server::ServerLoad;
use crate::services::Services;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use semel_core::retry_origin::RetryOrigin;
use semel_gate::counts::{Counter, Counts, DoorKind};
use semel_ledger::counts::Tally;
use semel_ledger::histogram::{BUCKETS_US, HistogramSnapshot};
use std::fmt;
use std::sync::Arc;

/// The figures of one moment.
#[derive(Debug)]
struct MetricsSnapshot {
    counts: Arc<Counts>,
    ledger: Option<Totals>,
    commits: HistogramSnapshot,
    in_flight: usize,
    in_doubt: Option<u64>,
    connections: usize,
    requests: usize,
}

/// The ledger's figures, which are of all processes.
#[derive(Debug, Default)]
pub struct LedgerMetrics {
    /// It takes durable writes now.
    pub ready: bool,
    pub in_doubt: Option<u64>,
    pub totals: Option<Totals>,
}

/// Counts of all processes and tenants since the ledger was founded, by door.
#[derive(Debug)]
pub struct Totals(pub [Tally; DoorKind::ALL.len()]);

impl Totals {
    fn of(&self, door: DoorKind, counter: Counter) -> u64 {
        self.0[door as usize].get(counter.word()).copied().unwrap_or_default()
    }
}

/// Whether the ledger works, which is told also where it does not.
#[derive(Debug)]
struct LedgerHealth {
    ready: bool,
    engine: Option<&'static str>,
}

impl Collector for LedgerHealth {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let about = "Whether the ledger takes durable writes";
        gauge(&mut encoder, "semel_ledger_ready", about, u64::from(self.ready))?;
        let Some(engine) = self.engine else { return Ok(()) };
        let about = "The engine of the ledger";
        let mut family = encoder.encode_descriptor("semel_ledger_engine", about, None, MetricType::Gauge)?;
        family.encode_family(&[("engine", engine)])?.encode_gauge(&1i64)
    }
}

/// The whole text. Without a ledger there is nothing to count.
pub fn text(services: &Services, load: &ServerLoad, ledger: LedgerMetrics) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    let engine = services.gate.as_ref().ok().map(|gate| gate.ledger.store().engine());
    registry.register_collector(Box::new(LedgerHealth { ready: ledger.ready, engine }));
    if let Ok(gate) = &services.gate {
        registry.register_collector(Box::new(MetricsSnapshot {
            counts: Arc::clone(&gate.counts),
            ledger: ledger.totals,
            commits: gate.ledger.store().commit_times(),
            in_flight: services.in_flight.count(),
            in_doubt: ledger.in_doubt,
            connections: load.connections(),
            requests: load.requests(),
        }));
    }
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

/// One value with its labels.
type Sample = (Vec<(&'static str, &'static str)>, u64);

/// The same families, of one process or of all.
struct Families<'a> {
    prefix: &'static str,
    whose: &'static str,
    count: &'a dyn Fn(DoorKind, Counter) -> u64,
}

impl Families<'_> {
    fn by_door(&self, label: &'static str, counters: &[(Counter, &'static str)]) -> Vec<Sample> {
        let of = |door: DoorKind| {
            let samples = counters.iter().map(move |(counter, word)| {
                let labels = vec![("door", door.word()), (label, *word)];
                (labels, (self.count)(door, *counter))
            });
            samples.collect::<Vec<_>>()
        };
        DoorKind::ALL.into_iter().flat_map(of).collect()
    }

    fn each_door(&self, counter: Counter) -> Vec<Sample> {
        DoorKind::ALL
            .into_iter()
            .map(|door| (vec![("door", door.word())], (self.count)(door, counter)))
            .collect()
    }

    fn of_models(&self, counters: &[(Counter, &'static str)]) -> Vec<Sample> {
        let sample = |(counter, kind): &(Counter, &'static str)| {
            (vec![("kind", *kind)], (self.count)(DoorKind::Llm, *counter))
        };
        counters.iter().map(sample).collect()
    }

    fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let requests = self.by_door(
            "outcome",
            &[
                (Counter::Ran, "ran"),
                (Counter::Replayed, "replayed"),
                (Counter::Joined, "joined"),
                (Counter::Held, "held"),
                (Counter::Refused, "refused"),
                (Counter::PassedThrough, "passed_through"),
            ],
        );
        let effects = self.by_door(
            "state",
            &[
                (Counter::Applied, "applied"),
                (Counter::NotApplied, "not_applied"),
                (Counter::InDoubt, "in_doubt"),
            ],
        );
        let repeats = self.by_door(
            "layer",
            &[
                (Counter::Transport, RetryOrigin::Transport.word()),
                (Counter::Sdk, RetryOrigin::Sdk.word()),
                (Counter::Agent, RetryOrigin::Agent.word()),
                (Counter::Process, RetryOrigin::Process.word()),
            ],
        );
        let tokens = self.of_models(&[
            (Counter::InputTokens, "input"),
            (Counter::OutputTokens, "output"),
            (Counter::SavedInputTokens, "saved_input"),
            (Counter::SavedOutputTokens, "saved_output"),
        ]);
        let cost = self.of_models(&[(Counter::Cost, "spent"), (Counter::SavedCost, "saved")]);
        for (name, about, samples) in [
            ("requests", "Calls that came, by what they got", requests),
            ("attempts", "Attempts sent upstream", self.each_door(Counter::Sent)),
            ("effects", "Attempts settled or lapsed, by what is known of their effect", effects),
            ("repeats", "Repeated calls, by who repeated", repeats),
            ("duplicates_detected", "Effects that happened twice", self.each_door(Counter::Duplicates)),
            ("tokens", "Tokens of model calls, used and saved", tokens),
            ("cost_nanos", "Billionths of the price table's currency", cost),
        ] {
            let Families { prefix, whose, .. } = self;
            counter(encoder, &format!("{prefix}_{name}"), &format!("{about}{whose}"), &samples)?;
        }
        Ok(())
    }
}

impl Collector for MetricsSnapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let count = |door, counter| self.counts.total(door, counter);
        Families { prefix: "semel", whose: "", count: &count }.encode(&mut encoder)?;
        if let Some(totals) = &self.ledger {
            let count = |door, counter| totals.of(door, counter);
            let whose = ", by all processes of the ledger";
            Families { prefix: "semel_ledger", whose, count: &count }.encode(&mut encoder)?;
        }
        gauge(
            &mut encoder,
            "semel_calls_in_flight",
            "Calls under way in this process",
            self.in_flight as u64,
        )?;
        if let Some(in_doubt) = self.in_doubt {
            let about = "Effects of this ledger in doubt that need a decision";
            gauge(&mut encoder, "semel_effects_in_doubt", about, in_doubt)?;
        }
        gauge(&mut encoder, "semel_connections_open", "Open connections", self.connections as u64)?;
        gauge(
            &mut encoder,
            "semel_requests_open",
            "Requests under way, streams included",
            self.requests as u64,
        )?;
        times(&mut encoder, "semel_claim_seconds", "Taking a claim, durably", &self.counts.claims.counted())?;
        let settlements = self.counts.settlements.counted();
        times(&mut encoder, "semel_settle_seconds", "Recording an answer, durably", &settlements)?;
        times(&mut encoder, "semel_ledger_commit_seconds", "One durable commit of the ledger", &self.commits)
    }
}

fn counter(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, samples: &[Sample]) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labels, value) in samples {
        family.encode_family(labels)?.encode_counter::<NoLabelSet, _, u64>(value, None)?;
    }
    Ok(())
}

fn gauge(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    let value = i64::try_from(value).unwrap_or(i64::MAX);
    encoder.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&value)
}

fn times(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    counted: &HistogramSnapshot,
) -> fmt::Result {
    let ends = BUCKETS_US.iter().map(|us| *us as f64 / 1e6).chain([f64::INFINITY]);
    let buckets: Vec<(f64, u64)> = ends.zip(counted.buckets.iter().copied()).collect();
    let sum = counted.sum_us as f64 / 1e6;
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
    family.encode_histogram::<NoLabelSet>(sum, counted.count(), &buckets, None)
}
