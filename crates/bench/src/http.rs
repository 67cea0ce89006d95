//! `semel serve` as a reverse proxy before an API that does nothing, beside nginx before the same.

use super::baseline::{Appended, two_flushes};
use super::load::LoadResult;
use super::measure::{self, Times};
use super::nginx::Nginx;
use super::report::{ReportLine, figure};
use super::served::{BenchServer, TOKEN};
use super::upstream::BenchUpstream;
use super::wire::{self, drive, request};
use super::{CALLERS, Effort};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::runtime::Runtime;
use xtask::project::{self, Result};

/// What a client posts: a hundred bytes of JSON.
const BODY: &str =
    r#"{"customer": "cus_000000000001", "amount": 4200, "currency": "eur", "description": "an order"}"#;

const KIND: &str = "Content-Type: application/json\r\n";

pub fn run(effort: Effort) -> Result<Vec<ReportLine>> {
    let stage = HttpStage::build()?;
    let alone = stage.turn(1, effort)?;
    let crowd = stage.turn(CALLERS, effort)?;
    let mut lines = Vec::new();
    for (turn, connections) in [(&alone, 1), (&crowd, CALLERS)] {
        let beside = |what: &str, ours: &Measured, theirs: &Measured| {
            let ratio = ours.load.per_second() / theirs.load.per_second();
            ReportLine::plain(
                format!("{what} / nginx, {connections} connections"),
                ratio,
                "",
                made_of(ours, theirs),
            )
        };
        // A durable write takes its time when nobody shares it; alone it is judged by that, below.
        let fresh = beside("fresh guarded POSTs", &turn.fresh, &turn.nginx_post);
        let passed = beside("GETs passed through", &turn.passed, &turn.nginx_get);
        let replayed = beside("replays", &turn.replayed, &turn.nginx_post);
        lines.extend(match connections {
            1 => [passed.at_least(0.85, None), fresh, replayed],
            _ => [passed.at_least(0.7, None), fresh.at_least(0.18, None), replayed.at_least(0.4, None)],
        });
    }
    lines.push(added(alone, &stage)?);
    Ok(lines)
}

/// Fresh calls and replays a second, over many connections.
pub fn rates(
    runtime: &Runtime,
    upstream: &BenchUpstream,
    semel: &BenchServer,
    series: &str,
    span: Duration,
) -> Result<(f64, f64)> {
    let before = upstream.count(runtime)?;
    let fresh = drive(runtime, semel.address, CALLERS, span, guarded(series, u64::MAX))?;
    let replayed = drive(runtime, semel.address, CALLERS, span, guarded(series, fresh.calls))?;
    let posted = upstream.count(runtime)? - before;
    expect(posted == fresh.calls, || format!("{posted} calls were made, not {}", fresh.calls))?;
    Ok((fresh.per_second(), replayed.per_second()))
}

/// Guarded requests with so many different keys.
fn guarded(series: &str, keys: u64) -> impl Fn(u64) -> Vec<u8> + Send + Sync + 'static {
    let headers = format!("{TOKEN}{KIND}Idempotency-Key: {series}-");
    move |n| request("POST", "/p/bench/items", &format!("{headers}{:012}\r\n", n % keys), BODY)
}

/// What a fresh call alone takes more than a call without any proxy, beside two flushes and what nginx adds.
fn added(mut turn: HttpTurn, stage: &HttpStage) -> Result<ReportLine> {
    let mut file = Appended::create(stage.directory.path())?;
    let mut flushes = Times::default();
    for _ in 0..400 {
        flushes.add(file.flush_one()?);
    }
    let direct = turn.direct.load.times.median();
    let (ours, theirs) =
        (turn.fresh.load.times.median() - direct, turn.nginx_post.load.times.median() - direct);
    let flushed = two_flushes(&mut flushes);
    let made_of = format!(
        "{} us added to {} us; nginx adds {} us, two flushes {} us",
        figure(ours),
        figure(direct),
        figure(theirs),
        figure(flushed)
    );
    let what = "fresh guarded POST alone: added p50 / (two flushes + what nginx adds)";
    Ok(ReportLine::plain(what, ours / (flushed + theirs), "", made_of).at_most(2.0, None))
}

fn made_of(ours: &Measured, theirs: &Measured) -> String {
    let one = |measured: &Measured| {
        let mut times = measured.load.times.clone();
        format!(
            "{}/s (p50 {} us, p99 {} us, CPU {} us)",
            figure(measured.load.per_second()),
            figure(times.median()),
            figure(times.micros(0.99)),
            figure(measured.cpu * 1e6 / measured.load.calls as f64)
        )
    };
    format!("{}; nginx {}", one(ours), one(theirs))
}

#[derive(Debug)]
pub struct HttpStage {
    pub runtime: Runtime,
    pub upstream: BenchUpstream,
    nginx: Nginx,
    pub semel: BenchServer,
    directory: tempfile::TempDir,
}

/// A load, and the processor time that the proxy took for it.
#[derive(Debug)]
struct Measured {
    load: LoadResult,
    cpu: f64,
}

#[derive(Debug)]
struct HttpTurn {
    direct: Measured,
    nginx_get: Measured,
    nginx_post: Measured,
    passed: Measured,
    fresh: Measured,
    replayed: Measured,
}

impl HttpStage {
    fn build() -> Result<HttpStage> {
        let upstream = BenchUpstream::start()?;
        let stage = HttpStage {
            runtime: wire::runtime()?,
            nginx: Nginx::before(upstream.address)?,
            semel: BenchServer::before(upstream.address, "")?,
            upstream,
            directory: tempfile::tempdir_in(project::scratch()?)?,
        };
        // Connections are made and pages are touched before anything counts.
        let warm = Effort { quick: true, large: false };
        stage.turn(CALLERS, warm)?;
        Ok(stage)
    }

    fn turn(&self, connections: usize, effort: Effort) -> Result<HttpTurn> {
        let span = effort.span();
        let series = format!("{:x}", measure::own_seconds().to_bits() ^ u64::from(std::process::id()));
        let get = |path: &'static str, headers: &'static str| move |_| request("GET", path, headers, "");
        let series = format!("{series}-{connections}");
        let theirs = || {
            let headers = format!("{KIND}Idempotency-Key: {series}-");
            move |n: u64| request("POST", "/items", &format!("{headers}{n:012}\r\n"), BODY)
        };
        let (nginx, semel) = (self.nginx.processes(), [self.semel.process()]);
        let direct = self.measure(self.upstream.address, connections, span, &[], theirs())?;
        let nginx_get = self.measure(self.nginx.address, connections, span, &nginx, get("/items/1", ""))?;
        let passed =
            self.measure(self.semel.address, connections, span, &semel, get("/p/bench/items/1", TOKEN))?;
        let nginx_post = self.measure(self.nginx.address, connections, span, &nginx, theirs())?;
        let before = self.upstream.count(&self.runtime)?;
        let fresh =
            self.measure(self.semel.address, connections, span, &semel, guarded(&series, u64::MAX))?;
        let posted = self.upstream.count(&self.runtime)? - before;
        expect(posted == fresh.load.calls, || {
            format!("{posted} of {} fresh calls were made", fresh.load.calls)
        })?;
        let known = fresh.load.calls;
        let replayed =
            self.measure(self.semel.address, connections, span, &semel, guarded(&series, known))?;
        let repeated = self.upstream.count(&self.runtime)? - before - posted;
        expect(repeated == 0, || format!("{repeated} replays were made again"))?;
        Ok(HttpTurn { direct, nginx_get, nginx_post, passed, fresh, replayed })
    }

    fn measure(
        &self,
        to: SocketAddr,
        connections: usize,
        span: Duration,
        processes: &[u32],
        request: impl Fn(u64) -> Vec<u8> + Send + Sync + 'static,
    ) -> Result<Measured> {
        let before = measure::seconds_of(processes);
        let load = drive(&self.runtime, to, connections, span, request)?;
        Ok(Measured { load, cpu: measure::seconds_of(processes) - before })
    }
}

fn expect(so: bool, otherwise: impl FnOnce() -> String) -> Result<()> {
    if so { Ok(()) } else { Err(otherwise().into()) }
}
