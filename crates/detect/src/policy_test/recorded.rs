//! The calls of transcripts, in their order, each with the way it ended.

use crate::audit::SkippedCounts;
use crate::audit::run::{AuditOptions, UNKNOWN_FORMAT, open_transcript};
use crate::ending::Ending;
use crate::formats::FormatReader;
use crate::source::{discover::TranscriptFile, pieces::Pieces};
use crate::transcript::{ActionCall, ToolAnswer, TranscriptEntry, TranscriptEvent};
use semel_core::class::Class;
use semel_core::policy::Rule;
use semel_core::time::At;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

/// How many calls are tried. A policy that was seen on so many will not surprise on the next.
pub const CALLS_MAX: usize = 200_000;

#[derive(Debug)]
pub struct RecordedAction {
    pub call: ActionCall,
    pub at: Option<At>,
    /// The file, by its number, and the line.
    pub file: usize,
    pub line: u64,
    /// How it ended if failures that prove nothing are doubts, and if they are not.
    ending: [Ending; 2],
}

impl RecordedAction {
    pub fn ending(&self, rule: &Rule) -> Ending {
        self.ending[usize::from(rule.class != Class::Consequential)]
    }

    fn settle(&mut self, answer: Option<&ToolAnswer<'_>>) {
        let classes = [Class::Consequential, Class::Act];
        self.ending = classes.map(|class| Ending::of(answer, &self.call.action, class));
    }
}

/// Reads the files one after the other. Calls come in the order of their time where all have one.
pub fn read(files: &[TranscriptFile], skipped: &mut SkippedCounts) -> Vec<RecordedAction> {
    let mut calls = Vec::new();
    for (number, file) in files.iter().enumerate() {
        if let Err(error) = read_file(number, file, &mut calls, skipped) {
            skipped.file(&file.path.display().to_string(), &error.to_string());
        }
    }
    if calls.iter().all(|call| call.at.is_some()) {
        calls.sort_by_key(|call| call.at);
    }
    calls
}

fn read_file(
    number: usize,
    file: &TranscriptFile,
    calls: &mut Vec<RecordedAction>,
    skipped: &mut SkippedCounts,
) -> io::Result<()> {
    let name = file.path.display().to_string();
    let opened = open_transcript(&file.path, &AuditOptions::default(), &Arc::default())?;
    let Some((format, input)) = opened else {
        skipped.file(&name, UNKNOWN_FORMAT);
        return Ok(());
    };
    let mut pieces = Pieces::new(input);
    let mut reader = FormatReader::new(format, None);
    // Where the actions of each call stand. A log of requests tells the whole conversation each time.
    let mut known: HashMap<(Option<String>, String), std::ops::Range<usize>> = HashMap::new();
    while let Some(piece) = pieces.read()? {
        let piece = match piece {
            Ok(piece) => piece,
            Err((line, why)) => {
                skipped.line(&name, line, &why.to_string());
                continue;
            }
        };
        let line = piece.line;
        let read = reader.read(piece.bytes, &mut |entry| {
            let TranscriptEntry { session, at, event } = entry;
            let session = session.map(|session| session.into_owned());
            match event {
                TranscriptEvent::RecordedCall(call) => {
                    let id = (session, call.id.into_owned());
                    if format.is_conversation() && known.contains_key(&id) {
                        return;
                    }
                    let first = calls.len();
                    for call in call.actions.into_iter().take(CALLS_MAX - first) {
                        let mut action =
                            RecordedAction { call, at, file: number, line, ending: [Ending::Unanswered; 2] };
                        action.settle(None);
                        calls.push(action);
                    }
                    known.insert(id, first..calls.len());
                }
                TranscriptEvent::ToolAnswer(answer) => {
                    let id = (session, answer.id.clone().into_owned());
                    let answered = known.get(&id).cloned().unwrap_or_default();
                    calls[answered].iter_mut().for_each(|call| call.settle(Some(&answer)));
                }
                _ => {}
            }
        });
        if let Err(why) = read {
            skipped.line(&name, line, &why.to_string());
        }
    }
    Ok(())
}
