//! The token that clients show: made once, kept beside the ledger, never printed.

use anyhow::{Context as _, bail};
use semel_doors::http::server::OperatorToken;
use semel_ledger::entropy::{Entropy, OsEntropy};
use semel_ledger::tokens::PREFIX;
use std::fs::DirBuilder;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

/// A shorter one could be guessed.
const CHARS_MIN: usize = 16;
/// A longer one is some other file.
const BYTES_MAX: u64 = 4 * 1024;

/// The token in this file, which is made if there is none. However many processes race here, all get the same one.
pub fn kept(file: &Path) -> anyhow::Result<OperatorToken> {
    if !file.exists() {
        let directory = file.parent().context("the token has no directory")?;
        // A ledger that could not be opened has not made it.
        DirBuilder::new().recursive(true).mode(0o700).create(directory).context("cannot write the token")?;
        let mut aside = tempfile::NamedTempFile::new_in(directory).context("cannot write the token")?;
        // By its looks it is semel's own: one that is mistyped or old is refused, and goes to no upstream.
        writeln!(aside, "{PREFIX}{:032x}{:032x}", OsEntropy.bits(), OsEntropy.bits())?;
        aside.as_file().sync_all()?;
        // A faster process has made one: that is the one.
        let _theirs = aside.persist_noclobber(file);
    }
    let about = || format!("cannot read the token {}", file.display());
    let metadata = file.symlink_metadata().with_context(about)?;
    if !metadata.is_file() || metadata.len() > BYTES_MAX {
        bail!("{} is no token", file.display());
    }
    if metadata.mode() & 0o077 != 0 {
        bail!("others can read the token {} (mode {:o}); chmod 600", file.display(), metadata.mode() & 0o777);
    }
    of(std::fs::read_to_string(file).with_context(about)?.trim())
}

pub fn of(text: &str) -> anyhow::Result<OperatorToken> {
    let visible = text.bytes().all(|byte| byte.is_ascii_graphic());
    if text.len() < CHARS_MIN || !visible {
        bail!("a token has at least {CHARS_MIN} visible characters");
    }
    Ok(OperatorToken::new(text.to_owned()))
}
