//! The key of a call as it goes over the wire: `spec/vectors/sdk-key.json`, which all SDKs hold to.

use semel_core::ids::IDEMPOTENCY_KEY_CHARS_MAX;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// With a tilde and 64 hexadecimal digits this makes 255.
const CHARS_KEPT: usize = 190;

/// A key is scoped to its function: the same words on two functions are two effects. What is no visible ASCII, and `%`, is
/// percent-encoded, so that no two keys become one; a long one is cut and ends in a digest.
pub fn wire_key(name: &str, key: &str) -> String {
    let mut coded = String::new();
    for byte in format!("{name}:{key}").bytes() {
        match byte {
            b'!'..=b'~' if byte != b'%' => coded.push(char::from(byte)),
            _ => write!(coded, "%{byte:02X}").expect("a text takes all"),
        }
    }
    if coded.len() <= IDEMPOTENCY_KEY_CHARS_MAX {
        return coded;
    }
    let digest = Sha256::digest(coded.as_bytes());
    coded.truncate(CHARS_KEPT);
    coded.push('~');
    for byte in digest {
        write!(coded, "{byte:02x}").expect("a text takes all");
    }
    coded
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize)]
    struct Vector {
        name: String,
        key: String,
        wire: String,
    }

    #[test]
    fn keys_are_those_of_the_vectors() {
        let vectors: Vec<Vector> =
            serde_json::from_str(include_str!("../../../../spec/vectors/sdk-key.json")).expect("vectors");
        assert!(vectors.len() >= 10);
        for Vector { name, key, wire } in vectors {
            assert_eq!(wire_key(&name, &key), wire, "{name} {key}");
        }
    }
}
