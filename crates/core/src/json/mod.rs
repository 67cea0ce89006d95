//! An exact JSON tree: what arguments are between the wire and a digest.
//!
//! `serde_json::Value` loses what identity needs. It keeps the last of two equal member names, and it rounds
//! `9007199254740993` to its neighbour, so that two different invoices would get one intent key. This tree refuses
//! the first and keeps the second.

mod number;
mod object;
mod parse;
mod path;

pub use number::{DIGITS_MAX, Number, NumberError, POINT_MAX};
pub use object::Object;
pub use parse::{
    DEPTH_MAX, JsonProblem, ParseError, TEXT_BYTES_MAX, VALUES_MAX, parse, parse_bounded, parse_bytes,
};
pub(crate) use path::push_member;
pub use path::{PATH_BYTES_MAX, Path, PathError, PathProblem, PathStep};

use std::fmt::Write as _;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Json {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Array(Vec<Json>),
    Object(Object),
}

impl Json {
    pub fn str(text: &str) -> Json {
        Json::String(text.to_owned())
    }

    pub fn object<K: Into<String>, const N: usize>(members: [(K, Json); N]) -> Json {
        Json::Object(members.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Json::String(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Json::Bool(value) => Some(*value),
            _ => None,
        }
    }

    pub fn as_number(&self) -> Option<&Number> {
        match self {
            Json::Number(number) => Some(number),
            _ => None,
        }
    }

    pub fn as_array(&self) -> Option<&[Json]> {
        match self {
            Json::Array(elements) => Some(elements),
            _ => None,
        }
    }

    pub fn as_object(&self) -> Option<&Object> {
        match self {
            Json::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The member of that name, if this is an object that has it.
    pub fn get(&self, name: &str) -> Option<&Json> {
        self.as_object()?.get(name)
    }

    /// The canonical text: RFC 8785 order and escapes, numbers as [`Number`] writes them. Equal trees have equal
    /// text, and different trees have different text.
    pub fn canonical(&self) -> String {
        let mut text = String::new();
        self.write_canonical(&mut text);
        text
    }

    /// The same, behind what the text holds already.
    pub fn write_canonical(&self, out: &mut String) {
        match self {
            Json::Null => out.push_str("null"),
            Json::Bool(true) => out.push_str("true"),
            Json::Bool(false) => out.push_str("false"),
            Json::Number(number) => out.push_str(number.text()),
            Json::String(text) => write_string(text, out),
            Json::Array(elements) => {
                out.push('[');
                for (i, element) in elements.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    element.write_canonical(out);
                }
                out.push(']');
            }
            Json::Object(object) => {
                out.push('{');
                for (i, (name, value)) in object.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    write_string(name, out);
                    out.push(':');
                    value.write_canonical(out);
                }
                out.push('}');
            }
        }
    }

    /// For libraries that speak `serde_json`. A number that would be rounded there becomes a string of its text:
    /// a wrong type is noticed, a wrong digit is not.
    pub fn to_value(&self) -> serde_json::Value {
        use serde_json::Value;
        match self {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => {
                let exact = (number.as_i64().map(Value::from))
                    .or_else(|| number.as_u64().map(Value::from))
                    .or_else(|| number.as_exact_f64().map(Value::from));
                exact.unwrap_or_else(|| Value::String(number.text().to_owned()))
            }
            Json::String(text) => Value::String(text.clone()),
            Json::Array(elements) => Value::Array(elements.iter().map(Json::to_value).collect()),
            Json::Object(object) => Value::Object(
                object.iter().map(|(name, value)| (name.to_owned(), value.to_value())).collect(),
            ),
        }
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Json {
        use serde_json::Value;
        match value {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(value),
            // Without the feature `arbitrary_precision` every number is an i64, u64 or f64 and so within bounds.
            // Should a build enable it, an absurd number stays distinguishable as its text.
            Value::Number(number) => {
                let text = number.to_string();
                Number::parse(&text).map_or(Json::String(text), Json::Number)
            }
            Value::String(text) => Json::String(text),
            Value::Array(elements) => Json::Array(elements.into_iter().map(Json::from).collect()),
            Value::Object(members) => {
                Json::Object(members.into_iter().map(|(name, value)| (name, Json::from(value))).collect())
            }
        }
    }
}

impl From<Number> for Json {
    fn from(number: Number) -> Json {
        Json::Number(number)
    }
}

/// RFC 8785, section 3.2.2.2: the short escapes where there is one, lower-case `\u00xx` for other control
/// characters, everything else as it is.
pub(crate) fn write_string(text: &str, out: &mut String) {
    let plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
    out.push('"');
    if text.bytes().all(plain) {
        out.push_str(text);
        out.push('"');
        return;
    }
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\0'..='\u{1f}' => {
                write!(out, "\\u{:04x}", u32::from(character)).expect("writing to a string cannot fail");
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Any tree a parser could give us, of modest size.
    pub(crate) fn any_json() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::Bool),
            any::<i64>().prop_map(|n| Json::Number(Number::from_i64(n))),
            any::<f64>().prop_filter_map("finite", |n| Number::from_f64(n).map(Json::Number)),
            "-?[1-9][0-9]{0,30}\\.[0-9]{1,30}(e-?[0-9]{1,2})?"
                .prop_filter_map("in bounds", |text| Number::parse(&text).ok().map(Json::Number)),
            any::<String>().prop_map(Json::String),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Json::Array),
                prop::collection::vec((any::<String>(), inner), 0..6)
                    .prop_map(|members| Json::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn canonical_text_reads_back_as_the_same_tree(json in any_json()) {
            let text = json.canonical();
            let again = parse(&text).expect("canonical text is JSON");
            prop_assert_eq!(&again, &json);
            prop_assert_eq!(again.canonical(), text);
        }

        #[test]
        fn serde_json_reads_canonical_text_as_the_same_strings_and_structure(json in any_json()) {
            let theirs: serde_json::Value = serde_json::from_str(&json.canonical()).expect("canonical text is JSON");
            let shape = |json: &Json| -> String {
                let mut json = json.clone();
                blank_numbers(&mut json);
                json.canonical()
            };
            prop_assert_eq!(shape(&Json::from(theirs)), shape(&json));
        }

        #[test]
        fn a_tree_survives_serde_json_when_its_numbers_fit(json in any_json()) {
            let mut json = json;
            keep_fitting_numbers(&mut json);
            prop_assert_eq!(Json::from(json.to_value()), json);
        }
    }

    fn each_number(json: &mut Json, change: &mut dyn FnMut(&mut Json)) {
        match json {
            Json::Number(_) => change(json),
            Json::Array(elements) => elements.iter_mut().for_each(|element| each_number(element, change)),
            Json::Object(object) => object.iter_mut().for_each(|(_, value)| each_number(value, change)),
            _ => {}
        }
    }

    fn blank_numbers(json: &mut Json) {
        each_number(json, &mut |number| *number = Json::Null);
    }

    fn keep_fitting_numbers(json: &mut Json) {
        each_number(json, &mut |number| {
            if number.as_number().is_some_and(|n| n.as_exact_f64().is_none() && n.as_i64().is_none()) {
                *number = Json::Null;
            }
        });
    }

    #[test]
    fn members_are_ordered_by_utf_16_code_units() {
        // U+1F600 begins with the surrogate D83D, which sorts before U+FB33 although its code point is larger.
        let json = parse("{\"\u{fb33}\":1,\"\u{1f600}\":2,\"\u{20ac}\":3,\"a\":4,\"\":5}").unwrap();
        assert_eq!(json.canonical(), "{\"\":5,\"a\":4,\"\u{20ac}\":3,\"\u{1f600}\":2,\"\u{fb33}\":1}");
    }

    #[test]
    fn a_number_that_serde_json_would_round_becomes_text() {
        // A double holds 2^64, but its text there would be 18446744073709552000.
        let json = parse("[9007199254740993, 18446744073709551616, 0.1, 0.30000000000000000001]").unwrap();
        assert_eq!(
            json.to_value(),
            serde_json::json!([9007199254740993_i64, "18446744073709551616", 0.1, "0.30000000000000000001"])
        );
    }

    #[test]
    fn the_build_does_not_change_what_serde_json_calls_a_number() {
        // Features are unified over a whole build; `arbitrary_precision` would change enums far away from here.
        let value: serde_json::Value = serde_json::from_str("0.30000000000000000001").unwrap();
        assert_eq!(value.to_string(), "0.3");
    }
}
