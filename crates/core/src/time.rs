//! Points and spans of time, as arguments: core never reads a clock.

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// A wall-clock instant: microseconds since the Unix epoch, UTC.
///
/// Wall time may only ever move an open effect *into* doubt. It also ends windows and lives of keys, and there
/// [`Uptime`] speaks too.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Encode, Decode,
)]
#[serde(transparent)]
#[cbor(transparent)]
pub struct At(#[n(0)] pub u64);

impl At {
    pub fn from_millis(millis: u64) -> Self {
        At(millis.saturating_mul(1_000))
    }

    /// An instant as RFC 3339 writes it. Nothing here is older than 1970.
    pub fn parse(text: &str) -> Option<Self> {
        let stamp: jiff::Timestamp = text.parse().ok()?;
        Some(At(u64::try_from(stamp.as_microsecond()).unwrap_or(0)))
    }

    /// An instant as the `Date` of an HTTP answer has it, in whole seconds.
    pub fn parse_http(text: &str) -> Option<Self> {
        let stamp = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
        Some(At(u64::try_from(stamp.as_microsecond()).unwrap_or(0)))
    }

    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        At(self.0.saturating_add(u64::try_from(span.as_micros()).unwrap_or(u64::MAX)))
    }

    /// How long after `earlier` this is; zero if it is before it.
    pub fn since(self, earlier: At) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

/// How long a machine has been up, its sleep included. Nobody can set this clock; it says nothing across a boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
pub struct Uptime {
    /// A mark of the boot that it counts from.
    #[n(0)]
    pub boot: u32,
    #[n(1)]
    pub micros: u64,
}

impl Uptime {
    /// How long after `earlier` this is. `None`: that was another boot, or another machine.
    pub fn since(self, earlier: Uptime) -> Option<Duration> {
        (self.boot == earlier.boot).then(|| Duration::from_micros(self.micros.saturating_sub(earlier.micros)))
    }
}

impl fmt::Display for At {
    /// RFC 3339 in UTC with milliseconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = i64::try_from(self.0).unwrap_or(i64::MAX);
        match jiff::Timestamp::from_microsecond(micros) {
            Ok(stamp) => write!(f, "{stamp:.3}"),
            Err(_) => write!(f, "{}us", self.0),
        }
    }
}

/// A span in the words of a person: `12 s`, `3 min`, `2 h`, `5 d`.
pub fn in_words(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..=89 => format!("{seconds} s"),
        90..=5_399 => format!("{} min", (seconds + 30) / 60),
        5_400..=172_799 => format!("{} h", (seconds + 1_800) / 3_600),
        _ => format!("{} d", (seconds + 43_200) / 86_400),
    }
}

/// The wall clock and the uptime of one moment.
#[derive(Debug, Clone, Copy)]
pub struct Clocks {
    pub now: At,
    pub uptime: Option<Uptime>,
}

impl Clocks {
    /// The age of a delivery, for a window. It was delivered after its claim, so it is younger than that.
    pub fn shortest_since(&self, delivered: At, claimed: Option<Uptime>) -> Duration {
        let since = self.now.since(delivered);
        let claim = self.uptime.zip(claimed).and_then(|(now, claimed)| now.since(claimed));
        claim.map_or(since, |claim| since.min(claim))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_prints_as_rfc_3339_utc() {
        let (at, text) = (At::from_millis(1_700_000_000_123), "2023-11-14T22:13:20.123Z");
        assert_eq!((at.to_string().as_str(), At::parse(text)), (text, Some(at)));
        assert_eq!(At::parse("2023-11-14T23:13:20.123+01:00"), Some(at));
        assert_eq!((At::parse("1969-01-01T00:00:00Z"), At::parse("soon")), (Some(At(0)), None));
    }

    #[test]
    fn a_clock_that_went_back_gives_a_zero_span() {
        assert_eq!(At(5).since(At(9)), Duration::ZERO);
    }
}
