//! Versions of the protocol, as requests name them: the era of `initialize`, and the stateless one, whose requests name
//! theirs in `_meta`.

use crate::wire::members::{Members, last, quoted};

/// The member of `_meta` in which every request of the stateless era names its version.
pub const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// The version by which a server is asked whether it is of the stateless era.
pub const STATELESS: &str = "2026-07-28";

/// The newest version of the era of `initialize`, by which a server is asked whether it is of that one.
pub const SESSION: &str = "2025-11-25";

/// The version that a request names, if it is of the stateless era. A request that names something else twice is of an
/// era too: whether it is refused for that is not decided here.
pub fn version_of(params: &str) -> Option<String> {
    // Every request comes by here. Only an escape can hide the name from a search.
    if !params.contains(META_VERSION) && !params.contains('\\') {
        return None;
    }
    let meta = last(params, "_meta")?;
    let version = last(&meta, META_VERSION)?;
    serde_json::from_str(&version).ok()
}

/// The `_meta` of a request that semel makes itself in the stateless era.
pub fn own_meta(version: &str) -> String {
    let mut meta = Members::default();
    meta.set(META_VERSION, quoted(version));
    meta.set("io.modelcontextprotocol/clientCapabilities", "{}".into());
    let info = serde_json::json!({"name": "semel", "version": env!("CARGO_PKG_VERSION")});
    meta.set("io.modelcontextprotocol/clientInfo", info.to_string());
    meta.to_string()
}

/// The `_meta` of a request, for what semel asks on its behalf.
pub fn meta_of(params: &str) -> String {
    let meta = last(params, "_meta").unwrap_or_default();
    let mut meta = Members::parse(&meta).unwrap_or_default();
    meta.remove("progressToken");
    meta.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_of_an_era_whatever_it_names_twice() {
        let version = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","a":1,"a":2}"#;
        let params = format!(r#"{{"dup":1,"_meta":{version},"dup":2}}"#);
        assert_eq!(version_of(&params).as_deref(), Some("2026-07-28"));
        assert_eq!(version_of(&format!(r#"{{"_meta":{version},"_meta":{{}}}}"#)), None);
    }
}
