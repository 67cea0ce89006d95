//! Failures of the ledger itself. Duplicates, drift and doubt are decisions and never stand here.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Refused before anything was written, so that what was sent can be settled.
    #[error("too many claims wait for the ledger")]
    Overloaded,
    #[error("the ledger cannot be opened: {path}: {source}")]
    Open { path: PathBuf, source: std::io::Error },
    #[error("the ledger {path} is not safe to use: {why}")]
    Unsafe { path: PathBuf, why: Unsafe },
    #[error("the ledger {path} is damaged: {what}")]
    Damaged { path: PathBuf, what: String },
    #[error("the ledger {path} needs a semel that understands format {needs}; this one understands {has}")]
    TooNew { path: PathBuf, needs: u32, has: u32 },
    #[error(
        "the ledger {path} has the format {has} of an older build, and this one reads {needs}; nothing was changed"
    )]
    TooOld { path: PathBuf, has: u32, needs: u32 },
    #[error("the secret beside the ledger {path} is not the one it was written with")]
    WrongSecret { path: PathBuf },
    #[error("the secret of the ledger {path} is missing")]
    SecretMissing { path: PathBuf },
    #[error(
        "the ledger {path} has its secret; with another one it would recognise nothing that it has recorded"
    )]
    SecretKept { path: PathBuf },
    /// A server that keeps the ledger cannot be used.
    #[error("cannot use the ledger {ledger}: {what}")]
    Engine { ledger: String, what: String },
    #[error("SQLite {found} is older than {needed}; its WAL can lose commits")]
    SqliteTooOld { found: String, needed: &'static str },
    #[error("the ledger cannot be written: {what}")]
    NotWritten { what: String },
    #[error("the ledger cannot be read: {what}")]
    NotRead { what: String },
    #[error("a commit may or may not have landed, and the ledger cannot say: {what}")]
    Undetermined { what: String },
    #[error(transparent)]
    Illegal(#[from] semel_core::lifecycle::Illegal),
    #[error("the record of effect {effect} was written by a newer semel; this one must not change it")]
    NewerRecord { effect: String },
    #[error("effect {effect} has been followed by another of its record, so it stands")]
    Superseded { effect: String },
    #[error("no effect {0} in this ledger")]
    NoSuchEffect(String),
    /// Before anything was written.
    #[error("nothing was copied: {what}")]
    CopyRefused { what: String },
    #[error("the copy is not complete, and is not used: {what}")]
    CopyIncomplete { what: String },
    #[error("the ledger {ledger} is an unfinished copy of {from}, and is not used")]
    UnfinishedCopy { ledger: String, from: String },
    #[error("the ledger {ledger} is a backup, and is not written to")]
    IsBackup { ledger: String },
    #[error("nothing was changed: the same command came under this key with other arguments")]
    KeyUsed,
}

/// Advice about a failed connection, appended to the libraries' words, which name no remedy.
pub fn advice_on_connection(words: &str) -> &'static str {
    match words {
        _ if words.contains("UnknownIssuer") => "; name the certificate of its authority: SSL_CERT_FILE=FILE",
        _ if words.contains("CaUsedAsEndEntity") => {
            "; this is the certificate of an authority; make one for the server, with basicConstraints=CA:FALSE and a \
             subjectAltName"
        }
        _ if words.contains("InvalidContentType") || words.contains("tls handshake eof") => {
            "; it does not speak TLS at this port: leave the s out of the scheme"
        }
        _ => "",
    }
}

/// Why a path is refused. Each says what to do in `hint`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unsafe {
    #[error("it is a symbolic link")]
    Symlink,
    #[error("others can write to {what} (mode {mode:o})")]
    WritableByOthers { what: PathBuf, mode: u32 },
    #[error("others can read {what}, which holds recorded replies or the secret (mode {mode:o})")]
    ReadableByOthers { what: PathBuf, mode: u32 },
    #[error("it belongs to another user (uid {uid})")]
    ForeignOwner { uid: u32 },
    #[error("it lies on a network filesystem ({kind}), where locks and shared memory cannot be trusted")]
    NetworkFilesystem { kind: &'static str },
    #[error("it is not a regular file")]
    NotAFile,
}
