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
