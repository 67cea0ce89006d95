//! The tokens that open semel's own server: who they are for, what they may do, and a hash of each. A token itself is
//! never written down; it is shown once, when it is made.

use crate::command_key::CommandKey;
use crate::ledger::{CellUpdate, Ledger};
use crate::store::{Durability, JOURNAL_PAGE_MAX, JournalLine};
use crate::{Error, journal};
use semel_core::digest::Digest;
use semel_core::time::At;
use semel_core::word_table;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use subtle::ConstantTimeEq;

/// The scope of a token. Each scope includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessScope {
    /// Calls tools, and sees what came of its own calls.
    Agent,
    /// Sees everything of its tenant, rules on doubts, cancels runs.
    Operator,
    /// Makes and revokes the tokens of its tenant.
    Admin,
}

word_table!(AccessScope { Agent = "agent", Operator = "operator", Admin = "admin" });

/// A token, as the ledger keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredToken {
    /// SHA-256 is enough: a token is 256 random bits, which no dictionary has.
    hash: Digest,
    pub tenant: String,
    pub scope: AccessScope,
    /// Whom the token is for. Tokens of one name are one principal: so one can take the place of another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub created_at: At,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<At>,
    /// The command that made it, where that came under a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    made_by: Option<CommandKey>,
}

impl StoredToken {
    /// The principal of whatever is done with it.
    pub fn subject(&self, id: &str) -> String {
        format!("token:{}", self.name.as_deref().unwrap_or(id))
    }

    pub fn is_over(&self, now: At) -> bool {
        self.expires_at.is_some_and(|end| now >= end)
    }

    fn line(&self, kind: &str, id: &str, now: At) -> JournalLine {
        let StoredToken { tenant, scope, name, .. } = self;
        let data = serde_json::json!({"token": id, "tenant": tenant, "scope": scope, "name": name});
        journal::note(kind, None, None, data, now)
    }
}

/// All tokens, by id.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenTable(pub BTreeMap<String, StoredToken>);

/// The properties of a new token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRequest {
    tenant: String,
    scope: AccessScope,
    name: Option<String>,
    expires_at: Option<At>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadToken {
    #[error("a tenant has 1 to {NAME_CHARS_MAX} letters, digits, `_`, `-` and `.`")]
    Tenant,
    #[error("a token's name has 1 to {NAME_CHARS_MAX} letters, digits, `_`, `-` and `.`")]
    Name,
}

/// Names stand in tables and in every intent key.
const NAME_CHARS_MAX: usize = 64;

/// As many as one tenant may have, so that it cannot take the room of another. A tenant that needs more has an identity
/// provider.
const TENANT_TOKENS_MAX: usize = 1_000;

/// They all lie in one cell, which is read whole: a few megabytes of it.
const TOKENS_MAX: usize = 20_000;

/// The beginning of every token, so that people and scanners recognise one.
pub const PREFIX: &str = "semel_";

impl TokenRequest {
    pub fn new(
        tenant: &str,
        scope: AccessScope,
        name: Option<&str>,
        expires_at: Option<At>,
    ) -> Result<TokenRequest, BadToken> {
        if !is_plain(tenant) {
            return Err(BadToken::Tenant);
        }
        if name.is_some_and(|name| !is_plain(name)) {
            return Err(BadToken::Name);
        }
        Ok(TokenRequest { tenant: tenant.to_owned(), scope, name: name.map(str::to_owned), expires_at })
    }
}

fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    !name.is_empty() && name.len() <= NAME_CHARS_MAX && name.bytes().all(plain)
}

impl TokenTable {
    /// Whose token this is, if it is one and not over.
    pub fn holder(&self, shown: &[u8], now: At) -> Option<(&str, &StoredToken)> {
        let text = std::str::from_utf8(shown).ok()?;
        // The id says which one to compare with and is no secret; all of the rest is compared, whatever is found.
        let (id, _) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let (id, kept) = self.0.get_key_value(id)?;
        let same: bool = hash(text).0.ct_eq(&kept.hash.0).into();
        (same && !kept.is_over(now)).then_some((id.as_str(), kept))
    }

    /// Whether a tenant may have one more.
    fn check_room(&self, tenant: &str) -> Result<(), String> {
        let own = self.0.values().filter(|kept| kept.tenant == tenant).count();
        if own >= TENANT_TOKENS_MAX {
            return Err(format!("there are {TENANT_TOKENS_MAX} tokens of this tenant already"));
        }
        match self.0.len() >= TOKENS_MAX {
            true => Err(format!("there are {TOKENS_MAX} tokens already")),
            false => Ok(()),
        }
    }
}

fn hash(text: &str) -> Digest {
    Digest::of(&[b"semel token", text.as_bytes()])
}

/// A token that was just made.
pub struct IssuedToken {
    pub id: String,
    /// Told once.
    pub text: String,
    pub kept: StoredToken,
}

/// A token that was asked for under a key.
#[derive(Debug)]
pub enum TokenOnce {
    Made(IssuedToken),
    /// Its text was shown then and is not known any more.
    MadeBefore {
        id: String,
        kept: StoredToken,
    },
}

impl fmt::Debug for IssuedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Made").field("id", &self.id).field("kept", &self.kept).finish_non_exhaustive()
    }
}

impl Ledger {
    pub async fn tokens(&self) -> Result<TokenTable, Error> {
        Ok(self.cell(self.tokens_key()).await?.1.unwrap_or_default())
    }

    pub async fn make_token(&self, new: &TokenRequest, now: At) -> Result<IssuedToken, Error> {
        self.update_cell(self.tokens_key(), Durability::Durable, |tokens: Option<TokenTable>| {
            self.issue(tokens.unwrap_or_default(), new, None, now)
        })
        .await
    }

    /// The same under a key, while the token is there.
    pub async fn make_token_once(
        &self,
        new: &TokenRequest,
        command: CommandKey,
        now: At,
    ) -> Result<TokenOnce, Error> {
        self.update_cell(self.tokens_key(), Durability::Durable, |tokens: Option<TokenTable>| {
            let value = tokens.unwrap_or_default();
            for (id, kept) in &value.0 {
                if CommandKey::is_repeat(Some(command), kept.made_by)? {
                    let known = TokenOnce::MadeBefore { id: id.clone(), kept: kept.clone() };
                    return Ok(CellUpdate::Keep(known));
                }
            }
            Ok(match self.issue(value, new, Some(command), now)? {
                CellUpdate::Keep(issued) => CellUpdate::Keep(TokenOnce::Made(issued)),
                CellUpdate::Put { value, lines, result } => {
                    CellUpdate::Put { value, lines, result: TokenOnce::Made(result) }
                }
            })
        })
        .await
    }

    fn issue(
        &self,
        mut value: TokenTable,
        new: &TokenRequest,
        made_by: Option<CommandKey>,
        now: At,
    ) -> Result<CellUpdate<TokenTable, IssuedToken>, Error> {
        value.0.retain(|_, kept| !kept.is_over(now));
        value.check_room(&new.tenant).map_err(|what| Error::NotWritten { what })?;
        let bits = || self.entropy.bits();
        let mut id = format!("{:012x}", bits() >> 80);
        // Two of the same name would be one: the earlier one would stop working.
        while value.0.contains_key(&id) {
            id = format!("{:012x}", bits() >> 80);
        }
        let text = format!("{PREFIX}{id}_{:032x}{:032x}", bits(), bits());
        let TokenRequest { tenant, scope, name, expires_at } = new.clone();
        let hash = hash(&text);
        let kept = StoredToken { hash, tenant, scope, name, created_at: now, expires_at, made_by };
        value.0.insert(id.clone(), kept.clone());
        let lines = vec![kept.line("token_created", &id, now)];
        Ok(CellUpdate::Put { value, lines, result: IssuedToken { id, text, kept } })
    }

    /// Makes a token worthless. `None`: there is no such token, or it is another tenant's.
    pub async fn revoke_token(
        &self,
        id: &str,
        tenant: Option<&str>,
        now: At,
    ) -> Result<Option<StoredToken>, Error> {
        self.update_cell(self.tokens_key(), Durability::Durable, |tokens: Option<TokenTable>| {
            let mut value = tokens.unwrap_or_default();
            let theirs = |kept: &StoredToken| tenant.is_none_or(|tenant| kept.tenant == tenant);
            if !value.0.get(id).is_some_and(theirs) {
                return Ok(CellUpdate::Keep(None));
            }
            let kept = value.0.remove(id).expect("it was there");
            let lines = vec![kept.line("token_revoked", id, now)];
            Ok(CellUpdate::Put { value, lines, result: Some(kept) })
        })
        .await
    }

    /// Whether the journal knows that there was such a token, and that it was revoked.
    pub async fn was_revoked(&self, id: &str) -> Result<bool, Error> {
        let mut after = None;
        loop {
            let page = self.journal(after, JOURNAL_PAGE_MAX).await?;
            let is_it = |line: &JournalLine| {
                let data: serde_json::Value = serde_json::from_str(&line.data).unwrap_or_default();
                data["token"] == id
            };
            let mut revoked = page.items.iter().filter(|(_, line)| line.kind == "token_revoked");
            if revoked.any(|(_, line)| is_it(line)) {
                return Ok(true);
            }
            match page.next {
                None => return Ok(false),
                next => after = next,
            }
        }
    }

    fn tokens_key(&self) -> Digest {
        self.secret().mac("tokens", &[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(of: &[(&str, usize)]) -> TokenTable {
        let kept = |tenant: &str| StoredToken {
            hash: hash(tenant),
            tenant: tenant.to_owned(),
            scope: AccessScope::Agent,
            name: None,
            created_at: At(0),
            expires_at: None,
            made_by: None,
        };
        let all = of.iter().flat_map(|(tenant, count)| {
            (0..*count).map(move |number| (format!("{tenant}{number}"), kept(tenant)))
        });
        TokenTable(all.collect())
    }

    #[test]
    fn a_tenant_with_all_its_tokens_takes_none_of_another() {
        let tokens = tokens(&[("greedy", TENANT_TOKENS_MAX), ("other", TENANT_TOKENS_MAX - 1)]);
        assert!(tokens.check_room("greedy").is_err());
        assert_eq!((tokens.check_room("other"), tokens.check_room("new")), (Ok(()), Ok(())));
    }

    #[test]
    fn all_together_have_an_end() {
        let names: Vec<String> = (0..TOKENS_MAX).map(|number| format!("t{number}x")).collect();
        let each: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), 1)).collect();
        assert!(tokens(&each).check_room("new").is_err());
    }
}
