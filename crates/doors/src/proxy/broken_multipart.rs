//! Why a multipart form is not read.

/// More parts than this were generated to do harm.
pub const MULTIPART_PARTS_MAX: usize = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BrokenMultipart {
    #[error("names no boundary")]
    NoBoundary,
    #[error("has an ambiguous boundary")]
    Boundary,
    #[error("does not begin and end with its boundary")]
    Unbounded,
    #[error(
        "has its boundary elsewhere than in whole lines that end in CR LF, or behind its end: not everybody would \
         divide it alike"
    )]
    Inside,
    #[error("has text like headers outside its boundaries")]
    Beside,
    #[error("has a part whose header lines do not end in CR LF")]
    Headers,
    #[error("has a part without a name")]
    Unnamed,
    #[error("has a part with an ambiguous Content-Disposition; write `form-data; name=\"…\"`")]
    Ambiguous,
    #[error("has a part with a repeated header")]
    Twice,
    #[error("has a text with a Content-Transfer-Encoding: it is sent as it is, without one")]
    Encoded,
    #[error("has a text in another encoding than UTF-8")]
    Charset,
    #[error("has more than {MULTIPART_PARTS_MAX} parts")]
    TooMany,
}
