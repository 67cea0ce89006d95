//! Errors in which something broke, as opposed to those by which a request was looked at and refused. Whoever says one
//! may have done the work already. All of it is read in lower case.

/// What of an error says that an answer was lost on the way, or that whoever should give it failed.
pub fn lost(lower: &str) -> Option<&'static str> {
    surely_lost(lower).or_else(|| of(LOST, lower))
}

/// The same, by what no complaint about a request's own fields says: they may be called `timeout` or `connection`.
pub fn surely_lost(lower: &str) -> Option<&'static str> {
    of(SURELY_LOST, lower)
}

/// What of an error is the word of a language for code that broke.
pub fn exception(lower: &str) -> Option<&'static str> {
    of(EXCEPTIONS, lower)
}

fn of(phrases: &[&'static str], lower: &str) -> Option<&'static str> {
    phrases.iter().find(|phrase| lower.contains(*phrase)).copied()
}

const SURELY_LOST: &[&str] = &[
    "timed out",
    "deadline exceeded",
    "econnreset",
    "etimedout",
    "socket hang up",
    "connection reset",
    "connection closed",
    "connection lost",
    "connection aborted",
    "broken pipe",
    "bad gateway",
    "gateway timeout",
    "network error",
    "fetch failed",
    "unexpected eof",
];

/// What may be a name as well, or a word of it.
const LOST: &[&str] = &[
    "timeout",
    "time-out",
    "epipe",
    "connection",
    "disconnected",
    "gateway",
    "service unavailable",
    "server error",
    "eof occurred",
    "eof detected",
    "unable to fetch",
    "other side closed",
    "premature close",
    " terminated",
    "consuming input failed",
    "aborted",
    "interrupted",
    "unreachable",
    "try again later",
    "temporarily",
];

/// What the languages say when the code of a tool or a server breaks. It breaks over the answer of an API as well as
/// over arguments.
const EXCEPTIONS: &[&str] = &[
    // Python
    "traceback",
    "typeerror",
    "keyerror",
    "attributeerror",
    "indexerror",
    "invalid literal for",
    "could not convert string",
    "expecting value: line",
    "list index out of range",
    "string index out of range",
    "'nonetype' object",
    "object has no attribute",
    "object is not subscriptable",
    "unicodedecodeerror",
    // JavaScript
    "referenceerror",
    "undefined is not",
    "cannot read propert",
    "is not a function",
    "is not iterable",
    "unexpected token <",
    "unexpected token '<'",
    "unexpected end of json",
    "in json at position",
    // the rest
    "looking for beginning of value",
    "nomethoderror",
    "formatexception",
    "nullpointer",
    "panic",
    "stack trace",
    "runtime error",
    "index out of bounds",
];
