//! `docs/cli.md` is made from the help of every command. `cargo xtask docs` writes it; the test compares.

use crate::home::Home;
use std::path::Path;

const HEAD: &str = "\
# Command reference

The help of every command, from `semel COMMAND -h`. `cargo xtask docs` writes this page. The options of `semel` itself
work with every command. `EFFECT` is an effect id, or the end of one. Commands that need a person also take
`--token TOKEN`, an operator token, where there is no terminal. `SEMEL_OPERATOR_TOKEN` says the same, and no list of
processes shows it.
";

/// Options and arguments that the head of the page or the help of `semel` itself describes.
const COMMON: [&str; 9] =
    ["--json", "--quiet", "--color", "--policy", "--ledger", "--help", "--version", "--token", "[EFFECT]"];

/// How clap begins the parts of a help that are shown. Commands have sections of their own.
const SECTIONS: [&str; 3] = ["Usage:", "Arguments:", "Options:"];

fn help(home: &Home, command: &[String]) -> String {
    let ran = home.semel(command.iter().map(String::as_str).chain(["-h"]));
    assert_eq!(ran.code, Some(0), "{command:?}: {ran:?}");
    ran.stdout
}

/// The names in the section `Commands:`.
fn subcommands(help: &str) -> Vec<String> {
    let section = help.split_once("\nCommands:\n").map_or("", |(_, rest)| rest);
    let lines = section.lines().take_while(|line| !line.is_empty());
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect()
}

/// The help without its examples, which other pages have, without options that this page lists once, and without a
/// usage that says nothing.
fn shorten(help: &str, title: &str) -> String {
    let is_root = title == "semel";
    let bare = ["", " <COMMAND>"].map(|end| format!("Usage: {title} [OPTIONS]{end}"));
    let mut kept: Vec<&str> = Vec::new();
    let mut dropping = false;
    for line in help.lines() {
        let is_option = line.trim_start().starts_with(['-', '[', '<']) && line.starts_with("  ");
        if is_option {
            dropping = !is_root && own_names(line).any(|word| COMMON.contains(&word));
        } else if !line.starts_with("   ") {
            dropping = false;
        }
        if !dropping {
            kept.push(line);
        }
    }
    let text = kept.join("\n");
    let sections = text.split("\n\n").enumerate();
    let own = |(number, section): &(usize, &str)| {
        let has_lines = |title: &str| section.starts_with(title) && section.trim_end().len() > title.len();
        let says = SECTIONS.into_iter().any(has_lines);
        *number == 0 || says && !bare.iter().any(|bare| bare == section.trim_end())
    };
    sections.filter(own).map(|(_, section)| section.trim_end()).collect::<Vec<_>>().join("\n\n")
}

/// The names before the description of an option.
fn own_names(line: &str) -> impl Iterator<Item = &str> {
    line.trim_start().split("  ").next().unwrap_or_default().split([' ', ','])
}

fn describe(home: &Home, command: &[String], page: &mut String) {
    let help = help(home, command);
    let title = ["semel"].into_iter().chain(command.iter().map(String::as_str)).collect::<Vec<_>>().join(" ");
    let shown = shorten(&help, &title);
    page.push_str(&format!("\n## {title}\n\n```text\n{shown}\n```\n"));
    for name in subcommands(&help).into_iter().filter(|name| name != "help") {
        describe(home, &[command, &[name]].concat(), page);
    }
}

#[test]
fn the_reference_has_the_help_of_every_command() {
    let mut page = HEAD.to_owned();
    describe(&Home::new(), &[], &mut page);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    #[allow(clippy::disallowed_methods, reason = "`cargo xtask docs` says so to a test process")]
    let write = std::env::var_os("SEMEL_WRITE_DOCS").is_some();
    if write {
        std::fs::write(&path, &page).expect("the page can be written");
        return;
    }
    let found = std::fs::read_to_string(&path).expect("docs/cli.md is there");
    assert!(found == page, "docs/cli.md is out of date: run `cargo xtask docs`");
}
