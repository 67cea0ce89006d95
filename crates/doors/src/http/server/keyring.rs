//! The tokens that open this server: the operator's own, and those that the ledger keeps.

use super::credential::{Holder, LOCAL};
use crate::runtime::{RuntimeClock, moment};
use semel_gate::clock::Clock;
use semel_ledger::tokens::{AccessScope, PREFIX, TokenTable};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use subtle::ConstantTimeEq;
use tokio::time::Instant;

/// A revoked token works for this long at most: what was read is asked again then.
const FRESH: Duration = Duration::from_secs(1);

/// The operator's own token. Never printed.
#[derive(Clone)]
pub struct OperatorToken(String);

impl OperatorToken {
    pub fn new(text: String) -> OperatorToken {
        OperatorToken(text)
    }

    fn is(&self, other: &[u8]) -> bool {
        // Comparing must not tell how much of a guess was right.
        self.0.as_bytes().ct_eq(other).into()
    }
}

impl fmt::Debug for OperatorToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OperatorToken(…)")
    }
}

/// Reads the tokens that the ledger keeps now, or says why it cannot.
pub type ReadTokens =
    Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<TokenTable, String>> + Send>> + Send + Sync>;

pub struct Keyring {
    own: Option<OperatorToken>,
    kept: Option<ReadTokens>,
    clock: RuntimeClock,
    seen: Mutex<Option<TokenSnapshot>>,
}

/// The tokens as they were a moment ago.
#[derive(Debug, Clone)]
struct TokenSnapshot {
    tokens: Arc<TokenTable>,
    at: Instant,
}

/// The standing of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenStanding {
    Holds(Holder),
    /// It was never made, is revoked or is over. It is semel's own by its looks, and goes nowhere.
    Worthless,
    /// It is none of semel's.
    Foreign,
    /// The ledger cannot be asked.
    Unknown(String),
}

impl Keyring {
    pub fn new(own: Option<OperatorToken>, kept: Option<ReadTokens>, clock: RuntimeClock) -> Keyring {
        Keyring { own, kept, clock, seen: Mutex::default() }
    }

    /// Whether it is the operator's own, which lasts as long as the server.
    pub fn is_own(&self, shown: &[u8]) -> bool {
        self.own.as_ref().is_some_and(|own| own.is(shown))
    }

    pub async fn look_up(&self, shown: &[u8]) -> TokenStanding {
        if self.is_own(shown) {
            return TokenStanding::Holds(Holder::operator());
        }
        if !shown.starts_with(PREFIX.as_bytes()) {
            return TokenStanding::Foreign;
        }
        let Some(kept) = &self.kept else { return TokenStanding::Worthless };
        let seen = self.lock().clone().filter(|seen| seen.at.elapsed() < FRESH);
        if let Some(holder) = seen.and_then(|seen| self.holder(&seen.tokens, shown)) {
            return TokenStanding::Holds(holder);
        }
        // One that is not known may have been made just now.
        let tokens = match kept().await {
            Ok(tokens) => Arc::new(tokens),
            Err(why) => return TokenStanding::Unknown(why),
        };
        let found = self.holder(&tokens, shown);
        *self.lock() = Some(TokenSnapshot { tokens, at: moment() });
        found.map_or(TokenStanding::Worthless, TokenStanding::Holds)
    }

    fn holder(&self, tokens: &TokenTable, shown: &[u8]) -> Option<Holder> {
        let (id, kept) = tokens.holder(shown, self.clock.now())?;
        Some(Holder { tenant: kept.tenant.clone(), subject: kept.subject(id), scope: kept.scope })
    }

    fn lock(&self) -> MutexGuard<'_, Option<TokenSnapshot>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Holder {
    /// The holder of the operator's own token is the operator, and does what the command line does.
    fn operator() -> Holder {
        Holder { tenant: LOCAL.to_owned(), subject: LOCAL.to_owned(), scope: AccessScope::Admin }
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyring").field("own", &self.own).finish_non_exhaustive()
    }
}
