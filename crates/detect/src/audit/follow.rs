//! Watches files of lines while they grow, and tells each finding as soon as it is one.

use super::run::{AuditOptions, find_format};
use super::tracker::Tracker;
use super::{Audit, finding::AuditFinding};
use crate::formats::FormatReader;
use crate::judge::Judge;
use crate::source::discover::{self, TranscriptFile};
use crate::source::pieces::PIECE_BYTES_MAX;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// How much of one file is read at a time.
const CHUNK_BYTES: u64 = 4 * 1024 * 1024;

#[derive(Debug)]
pub struct Follower<'j> {
    judge: &'j Judge,
    options: &'j AuditOptions,
    audit: Audit,
    files: HashMap<PathBuf, GrowingFile<'j>>,
}

#[derive(Debug)]
struct GrowingFile<'j> {
    read_to: u64,
    line: u64,
    /// The beginning of a line whose end is not written yet.
    rest: Vec<u8>,
    reader: FormatReader<'j>,
    tracker: Tracker<'j>,
}

impl<'j> Follower<'j> {
    pub fn new(judge: &'j Judge, options: &'j AuditOptions) -> Follower<'j> {
        Follower { judge, options, audit: Audit::new(Vec::new()), files: HashMap::new() }
    }

    /// Reads what was written since the last look below these paths. The findings of the first look are history.
    pub fn look(&mut self, paths: &[PathBuf]) -> Vec<AuditFinding> {
        let found = paths.iter().filter_map(|path| discover::candidates(path).ok()).flatten();
        for candidate in found.collect::<Vec<TranscriptFile>>() {
            // A file that cannot be read now may be readable at the next look.
            if let Err(error) = self.look_at(&candidate) {
                self.audit.skipped().file(&candidate.path.display().to_string(), &error.to_string());
            }
        }
        self.audit.new_findings()
    }

    fn look_at(&mut self, candidate: &TranscriptFile) -> io::Result<()> {
        let path = &candidate.path;
        // A file that has become shorter was begun anew.
        self.files.retain(|known, growing| known != path || growing.read_to <= candidate.bytes);
        if !self.files.contains_key(path) {
            let Some(growing) = self.open(path)? else { return Ok(()) };
            self.files.insert(path.clone(), growing);
        }
        let growing = self.files.get_mut(path).expect("it was inserted");
        if candidate.bytes <= growing.read_to {
            return Ok(());
        }
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(growing.read_to))?;
        let mut chunk = Vec::new();
        while (&mut file).take(CHUNK_BYTES).read_to_end(&mut chunk)? > 0 {
            growing.read_to += chunk.len() as u64;
            growing.take(&chunk);
            chunk.clear();
            self.audit.take(growing.tracker.drain());
        }
        Ok(())
    }

    /// `None`: the file says nothing of its format yet.
    fn open(&mut self, path: &Path) -> io::Result<Option<GrowingFile<'j>>> {
        let Some(format) = find_format(path, self.options)? else { return Ok(None) };
        let number = self.audit.add_file(path.to_owned());
        let name = path.display().to_string();
        Ok(Some(GrowingFile {
            read_to: 0,
            line: 0,
            rest: Vec::new(),
            reader: FormatReader::new(format, self.options.mapping.as_ref()),
            tracker: Tracker::new(self.judge, number, &name, format.is_conversation()),
        }))
    }
}

impl GrowingFile<'_> {
    fn take(&mut self, chunk: &[u8]) {
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            self.rest.extend_from_slice(part);
            if !part.ends_with(b"\n") {
                // A line without an end is bounded like any other document.
                self.rest.truncate(PIECE_BYTES_MAX);
                continue;
            }
            self.line += 1;
            let (line, tracker) = (self.line, &mut self.tracker);
            // A line that cannot be read tells nothing; the audit of the whole file names it.
            let _unreadable =
                self.reader.read(self.rest.trim_ascii(), &mut |entry| tracker.take(line, entry));
            self.rest.clear();
        }
    }
}
