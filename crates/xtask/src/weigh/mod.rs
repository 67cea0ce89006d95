//! `cargo xtask weigh`: what the code, the build, the binary and a call weigh, beside the budget in `weight.toml`.
//!
//! Times differ from machine to machine. Lines, bytes, instructions and allocations hardly do, so they can be held.

mod binary;
mod budget;
mod calls;
mod lines;
mod valgrind;

use crate::project::{self, Result};
use crate::tools;
use budget::{Budget, Measured};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

const BUDGET: &str = "weight.toml";

pub fn run(arguments: &[&str]) -> Result<ExitCode> {
    let write = match arguments {
        [] => false,
        ["--write"] => true,
        _ => return Err("usage: cargo xtask weigh [--write]".into()),
    };
    tools::valgrind()?;
    // The harness is built of the same crates with the same features, so both together cost what `semel` alone does.
    project::must(project::cargo().args([
        "build",
        "--release",
        "--package",
        "semel-cli",
        "--package",
        "semel-weigh",
    ]))?;
    let release = project::target().join("release");
    let measured = measure(&release)?;
    let path = project::root().join(BUDGET);
    let text = std::fs::read_to_string(&path)?;
    if write {
        std::fs::write(&path, budget::rewritten(&text, &measured))?;
        println!("{BUDGET} says what was measured; a line that rose needs its reason there");
        return Ok(ExitCode::SUCCESS);
    }
    let budget = Budget::parse(&text).map_err(|error| format!("{BUDGET}: {error}"))?;
    for line in &measured {
        println!("{}", budget.row(line));
    }
    let findings = budget.compare(&measured);
    for finding in &findings {
        eprintln!("xtask: {finding}");
    }
    Ok(ExitCode::from(u8::from(!findings.is_empty())))
}

fn measure(release: &Path) -> Result<Vec<Measured>> {
    let mut measured = lines::of_crates(&project::root().join("crates"))?;
    measured.push(Measured::new("crates in the build", crates_in_build()?));
    let program = std::fs::read(release.join("semel"))?;
    measured.push(Measured::new("bytes of the binary", program.len() as u64));
    measured.push(Measured::new("bytes of its relocations", binary::relocation_bytes(&program)?));
    measured.extend(calls::weigh(release)?);
    Ok(measured)
}

/// All that cargo builds for the binary on this system, its own crates and those of build scripts and macros included.
fn crates_in_build() -> Result<u64> {
    let mut tree = project::cargo();
    tree.args([
        "tree",
        "--package",
        "semel-cli",
        "--edges",
        "normal,build",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ]);
    let output = tree.output()?;
    if !output.status.success() {
        return Err(format!("{tree:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let crates: BTreeSet<&str> =
        text.lines().map(|line| line.trim_end_matches(" (*)")).filter(|line| !line.is_empty()).collect();
    Ok(crates.len() as u64)
}
