//! The options of a request for semel itself, in headers that go no further, at every door.

use crate::http::headers::all;
use crate::wire::form;
use http::{HeaderMap, HeaderName};
use semel_core::ids::{BadName, Reason, Run};

const AGAIN: &str = "semel-again";
const DRY_RUN: &str = "semel-dry-run";
/// Names the step of an agent that a model answers.
pub const STEP: HeaderName = HeaderName::from_static("semel-step");

const BAGGAGE: &str = "baggage";

/// All that a request may say to semel: the token it is let in by, its run, its step, and what stands above.
const KNOWN: [&str; 5] = ["semel-token", "semel-run-id", "semel-step", AGAIN, DRY_RUN];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallOptions {
    /// Why it should happen once more.
    pub again: Option<Reason>,
    pub dry_run: bool,
    /// The run that travels with a trace.
    pub baggage: Option<Run>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadOption {
    #[error("Semel-Again: {0}")]
    Again(BadName),
    #[error("Semel-Again is no text, or came twice")]
    AgainText,
    #[error("Semel-Dry-Run is 1 or 0")]
    DryRun,
    #[error(
        "there is no header {0}; a request may have Semel-Token, Semel-Run-Id, Semel-Step, Semel-Again and Semel-Dry-Run"
    )]
    Unknown(String),
}

impl CallOptions {
    pub fn of(headers: &HeaderMap) -> Result<CallOptions, BadOption> {
        // A request for something that is not known, such as a misspelt dry run, must not get something else.
        let own = |name: &&str| is_for_semel(name.strip_prefix("x-").unwrap_or(name));
        if let Some(unknown) =
            headers.keys().map(|name| name.as_str()).filter(own).find(|name| !KNOWN.contains(name))
        {
            return Err(BadOption::Unknown(unknown.chars().take(64).collect()));
        }
        let mut again = all(headers, AGAIN);
        let again = match (again.next(), again.next()) {
            (None, _) => None,
            (Some(reason), None) => {
                let text = std::str::from_utf8(reason.as_bytes()).map_err(|_| BadOption::AgainText)?;
                Some(Reason::parse(text).map_err(BadOption::Again)?)
            }
            _ => return Err(BadOption::AgainText),
        };
        // The same for an odd value.
        let mut dry_run = false;
        for value in all(headers, DRY_RUN) {
            match value.as_bytes() {
                b"1" | b"true" => dry_run = true,
                b"0" | b"false" => {}
                _ => return Err(BadOption::DryRun),
            }
        }
        let baggage = all(headers, BAGGAGE).filter_map(|value| value.to_str().ok());
        let run = baggage.into_iter().find_map(run_in_baggage);
        Ok(CallOptions { again, dry_run, baggage: run.and_then(|run| Run::named(&run).ok()) })
    }

    /// The same, and they are gone from the headers.
    pub fn taken(headers: &mut HeaderMap) -> Result<CallOptions, BadOption> {
        let options = CallOptions::of(headers)?;
        [AGAIN, DRY_RUN].iter().for_each(|name| drop(headers.remove(*name)));
        Ok(options)
    }
}

/// Whether a name, of an argument, a member or a header, is meant for semel.
pub fn is_for_semel(name: &str) -> bool {
    let begins =
        |name: &str, with: &str| name.get(..with.len()).is_some_and(|it| it.eq_ignore_ascii_case(with));
    begins(name, "semel") || begins(name, "dev.semel")
}

/// W3C baggage: `a=1,semel.run_id=nightly;property`.
pub fn run_in_baggage(baggage: &str) -> Option<String> {
    let mut entries = baggage.split(',').filter_map(|entry| entry.trim().split_once('='));
    let (_, value) = entries.find(|(name, _)| name.trim() == "semel.run_id")?;
    let value = value.split(';').next()?.trim();
    // Its values are percent-encoded.
    let run = form::decoded(&value.replace('+', "%2B")).into_owned();
    Some(run).filter(|run| !run.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(headers: &[(&'static str, &str)]) -> Result<CallOptions, BadOption> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        CallOptions::of(&map)
    }

    #[test]
    fn wishes_are_read_and_odd_ones_are_refused() {
        let options =
            of(&[(AGAIN, " second box "), (DRY_RUN, "1"), (BAGGAGE, "a=b,semel.run_id=r1")]).unwrap();
        assert_eq!(options.again, Reason::parse("second box").ok());
        assert_eq!((options.dry_run, options.baggage), (true, Run::named("r1").ok()));
        assert_eq!(of(&[(DRY_RUN, "0")]), Ok(CallOptions::default()));
        assert_eq!(of(&[(DRY_RUN, "yes")]), Err(BadOption::DryRun));
        assert_eq!(of(&[(AGAIN, "a"), (AGAIN, "b")]), Err(BadOption::AgainText));
        assert!(matches!(of(&[(AGAIN, " ")]), Err(BadOption::Again(_))));
        for known in KNOWN {
            assert!(of(&[(known, "1")]).is_ok(), "{known}");
        }
        for odd in [
            "semel-dryrun",
            "semel_dry_run",
            "semel-dry-run-",
            "semel-",
            "semel-run",
            "semeldryrun",
            "x-semel-dry-run",
            "x-semel-run-id",
        ] {
            assert_eq!(of(&[(odd, "1")]), Err(BadOption::Unknown(odd.to_owned())));
        }
        for others in ["x-dry-run", "dry-run", "x-assemelblage", "http-semel-dry-run"] {
            assert_eq!(of(&[(others, "1")]), Ok(CallOptions::default()), "{others}");
        }
    }
}
