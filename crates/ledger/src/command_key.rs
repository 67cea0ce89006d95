//! The key of a command of an operator, kept beside the thing that the command made.

use crate::Error;
use semel_core::digest::Digest;
use serde::{Deserialize, Serialize};

/// A key, and the arguments that it came with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandKey {
    pub key: Digest,
    pub arguments: Digest,
}

impl CommandKey {
    /// Whether a command is the one that made a thing. The same key with other arguments is refused.
    pub fn is_repeat(command: Option<CommandKey>, made_by: Option<CommandKey>) -> Result<bool, Error> {
        match command.zip(made_by).filter(|(command, made_by)| command.key == made_by.key) {
            None => Ok(false),
            Some((command, made_by)) if command == made_by => Ok(true),
            Some(_) => Err(Error::KeyUsed),
        }
    }
}
