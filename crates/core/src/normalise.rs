//! Normalisers: differences that a rule declares to be none.
//!
//! Nothing is normalised unless a rule asks, Unicode included: two names that merely look alike are two names.

use crate::json::{Json, Number};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Normaliser {
    /// White space at both ends goes.
    Trim,
    /// Unicode lower case.
    Lower,
    /// Each run of white space becomes one space.
    CollapseSpace,
    /// The elements of an array are put in the order of their canonical texts.
    Sort,
    /// A string that holds exactly a JSON number becomes that number.
    Number,
    /// `Ann <ANN@Example.com>` becomes `ann@example.com`.
    #[serde(alias = "e-mail")]
    Email,
}

impl Normaliser {
    /// Applies to a string, or to each string that is an element of an array; `sort` to the array itself. Anything
    /// else stays as it is.
    pub fn apply(&self, json: Json) -> Json {
        match (self, json) {
            (Normaliser::Sort, Json::Array(mut elements)) => {
                elements.sort_by_cached_key(Json::canonical);
                Json::Array(elements)
            }
            (_, Json::Array(elements)) => {
                Json::Array(elements.into_iter().map(|element| self.apply_to_string(element)).collect())
            }
            (_, json) => self.apply_to_string(json),
        }
    }

    fn apply_to_string(self, json: Json) -> Json {
        let Json::String(text) = json else { return json };
        match self {
            Normaliser::Trim => Json::str(text.trim()),
            Normaliser::Lower => Json::String(text.to_lowercase()),
            Normaliser::CollapseSpace => Json::String(collapse_space(&text)),
            Normaliser::Sort => Json::String(text),
            Normaliser::Number => Number::parse(&text).map_or(Json::String(text), Json::Number),
            Normaliser::Email => Json::String(bare_address(&text).to_lowercase()),
        }
    }
}

fn collapse_space(text: &str) -> String {
    let mut collapsed = String::with_capacity(text.len());
    let mut in_space = false;
    for character in text.chars() {
        let space = character.is_whitespace();
        if !space {
            collapsed.push(character);
        } else if !in_space {
            collapsed.push(' ');
        }
        in_space = space;
    }
    collapsed
}

/// The address without a display name. The local part is lower-cased with the rest: the mail systems that tell `Ann`
/// from `ann` are fewer than the models that change the case.
fn bare_address(text: &str) -> &str {
    let text = text.trim();
    let inside =
        text.strip_suffix('>').and_then(|text| text.rsplit_once('<')).map(|(_, inside)| inside.trim());
    inside.filter(|inside| inside.contains('@')).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{parse, tests::any_json};
    use proptest::prelude::*;

    fn normal(normaliser: Normaliser, json: &str) -> String {
        normaliser.apply(parse(json).unwrap()).canonical()
    }

    #[test]
    fn each_does_what_its_word_says() {
        assert_eq!(normal(Normaliser::Trim, r#"" a\tb\n""#), r#""a\tb""#);
        assert_eq!(normal(Normaliser::Lower, r#""ÀB Σ""#), r#""àb σ""#);
        assert_eq!(normal(Normaliser::CollapseSpace, r#"" a \t\n b""#), r#"" a b""#);
        assert_eq!(normal(Normaliser::Sort, r#"["b",10,9,"a"]"#), r#"["a","b",10,9]"#);
        assert_eq!(normal(Normaliser::Number, r#""10.50""#), "10.5");
        assert_eq!(normal(Normaliser::Number, r#""10,50""#), r#""10,50""#);
        assert_eq!(normal(Normaliser::Email, r#"" \"A, B\" <Ann@Example.COM > ""#), r#""ann@example.com""#);
        assert_eq!(normal(Normaliser::Email, r#""ANN@example.com""#), r#""ann@example.com""#);
        assert_eq!(normal(Normaliser::Email, r#""<Nobody>""#), r#""<nobody>""#);
    }

    #[test]
    fn strings_inside_an_array_are_reached_and_other_values_are_not() {
        assert_eq!(normal(Normaliser::Lower, r#"["A",1,["B"],{"C":"D"}]"#), r#"["a",1,["B"],{"C":"D"}]"#);
        assert_eq!(normal(Normaliser::Trim, "true"), "true");
        assert_eq!(normal(Normaliser::Sort, r#"{"b":[2,1]}"#), r#"{"b":[2,1]}"#);
    }

    #[test]
    fn the_words_are_the_ones_rules_write() {
        let read = |word: &str| serde_json::from_value::<Normaliser>(word.into()).ok();
        let words = ["trim", "lower", "collapse_space", "sort", "number", "email"];
        for word in words {
            let normaliser = read(word).expect("one of the words");
            assert_eq!(serde_json::to_value(normaliser).unwrap(), word);
        }
        assert_eq!(read("e-mail"), Some(Normaliser::Email));
        assert_eq!(read("upper"), None);
    }

    proptest! {
        #[test]
        fn twice_is_once_for_all_but_lower_case(json in any_json()) {
            // Unicode lower case is not idempotent for every script, so `lower` and `email` promise nothing here.
            for normaliser in [Normaliser::Trim, Normaliser::CollapseSpace, Normaliser::Sort, Normaliser::Number] {
                let once = normaliser.apply(json.clone());
                prop_assert_eq!(normaliser.apply(once.clone()), once);
            }
        }
    }
}
