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

    fn lost_answers(&self) -> String {
        let keys = joined(&self.keys()).map(|keys| format!("sent again with {keys}"));
        let probes = joined(&self.probes()).map(|probes| format!("looked up by {probes}"));
        let ways: Vec<String> = keys.into_iter().chain(probes).collect();
        if ways.is_empty() { "in doubt".to_owned() } else { ways.join("; ") }
    }

    fn count(&self, name: &str, value: Option<&str>) -> usize {
        let fits = |rule: &&Table| rule.get(name).is_some_and(|it| value.is_none() || it.as_str() == value);
        self.rules.iter().filter(fits).count()
    }

    fn row(&self) -> String {
        let Entry { pack: Pack { name, .. }, rules } = self;
        let servers = joined(&self.names()).unwrap_or_default();
        let (purpose, lost) = (self.purpose(), self.lost_answers());
        let (person, undo) = (self.count("again", Some("person")), self.count("undo", None));
        let rules = rules.len();
        format!(
            "| [`{name}`](../packs/{name}.toml) | {purpose} | {servers} | {lost} | {rules} | {person} | {undo} |\n"
        )
    }
}

fn joined(texts: &BTreeSet<String>) -> Option<String> {
    (!texts.is_empty()).then(|| texts.iter().map(String::as_str).collect::<Vec<_>>().join(", "))
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
         | pack | for | server or program | a lost answer is | rules | repeated by a person | undo |\n\
         |---|---|---|---|---|---|---|\n{rows}\n\
         ## APIs that deduplicate\n\n\
         | pack | hosts | by | how |\n|---|---|---|---|\n{apis}"
    );
    page::check("catalogue.md", &generated);
}
