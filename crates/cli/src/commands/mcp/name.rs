//! The name of a server that nobody names: by its package or program; and the names that are allowed.

use anyhow::bail;
use std::ffi::OsString;

/// As long as a name can be that people still read.
const CHARS_MAX: usize = 100;

/// The characters of a name. A slash ends it in the name of an action, and the signs of a pattern would mean something
/// else in a rule.
fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '@' | ':' | ' ')
}

/// The name decides about rules and records, and is a part of both.
pub fn checked(name: String) -> anyhow::Result<String> {
    match !name.trim().is_empty() && name.chars().count() <= CHARS_MAX && name.chars().all(is_plain) {
        true => Ok(name),
        false => {
            bail!("--name {name:?}: a name has 1 to {CHARS_MAX} letters, digits, spaces, and - _ . @ :")
        }
    }
}

/// The nearest name that a server may have.
pub fn fitting(name: &str) -> String {
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '-' }).take(CHARS_MAX).collect();
    let plain = plain.trim_matches(['-', ' ']);
    if plain.is_empty() { "server".to_owned() } else { plain.to_owned() }
}

/// The first of the names that fit, and others for the same server if that is taken.
pub fn numbered(name: &str, number: usize) -> String {
    const NUMBER_CHARS: usize = 8;
    match number {
        1 => fitting(name),
        _ => {
            let short: String = fitting(name).chars().take(CHARS_MAX - NUMBER_CHARS).collect();
            format!("{short}-{number}")
        }
    }
}

/// Programs that only start another one, which is named by their first argument that is no option.
const STARTERS: [&str; 12] =
    ["npx", "bunx", "pnpx", "uvx", "uv", "pipx", "node", "bun", "deno", "python", "python3", "docker"];

/// Words of such a starter that do not name the server.
const STARTER_WORDS: [&str; 6] = ["run", "exec", "tool", "dlx", "x", "start"];

/// Words that packages of servers have in common, and so do not tell one from another.
const AFFIXES: [&str; 5] = ["mcp-server", "server-mcp", "modelcontextprotocol", "mcp", "server"];

pub fn of(command: &[OsString]) -> String {
    let words: Vec<String> = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let program = words.first().map(|word| last_segment(word)).unwrap_or_default();
    let named = match STARTERS.contains(&program.as_str()) {
        true => words[1..]
            .iter()
            .find(|word| !word.starts_with('-') && !STARTER_WORDS.contains(&word.as_str()))
            .map_or(program, |word| last_segment(word)),
        false => program,
    };
    let plain = without_affixes(without_version(&named));
    if plain.is_empty() { "server".to_owned() } else { plain }
}

/// A remote server is named by its host: `mcp.linear.app` is `linear`.
pub fn of_host(host: &str) -> String {
    let plain = |label: &&str| !matches!(*label, "mcp" | "api" | "www" | "");
    let labels: Vec<&str> = host.split('.').collect();
    let named = match host.parse::<std::net::IpAddr>() {
        Ok(_) => None,
        Err(_) => labels[..labels.len().saturating_sub(1).max(1)].iter().find(|label| plain(label)),
    };
    named.map_or_else(|| "server".to_owned(), |label| label.to_lowercase())
}

/// `@scope/package`, `/path/to/script.py` and `ghcr.io/org/image` alike.
fn last_segment(word: &str) -> String {
    let last = word.rsplit(['/', '\\']).find(|part| !part.is_empty()).unwrap_or(word);
    let stem = [".js", ".mjs", ".cjs", ".ts", ".py", ".exe"].iter().find_map(|end| last.strip_suffix(end));
    stem.unwrap_or(last).to_owned()
}

fn without_version(name: &str) -> &str {
    let end = name.char_indices().skip(1).find(|(_, c)| matches!(c, '@' | ':' | '='));
    end.map_or(name, |(at, _)| &name[..at])
}

fn without_affixes(name: &str) -> String {
    let mut name = name.to_lowercase().replace('_', "-");
    loop {
        let shorter = AFFIXES.iter().find_map(|affix| {
            name.strip_prefix(&format!("{affix}-")).or_else(|| name.strip_suffix(&format!("-{affix}")))
        });
        match shorter {
            Some(shorter) => name = shorter.to_owned(),
            None => return name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_fits_is_kept_and_another_is_made_to() {
        for (name, expected) in [
            ("my server", "my server"),
            ("@scope/my-server", "@scope-my-server"),
            ("a (b)", "a -b"),
            ("*", "server"),
            (&"x".repeat(300), &"x".repeat(CHARS_MAX)),
        ] {
            assert_eq!(fitting(name), expected);
            assert_eq!(checked(fitting(name)).unwrap(), expected);
            assert_eq!(checked(name.to_owned()).is_ok(), name == expected, "{name}");
        }
    }

    #[test]
    fn the_documented_names_are_those_that_servers_get() {
        let page = include_str!("../../../../../docs/mcp.md");
        let (_, section) = page.split_once("## Server name").expect("the section");
        let section = section.split("\n## ").next().unwrap_or_default();
        let rows = section.lines().filter_map(|line| {
            let (how, name) = line.strip_prefix("| `")?.strip_suffix("` |")?.split_once("` | `")?;
            Some((how, name))
        });
        let mut count = 0;
        for (how, name) in rows {
            let words: Vec<OsString> = how.split(' ').map(OsString::from).collect();
            let named = match how.strip_prefix("--url ") {
                Some(url) => {
                    of_host(semel_doors::http::target::Target::parse(url).expect("an address").host())
                }
                None => of(&words),
            };
            assert_eq!(named, name, "{how}");
            count += 1;
        }
        assert_eq!(count, 8);
        assert_eq!(of(&["docker", "run", "-e", "TOKEN", "image"].map(OsString::from)), "token");
    }

    #[test]
    fn a_remote_server_is_named_by_its_host() {
        for (host, expected) in [
            ("mcp.linear.app", "linear"),
            ("api.githubcopilot.com", "githubcopilot"),
            ("localhost", "localhost"),
            ("127.0.0.1", "server"),
            ("::1", "server"),
        ] {
            assert_eq!(of_host(host), expected, "{host}");
        }
    }

    #[test]
    fn a_server_is_named_by_what_tells_it_from_others() {
        for (command, expected) in [
            ("npx -y @modelcontextprotocol/server-github", "github"),
            ("npx -y @notionhq/notion-mcp-server@1.8.0", "notion"),
            ("uvx mcp-server-git==2.0 --repository .", "git"),
            ("docker run -i --rm ghcr.io/github/github-mcp-server:v1", "github"),
            ("/usr/bin/python3 /opt/billing_server.py", "billing"),
            ("./payments", "payments"),
            ("node", "node"),
            ("npx -y @stripe/mcp", "mcp"),
        ] {
            let words: Vec<OsString> = command.split(' ').map(OsString::from).collect();
            assert_eq!(of(&words), expected, "{command}");
        }
    }
}
