//! `semel ledger tail`: the journal, as it grows.

use super::journal::LineJson;
use crate::args::TailArgs;
use crate::context::Context;
use crate::output::reader_left_within;
use semel::ledger_address::{LedgerAddress, Purpose};
use semel_gate::clock::{SystemClock, block_on};
use semel_ledger::Error;
use semel_ledger::Ledger;
use semel_ledger::store::{Cursor, JOURNAL_PAGE_MAX};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::process::ExitCode;
use std::time::Duration;

/// Quick enough for a person who watches; each look reads one page of an index.
const LOOK_EVERY: Duration = Duration::from_millis(200);

pub fn run(context: &Context, args: &TailArgs) -> anyhow::Result<ExitCode> {
    let address = context.ledger_address()?;
    let mut open: Option<(Ledger, Option<Cursor>)> = None;
    loop {
        if open.is_none()
            && let Some(ledger) = founded(context, &address)?
        {
            let after = before_last(&ledger, args.lines)?;
            open = Some((ledger, after));
        }
        if let Some((ledger, after)) = &mut open
            && !print_new(context, ledger, after)?
        {
            return Ok(ExitCode::SUCCESS);
        }
        if args.no_follow || reader_left_within(LOOK_EVERY) {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// The ledger, once there is one. Between its first file and its tables it is not there yet.
fn founded(context: &Context, address: &LedgerAddress) -> anyhow::Result<Option<Ledger>> {
    if !address.is_founded() {
        return Ok(None);
    }
    match address.open(&context.environment.settings, &SystemClock::start(), Purpose::Reading) {
        Err(Error::Open { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        opened => Ok(Some(opened?)),
    }
}

/// The place that so many lines come after; `None`: the beginning.
fn before_last(ledger: &Ledger, lines: usize) -> anyhow::Result<Option<Cursor>> {
    if lines < JOURNAL_PAGE_MAX {
        let newest = block_on(ledger.newest_lines(lines + 1))?;
        return Ok(newest.get(lines).map(|(cursor, _)| *cursor));
    }
    let (mut last, mut after) = (VecDeque::new(), None);
    loop {
        let page = block_on(ledger.journal(after, JOURNAL_PAGE_MAX))?;
        last.extend(page.items.iter().map(|(cursor, _)| *cursor));
        last.drain(..last.len().saturating_sub(lines.saturating_add(1)));
        after = page.next;
        if after.is_none() {
            return Ok(last.front().copied().filter(|_| last.len() > lines));
        }
    }
}

/// Prints what has come since. `false`: the reader went away.
fn print_new(context: &Context, ledger: &Ledger, after: &mut Option<Cursor>) -> anyhow::Result<bool> {
    loop {
        let page = block_on(ledger.journal(*after, JOURNAL_PAGE_MAX))?;
        for (cursor, line) in &page.items {
            let line = LineJson::of(line);
            let taken = if context.output.json {
                context.output.line(&line)
            } else {
                context.output.data(text(&line))
            };
            if !taken {
                return Ok(false);
            }
            *after = Some(*cursor);
        }
        if page.next.is_none() {
            return Ok(true);
        }
    }
}

fn text(line: &LineJson) -> String {
    let effect = line.effect_id.map_or_else(|| "-".to_owned(), |id| id.to_string());
    format!("{}  {effect:<29}  {:<20}  {}", line.at, crate::terminal_text::line(&line.kind), line.details())
}
