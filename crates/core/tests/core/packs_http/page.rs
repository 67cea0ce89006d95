//! `docs/presets.md` says what the packs say.

use semel_core::policy::file::Helps;
use semel_core::policy::pack::PACKS;

fn page() -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/presets.md");
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn word(helps: Helps) -> &'static str {
    match helps {
        Helps::Key => "key",
        Helps::ClientId => "client id",
        Helps::Partly => "partly",
        Helps::Nothing => "**nothing**",
    }
}

#[test]
fn the_page_has_the_table_of_the_packs() {
    let mut rows: Vec<String> = PACKS
        .iter()
        .filter_map(|pack| {
            let preset = pack.preset()?;
            let hosts: Vec<String> = preset.hosts.iter().map(|host| format!("`{host}`")).collect();
            Some(format!(
                "| `{}` | {} | {} | {} |",
                pack.name,
                hosts.join(", "),
                word(preset.helps),
                preset.note
            ))
        })
        .collect();
    rows.sort();
    let table = format!(
        "| preset | hosts | helps | what the API itself does |\n|---|---|---|---|\n{}\n",
        rows.join("\n")
    );
    assert!(page().contains(&table), "docs/presets.md should have:\n\n{table}");
}

#[test]
fn the_page_names_those_that_give_no_help() {
    let mut none: Vec<&str> = PACKS
        .iter()
        .filter(|pack| pack.preset().is_some_and(|preset| preset.helps == Helps::Nothing))
        .map(|pack| pack.name)
        .collect();
    none.sort_unstable();
    let names: Vec<String> = none.iter().map(|name| format!("`{name}`")).collect();
    let sentence = format!("No help at all: {}.", names.join(", "));
    assert!(page().contains(&sentence), "docs/presets.md should say: {sentence}");
}

/// The parts of a pack that are rules about requests.
fn http_rules(text: &str) -> impl Iterator<Item = &str> {
    text.split("\n[[rule]]\n").skip(1).filter(|rule| rule.contains("match = \"http:"))
}

fn quoted<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    names.into_iter().map(|name| format!("`{name}`")).collect()
}

#[test]
fn the_page_names_those_whose_requests_a_clients_key_can_only_join() {
    let joins = |text: &str| http_rules(text).any(|rule| rule.contains("caller_key = \"joins\""));
    let mut names: Vec<&str> = PACKS
        .iter()
        .filter(|pack| pack.preset().is_some() && joins(pack.text))
        .map(|pack| pack.name)
        .collect();
    names.sort_unstable();
    let sentence = format!("Presets with such requests: {};", quoted(names).join(", "));
    assert!(page().contains(&sentence), "docs/presets.md should say: {sentence}");
}

#[test]
fn the_page_names_the_tokens_of_aws() {
    let aws = PACKS.iter().find(|pack| pack.name == "aws").expect("a pack");
    let injected = |place: &str| {
        let mut names: Vec<&str> = Vec::new();
        for rule in http_rules(aws.text) {
            let name = rule
                .split_once(&format!("inject = {{ {place} = \""))
                .and_then(|(_, rest)| rest.split('"').next());
            names.extend(name.filter(|name| !names.contains(name)));
        }
        names
    };
    let page = page();
    let paragraph =
        page.split("\n\n").find(|part| part.starts_with("**Tokens of AWS.**")).expect("a paragraph");
    let (bodies, query) = (injected("body"), injected("query"));
    assert!(bodies.len() >= 7 && !query.is_empty(), "{bodies:?} {query:?}");
    for name in quoted(bodies) {
        assert!(paragraph.contains(&name), "docs/presets.md should name {name}");
    }
    for name in quoted(query) {
        assert!(paragraph.contains(&format!("or {name} in its query")), "docs/presets.md should name {name}");
    }
}
