//! `cargo xtask docs`: writes what is generated of `docs/`. The tests that hold these pages know how they are made.

use crate::project::{self, Result};
use std::process::ExitCode;

/// The package, its integration binary and the test of each page.
const PAGES: [(&str, &str, &str); 3] = [
    ("semel-core", "core", "catalogue::the_catalogue_says_what_the_packs_say"),
    ("semel-core", "core", "policy_page::the_page_says_what_the_schema_says"),
    ("semel-cli", "cli", "reference::the_reference_has_the_help_of_every_command"),
];

pub fn run() -> Result<ExitCode> {
    for (package, binary, test) in PAGES {
        let mut cargo = project::cargo();
        cargo.args(["test", "--quiet", "-p", package, "--test", binary, test, "--", "--exact"]);
        project::must(cargo.env("SEMEL_WRITE_DOCS", "1"))?;
    }
    Ok(ExitCode::SUCCESS)
}
