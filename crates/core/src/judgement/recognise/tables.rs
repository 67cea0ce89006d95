//! The words of tool names. The errors they make were measured on real tools (`docs/concepts.md`); a word that is added
//! or taken away changes those numbers.

/// Formats that servers let a path end with.
pub(super) const FORMATS: &[&str] = &[".json", ".xml", ".html", ".txt", ".csv", ".yaml"];

/// Each begins another clause, with a verb of its own.
pub(super) const CONJUNCTIONS: &[&str] = &["and", "or", "then"];

/// Verbs of looking and reckoning.
pub(super) const READ: &[&str] = &[
    "analyse", "analyze", "audit", "browse", "calculate", "compare", "compute", "count", "describe", "detect",
    "diagnose", "diff", "discover", "estimate", "explain", "fetch", "filter", "find", "geocode", "get",
    "gets", "has", "inspect", "is", "list", "lookup", "peek", "preview", "read", "retrieve", "scrape",
    "search", "show", "stat", "status", "summarise", "summarize", "troubleshoot", "validate", "view", "wait",
    "whoami",
];

/// Money, messages, publications, creations, bookings: verbs wherever they stand.
pub(super) const CONSEQUENTIAL: &[&str] = &[
    "announce", "buy", "create", "donate", "enroll", "notify", "pay", "provision", "publish", "reinvite",
    "repay", "resend", "sell", "send", "submit", "subscribe", "withdraw",
];

/// The same, but these are nouns too, and count as verbs only where no other verb came before.
pub(super) const CONSEQUENTIAL_LEADING: &[&str] = &[
    "alert", "bill", "book", "broadcast", "capture", "charge", "checkout", "comment", "debit", "deposit",
    "dial", "dispatch", "duplicate", "email", "fork", "forward", "hire", "invite", "invoice", "launch", "mail",
    "message", "order", "payout", "post", "purchase", "refund", "reply", "reserve", "schedule", "share", "sms", "trade",
    "transfer", "tweet", "wire",
];

/// They are launched on one's own machine, and again once they were closed.
pub(super) const PROGRAMS: &[&str] = &[
    "browser", "app", "application", "program", "process", "emulator", "simulator", "debugger", "terminal",
];

/// Verbs that say little, and are consequential with one of `THINGS` behind them: `process_refund`, `add_comment`.
pub(super) const WEAK: &[&str] = &[
    "add", "authorise", "authorize", "complete", "confirm", "execute", "finalise", "finalize", "initiate",
    "issue", "make", "place", "process", "rerun", "retry", "run", "start", "trigger",
];

/// Another one costs or reaches somebody, singular or plural. A POST to a collection of these makes one more.
pub(super) const THINGS: &[&str] = &[
    "booking", "call", "charge", "email", "invoice", "order", "payment", "payout", "purchase", "refund",
    "sms", "subscription", "transfer",
];

/// The same behind a weak verb alone.
pub(super) const STARTED: &[&str] = &[
    "bet", "build", "campaign", "checkout", "comment", "communication", "deposit", "job", "message", "note",
    "pipeline", "reply", "reservation", "trade", "withdrawal", "workflow",
];

/// Changes whose repetition is seldom dear: they keep a name from being a read.
pub(super) const CHANGE: &[&str] = &[
    "accept", "ack", "acknowledge", "activate", "add", "append", "apply", "approve", "assign", "attach",
    "cancel", "clear", "click", "close", "configure", "consume", "deactivate", "decline", "decrement", "del",
    "delete", "deny", "deploy", "destroy", "detach", "disable", "dismiss", "drop", "edit", "enable",
    "enqueue", "evict", "execute", "expire", "fill", "increment", "insert", "install", "invoke", "kill",
    "lock", "mark", "migrate", "modify", "move", "mutate", "overwrite", "pop", "prune", "purge", "put",
    "reboot", "redeploy", "reject", "remove", "rename", "reopen", "reorder", "replace", "rerun", "reschedule",
    "reset", "resolve", "restart", "restore", "revert", "revoke", "rollback", "rotate", "save", "suspend",
    "swap", "sync", "synchronize", "terminate", "toggle", "touch", "truncate", "unarchive", "unassign",
    "undo", "unfollow", "uninstall", "unlock", "unmark", "unpin", "unpublish", "unresolve", "unsubscribe",
    "upload", "upsert", "vacuum", "void", "wipe", "write",
];

/// The same, where a noun is as likely later in the name.
pub(super) const CHANGE_LEADING: &[&str] = &[
    "archive", "ban", "block", "build", "call", "change", "claim", "commit", "complete", "compose", "copy",
    "download", "drag", "drain", "exchange", "export", "flush", "follow", "go", "grant", "hover", "import", "join",
    "label", "leave", "like", "log", "manage", "merge", "mute", "navigate", "open", "patch", "pause", "pin",
    "press", "process", "push", "record", "register", "release", "resume", "retry", "rollout", "run", "scale",
    "select", "setup", "star", "start", "step", "stop", "store", "tag", "trigger", "type", "vote",
];

/// The same, but a thing if more than the verb of reading stands before: `get_image_set`, not `get_set_value`.
pub(super) const CHANGE_OR_THING: &[&str] = &[
    "set", "update", "upgrade",
];

/// Verbs that no noun looks like. Before one of them even `order` and `alert` are things: `alert_policy_get`.
pub(super) const PLAIN_VERBS: &[&str] = &[
    "get", "describe", "retrieve", "create", "update", "delete", "remove",
];

/// Words at the end of a name that ask about the thing it begins with. They count only together with `readOnlyHint`.
pub(super) const ASKS: &[&str] = &[
    "availability", "count", "details", "history", "info", "list", "log", "logs", "metrics", "preview",
    "progress", "state", "statistics", "stats", "status", "tracking",
];

/// Words of names that say nothing of a thing.
pub(super) const NO_THING: &[&str] = &[
    "a", "all", "an", "and", "api", "as", "at", "batch", "bulk", "by", "for", "from", "id", "in", "into", "many", "mcp",
    "multiple", "my", "name", "new", "of", "on", "one", "or", "single", "the", "to", "tool", "v1", "v2", "with",
];
