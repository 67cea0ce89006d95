//! `semel serve` before a model that answers at once: what it adds to the first token, how soon a twin gets what is
//! there, and what an open stream costs.

use super::load::LoadResult;
use super::measure::{self, Times};
use super::report::{ReportLine, figure};
use super::served::{BenchServer, TOKEN};
use super::upstream::{BenchUpstream, HELD, STREAM_HEAD, event, stream_end, whole};
use super::wire::{self, BenchConnection, drive, request};
use super::{CALLERS, Effort};
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use xtask::project::Result;

/// What the policy says of the upstream.
pub const SPEAKS: &str = "speaks = \"openai\"\n";

/// Requests for each figure of one connection.
const REQUESTS: usize = 400;

/// How many streams are to be open at once; fewer where the system allows fewer files.
const STREAMS: usize = 10_000;

/// Where the model is, without semel and behind it.
pub const DIRECT: &str = "/v1/chat/completions";
pub const GUARDED: &str = "/p/bench/v1/chat/completions";

const KIND: &str = "Content-Type: application/json\r\nAuthorization: Bearer sk-bench\r\n";

pub fn run(effort: Effort) -> Result<Vec<ReportLine>> {
    let runtime = wire::runtime()?;
    let upstream = BenchUpstream::start()?;
    let semel = BenchServer::before(upstream.address, SPEAKS)?;
    let mut lines = vec![throughput(&runtime, &upstream, &semel, effort)?];
    lines.push(first_token(&runtime, &upstream, &semel, effort)?);
    lines.extend(joined(&runtime, effort)?);
    lines.push(open_streams(&runtime)?);
    Ok(lines)
}

/// A prompt that was never sent before.
pub fn prompt(path: &str, n: u64, more: &str) -> Vec<u8> {
    let body = format!(
        r#"{{"model":"mock","messages":[{{"role":"user","content":"prompt {n:012} of this bench"}}]{more}}}"#
    );
    let token = if path == GUARDED { TOKEN } else { "" };
    request("POST", path, &format!("{token}{KIND}"), &body)
}

/// Whole answers by so many callers at once.
pub fn whole_answers(
    runtime: &Runtime,
    to: SocketAddr,
    path: &'static str,
    first: u64,
    span: Duration,
) -> Result<LoadResult> {
    drive(runtime, to, CALLERS, span, move |n| prompt(path, first + n, ""))
}

fn throughput(
    runtime: &Runtime,
    upstream: &BenchUpstream,
    semel: &BenchServer,
    effort: Effort,
) -> Result<ReportLine> {
    whole_answers(runtime, semel.address, GUARDED, 0, Duration::from_millis(300))?;
    let direct = whole_answers(runtime, upstream.address, DIRECT, 0, effort.span())?;
    let before = measure::seconds_of(&[semel.process()]);
    let mut ours = whole_answers(runtime, semel.address, GUARDED, 1 << 40, effort.span())?;
    let cpu = (measure::seconds_of(&[semel.process()]) - before) * 1e6 / ours.calls as f64;
    let made_of = format!(
        "{}/s (p50 {} us, p99 {} us, CPU {} us); direct {}/s",
        figure(ours.per_second()),
        figure(ours.times.median()),
        figure(ours.times.micros(0.99)),
        figure(cpu),
        figure(direct.per_second())
    );
    let ratio = ours.per_second() / direct.per_second();
    Ok(ReportLine::plain(format!("whole answers / direct, {CALLERS} connections"), ratio, "", made_of))
}

fn first_token(
    runtime: &Runtime,
    upstream: &BenchUpstream,
    semel: &BenchServer,
    effort: Effort,
) -> Result<ReportLine> {
    let (mut direct, mut ours) = (Times::default(), Times::default());
    runtime.block_on(async {
        let mut wires =
            [BenchConnection::to(upstream.address).await?, BenchConnection::to(semel.address).await?];
        for n in 0..effort.count(REQUESTS) as u64 {
            for (wire, (path, times)) in wires.iter_mut().zip([(DIRECT, &mut direct), (GUARDED, &mut ours)]) {
                let asked = prompt(path, (1 << 41) + n, ",\"stream\":true");
                let before = measure::now();
                wire.send(&asked).await?;
                wire.until(b"data: ").await?;
                times.add(before.elapsed());
                wire.until(b"0\r\n\r\n").await?;
            }
        }
        std::io::Result::Ok(())
    })?;
    let added = (ours.median() - direct.median()) / 1e3;
    let made_of = format!(
        "p50 {} us, p99 {} us; direct p50 {} us",
        figure(ours.median()),
        figure(ours.micros(0.99)),
        figure(direct.median())
    );
    Ok(ReportLine::plain("first token: added p50", added, " ms", made_of).at_most(0.3, 0.15))
}

/// Two callers of one prompt, and a model that speaks when it is told to.
fn joined(runtime: &Runtime, effort: Effort) -> Result<Vec<ReportLine>> {
    let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
    let semel = BenchServer::before(listener.local_addr()?, SPEAKS)?;
    let (mut live, mut late) = (Times::default(), Times::default());
    runtime.block_on(async {
        for n in 0..effort.count(REQUESTS) as u64 {
            let asked = prompt(GUARDED, n, ",\"stream\":true");
            let (mut one, mut two) =
                (BenchConnection::to(semel.address).await?, BenchConnection::to(semel.address).await?);
            one.send(&asked).await?;
            let mut model = begun(&listener).await?;
            one.until(b"\r\n\r\n").await?;
            two.send(&asked).await?;
            two.until(b"\r\n\r\n").await?;
            // Both wait; now there is something to be had.
            let there = measure::now();
            model.write_all(event(&json!({"role": "assistant", "content": "once"}), None).as_bytes()).await?;
            two.until(b"data: ").await?;
            live.add(there.elapsed());
            // It is there already when the third asks.
            let mut three = BenchConnection::to(semel.address).await?;
            let asking = measure::now();
            three.send(&asked).await?;
            three.until(b"data: ").await?;
            late.add(asking.elapsed());
            let rest = event(&json!({}), Some("stop")) + &stream_end();
            model.write_all(rest.as_bytes()).await?;
            for wire in [&mut one, &mut two, &mut three] {
                wire.until(b"0\r\n\r\n").await?;
            }
        }
        std::io::Result::Ok(())
    })?;
    let line = |what: &str, mut times: Times| {
        let made_of = format!("p99 {} ms", figure(times.micros(0.99) / 1e3));
        ReportLine::plain(what, times.median() / 1e3, " ms", made_of)
    };
    Ok(vec![
        line("joined stream: from the model's first byte to the twin's, p50", live).at_most(1.0, 0.2),
        line("joined stream: from asking to a first byte that is there, p50", late).at_most(1.0, 0.3),
    ])
}

/// The next request of the model, read, with the head of its answer sent.
async fn begun(listener: &TcpListener) -> std::io::Result<TcpStream> {
    let (mut stream, _) = listener.accept().await?;
    stream.set_nodelay(true)?;
    let mut heard = Vec::new();
    while whole(&heard).is_none() {
        if stream.read_buf(&mut heard).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    stream.write_all(STREAM_HEAD.as_bytes()).await?;
    Ok(stream)
}

/// What an open stream takes, of memory that is resident.
fn open_streams(runtime: &Runtime) -> Result<ReportLine> {
    let upstream = BenchUpstream::start()?;
    let semel = BenchServer::before(upstream.address, SPEAKS)?;
    let resident = || measure::resident_of(semel.process()).ok_or("there is no such process");
    // The server keeps some of its places for telling that there is none.
    let streams = STREAMS.min(measure::open_files_max().saturating_sub(1_000) / 2 * 15 / 16);
    let open = |from: usize, to: usize| {
        runtime.block_on(async {
            let mut wires = Vec::with_capacity(to - from);
            for n in from..to {
                let mut wire = BenchConnection::to(semel.address).await?;
                let more = format!(",\"user\":\"{HELD}\",\"stream\":true");
                wire.send(&prompt(GUARDED, n as u64, &more)).await?;
                wire.until(b"data: ").await?;
                wires.push(wire);
            }
            std::io::Result::Ok(wires)
        })
    };
    let first = open(0, 100)?;
    let before = resident()?;
    let half = open(100, streams / 2)?;
    let between = resident()?;
    let rest = open(streams / 2, streams)?;
    let after = resident()?;
    let each = (after - before) * 1024.0 / (streams - 100) as f64;
    let made_of = format!(
        "{streams} streams: {} MB, {} MB with half of them, {} MB with a hundred",
        figure(after),
        figure(between),
        figure(before)
    );
    drop((first, half, rest));
    Ok(ReportLine::plain("memory of an open stream", each, " KB", made_of).at_most(40.0, None))
}
