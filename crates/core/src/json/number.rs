//! Numbers by value: one text for each decimal value, exact, without floating point.
//!
//! A JSON number denotes a decimal: sign, digits, and where the point stands. Its canonical text is what ECMAScript's
//! `Number::toString` would lay out for exactly those digits. Where a double holds the value, that is RFC 8785 to the
//! letter; where none does, the digits stay and nothing is rounded.

use std::fmt;

/// Significant digits kept. The longest exact decimal of a double has 767.
pub const DIGITS_MAX: usize = 800;

/// How far the decimal point may stand from the first significant digit: the magnitude lies between 1e-401 and
/// 1e400. Doubles end at 1e-324 and 1.8e308; beyond them no upstream reads a number as what it says.
pub const POINT_MAX: i64 = 400;

/// A decimal value, held as its canonical text.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Number {
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    #[error("this is not a JSON number")]
    NotANumber,
    #[error("a number may have at most {DIGITS_MAX} significant digits and lie between 1e-401 and 1e400")]
    NumberTooLong,
}

impl Number {
    pub fn parse(text: &str) -> Result<Number, NumberError> {
        match NumberText::scan(text.as_bytes()) {
            Some(written) if written.length == text.len() => written.canonical(),
            _ => Err(NumberError::NotANumber),
        }
    }

    pub fn from_i64(value: i64) -> Number {
        Number { text: value.to_string() }
    }

    pub fn from_u64(value: u64) -> Number {
        Number { text: value.to_string() }
    }

    /// The decimal that ECMAScript writes for this double; `None` for infinities and NaN.
    pub fn from_f64(value: f64) -> Option<Number> {
        // Not the standard library's `{:e}`: of two shortest texts equally near it takes the upper, ECMAScript the
        // even.
        let text = value.is_finite().then(|| ryu_js::Buffer::new().format_finite(value).to_owned())?;
        Some(Number::parse(&text).expect("a double is within bounds"))
    }

    /// The canonical text.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn as_i64(&self) -> Option<i64> {
        // Integers of up to 21 digits are written plainly, and an i64 has at most 19.
        self.text.parse().ok()
    }

    pub fn as_u64(&self) -> Option<u64> {
        self.text.parse().ok()
    }

    /// The nearest double, `None` beyond its range. It may round; see [`Number::as_exact_f64`].
    pub fn as_f64(&self) -> Option<f64> {
        self.text.parse().ok().filter(|value: &f64| value.is_finite())
    }

    /// The double whose shortest text denotes this very value.
    pub fn as_exact_f64(&self) -> Option<f64> {
        self.as_f64().filter(|value| Number::from_f64(*value).as_ref() == Some(self))
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Number({})", self.text)
    }
}

/// A number as someone wrote it, taken apart by the grammar of RFC 8259.
pub(super) struct NumberText<'a> {
    negative: bool,
    integer: &'a [u8],
    fraction: &'a [u8],
    exponent: i64,
    /// How many bytes of the text belong to the number.
    pub(super) length: usize,
}

impl<'a> NumberText<'a> {
    /// The longest number at the start of `text`, if there is one.
    pub(super) fn scan(text: &'a [u8]) -> Option<NumberText<'a>> {
        let negative = text.first() == Some(&b'-');
        let mut at = usize::from(negative);
        let integer = match text.get(at)? {
            b'0' => &text[at..=at],
            _ => digits(&text[at..])?,
        };
        at += integer.len();
        let mut fraction: &[u8] = &[];
        if text.get(at) == Some(&b'.') {
            fraction = digits(&text[at + 1..])?;
            at += 1 + fraction.len();
        }
        let mut exponent = 0;
        if matches!(text.get(at), Some(b'e' | b'E')) {
            let sign = matches!(text.get(at + 1), Some(b'+' | b'-'));
            let written = digits(&text[at + 1 + usize::from(sign)..])?;
            // Saturation is safe: no text is long enough to bring such a point back within bounds.
            let size =
                written.iter().fold(0_i64, |n, d| n.saturating_mul(10).saturating_add(i64::from(d - b'0')));
            exponent = if text[at + 1] == b'-' { -size } else { size };
            at += 1 + usize::from(sign) + written.len();
        }
        Some(NumberText { negative, integer, fraction, exponent, length: at })
    }

    pub(super) fn canonical(&self) -> Result<Number, NumberError> {
        let all = || self.integer.iter().chain(self.fraction);
        let leading_zeros = all().take_while(|digit| **digit == b'0').count();
        let trailing_zeros = all().rev().take_while(|digit| **digit == b'0').count();
        let written = self.integer.len() + self.fraction.len();
        if leading_zeros == written {
            return Ok(Number { text: "0".to_owned() });
        }
        let sign = if self.negative { "-" } else { "" };
        if let (&[], 0, 0, 1..=21) = (self.fraction, self.exponent, leading_zeros, written) {
            // As most are.
            let digits = self.integer.iter().map(|digit| char::from(*digit));
            return Ok(Number { text: sign.chars().chain(digits).collect() });
        }
        let count = written - leading_zeros - trailing_zeros;
        let point = (self.integer.len() as i64 - leading_zeros as i64).saturating_add(self.exponent);
        if count > DIGITS_MAX || !(-POINT_MAX..=POINT_MAX).contains(&point) {
            return Err(NumberError::NumberTooLong);
        }
        let significant: String =
            all().skip(leading_zeros).take(count).map(|digit| char::from(*digit)).collect();
        Ok(Number { text: format!("{sign}{}", lay_out(&significant, point)) })
    }
}

/// ECMAScript's `Number::toString` for the value `0.digits` times ten to the `point`.
fn lay_out(digits: &str, point: i64) -> String {
    let count = digits.len() as i64;
    let zeros = |n: i64| "0".repeat(usize::try_from(n).expect("a run of zeros has a length"));
    match point {
        1..=21 if count <= point => format!("{digits}{}", zeros(point - count)),
        1..=21 => {
            let (whole, part) = digits.split_at(point as usize);
            format!("{whole}.{part}")
        }
        -5..=0 => format!("0.{}{digits}", zeros(-point)),
        _ => {
            let (first, rest) = digits.split_at(1);
            let dot = if rest.is_empty() { "" } else { "." };
            format!("{first}{dot}{rest}e{:+}", point - 1)
        }
    }
}

/// One or more digits at the start of the text.
fn digits(text: &[u8]) -> Option<&[u8]> {
    let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (length > 0).then(|| &text[..length])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn canonical(text: &str) -> String {
        Number::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).text().to_owned()
    }

    #[test]
    fn one_value_has_one_text() {
        for (same, text) in [
            (&["1", "1.0", "1e0", "10e-1", "0.1E+1", "1.000"][..], "1"),
            (&["0", "-0", "0.0", "-0e9", "0e999999999999999999999"], "0"),
            (&["1e21", "1000000000000000000000"], "1e+21"),
            (&["100000000000000000000", "1e20"], "100000000000000000000"),
            (&["0.000001", "1e-6"], "0.000001"),
            (&["0.0000001", "1e-7"], "1e-7"),
            (&["-12.50", "-1250e-2"], "-12.5"),
        ] {
            for written in same {
                assert_eq!(canonical(written), text, "{written}");
            }
        }
    }

    #[test]
    fn digits_that_no_double_holds_are_kept() {
        for text in [
            "9007199254740993",
            "123456789012345678901",
            "0.30000000000000000001",
            "1.234567890123456789012e+30",
        ] {
            assert_eq!(canonical(text), text);
        }
        assert_eq!(canonical("1234567890123456789012"), "1.234567890123456789012e+21");
    }

    #[test]
    fn absurd_sizes_are_refused_without_being_built() {
        for text in ["1e400", "1e999999999", "1e99999999999999999999999", "-1e-402", &"7".repeat(801)] {
            assert_eq!(Number::parse(text), Err(NumberError::NumberTooLong), "{text}");
        }
        assert_eq!(canonical("1e399"), "1e+399");
        assert_eq!(canonical("1e-401"), "1e-401");
        assert_eq!(canonical(&format!("1{}e-5000", "0".repeat(5000))), "1");
        assert_eq!(canonical(&format!("0.{}1e5001", "0".repeat(5000))), "1");
    }

    #[test]
    fn what_is_no_json_number_is_refused() {
        for text in
            ["", "-", "+1", "01", "1.", ".5", "1e", "1e+", "0x10", "1 ", " 1", "NaN", "Infinity", "--1", "١"]
        {
            assert_eq!(Number::parse(text), Err(NumberError::NotANumber), "{text}");
        }
    }

    #[test]
    fn integers_and_doubles_come_back_out() {
        assert_eq!(Number::parse("1e3").unwrap().as_i64(), Some(1000));
        assert_eq!(Number::from_i64(i64::MIN).as_i64(), Some(i64::MIN));
        assert_eq!(Number::from_u64(u64::MAX).as_u64(), Some(u64::MAX));
        assert_eq!(Number::from_u64(u64::MAX).as_i64(), None);
        assert_eq!(Number::parse("0.5").unwrap().as_i64(), None);
        assert_eq!(Number::parse("1e399").unwrap().as_f64(), None);
        assert_eq!(Number::parse("9007199254740993").unwrap().as_exact_f64(), None);
        let halfway = 1_294_573_441_912_909.0 + 0.25;
        assert_eq!(Number::from_f64(halfway).unwrap().text(), "1294573441912909.2");
        assert_eq!(Number::from_f64(-0.0).unwrap().text(), "0");
        assert_eq!(Number::from_f64(f64::NAN), None);
    }

    proptest! {
        #[test]
        fn a_double_is_written_as_ecmascript_writes_it(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            let mut buffer = ryu_js::Buffer::new();
            let text = buffer.format(value);
            prop_assert_eq!(canonical(text), text);
            prop_assert_eq!(Number::from_f64(value).unwrap().as_exact_f64(), Some(value));
        }

        #[test]
        fn a_small_integer_is_written_as_serde_json_writes_it(value in -(1_i64 << 53)..(1_i64 << 53)) {
            prop_assert_eq!(canonical(&value.to_string()), serde_json::json!(value).to_string());
            prop_assert_eq!(Number::from_i64(value), Number::parse(&format!("{value}.0")).unwrap());
        }

        #[test]
        fn writing_is_idempotent_and_moving_the_point_changes_nothing(
            sign in "-?", digits in "[1-9][0-9]{0,40}", point in 0_usize..40, exponent in -300_i64..300
        ) {
            let text = canonical(&format!("{sign}{digits}e{exponent}"));
            prop_assert_eq!(canonical(&text), text.clone());
            let point = point.min(digits.len() - 1) + 1;
            let (whole, part) = digits.split_at(point);
            let moved = exponent + part.len() as i64;
            prop_assert_eq!(canonical(&format!("{sign}{whole}.{part}0E{moved:+}")), text);
        }

        #[test]
        fn different_integers_have_different_texts(a in any::<i128>(), b in any::<i128>()) {
            prop_assert_eq!(a == b, canonical(&a.to_string()) == canonical(&b.to_string()));
            prop_assert_ne!(canonical(&a.to_string()), canonical(&(a ^ 1).to_string()));
        }
    }
}
