//! The place for an idempotency key that a tool's own input schema has. A schema is no promise, so a key that is filled
//! in there makes no tier.

use crate::wire::members::Members;
use regex::Regex;
use semel_core::digest::Digest;
use semel_core::judgement::arguments::is_own_key;
use semel_core::policy::rule::KeyForm;
use semel_core::policy::rule::{Inject, InjectInto};

/// The argument of a tool that keys are for, and how one is written there. `None`: there is none, or no key of ours
/// would fit.
pub fn declared(properties: &Members<'_>) -> Option<Inject> {
    let name = properties.names().find(|name| is_own_key(name))?.to_owned();
    let schema = properties.object(&name);
    let form = [KeyForm::Text, KeyForm::Uuid, KeyForm::Hex].into_iter().find(|form| fits(&schema, *form))?;
    Some(Inject { into: InjectInto::Arg(name), form, length: None, valid_for: None })
}

/// Whether every key in this form is one by the schema.
fn fits(schema: &Members<'_>, form: KeyForm) -> bool {
    let length = |name: &str| schema.get(name).and_then(|length| length.parse::<usize>().ok());
    let pattern = schema.text("pattern").map(|pattern| Regex::new(&pattern).ok());
    // A pattern is tried on several keys; one that none of them shows to be too narrow allows them all.
    let keys = (0..8_u8).map(|n| form.write(Digest::of(&[&[n]])));
    let format_fits = match schema.text("format").as_deref() {
        None => true,
        Some("uuid") => form == KeyForm::Uuid,
        Some(_) => false,
    };
    schema.text("type").as_deref() == Some("string")
        && ["enum", "const"].iter().all(|name| schema.get(name).is_none())
        && format_fits
        && keys.into_iter().all(|key| {
            length("minLength").is_none_or(|least| key.len() >= least)
                && length("maxLength").is_none_or(|most| key.len() <= most)
                && pattern
                    .as_ref()
                    .is_none_or(|known| known.as_ref().is_some_and(|known| known.is_match(&key)))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_written_as_the_schema_allows() {
        let form = |schema: &str| {
            let properties = format!(r#"{{"amount":{{}},"idempotency_key":{schema}}}"#);
            declared(&Members::parse(&properties).unwrap()).map(|inject| inject.form)
        };
        assert_eq!(form(r#"{"type":"string"}"#), Some(KeyForm::Text));
        assert_eq!(form(r#"{"type":"string","format":"uuid"}"#), Some(KeyForm::Uuid));
        assert_eq!(form(r#"{"type":"string","maxLength":40}"#), Some(KeyForm::Uuid));
        assert_eq!(form(r#"{"type":"string","maxLength":32,"pattern":"^[a-f0-9]+$"}"#), Some(KeyForm::Hex));
        for none in [
            r#"{"type":"integer"}"#,
            r#"{"type":"string","maxLength":8}"#,
            r#"{"type":"string","format":"email"}"#,
            r#"{"type":"string","pattern":"^ord-"}"#,
            r#"{"type":"string","pattern":"("}"#,
            r#"{"type":"string","enum":["a"]}"#,
            "{}",
        ] {
            assert_eq!(form(none), None, "{none}");
        }
        assert!(declared(&Members::parse(r#"{"amount":{"type":"string"}}"#).unwrap()).is_none());
    }
}
