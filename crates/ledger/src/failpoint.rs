//! Places where a test may make this process die, fail or pause. Unset, each costs one relaxed load.
//!
//! They are compiled into every build, because a crash test of another binary than the shipped one proves little.
//! Nothing sets them but [`install`], which the binary calls once with what its operator asked for.

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// Every point that [`hit`] knows. A specification that names another is refused, so that a typing mistake in a
/// crash test cannot pass as "survived".
pub const NAMES: &[&str] = &[
    "gate.before_claim",
    "gate.after_claim",
    "gate.before_send",
    "gate.after_send",
    "gate.before_settle",
    "gate.after_settle",
    "gate.before_deliver",
    "gate.after_deliver",
    "undo.before_link",
    "undo.after_link",
    "found.before_tables",
    "found.after_tables",
    "found.after_secret",
    "copy.before_commit",
    "copy.after_commit",
    "copy.before_finish",
    "restore.after_aside",
    "restore.after_secret",
    "sqlite.before_begin",
    "sqlite.after_begin",
    "sqlite.before_commit",
    "sqlite.after_commit",
    "sqlite.commit_unknown",
];

static ARMED: AtomicBool = AtomicBool::new(false);
static POINTS: RwLock<Vec<Arc<Point>>> = RwLock::new(Vec::new());

/// The error that an `error` action injects.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("failpoint {0}")]
pub struct InjectedError(pub &'static str);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSpec {
    #[error("`{0}` is not of the form name=action or name=action@n")]
    Form(String),
    #[error("there is no failpoint `{0}`")]
    Name(String),
    #[error("`{0}` is no action; use abort, error or pause(ms)")]
    Action(String),
}

#[derive(Debug)]
struct Point {
    name: &'static str,
    action: PointAction,
    /// Acts on this hit only, counted from 1; `None` acts on every hit.
    only: Option<u64>,
    hits: AtomicU64,
}

#[derive(Debug)]
enum PointAction {
    Abort,
    Error,
    Pause(Duration),
}

/// Replaces the whole setting. `sqlite.after_commit=abort@3;sqlite.before_commit=error`; an empty one disarms all.
pub fn install(spec: &str) -> Result<(), BadSpec> {
    let parsed = spec.split(';').map(str::trim).filter(|part| !part.is_empty()).map(parse);
    let points = parsed.collect::<Result<Vec<_>, _>>()?;
    let armed = !points.is_empty();
    *POINTS.write().unwrap_or_else(PoisonError::into_inner) = points;
    ARMED.store(armed, Ordering::SeqCst);
    Ok(())
}

/// Passes, or does what was installed for `name`.
#[inline]
pub fn hit(name: &'static str) -> Result<(), InjectedError> {
    if ARMED.load(Ordering::Relaxed) { act(name) } else { Ok(()) }
}

#[cold]
#[allow(clippy::disallowed_methods, reason = "a pause between two system calls is what the test asked for")]
fn act(name: &'static str) -> Result<(), InjectedError> {
    debug_assert!(NAMES.contains(&name), "failpoint {name} is missing from NAMES");
    let points = POINTS.read().unwrap_or_else(PoisonError::into_inner).clone();
    for point in points.iter().filter(|point| point.name == name) {
        let nth = point.hits.fetch_add(1, Ordering::SeqCst) + 1;
        if point.only.is_some_and(|only| only != nth) {
            continue;
        }
        // A crash test whose point was never reached proves nothing, so the point says that it was.
        let _nobody_listens = writeln!(std::io::stderr(), "failpoint {name}");
        match point.action {
            PointAction::Abort => std::process::abort(),
            PointAction::Error => return Err(InjectedError(name)),
            PointAction::Pause(span) => std::thread::sleep(span),
        }
    }
    Ok(())
}

fn parse(part: &str) -> Result<Arc<Point>, BadSpec> {
    let (name, action) = part.split_once('=').ok_or_else(|| BadSpec::Form(part.to_owned()))?;
    let name =
        NAMES.iter().find(|known| **known == name.trim()).ok_or_else(|| BadSpec::Name(name.to_owned()))?;
    let (word, only) = match action.trim().split_once('@') {
        None => (action.trim(), None),
        Some((word, nth)) => (word, Some(nth.parse::<u64>().map_err(|_| BadSpec::Form(part.to_owned()))?)),
    };
    let pause = || word.strip_prefix("pause(")?.strip_suffix(')')?.parse::<u64>().ok();
    let action = match word {
        "abort" => PointAction::Abort,
        "error" => PointAction::Error,
        _ => PointAction::Pause(Duration::from_millis(
            pause().ok_or_else(|| BadSpec::Action(word.to_owned()))?,
        )),
    };
    Ok(Arc::new(Point { name, action, only, hits: AtomicU64::new(0) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_specification_with_an_unknown_name_or_action_is_refused() {
        assert_eq!(parse("sqlite.nowhere=abort").unwrap_err(), BadSpec::Name("sqlite.nowhere".into()));
        assert_eq!(parse("sqlite.after_commit=explode").unwrap_err(), BadSpec::Action("explode".into()));
        assert_eq!(parse("sqlite.after_commit").unwrap_err(), BadSpec::Form("sqlite.after_commit".into()));
        assert_eq!(parse("sqlite.after_commit=pause(7)@2").unwrap().only, Some(2));
    }
}
