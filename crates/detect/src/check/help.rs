//! Reads the help text of a command: its subcommands and its options.

use semel_core::judgement::recognise::SAFE_TO_REPEAT;
use std::ops::RangeInclusive;

/// A help text, as far as it matters here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HelpText {
    /// The first word of its description, which is a verb in most help texts.
    pub verb: String,
    pub subcommands: Vec<String>,
    pub takes_key: bool,
    pub takes_dry_run: bool,
    /// It says that the command is safe to repeat.
    pub is_safe: bool,
    /// It says that `--help` is an option, so its subcommands can be expected to know it.
    pub knows_help: bool,
}

/// Headings of lists of subcommands, in lower case.
const HEADINGS: [&str; 6] =
    ["commands", "subcommands", "available commands", "core commands", "additional commands", "actions"];
/// Subcommands that every tool has and that change nothing.
const ALWAYS_THERE: [&str; 4] = ["help", "version", "completion", "completions"];
/// A list with more entries is no list of subcommands.
const SUBCOMMANDS_MAX: usize = 200;

pub fn read(text: &str) -> HelpText {
    let mut help = HelpText {
        takes_key: lists_option(text, "--idempotency-key"),
        takes_dry_run: lists_option(text, "--dry-run"),
        is_safe: text.lines().any(|line| line.trim() == SAFE_TO_REPEAT),
        knows_help: has_word(text, "--help"),
        verb: verb(text),
        subcommands: Vec::new(),
    };
    // Names stand at most so far in; descriptions that go over lines stand further in.
    let mut in_list: Option<RangeInclusive<usize>> = None;
    for line in text.lines() {
        let trimmed = line.trim();
        let is_indented = line.starts_with([' ', '\t']);
        if !is_indented && !trimmed.is_empty() {
            // `Basic Commands (Beginner):` of kubectl.
            let heading = trimmed.trim_end_matches(':').split(" (").next().unwrap_or_default().to_lowercase();
            in_list = match heading.as_str() {
                // argparse puts the subcommands below an argument of their own.
                "positional arguments" => Some(4..=4),
                heading if HEADINGS.contains(&heading) || heading.ends_with(" commands") => Some(1..=6),
                _ => None,
            };
            continue;
        }
        if let Some(listed) = trimmed.strip_prefix('{').and_then(|rest| rest.split_once('}'))
            && is_indented
            && listed.0.contains(',')
        {
            help.subcommands.extend(listed.0.split(',').filter(|name| is_name(name)).map(str::to_owned));
            in_list = None;
        } else if let Some(indents) = &in_list
            && is_indented
        {
            let indent = line.len() - line.trim_start().len();
            let name = trimmed.split([' ', '\t', ':', ',']).next().unwrap_or_default();
            if indents.contains(&indent) && is_name(name) {
                help.subcommands.push(name.to_owned());
            }
        }
    }
    help.subcommands.retain(|name| !ALWAYS_THERE.contains(&name.as_str()));
    let mut seen = std::collections::HashSet::new();
    help.subcommands.retain(|name| seen.insert(name.clone()));
    help.subcommands.truncate(SUBCOMMANDS_MAX);
    help
}

/// Whether a usage or a list of options has this one. A sentence may say that there is none.
fn lists_option(text: &str, option: &str) -> bool {
    let mut in_brackets = text.split('[').skip(1).filter_map(|rest| rest.split(']').next());
    let options = text.lines().map(str::trim).filter(|line| line.starts_with('-'));
    let mut options = options.map(|line| line.split("  ").next().unwrap_or_default());
    in_brackets.any(|part| (part.starts_with('-') || part.starts_with("alias")) && has_word(part, option))
        || options.any(|names| has_word(names, option))
}

fn has_word(text: &str, option: &str) -> bool {
    text.match_indices(option).any(|(at, _)| {
        let after = text[at + option.len()..].chars().next();
        after.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '-')
    })
}

/// Some frameworks write the usage first, and the description in the paragraph after it.
fn verb(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|paragraph| paragraph.trim().to_lowercase());
    let described = paragraphs.into_iter().find(|text| !text.is_empty() && !text.starts_with("usage"));
    let described = described.unwrap_or_default();
    described.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned()
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subcommands_are_found_in_the_lists_of_common_frameworks() {
        let clap = "Pays.\n\nUsage: pay <COMMAND>\n\nCommands:\n  charge  Charge a customer\n          and more\n  list    List charges\n  help    Print this\n\nOptions:\n  -h, --help\n";
        assert_eq!(read(clap).subcommands, ["charge", "list"]);
        let cobra = "Usage:\n  gh [command]\n\nCORE COMMANDS\n  issue:      Manage issues\n  pr:         Manage pull requests\n\nFLAGS\n  --help\n";
        assert_eq!(read(cobra).subcommands, ["issue", "pr"]);
        let argparse = "usage: pay [-h] {charge,refund} ...\n\npositional arguments:\n  {charge,refund}\n    charge    Charge\n\noptions:\n  -h\n";
        assert_eq!(read(argparse).subcommands, ["charge", "refund"]);
        let metavar = "usage: notes [-h] COMMAND ...\n\npositional arguments:\n  COMMAND\n    add       Add a note\n    rm        Remove a note\n\noptions:\n  -h\n";
        assert_eq!(read(metavar).subcommands, ["add", "rm"]);
        let leaf =
            "usage: notes add [-h] text\n\npositional arguments:\n  text        The note\n\noptions:\n  -h\n";
        assert!(read(leaf).subcommands.is_empty());
        let kubectl = "Controls.\n\nBasic Commands (Beginner):\n  create          Create a resource\n\nDeploy Commands:\n  rollout         Manage\n\nUsage:\n  kubectl [flags] [options]\n";
        assert_eq!(read(kubectl).subcommands, ["create", "rollout"]);
        let click = "Usage: pay [OPTIONS] COMMAND [ARGS]...\n\nOptions:\n  --help\n\nCommands:\n  charge\n  refund  Refund.\n";
        assert_eq!(read(click).subcommands, ["charge", "refund"]);
    }

    #[test]
    fn the_verb_of_a_description_is_its_first_word() {
        let argparse = "usage: pay runs [-h]\n                [--all]\n\nList the runs.\n\noptions:\n  -h\n";
        for (text, expected) in [
            ("Show the journal.\n\nUsage: pay tail\n", "show"),
            (argparse, "list"),
            ("Usage: pay runs\n\n  Lists runs.\n\nOptions:\n", "lists"),
            ("", ""),
        ] {
            assert_eq!(read(text).verb, expected, "{text}");
        }
    }

    #[test]
    fn options_are_whole_words() {
        let help = read("  --idempotency-key <KEY>  A key\n  --dry-run-format X\n");
        assert!(help.takes_key && !help.takes_dry_run);
        assert!(read("  -n, --dry-run   Say it").takes_dry_run);
        assert!(read("  --key <KEY>  A key [alias: --idempotency-key]").takes_key);
        assert!(read("usage: pay [-h] [--dry-run] [--idempotency-key KEY]").takes_key);
        let denied =
            read("Charge.\n\nThere is no --idempotency-key and no --dry-run.\n  -x  Like --dry-run\n");
        assert!(!denied.takes_key && !denied.takes_dry_run);
    }
}
