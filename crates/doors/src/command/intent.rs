//! From a command line to its identity: argv, working directory and piped input.
//!
//! Two mails piped into one `sendmail` have the same command line, so the input's digest is part of the identity. It is
//! read to its end before the claim: a claim needs the identity, and input that breaks off then leaves no doubt behind.
//! A child never gets a terminal as its input, because typed answers cannot be repeated or recognised.

use semel_core::digest::Digest;
use semel_core::identity::Sorting;
use semel_core::json::Json;
use std::ffi::OsString;
use std::path::Path;

/// A command as it was given to `semel run`.
#[derive(Debug, Clone)]
pub struct CommandLine {
    pub argv: Vec<String>,
    pub cwd: String,
    /// Piped input, read to its end before anything is claimed.
    pub input: Option<Vec<u8>>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadCommand {
    #[error("there is no command to run")]
    Empty,
    #[error("argument {position} is not valid UTF-8; semel cannot name an action by it")]
    NotUtf8 { position: usize },
    #[error("the working directory is not valid UTF-8; semel cannot name an action by it")]
    DirectoryNotUtf8,
    #[error("the arguments hold {bytes} bytes; at most {ARGV_BYTES_MAX} can name an action")]
    TooLong { bytes: usize },
}

/// The kernel takes about 2 MiB of arguments; more than this is data, and belongs into a file or a pipe.
pub const ARGV_BYTES_MAX: usize = 1024 * 1024;

impl CommandLine {
    pub fn new(argv: &[OsString], cwd: &Path, input: Option<Vec<u8>>) -> Result<Self, BadCommand> {
        let text = |(position, argument): (usize, &OsString)| {
            argument.to_str().map(str::to_owned).ok_or(BadCommand::NotUtf8 { position })
        };
        let argv: Vec<String> = argv.iter().enumerate().map(text).collect::<Result<_, _>>()?;
        if argv.first().is_none_or(String::is_empty) {
            return Err(BadCommand::Empty);
        }
        let bytes = argv.iter().map(String::len).sum();
        if bytes > ARGV_BYTES_MAX {
            return Err(BadCommand::TooLong { bytes });
        }
        let cwd = cwd.to_str().ok_or(BadCommand::DirectoryNotUtf8)?.to_owned();
        Ok(CommandLine { argv, cwd, input })
    }

    /// The program's name without its directory: `/usr/bin/curl` and `curl` are one action.
    pub fn program(&self) -> &str {
        let first = &self.argv[0];
        first.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(first)
    }

    pub fn action(&self) -> String {
        format!("cli:{}", self.program())
    }

    /// See [`Sorting::set_surroundings_aside`].
    pub fn set_surroundings_aside(&self, sorting: &mut Sorting, has_key: bool) {
        sorting.set_surroundings_aside(&self.arguments(), has_key);
    }

    /// The arguments `argv`, `cwd` and `stdin` of rules. Input is named by its digest: it can be large, and secret.
    pub fn arguments(&self) -> Json {
        let argv = self.argv.iter().map(|argument| Json::str(argument)).collect();
        let mut members =
            vec![("argv".to_owned(), Json::Array(argv)), ("cwd".to_owned(), Json::str(&self.cwd))];
        if let Some(input) = &self.input {
            members.push(("stdin".to_owned(), Json::str(&Digest::of(&[input]).to_string())));
        }
        Json::Object(members.into_iter().collect())
    }
}
