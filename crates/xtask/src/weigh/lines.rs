//! Production lines: those of a crate's `src` that are neither blank, nor a comment, nor a test.

use super::budget::Measured;
use crate::project::Result;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The crates that the binary is made of. The others test, measure and build it.
const CRATES: [&str; 7] = ["core", "ledger", "gate", "semel", "doors", "detect", "cli"];

pub fn of_crates(directory: &Path) -> Result<Vec<Measured>> {
    let lines = CRATES.map(|name| {
        let lines = of_directory(&directory.join(name).join("src"))?;
        Ok(Measured::new(format!("lines of {name}"), lines))
    });
    lines.into_iter().collect()
}

fn of_directory(directory: &Path) -> Result<u64> {
    let mut files = Vec::new();
    collect(directory, &mut files)?;
    let mut counted = Vec::new();
    let mut tests = BTreeSet::new();
    for file in files {
        let counts = FileLines::count(&std::fs::read_to_string(&file)?);
        let below = match file.file_stem().and_then(|stem| stem.to_str()) {
            Some("mod" | "lib" | "main") => file.parent().unwrap_or(directory).to_owned(),
            _ => file.with_extension(""),
        };
        tests.extend(counts.test_files.iter().map(|name| below.join(name)));
        counted.push((file, counts.production));
    }
    // A module of tests in a file or a folder of its own.
    let is_test = |file: &Path| file.with_extension("").ancestors().any(|above| tests.contains(above));
    Ok(counted.iter().filter(|(file, _)| !is_test(file)).map(|(_, lines)| lines).sum())
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        match path.is_dir() {
            true => collect(&path, files)?,
            false if path.extension().is_some_and(|extension| extension == "rs") => files.push(path),
            false => {}
        }
    }
    Ok(())
}

#[derive(Debug, Default, PartialEq, Eq)]
struct FileLines {
    production: u64,
    /// `#[cfg(test)] mod NAME;`
    test_files: Vec<String>,
}

impl FileLines {
    /// The code is formatted, so that what is `#[cfg(test)]` ends at the first line of its own indent that ends an item.
    fn count(text: &str) -> FileLines {
        let mut counts = FileLines::default();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let code = line.trim_start();
            if code.starts_with("#[cfg(test)]") {
                let indent = line.len() - code.len();
                let item = lines.by_ref().find(|line| {
                    let inner = line.trim_start();
                    line.len() - inner.len() == indent
                        && (inner.starts_with('}') || inner.ends_with([';', ',']))
                });
                let name = item.and_then(|item| item.trim().strip_suffix(';')?.split("mod ").nth(1));
                counts.test_files.extend(name.map(str::to_owned));
            } else if !code.is_empty() && !code.starts_with("//") {
                counts.production += 1;
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_blank_lines_and_tests_are_not_counted() {
        let text = "\
//! A file.

#[cfg(test)]
mod apart;
use a::b;

/// Two lines.
fn two() {}

impl Two {
    #[cfg(test)]
    fn only_there() {
        two();
    }
    // A reason.
    fn three() {}
}

#[cfg(test)]
mod tests {
    fn more() {
    }
}
fn last() {}
";
        let expected = FileLines { production: 6, test_files: vec!["apart".to_owned()] };
        assert_eq!(FileLines::count(text), expected);
    }
}
