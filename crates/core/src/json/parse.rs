//! Strict JSON (RFC 8259): what two readers could understand differently is refused, not guessed.

use super::number::{NumberError, NumberText};
use super::{Json, Object};

/// Containers inside containers. Tool arguments need a handful; the bound keeps recursion, here and in code that walks
/// the tree, far from the end of a stack.
pub const DEPTH_MAX: usize = 128;

/// The longest text read, 16 MiB: a file inside an argument fits, and one call cannot take the process's memory.
pub const TEXT_BYTES_MAX: usize = 16 << 20;

/// The most values in one text. A tree of the smallest ones takes a hundred times the room of its text; this many leave
/// eight bytes of the longest text for each, and a matrix of written-out numbers takes more.
pub const VALUES_MAX: usize = 2 << 20;

/// Characters of a member's name repeated in a message, so that a hostile name does not become a hostile log line.
const NAME_CHARACTERS_SHOWN: usize = 60;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid JSON at byte {offset}: {what}")]
pub struct ParseError {
    /// Bytes from the start of the text, counted from 0.
    pub offset: usize,
    pub what: JsonProblem,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonProblem {
    #[error("the text is longer than {TEXT_BYTES_MAX} bytes")]
    TextTooLong,
    #[error("the text is not UTF-8")]
    NotUtf8,
    #[error("the text ends where {expected} is expected")]
    Ended { expected: &'static str },
    #[error("{found:?} stands where {expected} is expected")]
    Unexpected { found: char, expected: &'static str },
    #[error("there is more text after the value")]
    TrailingText,
    #[error("arrays and objects are nested deeper than {DEPTH_MAX}")]
    TooDeep,
    #[error("the text holds more than {VALUES_MAX} values")]
    TooManyValues,
    #[error("the member {0:?} appears twice in one object")]
    DuplicateMember(String),
    #[error("a control character in a string must be escaped")]
    ControlCharacter,
    #[error("this escape is not one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX")]
    BadEscape,
    #[error("this escape is half of a surrogate pair")]
    LoneSurrogate,
    #[error("a number must look like -12.5e3, without leading zeros")]
    BadNumber,
    #[error(
        "a number may have at most {} significant digits and lie between 1e-401 and 1e400",
        super::DIGITS_MAX
    )]
    NumberTooLong,
}

/// Reads one JSON text.
pub fn parse(text: &str) -> Result<Json, ParseError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(ParseError { offset: TEXT_BYTES_MAX, what: JsonProblem::TextTooLong });
    }
    parse_any(text)
}

fn parse_any(text: &str) -> Result<Json, ParseError> {
    let mut parser = JsonParser { text, at: 0, values: 0 };
    parser.skip_space();
    let json = parser.value(0)?;
    parser.skip_space();
    if parser.at < text.len() {
        return Err(parser.error(JsonProblem::TrailingText));
    }
    Ok(json)
}

/// Reads one JSON text that may not even be text.
pub fn parse_bytes(bytes: &[u8]) -> Result<Json, ParseError> {
    // The size is checked first, so that refusing does not read it all.
    if bytes.len() > TEXT_BYTES_MAX {
        return Err(ParseError { offset: TEXT_BYTES_MAX, what: JsonProblem::TextTooLong });
    }
    parse_bounded(bytes)
}

/// The same for bytes whose number is bounded already, by their reader.
pub fn parse_bounded(bytes: &[u8]) -> Result<Json, ParseError> {
    match std::str::from_utf8(bytes) {
        Ok(text) => parse_any(text),
        Err(error) => Err(ParseError { offset: error.valid_up_to(), what: JsonProblem::NotUtf8 }),
    }
}

struct JsonParser<'a> {
    text: &'a str,
    at: usize,
    /// How many have begun.
    values: usize,
}

impl JsonParser<'_> {
    fn value(&mut self, depth: usize) -> Result<Json, ParseError> {
        self.values += 1;
        match self.peek() {
            _ if self.values > VALUES_MAX => Err(self.error(JsonProblem::TooManyValues)),
            Some(b'{' | b'[') if depth == DEPTH_MAX => Err(self.error(JsonProblem::TooDeep)),
            Some(b'{') => self.object(depth + 1).map(Json::Object),
            Some(b'[') => self.array(depth + 1).map(Json::Array),
            Some(b'"') => self.string().map(Json::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            _ => Err(self.unexpected("a value")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Object, ParseError> {
        self.at += 1;
        self.skip_space();
        let mut members = Vec::new();
        if self.skip(b'}') {
            return Ok(Object::new());
        }
        loop {
            let name_at = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("a member's name in double quotes"));
            }
            let name = self.string()?;
            self.skip_space();
            if !self.skip(b':') {
                return Err(self.unexpected("':'"));
            }
            self.skip_space();
            members.push((name, self.value(depth)?, name_at));
            self.skip_space();
            if self.skip(b'}') {
                return Object::from_distinct(members).map_err(|(name, offset)| {
                    let shown = name.chars().take(NAME_CHARACTERS_SHOWN).collect();
                    ParseError { offset, what: JsonProblem::DuplicateMember(shown) }
                });
            }
            if !self.skip(b',') {
                return Err(self.unexpected("',' or '}'"));
            }
            self.skip_space();
        }
    }

    fn array(&mut self, depth: usize) -> Result<Vec<Json>, ParseError> {
        self.at += 1;
        self.skip_space();
        let mut elements = Vec::new();
        if self.skip(b']') {
            return Ok(elements);
        }
        loop {
            elements.push(self.value(depth)?);
            self.skip_space();
            if self.skip(b']') {
                return Ok(elements);
            }
            if !self.skip(b',') {
                return Err(self.unexpected("',' or ']'"));
            }
            self.skip_space();
        }
    }

    fn string(&mut self) -> Result<String, ParseError> {
        self.at += 1;
        let mut string = String::new();
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            let plain = rest.iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f)).count();
            // Both ends stand beside ASCII, so they are character boundaries.
            string.push_str(&self.text[self.at..self.at + plain]);
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(string);
                }
                Some(b'\\') => string.push(self.escape()?),
                Some(_) => return Err(self.error(JsonProblem::ControlCharacter)),
                None => return Err(self.unexpected("'\"'")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, ParseError> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let Some(letter) = bytes.get(start + 1) else {
            self.at = bytes.len();
            return Err(self.unexpected("the rest of an escape"));
        };
        self.at += 2;
        let character = match letter {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(start),
            _ => return Err(ParseError { offset: start, what: JsonProblem::BadEscape }),
        };
        Ok(character)
    }

    /// After `\u`: one code unit, or two that make a pair.
    fn unicode_escape(&mut self, start: usize) -> Result<char, ParseError> {
        let bad = |what| ParseError { offset: start, what };
        let first = self.code_unit().ok_or(bad(JsonProblem::BadEscape))?;
        let mut units = vec![first];
        if (0xd800..0xdc00).contains(&first) && self.text.as_bytes()[self.at..].starts_with(b"\\u") {
            self.at += 2;
            units.push(self.code_unit().ok_or(bad(JsonProblem::BadEscape))?);
        }
        match char::decode_utf16(units).next() {
            Some(Ok(character)) => Ok(character),
            _ => Err(bad(JsonProblem::LoneSurrogate)),
        }
    }

    fn code_unit(&mut self) -> Option<u16> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4)?;
        let mut unit = 0;
        for digit in digits {
            unit = unit << 4 | char::from(*digit).to_digit(16)? as u16;
        }
        self.at += 4;
        Some(unit)
    }

    fn number(&mut self) -> Result<Json, ParseError> {
        let rest = &self.text.as_bytes()[self.at..];
        let written = NumberText::scan(rest).ok_or_else(|| self.error(JsonProblem::BadNumber))?;
        // `01` would otherwise read as a zero and a puzzling complaint about what follows.
        if rest.get(written.length).is_some_and(u8::is_ascii_digit) {
            return Err(self.error(JsonProblem::BadNumber));
        }
        let number = written.canonical().map_err(|error| {
            self.error(match error {
                NumberError::NotANumber => JsonProblem::BadNumber,
                NumberError::NumberTooLong => JsonProblem::NumberTooLong,
            })
        })?;
        self.at += written.length;
        Ok(Json::Number(number))
    }

    fn word(&mut self, word: &'static str, json: Json) -> Result<Json, ParseError> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(self.unexpected("a value"));
        }
        self.at += word.len();
        Ok(json)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn unexpected(&self, expected: &'static str) -> ParseError {
        self.error(match self.text[self.at..].chars().next() {
            Some(found) => JsonProblem::Unexpected { found, expected },
            None => JsonProblem::Ended { expected },
        })
    }

    fn error(&self, what: JsonProblem) -> ParseError {
        ParseError { offset: self.at, what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn complaint(text: &str) -> String {
        parse(text).expect_err(text).to_string()
    }

    #[test]
    fn messages_say_where_and_what() {
        assert_eq!(complaint(""), "invalid JSON at byte 0: the text ends where a value is expected");
        assert_eq!(
            complaint("{\"a\":1,}"),
            "invalid JSON at byte 7: '}' stands where a member's name in double quotes is expected"
        );
        assert_eq!(complaint("[1 2]"), "invalid JSON at byte 3: '2' stands where ',' or ']' is expected");
        assert_eq!(complaint("1 x"), "invalid JSON at byte 2: there is more text after the value");
        assert_eq!(
            complaint("{\"a\":1,\"b\":2,\"\\u0061\":3}"),
            "invalid JSON at byte 13: the member \"a\" appears twice in one object"
        );
        assert_eq!(
            complaint("\"\\ud800x\""),
            "invalid JSON at byte 1: this escape is half of a surrogate pair"
        );
        assert_eq!(
            complaint("[1e999999999]"),
            "invalid JSON at byte 1: a number may have at most 800 significant digits and lie between 1e-401 and 1e400"
        );
    }

    #[test]
    fn what_the_grammar_does_not_allow_is_refused() {
        for text in [
            "nul",
            "tru",
            "True",
            "'a'",
            "[1,]",
            "{,}",
            "{a:1}",
            "01",
            "1.",
            "-",
            "\"\t\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\u12g4\"",
            "\"\\udc00\"",
            "\"\\ud800\\u0041\"",
            "\"\\ud800\\",
            "\"",
            "\"\\",
            "[",
            "{",
            "{\"a\"",
            "{\"a\":",
            "\u{feff}1",
            "\u{a0}1",
            "// x\n1",
            "NaN",
            "[1]]",
            "é",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn depth_and_size_are_bounded() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(&nested(DEPTH_MAX)).is_ok());
        let error = parse(&nested(DEPTH_MAX + 1)).unwrap_err();
        assert_eq!(error, ParseError { offset: DEPTH_MAX, what: JsonProblem::TooDeep });
        assert!(parse(&"{\"a\":".repeat(100_000)).is_err());
        let long = " ".repeat(TEXT_BYTES_MAX + 1);
        assert_eq!(parse(&long).unwrap_err().what, JsonProblem::TextTooLong);
        assert_eq!(parse_bytes(long.as_bytes()).unwrap_err().what, JsonProblem::TextTooLong);
        let list = |elements: usize| format!("[{}0]", "0,".repeat(elements - 1));
        assert!(parse(&list(VALUES_MAX - 1)).is_ok());
        assert_eq!(parse(&list(VALUES_MAX)).unwrap_err().what, JsonProblem::TooManyValues);
    }

    #[test]
    fn bytes_that_are_no_text_are_refused_where_they_stand() {
        assert_eq!(parse_bytes(b"\"a\xff\""), Err(ParseError { offset: 2, what: JsonProblem::NotUtf8 }));
        // A surrogate half in UTF-8 clothes is no text either.
        assert_eq!(parse_bytes(b"\"\xed\xa0\x80\"").unwrap_err().what, JsonProblem::NotUtf8);
    }

    #[test]
    fn escapes_are_read_as_the_characters_they_mean() {
        let json = parse(r#""\u0041\ud83d\ude00\/\b\f\n\r\t\"\\""#).unwrap();
        assert_eq!(json.as_str(), Some("A\u{1f600}/\u{8}\u{c}\n\r\t\"\\"));
        assert_eq!(json.canonical(), "\"A\u{1f600}/\\b\\f\\n\\r\\t\\\"\\\\\"");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_bytes(&bytes);
        }

        #[test]
        fn no_text_that_is_almost_json_makes_it_panic(text in "[\\[\\]{},:\"\\\\ue0-9.+\\- tfnéd😀]{0,80}") {
            if let Ok(json) = parse(&text) {
                prop_assert_eq!(parse(&json.canonical()), Ok(json));
            }
        }

        #[test]
        fn a_text_is_json_for_us_only_if_it_is_for_serde_json(text in "[\\[\\]{},:\"0-9.e\\- ]{0,12}") {
            let theirs = serde_json::from_str::<serde_json::Value>(&text);
            match parse(&text) {
                // Accepted beyond serde_json: numbers past the largest double.
                Ok(_) => prop_assert!(
                    theirs.as_ref().map_or_else(|error| error.to_string().contains("out of range"), |_| true),
                    "{} was accepted", text
                ),
                // Refused beyond the grammar: equal names and absurd numbers.
                Err(error) => prop_assert!(
                    theirs.is_err()
                        || matches!(error.what, JsonProblem::DuplicateMember(_) | JsonProblem::NumberTooLong),
                    "{} was refused: {}", text, error
                ),
            }
        }
    }
}
