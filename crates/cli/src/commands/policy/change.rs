//! What has changed of a tool's definition, for whoever is to accept it.

use crate::neutral;
use semel_ledger::pins::{Kept, Pin};
use similar::{ChangeTag, TextDiff};
use std::time::Duration;

/// A line that is longer is compared sentence by sentence: nobody finds a word in two pages that are one line each.
const LINE_BYTES_MAX: usize = 400;

/// Two texts of many lines that have nothing in common take longer, and are then shown one after the other.
const COMPARING_TAKES_MAX: Duration = Duration::from_secs(2);

/// The changed lines with those beside them. Where it is not known what all of it was, all that it is now.
pub fn shown(pin: &Pin) -> String {
    let is = pin.is().unwrap_or(Kept { text: "", bytes: None });
    let was = pin.was().filter(|was| was.is_whole());
    let mut lines = match was {
        Some(was) if was.text == is.text && is.is_whole() => {
            let mut lines =
                vec!["It reads as it did, and is written in another way. This is all of it:".to_owned()];
            lines.extend(is.text.lines().map(|line| format!(" {line}")));
            lines
        }
        Some(was) => compared(was.text, is.text),
        None => {
            let mut lines = vec!["What all of it was is not known. Now it is:".to_owned()];
            lines.extend(is.text.lines().map(|line| format!("+{line}")));
            lines
        }
    };
    if !is.is_whole() {
        lines.push(match is.bytes {
            Some(bytes) => format!("… ({} bytes more, which are not kept)", bytes - is.text.len()),
            None => "… (what else there is was not kept)".to_owned(),
        });
    }
    lines.iter().map(|line| format!("  {}", neutral::line(line))).collect::<Vec<_>>().join("\n")
}

fn compared(was: &str, is: &str) -> Vec<String> {
    let (was, is) = (pieces(was), pieces(is));
    let diff = TextDiff::configure().timeout(COMPARING_TAKES_MAX).diff_slices(&was, &is);
    let changes = diff.grouped_ops(1).into_iter().flatten();
    let lines = changes.flat_map(|change| diff.iter_changes(&change).collect::<Vec<_>>()).map(|change| {
        let sign = match change.tag() {
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
            ChangeTag::Equal => ' ',
        };
        format!("{sign}{}", change.value().trim_end_matches('\n'))
    });
    lines.collect()
}

fn pieces(text: &str) -> Vec<&str> {
    let lines = text.split_inclusive('\n');
    let is_long = |line: &str| line.len() > LINE_BYTES_MAX;
    lines
        .flat_map(|line| match is_long(line) {
            true => line.split_inclusive(". ").collect::<Vec<_>>(),
            false => vec![line],
        })
        .collect()
}
