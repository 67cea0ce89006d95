//! The words by which tools say that something was done, and which of them are a tool's own: what `create_issue` calls
//! `created` it may have done just now, and what it calls `merged` is how it has found something.

use super::tool_name::words as words_of;

/// What anybody may say of any work. Words that mostly describe what a call was given (`the uploaded file`) are left
/// to the tools whose names have the verb.
const OF_ANY_WORK: &[&str] = &[
    "created",
    "opened",
    "added",
    "made",
    "issued",
    "filed",
    "saved",
    "stored",
    "inserted",
    "generated",
    "submitted",
    "queued",
    "processed",
    "completed",
    "executed",
    "confirmed",
    "succeeded",
    "successfully",
    // Whoever passes over a fault goes on.
    "ignored",
    "skipped",
];

/// What tools with one of these verbs in their names do, and what they call it once it is done.
struct Family {
    verbs: &'static [&'static str],
    done: &'static [&'static str],
}

const FAMILIES: &[Family] = &[
    Family {
        verbs: &[
            "create",
            "add",
            "open",
            "make",
            "new",
            "insert",
            "file",
            "register",
            "generate",
            "issue",
            "start",
            "launch",
            "provision",
            "submit",
            "book",
            "reserve",
            "schedule",
            "order",
            "place",
        ],
        done: &[
            "created",
            "opened",
            "added",
            "made",
            "inserted",
            "filed",
            "generated",
            "issued",
            "launched",
            "provisioned",
            "submitted",
            "saved",
            "placed",
            "booked",
            "reserved",
            "ordered",
            "activated",
            "initiated",
            "started",
            "published",
        ],
    },
    Family {
        verbs: &[
            "send", "resend", "post", "publish", "message", "mail", "email", "sms", "reply", "comment",
            "notify", "forward", "share", "invite", "dispatch", "tweet", "announce",
        ],
        done: &[
            "sent",
            "posted",
            "delivered",
            "queued",
            "emailed",
            "mailed",
            "forwarded",
            "published",
            "shared",
            "notified",
            "invited",
            "dispatched",
            "created",
            "added",
        ],
    },
    Family {
        verbs: &[
            "charge",
            "pay",
            "payment",
            "bill",
            "capture",
            "purchase",
            "buy",
            "order",
            "checkout",
            "place",
            "transfer",
            "wire",
            "payout",
            "withdraw",
            "deposit",
            "debit",
            "subscribe",
        ],
        done: &[
            "charged",
            "paid",
            "billed",
            "captured",
            "purchased",
            "placed",
            "ordered",
            "transferred",
            "wired",
            "debited",
            "initiated",
            "activated",
            "sent",
        ],
    },
    Family {
        verbs: &["refund", "reimburse", "credit"],
        done: &["refunded", "reimbursed", "credited", "issued"],
    },
    Family {
        verbs: &["ship", "deliver", "dispatch", "fulfill", "fulfil"],
        done: &["shipped", "delivered", "dispatched"],
    },
    Family {
        verbs: &["deploy", "run", "execute", "trigger", "start", "launch", "build", "release", "publish"],
        done: &["deployed", "triggered", "launched", "started", "queued", "pushed", "published"],
    },
    Family { verbs: &["merge", "push", "commit"], done: &["merged", "pushed", "committed"] },
    // What they have done is said with their own verb.
    Family {
        verbs: &[
            "cancel", "void", "close", "reopen", "delete", "remove", "archive", "revoke", "edit", "update",
            "change", "modify", "move", "rename", "assign", "label", "lock", "pin", "approve",
        ],
        done: &[],
    },
];

/// Participles that no rule makes.
const IRREGULAR: &[(&str, &str)] = &[
    ("send", "sent"),
    ("resend", "resent"),
    ("make", "made"),
    ("pay", "paid"),
    ("buy", "bought"),
    ("sell", "sold"),
    ("write", "written"),
    ("build", "built"),
    ("withdraw", "withdrawn"),
];

/// Participles by which errors refuse, whatever a tool's name has in it: `require_approval`, `set_limit`.
const REFUSE: &[&str] =
    &["required", "limited", "denied", "declined", "rejected", "expected", "failed", "blocked", "disabled"];

/// The words of a tool's name.
#[derive(Debug, Clone)]
pub struct Tool {
    words: Vec<String>,
}

/// Whose word it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The tool's, or nobody can say.
    Own,
    /// Anybody's.
    Open,
    /// That of another kind of work.
    Foreign,
}

impl Tool {
    pub fn named(name: &str) -> Tool {
        Tool { words: words_of(name) }
    }

    /// Whose word of something done it is, if it is one.
    pub fn whose(&self, word: &str) -> Option<Whose> {
        let has = |verb: &&str| self.words.iter().any(|own| own == *verb);
        let families = || FAMILIES.iter().filter(|family| family.verbs.iter().any(has));
        let own_verb = || !REFUSE.contains(&word) && self.words.iter().any(|verb| is_participle(word, verb));
        let is_any = OF_ANY_WORK.contains(&word);
        let is_known = is_any || FAMILIES.iter().any(|family| family.done.contains(&word));
        if own_verb() || families().any(|family| family.done.contains(&word)) {
            return Some(Whose::Own);
        }
        match (is_known, is_any, families().next()) {
            (false, _, _) => None,
            (true, _, None) => Some(Whose::Own),
            (true, true, Some(_)) => Some(Whose::Open),
            (true, false, Some(_)) => Some(Whose::Foreign),
        }
    }

    /// Whether the tool's name has the noun, so that it may be what was made.
    pub fn is_about(&self, noun: &str) -> bool {
        let singular = noun.strip_suffix('s').unwrap_or(noun);
        self.words.iter().any(|word| word == noun || word == singular)
    }
}

fn is_participle(word: &str, verb: &str) -> bool {
    if verb.len() < 3 {
        return false;
    }
    if let Some((_, participle)) = IRREGULAR.iter().find(|(irregular, _)| *irregular == verb) {
        return word == *participle;
    }
    let Some(stem) = word.strip_suffix("ed") else { return false };
    let doubled = || stem.strip_prefix(verb).is_some_and(|last| last.len() == 1 && verb.ends_with(last));
    let y_to_i = || verb.strip_suffix('y').is_some_and(|short| stem.strip_suffix('i') == Some(short));
    stem == verb || verb.strip_suffix('e') == Some(stem) || doubled() || y_to_i()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_knows_its_own_words() {
        for (tool, word, whose) in [
            ("create_issue", "created", Some(Whose::Own)),
            ("createIssue", "opened", Some(Whose::Own)),
            ("create_issue", "merged", Some(Whose::Foreign)),
            ("close_pull_request", "merged", Some(Whose::Foreign)),
            ("close_pull_request", "closed", Some(Whose::Own)),
            ("cancel_order", "cancelled", Some(Whose::Own)),
            ("cancel_order", "canceled", Some(Whose::Own)),
            ("delete_file", "deleted", Some(Whose::Own)),
            ("create_issue", "deleted", None),
            ("apply_patch", "applied", Some(Whose::Own)),
            ("charge", "refunded", Some(Whose::Foreign)),
            ("charge", "created", Some(Whose::Open)),
            ("archive_page", "created", Some(Whose::Open)),
            ("notion", "merged", Some(Whose::Own)),
            ("require_approval", "required", None),
        ] {
            assert_eq!(Tool::named(tool).whose(word), whose, "{tool} {word}");
        }
    }
}
