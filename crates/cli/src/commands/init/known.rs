//! Servers that are known: those that only read, and those for which a pack is shipped.

/// A server by what starts it or where it is.
#[derive(Debug)]
pub struct Known {
    /// A pack's name, or in a few words what the server does.
    pub what: &'static str,
    /// Packages, programs and images, without version.
    packages: &'static [&'static str],
    /// Hosts, with or without the beginning of a path.
    hosts: &'static [&'static str],
}

/// They change nothing outside, so a guard would only cost time. A server with a single tool that writes is not here.
const READ_ONLY: &[Known] = &[
    Known {
        what: "fetches pages",
        packages: &["mcp-server-fetch", "mcp/fetch"],
        hosts: &["remote.mcpservers.org/fetch"],
    },
    Known { what: "tells the time", packages: &["mcp-server-time", "mcp/time"], hosts: &[] },
    Known {
        what: "thinks",
        packages: &["@modelcontextprotocol/server-sequential-thinking", "mcp/sequentialthinking"],
        hosts: &["remote.mcpservers.org/sequentialthinking"],
    },
    Known {
        what: "reads documentation",
        packages: &["@upstash/context7-mcp", "mcp/context7"],
        hosts: &["mcp.context7.com"],
    },
    Known {
        what: "searches",
        packages: &[
            "@modelcontextprotocol/server-brave-search",
            "@brave/brave-search-mcp-server",
            "mcp/brave-search",
        ],
        hosts: &[],
    },
    Known { what: "searches", packages: &["exa-mcp-server", "mcp/exa"], hosts: &["mcp.exa.ai/mcp"] },
    Known { what: "searches", packages: &["tavily-mcp", "mcp/tavily"], hosts: &["mcp.tavily.com"] },
    Known {
        what: "searches",
        packages: &["@perplexity-ai/mcp-server", "server-perplexity-ask", "mcp/perplexity-ask"],
        hosts: &[],
    },
    Known {
        what: "searches",
        packages: &["duckduckgo-mcp-server", "mcp/duckduckgo", "kagimcp", "wikipedia-mcp"],
        hosts: &[],
    },
    Known {
        what: "reads documentation",
        packages: &["mcp-deepwiki"],
        hosts: &["mcp.deepwiki.com", "gitmcp.io"],
    },
    Known {
        what: "reads documentation",
        packages: &["awslabs.aws-documentation-mcp-server"],
        hosts: &[
            "knowledge-mcp.global.api.aws",
            "learn.microsoft.com/api/mcp",
            "docs.mcp.cloudflare.com",
            "developers.openai.com/mcp",
        ],
    },
];

const PACKS: &[Known] = &[
    Known {
        what: "github",
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
        what: "slack",
        packages: &[
            "@modelcontextprotocol/server-slack",
            "@zencoderai/slack-mcp-server",
            "slack-mcp-server",
            "mcp/slack",
        ],
        hosts: &["mcp.slack.com"],
    },
    Known { what: "stripe", packages: &["@stripe/mcp", "mcp/stripe"], hosts: &["mcp.stripe.com"] },
    Known { what: "resend", packages: &["resend-mcp", "mcp-send-email"], hosts: &["mcp.resend.com"] },
    Known {
        what: "linear",
        packages: &["@tacticlaunch/mcp-linear", "linear-mcp-server", "mcp-linear"],
        hosts: &["mcp.linear.app"],
    },
    Known {
        what: "notion",
        packages: &["@notionhq/notion-mcp-server", "mcp/notion"],
        hosts: &["mcp.notion.com"],
    },
    Known {
        what: "filesystem",
        packages: &["@modelcontextprotocol/server-filesystem", "mcp/filesystem"],
        hosts: &[],
    },
    Known {
        what: "playwright",
        packages: &[
            "@playwright/mcp",
            "@executeautomation/playwright-mcp-server",
            "mcr.microsoft.com/playwright/mcp",
            "mcp/playwright",
        ],
        hosts: &[],
    },
    Known {
        what: "postgres",
        packages: &[
            "@modelcontextprotocol/server-postgres",
            "postgres-mcp",
            "crystaldba/postgres-mcp",
            "mcp/postgres",
        ],
        hosts: &[],
    },
];

/// What the server does, if it is known to do nothing but read.
pub fn reads_only(words: &[&str]) -> Option<&'static str> {
    find(READ_ONLY, words)
}

/// The pack whose rules are about this server.
pub fn pack(words: &[&str]) -> Option<&'static str> {
    find(PACKS, words)
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

fn find(table: &[Known], words: &[&str]) -> Option<&'static str> {
    let found = table.iter().find(|known| words.iter().any(|word| known.is(word)));
    found.map(|known| known.what)
}

impl Known {
    fn is(&self, word: &str) -> bool {
        match word.split_once("://") {
            Some((_, address)) => self.hosts.iter().any(|host| {
                // The next character ends the name: mcp.exa.ai.evil.example is somebody else.
                let rest = address.strip_prefix(host);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?', '#', ':']))
            }),
            None => self.packages.contains(&package(word).as_str()),
        }
    }
}

/// Without version, tag and the directory of an installed program; `mcp_server_fetch` is the module of
/// `mcp-server-fetch`.
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
            assert_eq!(pack(&["npx", "-y", word]), Some("github"), "{word}");
        }
        assert_eq!(reads_only(&["python", "-m", "mcp_server_fetch"]), Some("fetches pages"));
        assert_eq!(reads_only(&["https://mcp.exa.ai/mcp?tools=web_search"]), Some("searches"));
    }

    #[test]
    fn a_name_that_only_looks_alike_is_not_known() {
        for word in [
            "https://mcp.context7.com.evil.example/",
            "fetch",
            "my-mcp-server-fetch",
            "@evil/github-mcp-server",
        ] {
            assert_eq!((reads_only(&[word]), pack(&[word])), (None, None), "{word}");
        }
    }
}
