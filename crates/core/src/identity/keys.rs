//! The digests of an intent: one that anyone can recompute, and those that only this ledger can.

use crate::digest::{Digest, Secret};
use crate::json::Json;
use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};
use std::fmt;

/// SHA-256 over version, action and identity. Public: the same on every machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Encode, Decode)]
#[serde(transparent)]
#[cbor(transparent)]
pub struct IntentDigest(#[n(0)] pub Digest);

/// Hexadecimal digits of the digest in an idempotency key: 160 bits, within the 64 characters that the shortest
/// upstream limits allow.
const KEY_DIGITS: usize = 40;

impl IntentDigest {
    pub fn of(action: &str, identity: &Json) -> IntentDigest {
        IntentDigest(Digest::of(&[b"semel-intent-1", action.as_bytes(), identity.canonical().as_bytes()]))
    }

    /// The caller said what is the same; nothing else counts.
    pub fn of_caller_key(key: &str) -> IntentDigest {
        IntentDigest(Digest::of(&[b"semel-key-1", key.as_bytes()]))
    }

    /// The text that `semel key` prints and that can be sent upstream.
    pub fn idempotency_key(&self) -> String {
        format!("semel_{}", &self.0.to_string()[..KEY_DIGITS])
    }
}

impl fmt::Display for IntentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Whose intent it is, and inside which boundary equal intents are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntentParts<'a> {
    pub tenant: &'a str,
    pub principal: &'a str,
    pub authority: &'a str,
    pub scope: &'a str,
}

/// The key of the record in the store.
pub fn intent_key(secret: &Secret, parts: &IntentParts<'_>, intent: &IntentDigest) -> Digest {
    let IntentParts { tenant, principal, authority, scope } = parts;
    secret.mac(
        "intent",
        &[tenant.as_bytes(), principal.as_bytes(), authority.as_bytes(), scope.as_bytes(), &intent.0.0],
    )
}

/// Where a caller's own key points to the intent it first came with, if a rule's fields are the identity.
pub fn alias_key(secret: &Secret, parts: &IntentParts<'_>, key: &str) -> Digest {
    let IntentParts { tenant, principal, authority, scope: _ } = parts;
    secret.mac("alias", &[tenant, principal, authority, key].map(str::as_bytes))
}

/// The intent whatever its scope: while one of a family is open, no other run may start it.
pub fn family_key(secret: &Secret, parts: &IntentParts<'_>, intent: &IntentDigest) -> Digest {
    let IntentParts { tenant, principal, authority, scope: _ } = parts;
    secret.mac("family", &[tenant.as_bytes(), principal.as_bytes(), authority.as_bytes(), &intent.0.0])
}

/// Where calls with one outline are found, whatever their scope: a rule may change it.
pub fn outline_key(secret: &Secret, parts: &IntentParts<'_>, action: &str, outline: &str) -> Digest {
    let IntentParts { tenant, principal, authority, scope: _ } = parts;
    secret.mac("outline", &[tenant, principal, authority, action, outline].map(str::as_bytes))
}

/// Where the effects that removed something at one server are found.
pub fn removals_key(secret: &Secret, parts: &IntentParts<'_>, server: &str) -> Digest {
    let IntentParts { tenant, principal, authority, scope: _ } = parts;
    secret.mac("removals", &[tenant, principal, authority, server].map(str::as_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;

    const PARTS: IntentParts<'static> =
        IntentParts { tenant: "t", principal: "p", authority: "a", scope: "run:1" };

    #[test]
    fn an_idempotency_key_is_short_and_names_its_maker() {
        let digest = IntentDigest::of("fn:charge", &parse("{}").unwrap());
        let key = digest.idempotency_key();
        assert_eq!(key.len(), 46);
        assert!(digest.to_string().starts_with(key.strip_prefix("semel_").unwrap()));
    }

    #[test]
    fn a_callers_key_is_never_a_derived_one() {
        let identity = parse("\"x\"").unwrap();
        assert_ne!(IntentDigest::of_caller_key("x"), IntentDigest::of("x", &identity));
    }

    #[test]
    fn the_scope_tells_keys_apart_but_not_families() {
        let secret = Secret::new([7; 32]);
        let digest = IntentDigest::of_caller_key("k");
        let other = IntentParts { scope: "run:2", ..PARTS };
        assert_ne!(intent_key(&secret, &PARTS, &digest), intent_key(&secret, &other, &digest));
        assert_eq!(family_key(&secret, &PARTS, &digest), family_key(&secret, &other, &digest));
        assert_eq!(outline_key(&secret, &PARTS, "x", "y"), outline_key(&secret, &other, "x", "y"));
        assert_eq!(removals_key(&secret, &PARTS, "x"), removals_key(&secret, &other, "x"));
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        let secret = Secret::new([7; 32]);
        let digest = IntentDigest::of_caller_key("k");
        let shifted = IntentParts { tenant: "tp", principal: "", ..PARTS };
        assert_ne!(intent_key(&secret, &PARTS, &digest), intent_key(&secret, &shifted, &digest));
        let other = Secret::new([8; 32]);
        assert_ne!(intent_key(&secret, &PARTS, &digest), intent_key(&other, &PARTS, &digest));
    }
}
