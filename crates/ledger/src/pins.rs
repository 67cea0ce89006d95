//! What tools looked like when they were first used: descriptions instruct models, so a change of one is news.

use crate::entropy::Entropy;
use crate::holders::Holders;
use crate::ledger::{Ledger, RACES_MAX};
use crate::store::{JournalLine, Revision, Store};
use crate::{Error, journal};
use semel_core::digest::Digest;
use semel_core::time::At;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;

/// The pins of one server, by tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pins(pub BTreeMap<String, Pin>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// The definition as it was first used, or as it was last accepted.
    pub hash: Digest,
    /// The same in words, for whoever is to judge a change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// How long it is in words, whether or not all of them are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_bytes: Option<usize>,
    pub since: At,
    /// Another definition that the server offers since, and that nobody has accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_text_bytes: Option<usize>,
}

impl Pin {
    /// What is kept of the definition that is pinned.
    pub fn was(&self) -> Option<Kept<'_>> {
        Some(Kept { text: self.text.as_deref()?, bytes: self.text_bytes })
    }

    /// What is kept of the one that is offered since.
    pub fn is(&self) -> Option<Kept<'_>> {
        Some(Kept { text: self.offered_text.as_deref()?, bytes: self.offered_text_bytes })
    }

    /// Nobody can have seen what is not kept, so it cannot be taken over.
    pub fn can_be_accepted(&self) -> bool {
        self.offered.is_some() && self.is().is_some_and(Kept::is_whole)
    }

    fn first(definition: Offered<'_>, since: At) -> Pin {
        let Offered { hash, text, text_bytes } = definition;
        Pin {
            hash,
            text: Some(text.to_owned()),
            text_bytes: Some(text_bytes),
            since,
            offered: None,
            offered_text: None,
            offered_text_bytes: None,
        }
    }

    fn keep(&mut self, definition: Offered<'_>) {
        (self.text, self.text_bytes) = (Some(definition.text.to_owned()), Some(definition.text_bytes));
    }

    fn keep_offered(&mut self, definition: Offered<'_>) {
        self.offered = Some(definition.hash);
        self.offered_text = Some(definition.text.to_owned());
        self.offered_text_bytes = Some(definition.text_bytes);
    }
}

/// A definition in words, or its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept<'a> {
    pub text: &'a str,
    /// Of the whole; an older semel did not write it down.
    pub bytes: Option<usize>,
}

/// Where an older semel cut a definition off. What is shorter was whole.
const CUT_OFF_BYTES: usize = 4 * 1024;

impl Kept<'_> {
    pub fn is_whole(self) -> bool {
        self.bytes.map_or(self.text.len() < CUT_OFF_BYTES, |bytes| bytes == self.text.len())
    }

    /// Whether more of it is known now than an older semel kept.
    fn lacks(self, definition: Offered<'_>) -> bool {
        !self.is_whole() && (self.bytes.is_none() || self.text.len() < definition.text.len())
    }
}

/// What there is to write after a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Write {
    Nothing,
    /// More of the words of what was known by its hash: no news.
    More,
    News(&'static str),
}

impl Pins {
    fn compare(&mut self, tool: &str, definition: Offered<'_>, now: At) -> (Pinned, Write) {
        let hash = definition.hash;
        match self.0.get_mut(tool) {
            Some(pin) if pin.hash == hash && pin.offered.is_none() => {
                if pin.was().is_some_and(|was| !was.lacks(definition)) {
                    return (Pinned::Same, Write::Nothing);
                }
                pin.keep(definition);
                (Pinned::Same, Write::More)
            }
            Some(pin) if pin.offered == Some(hash) => {
                if pin.is().is_some_and(|is| !is.lacks(definition)) {
                    return (Pinned::Changed, Write::Nothing);
                }
                pin.keep_offered(definition);
                (Pinned::Changed, Write::More)
            }
            // It is what it was again: whatever else was offered is withdrawn.
            Some(pin) if pin.hash == hash => {
                (pin.offered, pin.offered_text, pin.offered_text_bytes) = (None, None, None);
                (Pinned::Same, Write::News("definition_restored"))
            }
            Some(pin) => {
                pin.keep_offered(definition);
                (Pinned::Changed, Write::News("definition_changed"))
            }
            None => {
                self.0.insert(tool.to_owned(), Pin::first(definition, now));
                (Pinned::Same, Write::News("definition_pinned"))
            }
        }
    }
}

/// The name under which the tools of a server are pinned. `authority` tells two servers of one name apart.
pub fn of_server(name: &str, authority: &str) -> String {
    format!("{name}{APART}{:016x}", Digest::of(&[authority.as_bytes()]).short())
}

/// What people call it.
pub fn name_of(server: &str) -> &str {
    server.split(APART).next().unwrap_or(server)
}

/// No name of a server has it.
const APART: char = '\u{1f}';

/// A definition, as it is offered now.
#[derive(Debug, Clone, Copy)]
pub struct Offered<'a> {
    pub hash: Digest,
    /// In words: its beginning, if it is longer than what is kept.
    pub text: &'a str,
    /// How long it is in words.
    pub text_bytes: usize,
}

/// How a tool compares with its pin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pinned {
    Same,
    Changed,
}

/// Servers with pins, so that they can be listed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Servers(BTreeMap<String, ()>);

impl<S: Store, H: Holders, E: Entropy> Ledger<S, H, E> {
    /// Compares a tool with its pin. The first use pins it; a change is journaled, once.
    pub async fn pin(
        &self,
        server: &str,
        tool: &str,
        definition: Offered<'_>,
        now: At,
    ) -> Result<Pinned, Error> {
        for _ in 0..RACES_MAX {
            let (revision, mut pins) = self.pins_at(server).await?;
            let (pinned, kind) = match pins.compare(tool, definition, now) {
                (pinned, Write::Nothing) => return Ok(pinned),
                // That a text is kept whole now is no news.
                (pinned, Write::More) => (pinned, None),
                (pinned, Write::News(kind)) => (pinned, Some(kind)),
            };
            let data = json!({"server": name_of(server), "tool": tool});
            let line = kind.map(|kind| journal::note(kind, None, None, data, now));
            if self.put_pins(server, revision, &pins, line).await? {
                return Ok(pinned);
            }
        }
        Err(Error::NotWritten { what: format!("the pins of {} do not come to rest", name_of(server)) })
    }

    /// Takes over what the servers of this name offer, of one tool or of all, and only what begins with the hash that
    /// somebody has `seen`: by now it may be another. What cannot be shown whole is left waiting. Returns the pins as
    /// they were.
    pub async fn accept_pins(
        &self,
        name: &str,
        tool: Option<&str>,
        seen: &str,
        by: &str,
        now: At,
    ) -> Result<Vec<(String, Pin)>, Error> {
        let mut accepted = Vec::new();
        for server in self.all_pins().await?.into_keys().filter(|server| name_of(server) == name) {
            accepted.extend(self.accept_pins_of(&server, tool, seen, by, now).await?);
        }
        Ok(accepted)
    }

    async fn accept_pins_of(
        &self,
        server: &str,
        tool: Option<&str>,
        seen: &str,
        by: &str,
        now: At,
    ) -> Result<Vec<(String, Pin)>, Error> {
        let is_seen = |offered: &Digest| offered.to_string().starts_with(seen);
        for _ in 0..RACES_MAX {
            let (revision, mut pins) = self.pins_at(server).await?;
            let mut accepted = Vec::new();
            for (name, pin) in pins.0.iter_mut().filter(|(name, _)| tool.is_none_or(|tool| tool == *name)) {
                let before = pin.clone();
                if !pin.can_be_accepted() {
                    continue;
                }
                if let Some(offered) = pin.offered.take_if(|offered| is_seen(offered)) {
                    (pin.hash, pin.since) = (offered, now);
                    (pin.text, pin.text_bytes) = (pin.offered_text.take(), pin.offered_text_bytes.take());
                    accepted.push((name.clone(), before));
                }
            }
            let about = accepted.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
            let line = json!({"server": name_of(server), "tool": about, "by": by});
            let line = journal::note("definition_accepted", None, None, line, now);
            if accepted.is_empty() || self.put_pins(server, revision, &pins, Some(line)).await? {
                return Ok(accepted);
            }
        }
        Err(Error::NotWritten { what: format!("the pins of {} do not come to rest", name_of(server)) })
    }

    /// The pins of one server.
    pub async fn pins(&self, server: &str) -> Result<Pins, Error> {
        Ok(self.pins_at(server).await?.1)
    }

    /// All pins, by server.
    pub async fn all_pins(&self) -> Result<BTreeMap<String, Pins>, Error> {
        let (_, servers) = self.cell::<Servers>(self.pinned_servers_key()).await?;
        let mut all = BTreeMap::new();
        for server in servers.unwrap_or_default().0.into_keys() {
            let pins = self.pins(&server).await?;
            all.insert(server, pins);
        }
        Ok(all)
    }

    async fn pins_at(&self, server: &str) -> Result<(Revision, Pins), Error> {
        let (revision, pins) = self.cell::<Pins>(self.pins_key(server)).await?;
        Ok((revision, pins.unwrap_or_default()))
    }

    async fn put_pins(
        &self,
        server: &str,
        revision: Revision,
        pins: &Pins,
        line: Option<JournalLine>,
    ) -> Result<bool, Error> {
        if revision == Revision::ABSENT {
            self.list_pinned_server(server).await?;
        }
        self.put_cell(self.pins_key(server), revision, pins, line.into_iter().collect()).await
    }

    async fn list_pinned_server(&self, server: &str) -> Result<(), Error> {
        for _ in 0..RACES_MAX {
            let (revision, servers) = self.cell::<Servers>(self.pinned_servers_key()).await?;
            let mut servers = servers.unwrap_or_default();
            if servers.0.insert(server.to_owned(), ()).is_some()
                || self.put_cell(self.pinned_servers_key(), revision, &servers, Vec::new()).await?
            {
                return Ok(());
            }
        }
        Err(Error::NotWritten { what: "the list of pinned servers does not come to rest".into() })
    }

    fn pins_key(&self, server: &str) -> Digest {
        self.secret().mac("pins", &[server.as_bytes()])
    }

    fn pinned_servers_key(&self) -> Digest {
        self.secret().mac("pinned servers", &[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_servers_of_one_name_are_pinned_apart_and_called_alike() {
        let [one, other] =
            ["python3 /a/server.py", "python3 /b/server.py"].map(|by| of_server("billing", by));
        assert_ne!(one, other);
        assert_eq!((name_of(&one), name_of(&other)), ("billing", "billing"));
        assert_eq!(name_of("billing"), "billing");
    }

    /// An older semel kept four kilobytes, and did not say whether that was all.
    #[test]
    fn what_was_cut_off_once_is_not_accepted_until_it_is_known_whole() {
        let hash = |text: &str| Digest::of(&[text.as_bytes()]);
        let (was, is) = ("a".repeat(5_000), "b".repeat(5_000));
        let cut = |text: &str| format!("{}… (904 bytes more)\n", &text[..CUT_OFF_BYTES]);
        let offered = |text| Offered { hash: hash(text), text, text_bytes: text.len() };
        let now = At(7);
        let mut pins = Pins::default();
        let mut pin = Pin::first(offered(&was), now);
        (pin.text, pin.text_bytes) = (Some(cut(&was)), None);
        pins.0.insert("pay".into(), pin);
        assert!(!pins.0["pay"].was().unwrap().is_whole());
        assert_eq!(pins.clone().compare("pay", offered(&was), now), (Pinned::Same, Write::More));
        let news = (Pinned::Changed, Write::News("definition_changed"));
        assert_eq!(pins.compare("pay", offered(&is), now), news);
        assert!(pins.0["pay"].can_be_accepted());
        let pin = pins.0.get_mut("pay").unwrap();
        (pin.offered_text, pin.offered_text_bytes) = (Some(cut(&is)), None);
        assert!(!pin.can_be_accepted());
        assert_eq!(pins.compare("pay", offered(&is), now), (Pinned::Changed, Write::More));
        assert!(pins.0["pay"].can_be_accepted());
        assert_eq!(pins.compare("pay", offered(&is), now), (Pinned::Changed, Write::Nothing));
        // What is too long stays so, and is not written again and again.
        let long = Offered { text_bytes: 1 << 20, ..offered(&was[..4_999]) };
        assert_eq!(pins.compare("pay", long, now), news);
        assert_eq!(pins.compare("pay", long, now), (Pinned::Changed, Write::Nothing));
        assert!(!pins.0["pay"].can_be_accepted());
    }
}
