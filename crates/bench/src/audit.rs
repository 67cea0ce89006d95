//! `semel audit`: its processor time against a plain parse of the same file, its memory, and its use of two cores.

use super::Effort;
use super::child::{self, BenchChild};
use super::measure;
use super::report::{ReportLine, figure};
use semel_detect::audit::AuditReport;
use semel_detect::audit::run::{AuditOptions, run as audit};
use semel_detect::judge::Judge;
use semel_detect::source::discover;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use xtask::project::{self, Result};

const MB: u64 = 1024 * 1024;

/// The child that reports its memory.
pub const PART: &str = "audit";

pub fn run(effort: Effort) -> Result<Vec<ReportLine>> {
    let directory = tempfile::tempdir_in(project::scratch()?)?;
    Ok(vec![
        against_parse(effort, directory.path())?,
        memory(effort, directory.path())?,
        cores(directory.path())?,
    ])
}

/// Processor time, taken in turns: the audit reads in one thread and compares in another.
fn against_parse(effort: Effort, directory: &Path) -> Result<ReportLine> {
    const TURNS: usize = 5;
    let file = directory.join("session.jsonl");
    write_session(&file, effort.count(256) as u64 * MB)?;
    let judge = Judge::new(Vec::new()).map_err(|_| "the packs do not load")?;
    let (mut plain, mut audited) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        plain.push(seconds(|| parse(&file))?);
        audited.push(seconds(|| read(&file, &judge, 1).map(drop))?);
    }
    let (plain, audited) = (median(plain), median(audited));
    let made_of = format!("{} s; {} s to parse", figure(audited), figure(plain));
    Ok(ReportLine::plain("audit / serde_json::Value, processor time", audited / plain, "", made_of)
        .at_most(3.0, 1.5))
}

fn memory(effort: Effort, directory: &Path) -> Result<ReportLine> {
    let sizes: &[u64] = match (effort.quick, effort.large) {
        (true, _) => &[10, 100],
        (false, false) => &[10, 1_024],
        (false, true) => &[10, 10_240],
    };
    let mut peaks = Vec::new();
    for size in sizes {
        let file = directory.join("large.jsonl");
        write_session(&file, size * MB)?;
        let found = BenchChild::new(PART, &file, &[])?.start()?.result()?;
        peaks.push(child::number(&found, "peak_mb"));
    }
    let what = format!("memory with {} MB / 10 MB", sizes[1]);
    let made_of = format!("{} MB; {} MB", figure(peaks[1]), figure(peaks[0]));
    Ok(ReportLine::plain(what, peaks[1] / peaks[0], "", made_of).at_most(3.0, None))
}

pub fn in_child(file: &Path) -> Result<Value> {
    child::wait_for_begin()?;
    let judge = Judge::new(Vec::new()).map_err(|_| "the packs do not load")?;
    let report = read(file, &judge, 1)?;
    Ok(json!({"peak_mb": measure::resident_peak(), "tool_calls": report.tool_calls}))
}

/// Wall time over several files.
fn cores(directory: &Path) -> Result<ReportLine> {
    let many = directory.join("many");
    std::fs::create_dir(&many)?;
    for number in 0..8 {
        write_session(&many.join(format!("{number}.jsonl")), 16 * MB)?;
    }
    let judge = Judge::new(Vec::new()).map_err(|_| "the packs do not load")?;
    let time = |workers| -> Result<f64> {
        let (read, span) = measure::time(|| read(&many, &judge, workers));
        read.map(|_| span.as_secs_f64())
    };
    let (mut one, mut two) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        one.push(time(1)?);
        two.push(time(2)?);
    }
    let (one, two) = (median(one), median(two));
    let made_of = format!("{} s; {} s with one", figure(two), figure(one));
    Ok(ReportLine::plain("eight files: one reader / two, wall time", one / two, "", made_of)
        .at_least(1.6, 1.8))
}

fn read(path: &Path, judge: &Judge, workers: usize) -> Result<AuditReport> {
    let options = AuditOptions { workers, ..AuditOptions::default() };
    let report = audit(discover::candidates(path)?, judge, &options, |_| {});
    if report.skipped.lines + report.skipped.files > 0 || report.tool_calls == 0 {
        return Err(format!("the audit did not read it all: {:?}", report.skipped.named).into());
    }
    Ok(report)
}

fn parse(path: &Path) -> Result<()> {
    let mut input = BufReader::with_capacity(256 * 1024, File::open(path)?);
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        std::hint::black_box(serde_json::from_slice::<Value>(&line)?);
        line.clear();
    }
    Ok(())
}

fn seconds(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let before = measure::own_seconds();
    work()?;
    Ok(measure::own_seconds() - before)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A session of Claude Code as its programs write it: texts, files that are read, commands with their output, and one
/// effect in fifty calls, each of another thing.
fn write_session(path: &Path, bytes: u64) -> Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    let code =
        "    let total = items.iter().map(|item| item.price * item.count).sum::<u64>(); // \"cents\"\n"
            .repeat(60);
    let (mut written, mut number) = (0, 0_u64);
    while written < bytes {
        number += 1;
        let time =
            format!("2026-03-01T{:02}:{:02}:{:02}.000Z", number / 3_600 % 24, number / 60 % 60, number % 60);
        let line = |kind: &str, message: Value| {
            json!({"parentUuid": format!("u{number}"), "isSidechain": false, "userType": "external", "cwd": "/home/ann/shop",
                   "sessionId": format!("s{}", number / 500), "version": "2.1.0", "gitBranch": "main", "type": kind,
                   "message": message, "uuid": format!("v{number}"), "timestamp": time})
        };
        let id = format!("toolu_{number:020}");
        let (tool, input, output) = match number % 50 {
            0 => (
                "mcp__billing__create_charge",
                json!({"customer": format!("cus_{number}"), "amount": 4_200}),
                json!([{"type": "text", "text": format!("{{\"id\":\"ch_{number}\",\"status\":\"paid\"}}")}]),
            ),
            n if n % 2 == 0 => ("Read", json!({"file_path": "/home/ann/shop/src/cart.rs"}), json!(code)),
            n => (
                "Bash",
                json!({"command": format!("cargo test -p shop case_{n} && git status"), "description": "Run the tests"}),
                json!("running 40 tests\n".to_owned() + &"test cart::adds_up ... ok\n".repeat(40)),
            ),
        };
        let said = json!({"id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": "m", "content": [
            {"type": "text", "text": "I look at the cart first, then I run its tests."},
            {"type": "tool_use", "id": id, "name": tool, "input": input}], "usage": {"input_tokens": 4, "output_tokens": 90}});
        let result = json!({"role": "user", "content": [{"tool_use_id": id, "type": "tool_result", "content": output}]});
        let text = format!("{}\n{}\n", line("assistant", said), line("user", result));
        file.write_all(text.as_bytes())?;
        written += text.len() as u64;
    }
    Ok(file.flush()?)
}
