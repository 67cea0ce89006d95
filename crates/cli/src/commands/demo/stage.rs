//! The demo on the screen, and the time to read it.

use super::judge::Act;
use super::world::{DemoWorld, RunAnswer};
use crate::output::Output;
use owo_colors::OwoColorize;
use semel_doors::process::child::Signals;
use semel_gate::clock::{Clock, SystemClock, block_on};
use std::fmt;
use std::time::Duration;

/// A person can follow at this pace, and the whole stays near a quarter of a minute.
const AFTER_LINE: Duration = Duration::from_millis(180);
const AFTER_ACT: Duration = Duration::from_millis(900);

/// How soon Ctrl-C is seen in a pause.
const GLANCE: Duration = Duration::from_millis(30);

#[derive(Debug)]
pub struct Narrator {
    output: Output,
    paced: bool,
    signals: Signals,
    clock: SystemClock,
}

/// Somebody pressed Ctrl-C, or asked the demo to end in another way.
#[derive(Debug)]
pub struct Interrupted {
    pub signal: i32,
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ended by signal {}", self.signal)
    }
}

impl std::error::Error for Interrupted {}

impl Narrator {
    pub fn open(output: Output, fast: bool) -> std::io::Result<Narrator> {
        let signals = Signals::listen()?;
        Ok(Narrator { output, paced: !fast && !output.json, signals, clock: SystemClock::start() })
    }

    /// A line for people, if there are any.
    pub fn line(&self, text: impl fmt::Display) {
        if !self.output.json {
            let _the_counts_matter_all_the_same = self.output.data(text);
        }
    }

    pub fn title(&self, number: usize, act: &Act) -> anyhow::Result<()> {
        self.line(format_args!("\n{} {}", number.bold(), act.name.bold()));
        self.pause(AFTER_LINE)
    }

    /// A fact to know.
    pub fn aside(&self, text: &str) {
        self.line(format_args!("  {}", text.dimmed()));
    }

    /// A deed.
    pub fn does(&self, command: impl fmt::Display) -> anyhow::Result<()> {
        self.line(format_args!("  {} {command}", "$".dimmed()));
        self.pause(AFTER_LINE)
    }

    /// Its outcome.
    pub fn gets(&self, what: impl fmt::Display) -> anyhow::Result<()> {
        self.line(format_args!("    {what}"));
        self.pause(AFTER_LINE)
    }

    /// Semel's answer, in its own words.
    pub fn answered(&self, answer: &RunAnswer) -> anyhow::Result<()> {
        let exit = answer.code.map_or_else(|| "killed".to_owned(), |code| format!("exit {code}"));
        let outcome = answer.text("outcome");
        if answer.body["ok"] != true {
            let code = answer.text("code").replace('_', " ");
            let safe = answer.text("is_it_safe_to_retry");
            let what = format!("{outcome}, {code}; safe to retry: {safe}");
            return self.gets(format_args!("{exit}: {}", what.yellow()));
        }
        let charge = answer.charge().map(|charge| format!(", {charge}")).unwrap_or_default();
        let reason = answer.text("reason");
        let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        self.gets(format_args!("{exit}: {}{charge}{reason}", outcome.green()))
    }

    /// Counts in the book, shows the number, and compares it with the expected one.
    pub fn count(
        &self,
        world: &DemoWorld,
        act: &mut Act,
        order: &'static str,
        expected: u64,
        meaning: CountMeaning,
    ) -> anyhow::Result<()> {
        let counted = world.charges(order)?;
        let right = act.count(order, expected, counted);
        let number = counted.bold();
        match (right, meaning) {
            (true, CountMeaning::Good(words)) => {
                let verdict = format!("✓ {words}");
                self.line(format_args!("  charges for order {order}: {number}  {}", verdict.green()));
            }
            (true, CountMeaning::Bad(words)) => {
                let verdict = format!("✗ {words}");
                self.line(format_args!("  charges for order {order}: {number}  {}", verdict.red()));
            }
            (false, _) => {
                let verdict = format!("✗ wrong, expected {expected}");
                self.line(format_args!("  charges for order {order}: {number}  {}", verdict.red().bold()));
            }
        }
        self.pause(AFTER_LINE)
    }

    pub fn end_of_act(&self) -> anyhow::Result<()> {
        self.pause(AFTER_ACT)
    }

    /// The signal that asked the demo to end, if one did.
    pub fn interrupted(&self) -> Option<Interrupted> {
        self.signals.asked_to_end().map(|signal| Interrupted { signal })
    }

    /// Gives people time, and whoever wants to leave a way out.
    fn pause(&self, span: Duration) -> anyhow::Result<()> {
        let until = self.clock.elapsed() + span;
        loop {
            if let Some(interrupted) = self.interrupted() {
                return Err(interrupted.into());
            }
            if !self.paced || self.clock.elapsed() >= until {
                return Ok(());
            }
            block_on(self.clock.sleep(GLANCE));
        }
    }
}

/// Whether the expected number is a good one.
#[derive(Debug, Clone, Copy)]
pub enum CountMeaning {
    Good(&'static str),
    Bad(&'static str),
}
