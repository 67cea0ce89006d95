//! Where agents keep their sessions, and which files of a directory may be transcripts.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// How deep directories are searched: Codex keeps its sessions four folders down.
const DEPTH_MAX: usize = 8;

/// A file that may be a transcript.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TranscriptFile {
    pub modified: Option<SystemTime>,
    pub path: PathBuf,
    pub bytes: u64,
}

/// The agents whose sessions are looked for, and where each keeps them below the user's home.
const AGENTS: [(&str, &str); 3] =
    [("Claude Code", ".claude/projects"), ("Codex", ".codex/sessions"), ("Gemini CLI", ".gemini/tmp")];

/// The directories of agents that are there. `codex_home` stands for `$CODEX_HOME`, `claude_home` for
/// `$CLAUDE_CONFIG_DIR`.
pub fn agent_directories(
    home: &Path,
    claude_home: Option<&Path>,
    codex_home: Option<&Path>,
) -> Vec<(&'static str, PathBuf)> {
    let place = |(agent, below): (&'static str, &str)| {
        let path = match (agent, claude_home, codex_home) {
            ("Claude Code", Some(configured), _) => configured.join("projects"),
            ("Codex", _, Some(configured)) => configured.join("sessions"),
            _ => home.join(below),
        };
        (agent, path)
    };
    AGENTS.into_iter().map(place).filter(|(_, path)| path.is_dir()).collect()
}

/// The files below a path that may be transcripts, oldest first. A file that is named itself always may.
pub fn candidates(path: &Path) -> io::Result<Vec<TranscriptFile>> {
    let mut found = Vec::new();
    let about = fs::metadata(path)?;
    let kind = about.file_type();
    if kind.is_dir() {
        search(path, DEPTH_MAX, &mut found)?;
    } else if kind.is_char_device() || kind.is_block_device() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a device, which has no end"));
    } else {
        found.push(TranscriptFile {
            modified: about.modified().ok(),
            path: path.to_owned(),
            bytes: about.len(),
        });
    }
    found.sort();
    Ok(found)
}

fn search(directory: &Path, depth: usize, found: &mut Vec<TranscriptFile>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        // Links are not followed: a directory may link to its parent.
        let kind = entry.file_type()?;
        let path = entry.path();
        if kind.is_dir() && depth > 0 {
            // A directory that cannot be searched is passed on: reading it fails, and is reported with its name.
            if search(&path, depth - 1, found).is_err() {
                found.push(TranscriptFile { modified: None, path, bytes: 0 });
            }
        } else if kind.is_file() && is_transcript_name(&path) {
            let about = entry.metadata()?;
            found.push(TranscriptFile { modified: about.modified().ok(), path, bytes: about.len() });
        }
    }
    Ok(())
}

fn is_transcript_name(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = name.strip_suffix(".gz").unwrap_or(name);
    [".jsonl", ".json", ".ndjson", ".log"].iter().any(|suffix| name.ends_with(suffix))
}
