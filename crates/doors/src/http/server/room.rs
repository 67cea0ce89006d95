//! How much is served at once.

/// Idle connections and streams of many agents; each takes some kilobytes.
const CONNECTIONS_MAX: usize = 16 * 1024;

/// Files of the process itself: the ledger, locks, listeners, servers on pipes.
const OWN_FILES: usize = 128;

/// A machine that allows hardly any files still serves somebody.
const CONNECTIONS_MIN: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Beyond it new ones wait in the kernel's queue.
    pub connections: usize,
    /// Streams included. Fewer than connections, so that whoever comes too late is told so.
    pub requests: usize,
}

impl Room {
    /// For a process that may have so many files open: whoever asks needs one, and so does what is asked for.
    pub fn for_files(files: usize) -> Room {
        let connections = (files.saturating_sub(OWN_FILES) / 2).clamp(CONNECTIONS_MIN, CONNECTIONS_MAX);
        Room { connections, requests: connections - connections / 16 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_what_files_allow_and_for_a_refusal() {
        let room = |files| Room::for_files(files);
        assert_eq!(room(0).connections, CONNECTIONS_MIN);
        assert_eq!(room(1024).connections, 448);
        assert_eq!(room(usize::MAX).connections, CONNECTIONS_MAX);
        for files in [0, 256, 1024, 65_536] {
            assert!(room(files).requests < room(files).connections && room(files).requests > 0, "{files}");
        }
    }
}
