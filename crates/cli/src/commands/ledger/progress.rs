//! How far a long command has come: a line that is drawn again on a terminal, else one line a phase.

use crate::output::{Output, stderr_is_terminal};
use semel_ledger::copy::{CopyPhase, CopyProgress};
use std::io::Write;

const BAR_WIDTH: usize = 24;

/// A line of a log that is drawn more often than this would only flicker.
const DRAW_EVERY: u64 = 100;

#[derive(Debug)]
pub struct ProgressLine {
    output: Output,
    is_terminal: bool,
    last: Option<CopyProgress>,
    drawn: u64,
}

impl ProgressLine {
    pub fn new(output: Output) -> ProgressLine {
        ProgressLine { output, is_terminal: stderr_is_terminal(), last: None, drawn: 0 }
    }

    pub fn show(&mut self, progress: CopyProgress) {
        if self.last.is_some_and(|last| last.phase != progress.phase) {
            self.end();
        }
        let is_first = self.last.is_none();
        self.last = Some(progress);
        if self.is_terminal && !self.output.quiet && (is_first || progress.done >= self.drawn + DRAW_EVERY) {
            self.drawn = progress.done;
            let mut err = anstream::stderr();
            // Nobody has to see it.
            let _unseen = write!(err, "\r\x1b[K{}", line(progress)).and_then(|()| err.flush());
        }
    }

    /// The phase is over, and its line stays.
    pub fn end(&mut self) {
        let Some(last) = self.last.take() else { return };
        self.drawn = 0;
        if self.is_terminal && !self.output.quiet {
            let _unseen = write!(anstream::stderr(), "\r\x1b[K");
        }
        self.output.say(format_args!("{}: {}", word(last.phase), last.done));
    }
}

fn word(phase: CopyPhase) -> &'static str {
    match phase {
        CopyPhase::Effects => "effects copied",
        CopyPhase::Journal => "lines of the journal copied",
        CopyPhase::Cells => "cells copied",
        CopyPhase::Verify => "read again and compared",
    }
}

fn line(CopyProgress { phase, done, fraction }: CopyProgress) -> String {
    let Some(fraction) = fraction else { return format!("{}: {done}", word(phase)) };
    let full = (fraction * BAR_WIDTH as f64) as usize;
    let bar = "#".repeat(full.min(BAR_WIDTH));
    format!("{}: [{bar:.<BAR_WIDTH$}] {:>3.0} %  {done}", word(phase), fraction * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_has_the_same_width_however_far_it_is() {
        let drawn = |fraction| line(CopyProgress { phase: CopyPhase::Effects, done: 7, fraction });
        assert_eq!(drawn(Some(0.5)), "effects copied: [############............]  50 %  7");
        assert_eq!(drawn(Some(0.0)).len(), drawn(Some(1.0)).len());
        assert_eq!(drawn(None), "effects copied: 7");
    }
}
