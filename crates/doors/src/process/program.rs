//! Where a program is.

use semel_gate::upstream::NotStarted;
use serde_json::json;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Finds a program as `execvp` would, so that a missing one is known before anything is claimed.
pub fn find(name: &str, search: &OsStr, cwd: &Path) -> Result<PathBuf, NotStarted> {
    let executable =
        |path: &Path| path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    let refuse = |why: String, code: i32| Err(NotStarted { why, data: json!({"exit_code": code}) });
    if name.contains('/') {
        let path = cwd.join(name);
        return match path.metadata() {
            Err(_) => refuse(format!("there is no program {name}"), 127),
            Ok(_) if executable(&path) => Ok(path),
            Ok(_) => refuse(format!("{name} is not executable"), 126),
        };
    }
    let mut found_plain = false;
    for directory in std::env::split_paths(search) {
        let path = cwd.join(directory).join(name);
        if executable(&path) {
            return Ok(path);
        }
        found_plain |= path.is_file();
    }
    match found_plain {
        true => refuse(format!("{name} is not executable"), 126),
        false => refuse(format!("there is no program {name} on PATH"), 127),
    }
}
