//! Spans of time as a policy writes them: `250ms`, `30s`, `5m`, `24h`, `30d`.

use std::time::Duration;

/// Ten years: far beyond any retention that somebody means, and far below what overflows when added to a date.
pub const MAX: Duration = Duration::from_secs(3_650 * 86_400);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    #[error("a duration needs a number and a unit")]
    Shape,
    #[error("`{0}` is not a unit of time")]
    Unit(String),
    #[error("a duration is at most 3650d")]
    TooLong,
}

/// One whole number with one unit. Compound forms such as `1h30m` are left out: `90m` says the same in one way.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    if number.is_empty() || unit.is_empty() {
        return Err(DurationError::Shape);
    }
    let millis_per_unit: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(DurationError::Unit(unit.to_owned())),
    };
    // Only overflow can fail here: the text is digits alone.
    let number: u64 = number.parse().map_err(|_| DurationError::TooLong)?;
    let span =
        number.checked_mul(millis_per_unit).map(Duration::from_millis).ok_or(DurationError::TooLong)?;
    if span > MAX { Err(DurationError::TooLong) } else { Ok(span) }
}

/// The shortest text that `parse` reads back as this span, to the millisecond.
pub fn text(span: Duration) -> String {
    let millis = span.as_millis();
    for (unit, length) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)] {
        if millis >= length && millis.is_multiple_of(length) {
            return format!("{}{unit}", millis / length);
        }
    }
    if millis == 0 { "0s".to_owned() } else { format!("{millis}ms") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read_and_written_back() {
        for (written, millis) in [
            ("250ms", 250),
            ("30s", 30_000),
            ("5m", 300_000),
            ("24h", 86_400_000),
            ("30d", 2_592_000_000),
            ("0s", 0),
            ("3650d", 315_360_000_000),
        ] {
            let span = parse(written).expect(written);
            assert_eq!(span, Duration::from_millis(millis), "{written}");
            assert_eq!(parse(&text(span)), Ok(span), "{written}");
        }
    }

    #[test]
    fn what_is_not_a_duration_says_why() {
        for (written, error) in [
            ("", DurationError::Shape),
            ("30", DurationError::Shape),
            ("s", DurationError::Shape),
            ("-5s", DurationError::Shape),
            ("1.5h", DurationError::Unit(".5h".to_owned())),
            ("30 s", DurationError::Unit(" s".to_owned())),
            ("3weeks", DurationError::Unit("weeks".to_owned())),
            ("1h30m", DurationError::Unit("h30m".to_owned())),
            ("3651d", DurationError::TooLong),
            ("99999999999999999999s", DurationError::TooLong),
            ("9999999999999999999d", DurationError::TooLong),
            ("٣s", DurationError::Shape),
        ] {
            assert_eq!(parse(written), Err(error), "{written}");
        }
    }
}
