//! The left side from transcripts: the effects that an agent made, or may have made.

use super::{IntendedEffect, Pairing, Standing};
use crate::audit::audited_call::AuditedCall;
use crate::audit::run::{AuditOptions, Progress, UNKNOWN_FORMAT, find_format, read_one};
use crate::ending::Ending;
use crate::formats::FormatReader;
use crate::judge::Judge;
use crate::source;
use crate::source::discover::TranscriptFile;
use crate::source::pieces::Pieces;
use crate::transcript::{ActionCall, TranscriptEvent};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

#[derive(Debug, Default)]
pub struct IntendedCalls {
    pub effects: Vec<IntendedEffect>,
    /// Effects without the values that rows are matched by.
    pub left_out: usize,
    /// Files and lines that could not be read, and why.
    pub unread: Vec<String>,
}

/// The effects of the files. Calls of one intent, within the time in which the audit calls them repeats, are one effect: an
/// agent that tried again meant it once.
pub fn intended_calls(
    files: &[TranscriptFile],
    judge: &Judge,
    options: &AuditOptions,
    pairing: &Pairing,
    is_wanted: impl Fn(&AuditedCall) -> bool,
) -> io::Result<IntendedCalls> {
    let mut found = IntendedCalls::default();
    let mut by_intent: HashMap<u64, (usize, AuditedCall)> = HashMap::new();
    let mut ids = HashSet::new();
    for (number, file) in (0..).zip(files) {
        let name = file.path.display().to_string();
        let (calls, unread) = calls_of(number, &file.path, judge, options)?;
        found.unread.extend(unread);
        for call in calls.into_iter().filter(|call| call.ending.may_have_happened() && is_wanted(call)) {
            // A session that was resumed is copied.
            if call.unique_id.is_some_and(|id| !ids.insert(id)) {
                continue;
            }
            let standing = if call.ending == Ending::Applied { Standing::Applied } else { Standing::InDoubt };
            let earlier = by_intent.get_mut(&call.judged.intent);
            if let Some((effect, last)) = earlier.filter(|(_, last)| !is_another(last, &call)) {
                if standing == Standing::Applied {
                    found.effects[*effect].standing = standing;
                }
                *last = call;
                continue;
            }
            let Some(marks) = pairing.marks_in(&call.judged.marks) else {
                found.left_out += 1;
                continue;
            };
            found.effects.push(IntendedEffect {
                id: format!("{name}:{}", call.place.line),
                action: call.judged.action.clone(),
                subject: call.judged.subject.clone(),
                standing,
                marks,
            });
            by_intent.insert(call.judged.intent, (found.effects.len() - 1, call));
        }
    }
    Ok(found)
}

/// Whether a call of the same intent is a new effect all the same.
fn is_another(last: &AuditedCall, call: &AuditedCall) -> bool {
    let age = last.at.zip(call.at).map(|(last, at)| at.since(last));
    call.judged.is_deliberate || last.judged.is_over(last.ending, age)
}

fn calls_of(
    number: u32,
    path: &Path,
    judge: &Judge,
    options: &AuditOptions,
) -> io::Result<(Vec<AuditedCall>, Vec<String>)> {
    let (calls, unread) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
    read_one(number, path, judge, options, &Arc::default(), &|told| match told {
        Progress::Records(tracked) => calls.borrow_mut().extend(tracked.occurrences),
        Progress::BadLine { file, line, why } => unread.borrow_mut().push(format!("{file}:{line}: {why}")),
        Progress::BadFile { file, why } => unread.borrow_mut().push(format!("{file}: {why}")),
    })?;
    let mut calls = calls.into_inner();
    calls.sort_by_key(|call: &AuditedCall| call.place);
    Ok((calls, unread.into_inner()))
}

/// Hands over every action of a file, with its arguments.
pub fn for_each_action(
    path: &Path,
    options: &AuditOptions,
    mut take: impl FnMut(ActionCall),
) -> io::Result<()> {
    let format = find_format(path, options)?;
    let format = format.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, UNKNOWN_FORMAT))?;
    let mut reader = FormatReader::new(format, options.mapping.as_ref());
    let mut pieces = Pieces::new(source::open(path, &Arc::default())?);
    while let Some(piece) = pieces.read()? {
        let Ok(piece) = piece else { continue };
        // A line that cannot be read brings no arguments, and its effect stays undecided.
        let _unread = reader.read(piece.bytes, &mut |entry| {
            if let TranscriptEvent::RecordedCall(call) = entry.event {
                call.actions.into_iter().for_each(&mut take);
            }
        });
    }
    Ok(())
}
