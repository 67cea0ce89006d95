//! Servers on stdio by name: how each was first started. One name is one server.

use crate::ledger::{CellUpdate, Ledger};
use crate::store::Durability;
use crate::{Error, journal};
use semel_core::digest::Digest;
use semel_core::time::At;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// How a server is started, as far as that tells two servers apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerStart {
    /// Of the command's words, under the ledger's secret: they may hold a credential.
    command: Digest,
    /// The words without their secrets, for people.
    pub shown: String,
    pub directory: String,
}

impl ServerStart {
    /// The same words. In another directory these may still start another server.
    pub fn has_command_of(&self, other: &ServerStart) -> bool {
        self.command == other.command
    }
}

/// The server that a name belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownServer {
    pub start: ServerStart,
    /// A start that differed, and was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<ServerStart>,
}

impl Ledger {
    /// A start of a server, as it can be kept.
    pub fn server_start(&self, words: &[&[u8]], shown: String, directory: String) -> ServerStart {
        ServerStart { command: self.secret().mac("server command", words), shown, directory }
    }

    /// Compares a start with the one that its name is known for. With `any_directory` the words alone decide. With
    /// `remember` a name that is not known yet belongs to this server from now on.
    ///
    /// `Some`: the name belongs to this other server. Its refused start is kept, so that a person can accept it.
    pub async fn check_server(
        &self,
        name: &str,
        start: &ServerStart,
        any_directory: bool,
        remember: bool,
        now: At,
    ) -> Result<Option<KnownServer>, Error> {
        let is_same = |known: &ServerStart| match any_directory {
            true => known.has_command_of(start),
            false => known.has_command_of(start) && known.directory == start.directory,
        };
        self.update_cell(self.known_server_key(name), Durability::Durable, |known: Option<KnownServer>| {
            let (value, kind) = match known {
                Some(known) if is_same(&known.start) => return Ok(CellUpdate::Keep(None)),
                Some(known) if known.refused.as_ref() == Some(start) => {
                    return Ok(CellUpdate::Keep(Some(known)));
                }
                Some(known) => (KnownServer { refused: Some(start.clone()), ..known }, "server_refused"),
                None if !remember => return Ok(CellUpdate::Keep(None)),
                None => (KnownServer { start: start.clone(), refused: None }, "server_named"),
            };
            let data = json!({"server": name, "command": start.shown, "directory": start.directory});
            let lines = vec![journal::note(kind, None, None, data, now)];
            let result = value.refused.is_some().then(|| value.clone());
            Ok(CellUpdate::Put { value, lines, result })
        })
        .await
    }

    pub async fn known_server(&self, name: &str) -> Result<Option<KnownServer>, Error> {
        Ok(self.cell(self.known_server_key(name)).await?.1)
    }

    /// A person says that this refused start is of the same server. `false`: it is no longer the one that was refused
    /// last.
    pub async fn accept_server(
        &self,
        name: &str,
        seen: &ServerStart,
        by: &str,
        now: At,
    ) -> Result<bool, Error> {
        self.update_cell(self.known_server_key(name), Durability::Durable, |known: Option<KnownServer>| {
            if known.is_none_or(|known| known.refused.as_ref() != Some(seen)) {
                return Ok(CellUpdate::Keep(false));
            }
            let value = KnownServer { start: seen.clone(), refused: None };
            let data = json!({"server": name, "command": seen.shown, "directory": seen.directory, "by": by});
            let lines = vec![journal::note("server_accepted", None, None, data, now)];
            Ok(CellUpdate::Put { value, lines, result: true })
        })
        .await
    }

    fn known_server_key(&self, name: &str) -> Digest {
        self.secret().mac("known server", &[name.as_bytes()])
    }
}
