//! How far a commit can be trusted to stay, as the server's settings say.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// On the server's disk before it is acknowledged.
    Durable,
    /// On the disk a moment later.
    SometimesOnDisk,
    /// In memory alone, or in a snapshot now and then.
    NotOnDisk,
    /// The server does not tell.
    Unknown,
}

impl Tier {
    pub fn is_durable(self) -> bool {
        self == Tier::Durable
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Tier::Durable => {
                "durable: on the server's disk before it is acknowledged; a replica that takes over may lack the newest"
            }
            Tier::SometimesOnDisk => {
                "best effort: a crash of the server may lose the last seconds; set appendfsync always and \
                 no-appendfsync-on-rewrite no"
            }
            Tier::NotOnDisk => {
                "best effort: the server keeps no log on its disk; set appendonly yes and appendfsync always"
            }
            Tier::Unknown => {
                "best effort: the server does not allow CONFIG GET, so nobody knows whether it writes to its disk"
            }
        })
    }
}
