//! What tools looked like when they were first used: descriptions instruct models, so a change of one is news.

use crate::entropy::Entropy;
use crate::holders::Holders;
use crate::ledger::{Ledger, RACES_MAX};
use crate::store::{Revision, Store};
use crate::{Error, journal};
use semel_core::digest::Digest;
use semel_core::time::At;
use serde::{Deserialize, Serialize};
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
    pub since: At,
    /// Another definition that the server offers since, and that nobody has accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_text: Option<String>,
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
    pub text: &'a str,
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
        let Offered { hash, text } = definition;
        for _ in 0..RACES_MAX {
            let (revision, mut pins) = self.pins_at(server).await?;
            let (pinned, kind) = match pins.0.get_mut(tool) {
                Some(pin) if pin.hash == hash && pin.offered.is_none() => return Ok(Pinned::Same),
                Some(pin) if pin.offered == Some(hash) => return Ok(Pinned::Changed),
                // It is what it was again: whatever else was offered is withdrawn.
                Some(pin) if pin.hash == hash => {
                    (pin.offered, pin.offered_text) = (None, None);
                    (Pinned::Same, "definition_restored")
                }
                Some(pin) => {
                    (pin.offered, pin.offered_text) = (Some(hash), Some(text.to_owned()));
                    (Pinned::Changed, "definition_changed")
                }
                None => {
                    let text = Some(text.to_owned());
                    let pin = Pin { hash, text, since: now, offered: None, offered_text: None };
                    pins.0.insert(tool.to_owned(), pin);
                    (Pinned::Same, "definition_pinned")
                }
            };
            if self.put_pins(server, revision, &pins, kind, tool, now).await? {
                return Ok(pinned);
            }
        }
        Err(Error::NotWritten { what: format!("the pins of {} do not come to rest", name_of(server)) })
    }

    /// Takes over what the servers of this name offer, of one tool or of all, and only what begins with the hash that
    /// somebody has `seen`: by now it may be another. Returns the pins as they were.
    pub async fn accept_pins(
        &self,
        name: &str,
        tool: Option<&str>,
        seen: &str,
        now: At,
    ) -> Result<Vec<(String, Pin)>, Error> {
        let mut accepted = Vec::new();
        for server in self.all_pins().await?.into_keys().filter(|server| name_of(server) == name) {
            accepted.extend(self.accept_pins_of(&server, tool, seen, now).await?);
        }
        Ok(accepted)
    }

    async fn accept_pins_of(
        &self,
        server: &str,
        tool: Option<&str>,
        seen: &str,
        now: At,
    ) -> Result<Vec<(String, Pin)>, Error> {
        let is_seen = |offered: &Digest| offered.to_string().starts_with(seen);
        for _ in 0..RACES_MAX {
            let (revision, mut pins) = self.pins_at(server).await?;
            let mut accepted = Vec::new();
            for (name, pin) in pins.0.iter_mut().filter(|(name, _)| tool.is_none_or(|tool| tool == *name)) {
                let before = pin.clone();
                if let Some(offered) = pin.offered.take_if(|offered| is_seen(offered)) {
                    (pin.hash, pin.text, pin.since) = (offered, pin.offered_text.take(), now);
                    accepted.push((name.clone(), before));
                }
            }
            let about = accepted.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
            if accepted.is_empty()
                || self.put_pins(server, revision, &pins, "definition_accepted", &about, now).await?
            {
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
        kind: &str,
        tool: &str,
        now: At,
    ) -> Result<bool, Error> {
        if revision == Revision::ABSENT {
            self.list_pinned_server(server).await?;
        }
        let data = serde_json::json!({"server": name_of(server), "tool": tool});
        let line = journal::note(kind, None, None, data, now);
        self.put_cell(self.pins_key(server), revision, pins, vec![line]).await
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
}
