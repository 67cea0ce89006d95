//! The ways to put a question. All of them are the operator's.

use super::origins::Origins;
use super::tools::ToolServers;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Debug, Default)]
pub struct Backends {
    pub tools: Option<Arc<dyn ToolServers>>,
    pub origins: Origins,
    pub shell: Shell,
}

/// Where commands are found, and where they run.
#[derive(Debug, Clone, Default)]
pub struct Shell {
    /// `PATH` of this process.
    pub search: OsString,
    pub cwd: PathBuf,
    /// Where `curl` looks for settings of its own.
    pub curl_settings: Vec<PathBuf>,
}
