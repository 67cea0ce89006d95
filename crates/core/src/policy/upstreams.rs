//! The operator's settings for HTTP APIs behind semel, completed by packs.

use super::file::{Helps, ServerError, Speaks, Stores};
use crate::redact::without_shapes;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

/// `[upstream.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpApi {
    /// The file and line that say so.
    pub path: PathBuf,
    pub line: usize,
    /// As it is written; whether it may be asked is the client's matter.
    pub url: String,
    /// The pack whose preset holds for it.
    pub preset: Option<&'static str>,
    /// Replaces the host in the names of its actions.
    pub service: String,
    /// Replaces its address in the identity of its calls, if set.
    pub account: Option<String>,
    /// The model API that it is, if it is one.
    pub speaks: Speaks,
    pub headers: Vec<(String, String)>,
    /// Header and the environment variable that holds its value.
    pub headers_env: Vec<(String, String)>,
    pub private: bool,
    pub run: Option<String>,
    pub keys: KeyPolicy,
}

impl HttpApi {
    /// The path that all of its paths begin with, without a slash at its end.
    pub fn base(&self) -> &str {
        let after_scheme = self.url.split_once("://").map_or(self.url.as_str(), |(_, rest)| rest);
        let path = &after_scheme[after_scheme.find('/').unwrap_or(after_scheme.len())..];
        path.trim_end_matches('/')
    }

    /// Whether nothing tells the calls of the two apart, although they may be for two accounts: those who write the same
    /// account into both know that it is one.
    pub fn passes_for(&self, other: &HttpApi) -> bool {
        let address = |api: &HttpApi| api.url.trim_end_matches('/').to_ascii_lowercase();
        let sorted = |pairs: &[(String, String)]| {
            let named = pairs.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone()));
            named.collect::<BTreeSet<_>>()
        };
        let headers = |api: &HttpApi| (sorted(&api.headers), sorted(&api.headers_env));
        let unnamed = self.account.is_none() && other.account.is_none();
        unnamed && address(self) == address(other) && headers(self) != headers(other)
    }

    /// Whether semel itself may put a credential into requests, rather than giving on the client's. Which header holds
    /// one is the API's to say, so any that the operator wrote may.
    pub fn injects_credentials(&self) -> bool {
        !self.headers_env.is_empty() || !self.headers.is_empty()
    }

    /// Whether a request that passes through can do more than its sender could alone: by a credential that the operator
    /// wrote into headers, or by an address that is one, as those of webhooks and bots are.
    pub fn lends_credentials(&self) -> bool {
        let path = self.url.splitn(4, '/').nth(3).unwrap_or_default();
        let long = |word: &str| {
            word.len() >= SECRET_CHARS_MIN
                && word.bytes().any(|byte| byte.is_ascii_digit())
                && word.bytes().any(|byte| byte.is_ascii_alphabetic())
        };
        self.injects_credentials()
            || without_shapes(path).is_some()
            || path.split(|c: char| !c.is_ascii_alphanumeric()).any(long)
    }
}

/// A word of letters and digits that is as long as this was made by a machine, to be hard to guess.
const SECRET_CHARS_MIN: usize = 20;

/// Headers in which APIs take a credential.
pub const CREDENTIALS: [&str; 4] = ["authorization", "x-api-key", "api-key", "x-goog-api-key"];

/// The promise that an idempotency key gives a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPolicy {
    /// The header in which clients send it.
    pub header: String,
    /// A regular expression that a whole key must match.
    pub pattern: Option<String>,
    pub required: bool,
    pub stores: Stores,
    pub server_error: ServerError,
    pub drift_status: u16,
    pub in_flight_status: u16,
    pub created_status: u16,
    /// How long a key answers repeats; `None` = for ever.
    pub life: Option<Duration>,
}

/// The name that the standard's draft gives it.
pub const KEY_HEADER: &str = "Idempotency-Key";

impl Default for KeyPolicy {
    fn default() -> Self {
        KeyPolicy {
            header: KEY_HEADER.to_owned(),
            pattern: None,
            required: false,
            stores: Stores::default(),
            server_error: ServerError::default(),
            drift_status: 422,
            in_flight_status: 409,
            created_status: 201,
            life: None,
        }
    }
}

/// A pack's knowledge of an HTTP API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preset {
    pub service: String,
    /// Patterns of hosts.
    pub hosts: Vec<String>,
    pub speaks: Speaks,
    pub helps: Helps,
    pub note: String,
    pub keys: KeyPolicy,
}
