//! Reads files side by side and gathers what they tell in one audit.

use super::tracker::{Tracked, Tracker};
use super::{Audit, AuditReport};
use crate::formats::mapped::Mapping;
use crate::formats::{self, FormatReader, TranscriptFormat};
use crate::judge::Judge;
use crate::source::pieces::Pieces;
use crate::source::{self, RecordingReader, discover::TranscriptFile};
use semel_core::time::At;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, SyncSender};

/// How many documents at the head of a file are looked at for its format: agents begin with lines about themselves.
const HEAD_PIECES: usize = 40;
/// After so many documents a reader hands over what it has.
const BATCH_PIECES: usize = 512;
/// So many batches wait for the audit before readers pause.
const BATCHES_WAITING: usize = 8;

#[derive(Debug, Default)]
pub struct AuditOptions {
    pub mapping: Option<Mapping>,
    /// Entries before this are passed over.
    pub since: Option<At>,
    /// How many files are read at once.
    pub workers: usize,
}

/// A message of a reader to the audit.
#[derive(Debug)]
pub enum Progress {
    Records(Tracked),
    BadLine { file: String, line: u64, why: String },
    BadFile { file: String, why: String },
}

/// Audits the files. `progress` hears how many bytes were read so far.
pub fn run(
    files: Vec<TranscriptFile>,
    judge: &Judge,
    options: &AuditOptions,
    mut progress: impl FnMut(u64),
) -> AuditReport {
    let paths: Vec<PathBuf> = files.iter().map(|file| file.path.clone()).collect();
    let mut audit = Audit::new(paths);
    let next = AtomicUsize::new(0);
    let read = Arc::new(AtomicU64::new(0));
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::sync_channel(BATCHES_WAITING);
        for _ in 0..options.workers.clamp(1, files.len().max(1)) {
            let (sender, next, files, read) = (sender.clone(), &next, &files, &read);
            scope.spawn(move || {
                while let Some((number, file)) = take_next(next, files) {
                    read_file(number, file, judge, options, read, &sender);
                }
            });
        }
        drop(sender);
        for told in receiver {
            match told {
                Progress::Records(tracked) => {
                    audit.take(tracked);
                    progress(read.load(Ordering::Relaxed));
                }
                Progress::BadLine { file, line, why } => audit.skipped().line(&file, line, &why),
                Progress::BadFile { file, why } => audit.skipped().file(&file, &why),
            }
        }
    });
    audit.finish()
}

fn take_next<'f>(next: &AtomicUsize, files: &'f [TranscriptFile]) -> Option<(u32, &'f TranscriptFile)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    Some((u32::try_from(number).ok()?, files.get(number)?))
}

fn read_file(
    number: u32,
    file: &TranscriptFile,
    judge: &Judge,
    options: &AuditOptions,
    read: &Arc<AtomicU64>,
    to: &SyncSender<Progress>,
) {
    let name = file.path.display().to_string();
    // The audit outlives its readers, so it always hears them.
    let tell = |told: Progress| drop(to.send(told));
    if let Err(error) = read_one(number, &file.path, judge, options, read, &tell) {
        tell(Progress::BadFile { file: name, why: error.to_string() });
    }
}

/// Reads one file. `read` counts its bytes.
pub fn read_one(
    number: u32,
    path: &Path,
    judge: &Judge,
    options: &AuditOptions,
    read: &Arc<AtomicU64>,
    tell: &impl Fn(Progress),
) -> std::io::Result<()> {
    match open_transcript(path, options, read)? {
        Some((format, input)) => read_pieces(number, path, format, input, judge, options, tell),
        None => {
            let file = path.display().to_string();
            tell(Progress::BadFile { file, why: UNKNOWN_FORMAT.to_owned() });
            Ok(())
        }
    }
}

pub const UNKNOWN_FORMAT: &str = "no format that semel knows";

pub(crate) fn find_format(path: &Path, options: &AuditOptions) -> std::io::Result<Option<TranscriptFormat>> {
    Ok(open_transcript(path, options, &Arc::default())?.map(|(format, _)| format))
}

/// Opens a file, and finds its format by its first documents. A pipe can be read only once, so these are put back.
pub(crate) fn open_transcript(
    path: &Path,
    options: &AuditOptions,
    read: &Arc<AtomicU64>,
) -> std::io::Result<Option<(TranscriptFormat, Box<dyn BufRead + Send>)>> {
    let mut input = source::open(path, read)?;
    if options.mapping.is_some() {
        return Ok(Some((TranscriptFormat::Mapped, input)));
    }
    let mut head = Vec::new();
    let format = format_of(&mut Pieces::new(RecordingReader { input: &mut input, seen: &mut head }))?;
    let whole = std::io::Cursor::new(head).chain(input);
    Ok(format.map(|format| (format, Box::new(whole) as Box<dyn BufRead + Send>)))
}

fn format_of(pieces: &mut Pieces<impl BufRead>) -> std::io::Result<Option<TranscriptFormat>> {
    let mut has_requests = false;
    for _ in 0..HEAD_PIECES {
        match pieces.read()? {
            Some(Ok(piece)) => {
                if let Some(format) = formats::detect(piece.bytes) {
                    return Ok(Some(format));
                }
                has_requests |= formats::is_request(piece.bytes);
            }
            Some(Err(_)) => {}
            None => break,
        }
    }
    // Requests without any call are read the same in both formats that have them.
    Ok(has_requests.then_some(TranscriptFormat::Anthropic))
}

fn read_pieces(
    number: u32,
    path: &Path,
    format: TranscriptFormat,
    input: impl BufRead,
    judge: &Judge,
    options: &AuditOptions,
    tell: &impl Fn(Progress),
) -> std::io::Result<()> {
    let name = path.display().to_string();
    let mut pieces = Pieces::new(input);
    let mut reader = FormatReader::new(format, options.mapping.as_ref());
    let mut tracker = Tracker::new(judge, number, &name, format.is_conversation());
    let mut count = 0;
    let outcome = loop {
        let piece = match pieces.read() {
            Ok(Some(Ok(piece))) => piece,
            Ok(Some(Err((line, why)))) => {
                tell(Progress::BadLine { file: name.clone(), line, why: why.to_string() });
                continue;
            }
            Ok(None) => break Ok(()),
            // A truncated archive gives what it held so far.
            Err(error) => break Err(error),
        };
        let line = piece.line;
        let read = reader.read(piece.bytes, &mut |entry| {
            if entry.at.zip(options.since).is_none_or(|(at, since)| at >= since) {
                tracker.take(line, entry);
            }
        });
        if let Err(why) = read {
            tell(Progress::BadLine { file: name.clone(), line, why: why.to_string() });
        }
        count += 1;
        if count % BATCH_PIECES == 0 {
            tell(Progress::Records(tracker.drain()));
        }
    };
    let last = tracker.finish();
    if format == TranscriptFormat::Mapped && count > 0 && !reader.has_found_call() {
        let why = "no line has the tool that --map names".to_owned();
        tell(Progress::BadFile { file: name, why });
    }
    tell(Progress::Records(last));
    outcome
}
