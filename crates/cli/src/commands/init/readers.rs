//! Servers that are known to read only. Their names are known of a registry, so it must be plain that the server comes
//! from there: a program that merely is called so may be anything. Guarding a reader costs little, and leaving a writer
//! alone costs what semel is for, so whatever is not plain is guarded.

use super::entry::Local;
use super::known::is_at;
use super::resolve;
use std::ffi::OsStr;

/// A server by where it comes from or where it is.
#[derive(Debug)]
struct Reader {
    /// In a few words.
    does: &'static str,
    npm: &'static [&'static str],
    pypi: &'static [&'static str],
    /// Of Docker Hub.
    images: &'static [&'static str],
    /// Hosts, with or without the beginning of a path.
    hosts: &'static [&'static str],
}

const NOTHING: Reader = Reader { does: "", npm: &[], pypi: &[], images: &[], hosts: &[] };

/// They change nothing outside, so a guard would only cost time. A server with a single tool that writes is not here.
const READERS: &[Reader] = &[
    Reader {
        does: "fetches pages",
        pypi: &["mcp-server-fetch"],
        images: &["mcp/fetch"],
        hosts: &["remote.mcpservers.org/fetch"],
        ..NOTHING
    },
    Reader { does: "tells the time", pypi: &["mcp-server-time"], images: &["mcp/time"], ..NOTHING },
    Reader {
        does: "thinks",
        npm: &["@modelcontextprotocol/server-sequential-thinking"],
        images: &["mcp/sequentialthinking"],
        hosts: &["remote.mcpservers.org/sequentialthinking"],
        ..NOTHING
    },
    Reader {
        does: "reads documentation",
        npm: &["@upstash/context7-mcp", "mcp-deepwiki"],
        pypi: &["awslabs.aws-documentation-mcp-server"],
        images: &["mcp/context7"],
        hosts: &[
            "mcp.context7.com",
            "mcp.deepwiki.com",
            "gitmcp.io",
            "knowledge-mcp.global.api.aws",
            "learn.microsoft.com/api/mcp",
            "docs.mcp.cloudflare.com",
            "developers.openai.com/mcp",
        ],
    },
    Reader {
        does: "searches",
        npm: &[
            "@modelcontextprotocol/server-brave-search",
            "@brave/brave-search-mcp-server",
            "@perplexity-ai/mcp-server",
            "server-perplexity-ask",
            "exa-mcp-server",
            "tavily-mcp",
        ],
        pypi: &["duckduckgo-mcp-server", "kagimcp", "wikipedia-mcp"],
        images: &["mcp/brave-search", "mcp/perplexity-ask", "mcp/exa", "mcp/tavily", "mcp/duckduckgo"],
        hosts: &["mcp.exa.ai/mcp", "mcp.tavily.com"],
    },
];

/// What starts a package, and where that comes from.
#[derive(Debug, Clone, Copy)]
enum Registry {
    Npm,
    PyPi,
    DockerHub,
}

const RUNNERS: [(&[&str], Registry); 10] = [
    (&["npx"], Registry::Npm),
    (&["bunx"], Registry::Npm),
    (&["pnpx"], Registry::Npm),
    (&["pnpm", "dlx"], Registry::Npm),
    (&["yarn", "dlx"], Registry::Npm),
    (&["bun", "x"], Registry::Npm),
    (&["uvx"], Registry::PyPi),
    (&["uv", "tool", "run"], Registry::PyPi),
    (&["pipx", "run"], Registry::PyPi),
    (&["docker", "run"], Registry::DockerHub),
];

/// Flags that leave it at the package that is named. Others, such as `--from` and `--entrypoint`, may not.
const HARMLESS: [&str; 12] =
    ["-y", "--yes", "-q", "--quiet", "-i", "--interactive", "-t", "--tty", "-it", "-ti", "--rm", "--init"];
/// The same with a value behind them, for containers alone.
const HARMLESS_WITH_VALUE: [&str; 5] = ["-e", "--env", "--name", "--network", "--pull"];

/// What a server does that reads only and is at an address.
pub fn at(url: &str) -> Option<&'static str> {
    let found = READERS.iter().find(|reader| reader.hosts.iter().any(|host| is_at(url, host)));
    found.map(|reader| reader.does)
}

/// What a server does that reads only and is started: by what runs packages, or as a program that is installed.
pub fn started(server: &Local, search: &OsStr) -> Option<&'static str> {
    let program = resolve::plain_name(server, search)?;
    if let Some(reader) = READERS.iter().find(|reader| reader.is_installed_as(program)) {
        return Some(reader.does);
    }
    let words: Vec<&str> = std::iter::once(program).chain(server.args.iter().map(String::as_str)).collect();
    let (runner, registry) = RUNNERS.iter().find(|(runner, _)| words.starts_with(runner))?;
    let package = package(&words[runner.len()..], *registry)?;
    READERS.iter().find(|reader| reader.of(*registry).contains(&package.as_str())).map(|reader| reader.does)
}

impl Reader {
    fn of(&self, registry: Registry) -> &'static [&'static str] {
        match registry {
            Registry::Npm => self.npm,
            Registry::PyPi => self.pypi,
            Registry::DockerHub => self.images,
        }
    }

    fn is_installed_as(&self, program: &str) -> bool {
        self.npm.contains(&program) || self.pypi.contains(&program)
    }
}

/// The package that a runner with these arguments runs, without its version. `None`: that is not plain.
fn package(args: &[&str], registry: Registry) -> Option<String> {
    let mut args = args.iter().copied();
    let named = loop {
        let word = args.next()?;
        let in_container = matches!(registry, Registry::DockerHub);
        let flag = word.split_once('=').map_or(word, |(flag, _)| flag);
        match word {
            _ if !word.starts_with('-') => break word,
            _ if HARMLESS.contains(&word) => {}
            _ if in_container && HARMLESS_WITH_VALUE.contains(&word) => drop(args.next()?),
            _ if in_container && HARMLESS_WITH_VALUE.contains(&flag) => {}
            _ => return None,
        }
    };
    match registry {
        Registry::Npm => {
            let scope = usize::from(named.starts_with('@'));
            let end = named[scope..].find('@').map_or(named.len(), |at| at + scope);
            is_version(&named[end..]).then(|| named[..end].to_owned())
        }
        Registry::PyPi => {
            let end = named.find(['@', '=', '[']).unwrap_or(named.len());
            is_version(&named[end..]).then(|| named[..end].replace('_', "-").to_lowercase())
        }
        Registry::DockerHub => {
            let named = named.strip_prefix("docker.io/").unwrap_or(named);
            let end = named.find([':', '@']).unwrap_or(named.len());
            Some(named[..end].to_owned())
        }
    }
}

/// A number or a tag, rather than another place to get it from (`@git+https://…`, `@npm:other`, `@file:…`).
fn is_version(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"@=[].,-+^~_".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn does(line: &str) -> Option<&'static str> {
        let mut words = line.split(' ').map(str::to_owned);
        let command = words.next().expect("a command");
        started(&Local { command, args: words.collect(), own_path: false }, OsStr::new("/usr/bin:/bin"))
    }

    #[test]
    fn a_package_of_its_registry_and_an_installed_program_are_known_in_any_version() {
        for line in [
            "uvx mcp-server-time",
            "uvx -q mcp-server-time@latest --local-timezone=Europe/Berlin",
            "uv tool run mcp-server-fetch==2025.4.7",
            "pipx run mcp_server_fetch",
            "npx -y @upstash/context7-mcp@^1.0.0 --api-key x",
            "pnpm dlx exa-mcp-server",
            "docker run -i --rm -e KEY --name=x mcp/brave-search:latest",
            "docker run -i --rm docker.io/mcp/time",
            "mcp-server-time --local-timezone=Europe/Berlin",
        ] {
            assert!(does(line).is_some(), "{line}");
        }
        assert_eq!(at("https://mcp.exa.ai/mcp?tools=web_search"), Some("searches"));
    }

    #[test]
    fn what_may_be_something_else_under_that_name_is_not_known() {
        for line in [
            "/srv/other/mcp-server-time",
            "./mcp-server-time",
            "/srv/other/uvx mcp-server-time",
            "npx -y mcp-server-time",
            "npx -y mcp/time",
            "npx -y mcp-server-time-other",
            "npx -y exa-mcp-server@npm:other",
            "npx -y exa-mcp-server@file:../other",
            "npx -y -p other exa-mcp-server",
            "uvx --from git+https://other.example/x mcp-server-time",
            "uvx --with other mcp-server-time",
            "uvx mcp-server-time@git+https://other.example/x",
            "uvx exa-mcp-server",
            "uv run mcp-server-time",
            "python -m mcp_server_time",
            "bash -c uvx mcp-server-time",
            "env X=1 uvx mcp-server-time",
            "docker run -i --entrypoint other mcp/time",
            "docker run -i -v /srv:/app mcp/time",
            "docker run -i other.example/mcp/time",
            "docker run -i other/time",
            "docker run -i exa-mcp-server",
            "uvx",
        ] {
            assert_eq!(does(line), None, "{line}");
        }
        assert_eq!(at("https://mcp.context7.com.other.example/"), None);
        let own_path = Local { command: "mcp-server-time".to_owned(), args: Vec::new(), own_path: true };
        assert_eq!(started(&own_path, OsStr::new("/usr/bin")), None);
    }
}
