//! What a request says to semel itself, in headers that go no further, at whichever door.

use crate::http::headers::all;
use crate::mcp::call::run_in_baggage;
use http::HeaderMap;
use semel_core::ids::{BadName, Reason, Run};

const AGAIN: &str = "semel-again";
const DRY_RUN: &str = "semel-dry-run";
const BAGGAGE: &str = "baggage";

/// All that a request may say to semel: the token it is let in by, its run, its step, and what stands above.
const KNOWN: [&str; 5] = ["semel-token", "semel-run-id", "semel-step", AGAIN, DRY_RUN];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wishes {
    /// Why it should happen once more.
    pub again: Option<Reason>,
    pub dry_run: bool,
    /// The run that travels with a trace.
    pub baggage: Option<Run>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadWish {
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

impl Wishes {
    pub fn of(headers: &HeaderMap) -> Result<Wishes, BadWish> {
        // Whoever asks for something in a way that is not known must not get something else.
        let own =
            |name: &&str| name.starts_with("semel") || name.starts_with("x-semel") || means_dry_run(name);
        if let Some(unknown) =
            headers.keys().map(|name| name.as_str()).filter(own).find(|name| !KNOWN.contains(name))
        {
            return Err(BadWish::Unknown(unknown.chars().take(64).collect()));
        }
        let mut again = all(headers, AGAIN);
        let again = match (again.next(), again.next()) {
            (None, _) => None,
            (Some(reason), None) => {
                let text = std::str::from_utf8(reason.as_bytes()).map_err(|_| BadWish::AgainText)?;
                Some(Reason::parse(text).map_err(BadWish::Again)?)
            }
            _ => return Err(BadWish::AgainText),
        };
        // The same for an odd value.
        let mut dry_run = false;
        for value in all(headers, DRY_RUN) {
            match value.as_bytes() {
                b"1" | b"true" => dry_run = true,
                b"0" | b"false" => {}
                _ => return Err(BadWish::DryRun),
            }
        }
        let baggage = all(headers, BAGGAGE).filter_map(|value| value.to_str().ok());
        let run = baggage.into_iter().find_map(run_in_baggage);
        Ok(Wishes { again, dry_run, baggage: run.and_then(|run| Run::named(&run).ok()) })
    }

    /// The same, and they are gone from the headers.
    pub fn taken(headers: &mut HeaderMap) -> Result<Wishes, BadWish> {
        let wishes = Wishes::of(headers)?;
        [AGAIN, DRY_RUN].iter().for_each(|name| drop(headers.remove(*name)));
        Ok(wishes)
    }
}

/// Whether a name, of whatever it may be, was meant to ask semel for a dry run: who misspells that must not get the
/// effect.
pub fn means_dry_run(name: &str) -> bool {
    let find =
        |text: &[u8], word: &[u8]| text.windows(word.len()).position(|part| part.eq_ignore_ascii_case(word));
    let name = name.as_bytes();
    find(name, b"semel").is_some_and(|at| find(&name[at..], b"dry").is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(headers: &[(&'static str, &str)]) -> Result<Wishes, BadWish> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        Wishes::of(&map)
    }

    #[test]
    fn wishes_are_read_and_odd_ones_are_refused() {
        let wishes =
            of(&[(AGAIN, " second box "), (DRY_RUN, "1"), (BAGGAGE, "a=b,semel.run_id=r1")]).unwrap();
        assert_eq!(wishes.again, Reason::parse("second box").ok());
        assert_eq!((wishes.dry_run, wishes.baggage), (true, Run::named("r1").ok()));
        assert_eq!(of(&[(DRY_RUN, "0")]), Ok(Wishes::default()));
        assert_eq!(of(&[(DRY_RUN, "yes")]), Err(BadWish::DryRun));
        assert_eq!(of(&[(AGAIN, "a"), (AGAIN, "b")]), Err(BadWish::AgainText));
        assert!(matches!(of(&[(AGAIN, " ")]), Err(BadWish::Again(_))));
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
            "http-semel-dry-run",
        ] {
            assert_eq!(of(&[(odd, "1")]), Err(BadWish::Unknown(odd.to_owned())));
        }
        for others in ["x-dry-run", "dry-run", "x-assemelblage"] {
            assert_eq!(of(&[(others, "1")]), Ok(Wishes::default()), "{others}");
        }
    }
}
