//! What happened at this end, one line of JSON each, in writes that nothing can split.

use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

#[derive(Debug)]
pub struct EventLog {
    file: File,
}

impl EventLog {
    pub fn open(path: &Path) -> std::io::Result<EventLog> {
        Ok(EventLog { file: OpenOptions::new().create(true).append(true).open(path)? })
    }

    pub fn say(&self, line: &Value) -> std::io::Result<()> {
        (&self.file).write_all(format!("{line}\n").as_bytes())
    }
}
