//! Servers for which a pack is shipped.

/// A server by what starts it or where it is.
#[derive(Debug)]
struct Known {
    pack: &'static str,
    /// Packages, programs and images, without version.
    packages: &'static [&'static str],
    /// Hosts, with or without the beginning of a path.
    hosts: &'static [&'static str],
}

const PACKS: &[Known] = &[
    Known {
        pack: "github",
        packages: &[
            "@modelcontextprotocol/server-github",
            "github-mcp-server",
            "ghcr.io/github/github-mcp-server",
            "mcp/github",
            "mcp/github-mcp-server",
        ],
        hosts: &["api.githubcopilot.com/mcp"],
    },
    Known {
        pack: "slack",
        packages: &[
            "@modelcontextprotocol/server-slack",
            "@zencoderai/slack-mcp-server",
            "slack-mcp-server",
            "mcp/slack",
        ],
        hosts: &["mcp.slack.com"],
    },
    Known { pack: "stripe", packages: &["@stripe/mcp", "mcp/stripe"], hosts: &["mcp.stripe.com"] },
    Known { pack: "resend", packages: &["resend-mcp", "mcp-send-email"], hosts: &["mcp.resend.com"] },
    Known {
        pack: "linear",
        packages: &["@tacticlaunch/mcp-linear", "linear-mcp-server", "mcp-linear"],
        hosts: &["mcp.linear.app"],
    },
    Known {
        pack: "notion",
        packages: &["@notionhq/notion-mcp-server", "mcp/notion"],
        hosts: &["mcp.notion.com"],
    },
    Known {
        pack: "filesystem",
        packages: &["@modelcontextprotocol/server-filesystem", "mcp/filesystem"],
        hosts: &[],
    },
    Known {
        pack: "playwright",
        packages: &[
            "@playwright/mcp",
            "@executeautomation/playwright-mcp-server",
            "mcr.microsoft.com/playwright/mcp",
            "mcp/playwright",
        ],
        hosts: &[],
    },
    Known {
        pack: "postgres",
        packages: &[
            "@modelcontextprotocol/server-postgres",
            "postgres-mcp",
            "crystaldba/postgres-mcp",
            "mcp/postgres",
        ],
        hosts: &[],
    },
];

/// The pack whose rules are about this server.
pub fn pack(words: &[String]) -> Option<&'static str> {
    let found = PACKS.iter().find(|known| words.iter().any(|word| known.is(word)));
    found.map(|known| known.pack)
}

/// Whether a pack's rules apply to a server of this name: they know a server by its name alone.
pub fn goes_by(pack: &str, server: &str) -> bool {
    let short: &[&str] = match pack {
        "github" => &["gh"],
        "playwright" => &["browser"],
        "postgres" => &["pg"],
        "filesystem" => &["files", "fs"],
        _ => &[],
    };
    short.contains(&server) || server.to_lowercase().contains(pack)
}

impl Known {
    fn is(&self, word: &str) -> bool {
        match word.contains("://") {
            true => self.hosts.iter().any(|host| is_at(word, host)),
            false => self.packages.contains(&package(word).as_str()),
        }
    }
}

/// Whether an address is at this host, or below the path that stands behind it.
pub fn is_at(url: &str, host: &str) -> bool {
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
