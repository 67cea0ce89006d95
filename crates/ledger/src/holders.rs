//! Who holds attempts, and whether they are still alive (rule 17).

use crate::Error;
use semel_core::ids::OwnerId;

/// A holder is known to be dead by a lock that dies with it, not by time alone.
pub trait Holders: Send + Sync + 'static {
    /// This process, registered before its first claim.
    fn me(&self) -> Result<OwnerId, Error>;

    /// Whether that process, or a child that inherited its lock, is still there.
    fn is_alive(&self, owner: OwnerId) -> Result<bool, Error>;
}
