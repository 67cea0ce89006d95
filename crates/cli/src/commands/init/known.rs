//! Servers for which a pack is shipped.

use semel_core::policy::file::PackServerTable;
use semel_core::policy::pack::PACKS;

/// The pack whose rules are about this server.
pub fn pack(words: &[String]) -> Option<&'static str> {
    let fits = |server: &PackServerTable| words.iter().any(|word| is_known(word, server));
    PACKS.iter().find(|pack| pack.server().is_some_and(|server| fits(&server))).map(|pack| pack.name)
}

/// Whether a pack's rules apply to a server of this name: they know a server by its name alone.
pub fn goes_by(pack: &str, server: &str) -> bool {
    let known = PACKS.iter().find(|known| known.name == pack).and_then(|known| known.server());
    let is_short = known.is_some_and(|known| known.names.iter().any(|name| name == server));
    is_short || server.to_lowercase().contains(pack)
}

fn is_known(word: &str, server: &PackServerTable) -> bool {
    match word.contains("://") {
        true => server.hosts.iter().any(|host| is_at(word, host)),
        false => server.packages.contains(&package(word)),
    }
}

/// Whether an address is at this host, or below the path that stands behind it.
fn is_at(url: &str, host: &str) -> bool {
    let address = url.split_once("://").map_or("", |(_, address)| address);
    let Some(rest) = address.strip_prefix(host) else { return false };
    // The next character ends the name: mcp.exa.ai.other.example is somebody else, and so is who stands behind an @.
    let rest = match rest.strip_prefix(':') {
        Some(port) if host.contains('/') || port.is_empty() => return false,
        Some(port) => port.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => rest,
    };
    rest.is_empty() || rest.starts_with(['/', '?', '#'])
}

/// Without version, tag and the directory of an installed program; `postgres_mcp` is the module of `postgres-mcp`.
fn package(word: &str) -> String {
    let word = if word.starts_with('/') { word.rsplit('/').next().unwrap_or_default() } else { word };
    let scope = usize::from(word.starts_with('@'));
    let end = word[scope..].find(['@', '=', '[']).map_or(word.len(), |at| at + scope);
    let name = word[..end].split_once(':').map_or(&word[..end], |(image, _)| image);
    name.trim_end_matches(".exe").replace('_', "-").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_known_by_package_program_image_or_host_in_any_version() {
        for word in [
            "@modelcontextprotocol/server-github",
            "@modelcontextprotocol/server-github@2025.4.8",
            "/usr/local/bin/github-mcp-server",
            "ghcr.io/github/github-mcp-server:latest",
            "https://api.githubcopilot.com/mcp/",
        ] {
            assert_eq!(pack(&["npx", "-y", word].map(str::to_owned)), Some("github"), "{word}");
        }
    }

    #[test]
    fn a_name_that_only_looks_alike_is_not_known() {
        for word in
            ["https://mcp.linear.app.other.example/", "github", "my-mcp-linear", "@other/github-mcp-server"]
        {
            assert_eq!(pack(&[word.to_owned()]), None, "{word}");
        }
    }

    #[test]
    fn an_address_is_at_a_host_and_not_at_what_only_begins_with_it() {
        for url in [
            "https://mcp.exa.ai",
            "https://mcp.exa.ai/mcp",
            "https://mcp.exa.ai:443/mcp",
            "http://mcp.exa.ai?x",
        ] {
            assert!(is_at(url, "mcp.exa.ai"), "{url}");
        }
        for url in [
            "https://mcp.exa.ai.other.example/",
            "https://mcp.exa.ai:x@other.example/",
            "https://mcp.exa.ai:443@other.example/",
            "https://mcp.exa.ai@other.example/",
            "mcp.exa.ai",
        ] {
            assert!(!is_at(url, "mcp.exa.ai"), "{url}");
        }
    }
}
