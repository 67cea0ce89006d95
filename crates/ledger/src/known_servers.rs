//! Servers on stdio by name: how each was first started. One name is one server.

use crate::entropy::Entropy;
use crate::holders::Holders;
use crate::ledger::{Ledger, RACES_MAX};
use crate::store::{JournalLine, Revision, Store};
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

impl<S: Store, H: Holders, E: Entropy> Ledger<S, H, E> {
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
        for _ in 0..RACES_MAX {
            let (revision, known) = self.cell::<KnownServer>(self.known_server_key(name)).await?;
            let (known, kind) = match known {
                Some(known) if is_same(&known.start) => return Ok(None),
                Some(known) if known.refused.as_ref() == Some(start) => return Ok(Some(known)),
                Some(known) => (KnownServer { refused: Some(start.clone()), ..known }, "server_refused"),
                None if !remember => return Ok(None),
                None => (KnownServer { start: start.clone(), refused: None }, "server_named"),
            };
            let data = json!({"server": name, "command": start.shown, "directory": start.directory});
            if self
                .put_known_server(name, revision, &known, journal::note(kind, None, None, data, now))
                .await?
            {
                return Ok(known.refused.is_some().then_some(known));
            }
        }
        Err(not_written(name))
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
        for _ in 0..RACES_MAX {
            let (revision, known) = self.cell::<KnownServer>(self.known_server_key(name)).await?;
            if known.is_none_or(|known| known.refused.as_ref() != Some(seen)) {
                return Ok(false);
            }
            let known = KnownServer { start: seen.clone(), refused: None };
            let data = json!({"server": name, "command": seen.shown, "directory": seen.directory, "by": by});
            let line = journal::note("server_accepted", None, None, data, now);
            if self.put_known_server(name, revision, &known, line).await? {
                return Ok(true);
            }
        }
        Err(not_written(name))
    }

    async fn put_known_server(
        &self,
        name: &str,
        revision: Revision,
        known: &KnownServer,
        line: JournalLine,
    ) -> Result<bool, Error> {
        self.put_cell(self.known_server_key(name), revision, known, vec![line]).await
    }

    fn known_server_key(&self, name: &str) -> Digest {
        self.secret().mac("known server", &[name.as_bytes()])
    }
}

fn not_written(name: &str) -> Error {
    Error::NotWritten { what: format!("the command of the server {name} keeps changing") }
}
