//! The doors of `semel serve` beside what somebody would put there instead, both over HTTP and in turns.

use super::litellm::{self, LiteLlm};
use super::{TURNS, restate, settle_disk};
use crate::llm::{self, GUARDED, SPEAKS};
use crate::report::{ReportLine, figure};
use crate::served::BenchServer;
use crate::upstream::BenchUpstream;
use crate::wire::{self, drive};
use crate::{CALLERS, Effort, http};
use xtask::project::{self, Result};

/// Calls of one turn: some seconds of work for it.
const RESTATE_CALLS: usize = 2_000;

/// Restate's ingress with an idempotency key, and the same requests through the HTTP door to an API that does nothing.
pub fn beside_restate(effort: Effort) -> Result<Vec<ReportLine>> {
    let runtime = wire::runtime()?;
    let directory = tempfile::tempdir_in(project::scratch()?)?;
    let mut restate = restate::start(directory.path())?;
    let upstream = BenchUpstream::start()?;
    let semel = BenchServer::before(upstream.address, "")?;
    let (mut fresh, mut again) = (Vec::new(), Vec::new());
    for turn in 0..TURNS {
        settle_disk()?;
        let (ours, ours_again) =
            http::rates(&runtime, &upstream, &semel, &format!("turn-{turn}"), effort.span())?;
        settle_disk()?;
        let calls = effort.count(RESTATE_CALLS);
        let (theirs, theirs_again) = (restate.turn(calls)?, restate.again(calls)?);
        fresh.push((ours, theirs));
        again.push((ours_again, theirs_again));
    }
    let what =
        |kind: &str| format!("{kind} over HTTP, {CALLERS} connections / Restate {}", restate.version());
    Ok(vec![
        line(what("fresh calls"), fresh).at_least(30.0, None),
        line(what("replays"), again).at_least(10.0, None),
    ])
}

/// Whole answers of the same model, through LiteLLM and through the model door.
pub fn beside_litellm(effort: Effort) -> Result<Vec<ReportLine>> {
    let runtime = wire::runtime()?;
    let directory = tempfile::tempdir_in(project::scratch()?)?;
    let upstream = BenchUpstream::start()?;
    let semel = BenchServer::before(upstream.address, SPEAKS)?;
    let litellm = LiteLlm::before(upstream.address, directory.path(), &runtime)?;
    let mut rates = Vec::new();
    for turn in 0..TURNS as u64 {
        settle_disk()?;
        let ours = llm::whole_answers(&runtime, semel.address, GUARDED, turn << 40, effort.span())?;
        // It takes a second for each caller's first answer.
        let theirs = drive(&runtime, litellm.address, CALLERS, 3 * effort.span(), move |n| {
            litellm::prompt((turn << 40) + n)
        })?;
        rates.push((ours.per_second(), theirs.per_second()));
    }
    let what = format!("answers of a model, {CALLERS} connections / LiteLLM {}", litellm::VERSION);
    Ok(vec![line(what, rates).at_least(100.0, None)])
}

/// Of several turns, the one with the median ratio.
fn line(what: String, mut turns: Vec<(f64, f64)>) -> ReportLine {
    turns.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
    let ratios: Vec<String> = turns.iter().map(|(ours, theirs)| figure(ours / theirs)).collect();
    let (ours, theirs) = turns[turns.len() / 2];
    let made_of = format!("{}/s; theirs {}/s; turns {}", figure(ours), figure(theirs), ratios.join(", "));
    ReportLine::plain(what, ours / theirs, "", made_of)
}
