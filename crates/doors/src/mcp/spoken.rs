//! All that an error says: its texts, and what stands beside them.

use super::classify::{READ_BYTES_MAX, ends, joined, texts};
use super::members::Members;
use super::said_beside;
use super::said_done::{self, Asked};
use semel_core::json::{self, Json};
use serde_json::value::RawValue;

/// Each text ends a sentence, whatever it ends with.
#[derive(Debug, Default)]
pub struct Spoken {
    /// All texts, as people read them.
    pub words: String,
    texts: Vec<String>,
    structures: Vec<Json>,
    /// Something that nobody can read as words: a link to what is there, or a structure that is too large.
    beside: Option<String>,
}

impl Spoken {
    /// What a result says, in all of its blocks and its structure.
    pub fn by_result(result: &Members<'_>) -> Spoken {
        let texts: Vec<String> = texts(result).into_iter().flatten().collect();
        let mut spoken = Spoken { words: ends(joined(&texts)), ..Spoken::default() };
        for text in texts {
            spoken.hear(ends(text));
        }
        let blocks: Vec<Block<'_>> =
            result.get("content").and_then(|content| serde_json::from_str(content).ok()).unwrap_or_default();
        for block in blocks {
            match block.kind.map(RawValue::get) {
                Some("\"resource\"") => {
                    let resource = block.resource.and_then(|resource| Members::parse(resource.get()));
                    let text = resource.as_ref().and_then(|resource| resource.text("text"));
                    spoken.hear(ends(text.unwrap_or_default().into_owned()));
                }
                Some("\"resource_link\"") => {
                    let uri = block.uri.map_or("", RawValue::get);
                    spoken.beside = Some(format!("a link to {uri}"));
                }
                _ => {}
            }
        }
        spoken.see(result.get("structuredContent"));
        spoken
    }

    /// What an error of JSON-RPC says.
    pub fn by_error(message: String, data: Option<&str>) -> Spoken {
        let mut spoken = Spoken::by_text(message);
        spoken.see(data);
        spoken
    }

    pub fn by_text(text: String) -> Spoken {
        let mut spoken = Spoken { words: text.clone(), ..Spoken::default() };
        spoken.hear(text);
        spoken
    }

    fn hear(&mut self, text: String) {
        match said_beside::as_structure(&text) {
            Some(structure) => self.structures.push(structure),
            None => self.texts.push(text),
        }
    }

    fn see(&mut self, structure: Option<&str>) {
        match structure {
            Some(large) if large.len() > READ_BYTES_MAX => {
                self.beside = Some("a structure that is too large to be read".to_owned());
            }
            Some(written) => self.structures.extend(json::parse(written).ok()),
            None => {}
        }
    }

    /// What of it says that something was done.
    pub fn says_done(&self, asked: Asked<'_>) -> Option<String> {
        let in_words = || self.texts.iter().find_map(|text| said_done::clause(&text.to_lowercase(), asked));
        let beside = || self.structures.iter().find_map(|structure| said_beside::member(structure, asked));
        in_words().or_else(beside).or_else(|| self.beside.clone())
    }
}

/// A block of content that is no text.
#[derive(serde::Deserialize)]
struct Block<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    resource: Option<&'a RawValue>,
    #[serde(borrow)]
    uri: Option<&'a RawValue>,
}
