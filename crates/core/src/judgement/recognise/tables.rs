//! The words of tool names. Which of them says what was measured on real tools (`docs/concepts.md`); a word that is
//! added or taken away changes those numbers.

pub(super) const CONJUNCTIONS: [&str; 3] = ["and", "or", "then"];

/// Verbs that no noun looks like; a word before one of them says of what.
pub(super) const PLAIN_VERBS: &[&str] =
    &["get", "describe", "retrieve", "create", "update", "delete", "remove"];

pub(super) const READ: &[&str] = &[
    "get", "gets", "list", "search", "find", "read", "fetch", "describe", "show", "view", "lookup", "count",
    "inspect", "explain", "retrieve", "whoami", "status", "is", "has", "peek", "stat", "diff", "compare",
    "preview", "browse",
];

/// Verbs of looking and reckoning that say so only at the beginning.
pub(super) const READ_FIRST: &[&str] = &[
    "analyze",
    "analyse",
    "audit",
    "calculate",
    "compute",
    "detect",
    "diagnose",
    "discover",
    "estimate",
    "filter",
    "geocode",
    "scrape",
    "summarize",
    "summarise",
    "troubleshoot",
    "validate",
    "wait",
];

/// Verbs that say so also after the thing that is looked at.
pub(super) const READ_LATER: &[&str] = &[
    "get", "gets", "describe", "retrieve", "lookup", "whoami", "search", "find", "read", "fetch", "show",
    "geocode",
];

/// The objects of `check` that make it a read; `check_in`, `check_out` and `check_item` change something.
pub(super) const STATES: &[&str] = &[
    "status",
    "health",
    "availability",
    "permission",
    "permissions",
    "compliance",
    "eligibility",
    "version",
    "connection",
    "connectivity",
    "prerequisites",
];

/// Words at the end of a name that ask how something goes or went. They make a read only together with `readOnlyHint`.
pub(super) const ASKS_HOW: &[&str] = &[
    "status",
    "state",
    "progress",
    "history",
    "tracking",
    "availability",
    "count",
    "info",
    "details",
    "stats",
    "statistics",
    "metrics",
];

/// The same, of what there is. After `upload` and `sync` they may be what is changed.
pub(super) const ASKS_WHAT: &[&str] =
    &["list", "log", "logs", "summary", "preview", "search", "schema", "version", "screenshot", "snapshot"];

/// Owners of such things, first in a name. Most other words there are verbs: `share_screenshot`, `release_version`.
pub(super) const HAS_SUCH: &[&str] =
    &["comment", "message", "order", "invoice", "payment", "deploy", "build", "capture", "job", "run"];

/// At the beginning of a name these bring a status before others, or begin and end something. A post may have a status,
/// but `post_status` mostly posts one.
pub(super) const SPREADS: &[&str] = &["post", "tweet", "broadcast", "share", "start", "stop"];

/// Verbs of change that are also names of what goes on: `sync_status`.
pub(super) const PROCESSES: &[&str] = &[
    "deploy",
    "redeploy",
    "rollback",
    "sync",
    "install",
    "upload",
    "migrate",
    "lock",
    "restart",
    "reboot",
    "restore",
    "provision",
];

/// Things launched on one's own machine, and again once they were closed.
pub(super) const PROGRAMS: &[&str] =
    &["browser", "app", "application", "program", "process", "emulator", "simulator", "debugger", "terminal"];

/// Money, messages, publications, creations, bookings: verbs wherever they stand.
pub(super) const CONSEQUENTIAL: &[&str] = &[
    "create",
    "send",
    "resend",
    "publish",
    "pay",
    "buy",
    "sell",
    "withdraw",
    "donate",
    "subscribe",
    "notify",
    "announce",
    "submit",
    "provision",
    "enroll",
    "repay",
    "reinvite",
];

/// The same, but these are nouns too, and count as verbs only where no other verb came before.
pub(super) const CONSEQUENTIAL_LEADING: &[&str] = &[
    "charge",
    "refund",
    "transfer",
    "order",
    "book",
    "reserve",
    "post",
    "message",
    "email",
    "mail",
    "comment",
    "reply",
    "invoice",
    "bill",
    "share",
    "invite",
    "schedule",
    "payout",
    "checkout",
    "wire",
    "deposit",
    "capture",
    "trade",
    "forward",
    "sms",
    "alert",
    "purchase",
    "broadcast",
    "launch",
    "tweet",
    "dispatch",
    "debit",
    "hire",
    "fork",
    "dial",
    "duplicate",
];

/// Money changes hands by these verbs together with these things.
pub(super) const MONEY_VERBS: &[&str] = &[
    "process",
    "execute",
    "confirm",
    "complete",
    "finalize",
    "finalise",
    "make",
    "place",
    "initiate",
    "issue",
    "retry",
    "authorize",
    "authorise",
];
pub(super) const MONEY: &[&str] = &[
    "payment",
    "payments",
    "refund",
    "refunds",
    "transfer",
    "transfers",
    "payout",
    "payouts",
    "trade",
    "trades",
    "purchase",
    "checkout",
    "order",
    "orders",
    "booking",
    "bookings",
    "reservation",
    "charge",
    "invoice",
    "invoices",
    "withdrawal",
    "deposit",
    "bet",
    "call",
];

/// A POST to a collection of these makes one more, and another one costs or reaches somebody.
pub(super) const THINGS: &[&str] = &[
    "charge",
    "payment",
    "refund",
    "transfer",
    "payout",
    "order",
    "invoice",
    "booking",
    "purchase",
    "subscription",
    "call",
    "sms",
    "email",
];

/// Each of these starts one more of those, and a run costs.
pub(super) const RUN_VERBS: &[&str] = &["run", "rerun", "trigger", "start", "execute", "retry"];
pub(super) const RUNS: &[&str] = &[
    "pipeline",
    "pipelines",
    "workflow",
    "workflows",
    "job",
    "jobs",
    "build",
    "builds",
    "campaign",
    "campaigns",
];

/// Adding these is saying something to someone.
pub(super) const WORDS_TO_SOMEONE: &[&str] =
    &["comment", "comments", "message", "messages", "reply", "note", "notes", "communication"];

/// Changes whose repetition is seldom dear: they keep a name from being a read.
pub(super) const CHANGE: &[&str] = &[
    "accept",
    "ack",
    "acknowledge",
    "activate",
    "add",
    "append",
    "apply",
    "approve",
    "assign",
    "attach",
    "cancel",
    "clear",
    "click",
    "close",
    "configure",
    "consume",
    "deactivate",
    "decline",
    "decrement",
    "del",
    "delete",
    "deny",
    "deploy",
    "destroy",
    "detach",
    "disable",
    "dismiss",
    "drop",
    "edit",
    "enable",
    "enqueue",
    "evict",
    "execute",
    "expire",
    "fill",
    "increment",
    "insert",
    "install",
    "invoke",
    "kill",
    "lock",
    "mark",
    "migrate",
    "modify",
    "move",
    "mutate",
    "overwrite",
    "pop",
    "prune",
    "purge",
    "put",
    "reboot",
    "redeploy",
    "reject",
    "remove",
    "rename",
    "reopen",
    "reorder",
    "replace",
    "rerun",
    "reset",
    "reschedule",
    "resolve",
    "restart",
    "restore",
    "revert",
    "revoke",
    "rollback",
    "rotate",
    "save",
    "suspend",
    "swap",
    "sync",
    "synchronize",
    "terminate",
    "toggle",
    "touch",
    "truncate",
    "unarchive",
    "unassign",
    "undo",
    "unfollow",
    "uninstall",
    "unlock",
    "unmark",
    "unpin",
    "unpublish",
    "unresolve",
    "unsubscribe",
    "upload",
    "upsert",
    "vacuum",
    "void",
    "wipe",
    "write",
];

/// The same, where a noun is as likely later in the name.
pub(super) const CHANGE_LEADING: &[&str] = &[
    "archive", "ban", "block", "build", "call", "change", "claim", "commit", "complete", "compose", "copy",
    "download", "drag", "drain", "exchange", "export", "flush", "follow", "grant", "hover", "import", "join",
    "label", "leave", "like", "log", "manage", "merge", "mute", "navigate", "open", "patch", "pause", "pin",
    "press", "process", "push", "record", "register", "release", "rollout", "resume", "retry", "run",
    "scale", "select", "setup", "star", "start", "stop", "store", "tag", "trigger", "type", "vote",
];

/// The same, where it is a thing if something stands between the verb of reading and it: `get_image_set` and
/// `get_project_update`, but not `get_set_value`.
pub(super) const CHANGE_OR_THING: &[&str] = &["set", "update", "upgrade"];

/// Verbs that say neither. Before a read verb they make the name theirs: `refresh_search_index`.
pub(super) const OTHER_VERBS: &[&str] = &[
    "allow",
    "authorize",
    "boost",
    "clean",
    "cleanup",
    "combine",
    "confirm",
    "connect",
    "convert",
    "crawl",
    "debug",
    "disconnect",
    "draft",
    "enrich",
    "evaluate",
    "finalize",
    "fix",
    "format",
    "generate",
    "ignore",
    "index",
    "ingest",
    "init",
    "initialize",
    "initiate",
    "issue",
    "load",
    "login",
    "logout",
    "make",
    "map",
    "match",
    "monitor",
    "optimize",
    "perform",
    "place",
    "plan",
    "play",
    "prepare",
    "print",
    "queue",
    "rate",
    "rebuild",
    "refresh",
    "reindex",
    "render",
    "repair",
    "request",
    "review",
    "scan",
    "seed",
    "shuffle",
    "simulate",
    "skip",
    "sort",
    "split",
    "switch",
    "test",
    "track",
    "train",
    "transform",
    "translate",
    "unwatch",
    "use",
    "verify",
    "warm",
    "watch",
];
