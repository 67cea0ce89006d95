//! Counts by valgrind: the same program with the same input gives the same figures, on any machine.

use crate::project::Result;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    Instructions,
    Allocations,
}

/// A program that valgrind counts for. Its children are not counted.
#[derive(Debug)]
pub struct Counted {
    pub command: Command,
    count: Count,
    report: PathBuf,
}

impl Counted {
    pub fn new(count: Count, program: &Path, directory: &Path) -> Counted {
        let report = directory.join("report");
        let mut command = Command::new("valgrind");
        let log = |tool: &str| format!("--log-file={}.%p.{tool}", report.display());
        match count {
            Count::Instructions => {
                let out = format!("--callgrind-out-file={}.%p.out", report.display());
                command.args(["--tool=callgrind", &out, &log("callgrind")]);
            }
            // It need not look for errors, only count.
            Count::Allocations => {
                command.args([
                    "--tool=memcheck",
                    "--undef-value-errors=no",
                    "--leak-check=no",
                    &log("memcheck"),
                ]);
            }
        }
        command.arg(program).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
        // Nothing of whoever weighs may change what is weighed.
        command.env("HOME", directory).current_dir(directory);
        Counted { command, count, report }
    }

    /// The figure of the process, which has ended.
    pub fn figure(&self, process: u32) -> Result<u64> {
        let (end, what) = match self.count {
            Count::Instructions => ("out", "totals: "),
            Count::Allocations => ("memcheck", "total heap usage: "),
        };
        let path = format!("{}.{process}.{end}", self.report.display());
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        figure_after(&text, what).ok_or_else(|| format!("valgrind gave no figure: {text}").into())
    }
}

/// `==7==   total heap usage: 1,234 allocs, …` or `totals: 1234`
fn figure_after(text: &str, what: &str) -> Option<u64> {
    let (_, rest) = text.split_once(what)?;
    let digits: String =
        rest.chars().take_while(|c| c.is_ascii_digit() || *c == ',').filter(|c| *c != ',').collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_both_tools_are_read() {
        let memcheck =
            "==7== HEAP SUMMARY:\n==7==   total heap usage: 1,234 allocs, 1,200 frees, 9 bytes allocated";
        assert_eq!(figure_after(memcheck, "total heap usage: "), Some(1234));
        assert_eq!(figure_after("summary: 5\n\ntotals: 2238937\n", "totals: "), Some(2238937));
        assert_eq!(figure_after("nothing", "totals: "), None);
    }
}
