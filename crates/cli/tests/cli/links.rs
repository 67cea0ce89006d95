//! Every relative link of a document leads to a file that is there, and to a heading that it has.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the project has a root")
}

/// All Markdown below the root but what builds and tests leave there.
fn documents() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().expect("a folder").filter_map(Result::ok) {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if path.is_dir() && !name.starts_with('.') && name != "target" && name != "node_modules" {
                folders.push(path);
            } else if name.ends_with(".md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The lines outside of fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// As GitHub names a heading: small letters, hyphens for spaces, and no other punctuation.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(text: &str) -> Vec<String> {
    let headings = prose(text).filter(|line| line.starts_with('#'));
    let names = headings.map(|line| anchor(line.trim_start_matches('#')));
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let number = |name: String| {
        let count = seen.entry(name.clone()).or_default();
        *count += 1;
        if *count == 1 { name } else { format!("{name}-{}", *count - 1) }
    };
    names.map(number).collect()
}

/// The targets of `[text](target)`, without code spans.
fn targets(text: &str) -> Vec<String> {
    let lines: Vec<String> = prose(text).map(|line| line.split('`').step_by(2).collect()).collect();
    let joined = lines.join("\n");
    let parts = joined.split("](").skip(1).filter_map(|part| part.split(')').next());
    parts.map(str::to_owned).collect()
}

fn problem(document: &Path, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let path = if file.is_empty() { document.to_owned() } else { document.with_file_name("").join(file) };
    if !path.exists() {
        return Some(format!("{}: {target} is not there", document.display()));
    }
    let text = if heading.is_empty() { String::new() } else { std::fs::read_to_string(&path).ok()? };
    let known = heading.is_empty() || anchors(&text).iter().any(|anchor| anchor == heading);
    (!known).then(|| format!("{}: {target} has no such heading", document.display()))
}

#[test]
fn every_link_leads_somewhere() {
    let (mut count, mut problems) = (0, Vec::new());
    for document in documents() {
        let text = std::fs::read_to_string(&document).expect("a document is text");
        for target in targets(&text) {
            count += 1;
            problems.extend(problem(&document, &target));
        }
    }
    assert_eq!(problems, Vec::<String>::new());
    assert!(count > 50, "the documents have links; only {count} were found");
}

#[test]
fn headings_have_the_anchors_that_github_gives_them() {
    let page =
        "# `[upstream.NAME.keys]`\n## In HTTP\n```\n# no heading\n```\n## In HTTP\n## Is it safe to retry?\n";
    assert_eq!(anchors(page), ["upstreamnamekeys", "in-http", "in-http-1", "is-it-safe-to-retry"]);
    assert_eq!(targets("a [b](c.md#d) `[e](f)` [g\nh](i)\n```\n[j](k)\n```\n"), ["c.md#d", "i"]);
}
