//! `docs/catalogue.md` is made from the packs.

use crate::page;
use semel_core::policy::file::Helps;
use semel_core::policy::pack::{PACKS, Pack};
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};

/// One pack, as its file writes it.
struct Entry {
    pack: &'static Pack,
    rules: Vec<Table>,
}

impl Entry {
    fn of(pack: &'static Pack) -> Entry {
        let file: Table = pack.text.parse().expect("a pack is TOML");
        let rules = file.get("rule").and_then(Value::as_array).expect("a pack has rules");
        Entry { pack, rules: rules.iter().filter_map(|rule| rule.as_table().cloned()).collect() }
    }

    /// The first paragraph of the file's comment.
    fn purpose(&self) -> String {
        let lines = self.pack.text.lines().map_while(|line| line.strip_prefix("# "));
        lines.collect::<Vec<_>>().join(" ").trim_end_matches('.').to_owned()
    }

    /// The patterns of MCP servers and the programs that its rules begin with.
    fn names(&self) -> BTreeSet<String> {
        let matches = self.rules.iter().filter_map(|rule| rule.get("match")?.as_str());
        let name = |text: &str| match text.split_once(':')? {
            ("mcp", rest) => Some(format!("`{}`", rest.split('/').next()?)),
            ("cli", rest) => Some(format!("`{}`", rest.split(' ').next()?)),
            _ => None,
        };
        matches.filter_map(name).collect()
    }

    /// Where its rules put an upstream key, and how long that counts.
    fn keys(&self) -> BTreeSet<String> {
        let places = ["header", "arg", "body", "query", "directive", "flag", "env"];
        let mut lives: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for inject in self.rules.iter().filter_map(|rule| rule.get("inject")?.as_table()) {
            let place = places.iter().find_map(|place| inject.get(*place)?.as_str());
            let life = inject.get("valid_for").and_then(Value::as_str);
            lives.entry(place.expect("a key has a place")).or_default().extend(life);
        }
        let key = |(place, lives): (&str, BTreeSet<&str>)| match lives.is_empty() {
            true => format!("`{place}`"),
            false => format!("`{place}` ({})", lives.into_iter().collect::<Vec<_>>().join(", ")),
        };
        lives.into_iter().map(key).collect()
    }

    fn probes(&self) -> BTreeSet<String> {
        let probes = self.rules.iter().filter_map(|rule| rule.get("probe")?.as_table());
        let probe = |probe: &Table| {
            let text = |name: &str| probe.get(name).and_then(Value::as_str);
            let tool = text("mcp").map(|tool| format!("`{}`", tool.trim_start_matches("./")));
            let request = text("http").map(|_| "a GET".to_owned());
            tool.or(request).or_else(|| {
                let words = probe.get("cmd")?.as_array()?.iter().filter_map(Value::as_str);
                Some(format!("`{}`", words.take(3).collect::<Vec<_>>().join(" ")))
            })
        };
        probes.filter_map(probe).collect()
    }

    fn row(&self) -> String {
        let (name, purpose) = (self.pack.name, self.purpose());
        let [servers, keys, probes] = [self.names(), self.keys(), self.probes()].map(join);
        format!("| [`{name}`](../packs/{name}.toml) | {purpose} | {servers} | {keys} | {probes} |\n")
    }
}

fn join(texts: BTreeSet<String>) -> String {
    texts.into_iter().collect::<Vec<_>>().join(", ")
}

fn word(helps: Helps) -> &'static str {
    match helps {
        Helps::Key => "key",
        Helps::ClientId => "client id",
        Helps::Partly => "partly",
        Helps::Nothing => "**nothing**",
    }
}

fn api(pack: &Pack) -> Option<String> {
    let preset = pack.preset()?;
    let hosts: Vec<String> = preset.hosts.iter().map(|host| format!("`{host}`")).collect();
    let (hosts, helps) = (hosts.join(", "), word(preset.helps));
    Some(format!("| `{}` | {hosts} | {helps} | {} |\n", pack.name, preset.note))
}

#[test]
fn the_catalogue_says_what_the_packs_say() {
    let mut packs: Vec<&'static Pack> = PACKS.iter().collect();
    packs.sort_by_key(|pack| pack.name);
    let rows: String = packs.iter().copied().map(Entry::of).map(|entry| entry.row()).collect();
    let apis: String = packs.iter().filter_map(|pack| api(pack)).collect();
    let generated = format!(
        "## Packs\n\n\
         | pack | for | server or program | key (its life) | probe |\n\
         |---|---|---|---|---|\n{rows}\n\
         ## APIs that deduplicate\n\n\
         | pack | hosts | by | how |\n|---|---|---|---|\n{apis}"
    );
    page::check("catalogue.md", &generated);
}
