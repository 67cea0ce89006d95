//! The sentences of an answer. First what happened, then whether to try again, then what to do; never advice to
//! change the arguments.

use crate::answer::{Code, Retry, Trouble};
use crate::class::{Class, Tier};
use crate::effect::{
    Applied, Attempt, Doubt, EARLIER_REASONS_KEPT, Effect, Evidence, NotApplied, NotAppliedWhy, State,
};
use crate::ids::EffectId;
use crate::policy::rule::Again;
use crate::subject::{in_short, quoted_for_a_shell};
use crate::time::{At, in_words};
use crate::undo::Undo;
use std::time::Duration;

/// Without differing arguments, and with the advice on a retry that its code always gives.
fn trouble(
    code: Code,
    what_happened: impl Into<String>,
    next_step: impl Into<String>,
    human_next_step: impl Into<String>,
) -> Trouble {
    Trouble {
        code,
        what_happened: what_happened.into(),
        is_it_safe_to_retry: code.retry(),
        next_step: next_step.into(),
        human_next_step: human_next_step.into(),
        differing: Vec::new(),
    }
}

fn named(effect: &Effect) -> String {
    match effect.facts.subject.as_str() {
        "" => effect.facts.action.clone(),
        subject => format!("{} ({})", effect.facts.action, in_short(subject)),
    }
}

fn by_run(effect: &Effect) -> String {
    effect.facts.run.as_ref().map_or_else(String::new, |run| format!(" by run {}", run.id))
}

/// When and by whom it was done, for a replay or a joined answer.
pub fn done_before(effect: &Effect, now: At) -> String {
    let State::Applied(applied) = &effect.state else { return String::new() };
    let when = ago(now.since(applied.at));
    let how = match applied.evidence {
        Evidence::Accepted => format!("accepted, not confirmed, {when}"),
        Evidence::Reported | Evidence::Confirmed if when == JUST_NOW => "just done".to_owned(),
        Evidence::Reported | Evidence::Confirmed => format!("done {when}"),
        Evidence::Probed => format!("a check found {when} that it was done"),
        Evidence::Ruled => format!("marked as done {when}"),
    };
    let by = match &applied.ruling {
        Some(ruling) => format!(" by {} (\"{}\")", ruling.by, ruling.reason.as_str()),
        None => by_run(effect),
    };
    let undone = effect.undone.map_or_else(String::new, |undone| {
        format!(", and undone {} by {}", ago(now.since(undone.at)), undone.by)
    });
    [&how, &*by, &undone, "; it was not run again"].concat()
}

const JUST_NOW: &str = "just now";

fn ago(span: Duration) -> String {
    if span.as_secs() == 0 { JUST_NOW.to_owned() } else { format!("{} ago", in_words(span)) }
}

/// A removal that was sent again found nothing to remove.
pub const GONE: &str = "gone; whether by this call is not known";

/// The ledger could not be reached once the answer was there.
pub const SPOOLED: &str =
    "recorded on this host; semel writes it to the ledger when the ledger can be reached";

/// The same reason is the same repetition, so that a retried one is safe.
pub const REASON_USED: &str = "; this reason was used already, so it is the same repetition";

/// It ran because its class says so.
pub const POSSIBLE_REPEAT: &str = "possible_repeat: the same call was done before, and this one ran too";

/// Content of this call that differs from the call that answers it. None of it was sent.
pub fn worded_otherwise(paths: &[String]) -> String {
    /// A sentence for a model; the rest is of the same kind.
    const NAMED_MAX: usize = 5;
    if paths.is_empty() {
        return String::new();
    }
    let more = match paths.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named = paths[..paths.len().min(NAMED_MAX)].join(", ");
    format!("; your changed {named}{more} was NOT sent")
}

/// Whether it happened, for a list that a model reads.
pub fn how_applied(effect: &Effect, applied: &Applied) -> String {
    if crate::lifecycle::duplicates(effect).is_some() {
        return "HAPPENED TWICE (duplicate_detected): two attempts of it succeeded. Tell the user".into();
    }
    match applied.evidence {
        Evidence::Accepted => "accepted, not confirmed".into(),
        evidence => format!("done ({})", evidence.word()),
    }
}

pub fn why_in_doubt(doubt: &Doubt) -> String {
    match doubt {
        Doubt::HolderDied => "the process that ran it ended before its answer was recorded".into(),
        Doubt::HolderSilent => "the process that ran it has not been heard of, and may still run".into(),
        Doubt::DeadlinePassed => "it did not answer before its deadline".into(),
        Doubt::Ambiguous(why) if why.is_empty() => "its answer was lost".into(),
        Doubt::Ambiguous(why) => why.clone(),
        Doubt::Epoch => {
            "the ledger may have lost claims, and for a day it holds every call that it does not know".into()
        }
        Doubt::Reopened(reason) => format!("its ruling was taken back: {}", reason.as_str()),
        Doubt::WrittenByNewer => "a newer semel wrote its record".into(),
        Doubt::Damaged => "its record in the ledger is damaged".into(),
    }
}

pub fn why_not_applied(why: &NotAppliedWhy) -> String {
    match why {
        NotAppliedWhy::Refused(what) => format!("refused: {what}"),
        NotAppliedWhy::Reported(what) => format!("reported as failed: {what}"),
        NotAppliedWhy::NeverSent(what) => format!("never sent: {what}"),
        NotAppliedWhy::AwaitingInput => "awaiting input".into(),
        NotAppliedWhy::Cancelled => "cancelled before it was sent".into(),
        NotAppliedWhy::Probed => "a probe did not find it".into(),
        NotAppliedWhy::Ruled => "marked as not done by a ruling".into(),
        NotAppliedWhy::Refuted(what) => format!("reported as done, then disproved: {what}"),
    }
}

/// The words of a refutation: who was asked, and for how long.
pub fn not_shown(asked: &str, within: std::time::Duration) -> String {
    format!("{asked} did not show it within {}", crate::policy::duration::text(within))
}

pub fn in_doubt(effect: &Effect) -> Trouble {
    let (since, why) = match &effect.state {
        State::InDoubt(doubt) => (doubt.since, why_in_doubt(&doubt.why)),
        _ => (effect.changed_at(), "its outcome is not known".into()),
    };
    let id = effect.id;
    if effect.facts.class == Class::Generate {
        return Trouble {
            is_it_safe_to_retry: Retry::Yes,
            ..trouble(
                Code::InDoubt,
                format!("{} has no complete answer: {why} (since {since}).", named(effect)),
                "Ask again, unchanged. It is generated anew.",
                to_show_doubt(effect),
            )
        };
    }
    let what_happened = format!("{} may have been carried out: {why} (since {since}).", named(effect));
    // Once it was sent again in vain, it is a matter for somebody else.
    if effect.facts.class == Class::Convergent && effect.resends() == 0 {
        return Trouble {
            is_it_safe_to_retry: Retry::Yes,
            ..trouble(
                Code::InDoubt,
                what_happened,
                "Call it again, unchanged. That settles it: doing it twice leaves the same result as doing it once.",
                to_show_doubt(effect),
            )
        };
    }
    trouble(
        Code::InDoubt,
        what_happened,
        format!(
            "Do not call it again. Check with a read-only tool whether it happened, or tell the user that {id} needs a decision."
        ),
        to_show_doubt(effect),
    )
}

/// A doubt that the same call settles by being sent again, and that cannot be sent now.
pub fn in_doubt_until_sent(effect: &Effect) -> Trouble {
    let trouble = in_doubt(effect);
    if effect.facts.class == Class::Generate {
        return trouble;
    }
    let settles = match effect.facts.tier {
        Tier::Keyed => "it is sent under the same key, so it happens once",
        _ => "doing it twice leaves the same result as doing it once",
    };
    Trouble {
        is_it_safe_to_retry: Retry::Wait,
        next_step: format!(
            "Once its server can be reached, call it again, unchanged. That settles it: {settles}."
        ),
        ..trouble
    }
}

/// Names the effect and the ledger, never the command that rules: models read it too.
fn to_show(id: EffectId) -> String {
    format!("semel ledger show {id}")
}

/// A loss is one for all calls that it holds: when and why, and until when, is said once.
fn to_show_doubt(effect: &Effect) -> String {
    match &effect.state {
        State::InDoubt(doubt) if doubt.why == Doubt::Epoch => {
            format!("semel ledger quarantine; {}", to_show(effect.id))
        }
        _ => to_show(effect.id),
    }
}

/// How a call is repeated on purpose at the door of an action.
fn to_repeat(action: &str) -> &'static str {
    match action.split(':').next() {
        Some("cli") => "--again WHY",
        Some("http" | "llm") => "the header Semel-Again: WHY",
        Some("fn") => "again: WHY",
        _ => "semel_again: \"why\"",
    }
}

/// The way out of a hold, by who may take it.
fn way_out(effect: &Effect, until: Again) -> String {
    let (id, how) = (effect.id, to_repeat(&effect.facts.action));
    match until {
        Again::Agent => format!("If you mean another one, call it again with {how}."),
        Again::Person => {
            format!("If you mean another one, tell the user that {id} needs a decision (semel ledger).")
        }
        Again::Never => "Its rule allows no repeat. Tell the user.".to_owned(),
    }
}

/// How it is done once more, behind the reason of a replay. An MCP tool has room for a reason or not, which its door
/// knows. `by_itself`: the same call again runs.
pub fn to_do_it_again(effect: &Effect, again: Again, by_itself: bool) -> String {
    let action = &effect.facts.action;
    match again {
        _ if action.starts_with("mcp:") => String::new(),
        _ if by_itself => "; to repeat it, call it again".to_owned(),
        Again::Agent => format!("; to repeat it, call it with {}", to_repeat(action)),
        Again::Person => format!("; a person may allow a repeat ({}, semel ledger)", effect.id),
        Again::Never => "; its rule allows no repeat".to_owned(),
    }
}

/// A call that may be another effect's repeat in other words. `is_all`: nothing else of it differs. `until`: who may start
/// it all the same.
pub fn lookalike(effect: &Effect, differing: Vec<String>, is_all: bool, until: Again) -> Trouble {
    let differs = match differing.join(", ") {
        paths if paths.is_empty() => "may differ only in its key or its spelling".to_owned(),
        paths if is_all => format!("differs only in {paths}"),
        paths => format!("differs in {paths}"),
    };
    let (code, how) = match &effect.state {
        State::Applied(_) if effect.delivered_at.is_some() => (Code::Lookalike, "was done"),
        State::Applied(_) => (Code::Lookalike, "was done, and its answer was lost"),
        _ => (Code::InDoubt, "may have been done"),
    };
    Trouble {
        differing,
        ..trouble(
            code,
            format!("Not run: it looks like {}, which {how} ({}). It {differs}.", named(effect), effect.id),
            format!("If it is the same thing, do not send it again. {}", way_out(effect, until)),
            to_show(effect.id),
        )
    }
}

/// A success that a later effect has removed.
/// `used`: the call gives the reason that the removed one was made for.
pub fn superseded(effect: &Effect, by: EffectId, action: &str, until: Again, used: bool) -> Trouble {
    let way_out = match used {
        true => "If it must exist once more, call it again with another reason.".to_owned(),
        false => way_out(effect, until),
    };
    trouble(
        Code::Superseded,
        format!(
            "Not run: {} was done ({}), and {action} ({by}) seems to have removed it since.",
            named(effect),
            effect.id
        ),
        way_out,
        to_show(by),
    )
}

/// The call was made, so nothing may be said that sounds as if it was not. The same settlement again is one settlement.
pub fn unrecorded(why: &str) -> Trouble {
    Trouble {
        is_it_safe_to_retry: Retry::No,
        ..trouble(
            Code::LedgerUnavailable,
            format!("It has run, and its outcome could not be recorded: {why}."),
            "Do not call it again. Check whether it happened, or tell the user that it needs a decision.",
            "Settle again with the same claim, or run `semel doctor`.",
        )
    }
}

/// A run did it, and its agent may have forgotten that.
pub fn forgotten(effect: &Effect) -> Trouble {
    trouble(
        Code::Lookalike,
        format!(
            "Not run: {} was done ({}) earlier in this run, before the conversation was shortened or resumed.",
            named(effect),
            effect.id
        ),
        format!("Do not do it again. {}", way_out(effect, Again::Agent)),
        to_show(effect.id),
    )
}

/// So many waits of a caller are no longer a matter of seconds.
const WAITS_TOLD: u32 = 3;

/// `wait`: how long a caller waits for it each time.
pub fn in_flight(effect: &Effect, now: At, wait: Duration) -> Trouble {
    let open = effect.open_attempt();
    let age = now.since(open.map_or(effect.opened_at, |attempt| attempt.claimed_at));
    let until = open.and_then(Attempt::timeout_at).map(|at| format!("; it has until {at}"));
    let again = "You get its result, or learn that it is in doubt.";
    let next_step = match !wait.is_zero() && age >= wait * WAITS_TOLD {
        true => format!(
            "Tell the user that {} has been running for {}. Make the same call again later. {again}",
            effect.id,
            in_words(age)
        ),
        false => format!("Make the same call again in a few seconds. {again}"),
    };
    trouble(
        Code::InFlight,
        format!(
            "The same call started {}{} and has not reported its end{}.",
            ago(age),
            by_run(effect),
            until.unwrap_or_default()
        ),
        next_step,
        to_show(effect.id),
    )
}

pub fn turn_taken(holder: Option<&Effect>) -> Trouble {
    let who =
        holder.map_or_else(|| "Another call".to_owned(), |effect| format!("{} {}", effect.id, named(effect)));
    trouble(
        Code::InFlight,
        format!("Not run: {who} has its turn on the same resource."),
        "Call it again in a few seconds, unchanged.",
        "semel ledger",
    )
}

/// The advice of a drift where the earlier call is over. A door that has a way to repeat on purpose names it instead.
pub const OR_TELL: &str = "Otherwise tell the user about both calls.";

const SAME_KEY: &str = "the same key was used for";
const NO_OTHER_KEY: &str = " Do not make up another key.";

/// A drift, told to a caller that named its step and knows of no key.
pub fn told_of_a_step(trouble: &mut Trouble) {
    if trouble.code == Code::Drift {
        trouble.what_happened = trouble.what_happened.replacen(SAME_KEY, "the same step was used for", 1);
        trouble.next_step = trouble.next_step.replace(NO_OTHER_KEY, " Do not make up another step.");
    }
}

/// `led_by_key`: its caller's own key led to that effect, and its fields would have led elsewhere.
pub fn drift(effect: &Effect, paths: Vec<String>, led_by_key: bool) -> Trouble {
    let what = if paths.is_empty() { "its arguments".to_owned() } else { paths.join(", ") };
    let (the_same, temptation) = match effect.facts.caller_key || led_by_key {
        true => (SAME_KEY, NO_OTHER_KEY),
        false => ("the key fields of its rule make it the same call as", ""),
    };
    let id = effect.id;
    let over = matches!(effect.state, State::Applied(_)) && effect.delivered_at.is_some();
    let meant = match over {
        true => format!("If you meant the earlier call, use its result ({id}). {OR_TELL}"),
        false => format!(
            "Tell the user about both calls, and that the first one's answer is not known yet ({id})."
        ),
    };
    Trouble {
        differing: paths,
        ..trouble(
            Code::Drift,
            format!("Not run: {the_same} {}, but this call differs in {what}.", named(effect)),
            format!("{meant}{temptation}"),
            to_show(effect.id),
        )
    }
}

/// A generation that was under way when its run was cancelled.
pub fn ended(run: &str) -> Trouble {
    let what_happened =
        format!("It was stopped before its answer was complete: the run {run} was cancelled.");
    Trouble { what_happened, ..cancelled(run, None) }
}

pub fn cancelled(run: &str, effect: Option<&Effect>) -> Trouble {
    let before = match effect.map(|effect| (&effect.state, effect.id)) {
        Some((State::Applied(_), id)) => format!(" The same call had been done before ({id})."),
        Some((State::InDoubt(_), id)) => format!(" The same call is in doubt ({id})."),
        Some((State::InFlight { .. }, id)) => {
            format!(" The same call has not reported its end ({id}) and may be done.")
        }
        _ => String::new(),
    };
    trouble(
        Code::Cancelled,
        format!("Not run: the run {run} was cancelled.{before}"),
        "Stop. Start nothing more in this run.",
        format!("semel ledger --run {}", quoted_for_a_shell(run)),
    )
}

pub fn budget_spent(effect: &Effect) -> Trouble {
    if effect.facts.class == Class::Generate {
        return trouble(
            Code::BudgetSpent,
            format!(
                "{} was sent {} times without a complete answer, the last time within a minute.",
                named(effect),
                effect.resends() + 1
            ),
            "Wait a minute, then ask again.",
            to_show(effect.id),
        );
    }
    trouble(
        Code::BudgetSpent,
        format!(
            "{} was sent {} times without a clear answer. It may have happened; no more attempts are allowed.",
            named(effect),
            effect.resends() + 1
        ),
        format!("Tell the user that {} needs a decision. Call it again only after that decision.", effect.id),
        to_show(effect.id),
    )
}

pub fn refuted(effect: &Effect) -> Trouble {
    let why = match &effect.state {
        State::NotApplied(not_applied) => match &not_applied.why {
            NotAppliedWhy::Refuted(what) => what.clone(),
            other => why_not_applied(other),
        },
        _ => "its outcome is not known".into(),
    };
    trouble(
        Code::Refuted,
        format!("{} did not happen, although it had been reported as done: {why}.", named(effect)),
        format!("Do not call it again. Tell the user that {} was disproved.", effect.id),
        to_show(effect.id),
    )
}

pub fn again_not_allowed(effect: &Effect, again: Again) -> Trouble {
    let spent = effect.occurrence.earlier.len() >= EARLIER_REASONS_KEPT;
    let (who, human) = match again {
        Again::Never if spent => {
            ("nobody, after so many repeats,", "Give the next one a key of its own.".to_owned())
        }
        Again::Never => ("nobody", "Change `again` in the rule, if it should be possible.".to_owned()),
        _ => ("a person", to_show(effect.id)),
    };
    let is = match &effect.state {
        State::Applied(Applied { evidence: Evidence::Accepted, .. }) => "is accepted, not confirmed",
        _ => "is done",
    };
    let next = match again {
        Again::Never => "Use the recorded result. If you need another one, tell the user.",
        _ => {
            "Use the recorded result. If you need another one, ask the user to allow it, then call it again."
        }
    };
    trouble(
        Code::HeldForPerson,
        format!("Not run again: {} {is} ({}), and its rule lets {who} repeat it.", named(effect), effect.id),
        next,
        human,
    )
}

pub fn upstream_refused(effect: &Effect) -> Trouble {
    let why = match &effect.state {
        State::NotApplied(not_applied) => Some(&not_applied.why),
        _ => None,
    };
    let (what_happened, next_step) = match why {
        // Nobody has said no.
        Some(NotAppliedWhy::AwaitingInput) => (
            "It has not happened yet: the tool waits for input.".to_owned(),
            "Call it again with the input that it asks for, and the same arguments; then it runs.",
        ),
        Some(NotAppliedWhy::Reported(what)) => return reported(effect, what),
        Some(why @ (NotAppliedWhy::Probed | NotAppliedWhy::Ruled)) => (
            format!("It did not happen: {}.", why_not_applied(why)),
            "It is safe to call it again, unchanged, if it is still wanted.",
        ),
        why => {
            let why = why.map_or_else(|| "refused".into(), why_not_applied);
            (format!("It did not happen: {why}."), "Read the error. Calling it again may run it.")
        }
    };
    trouble(Code::UpstreamRefused, what_happened, next_step, to_show(effect.id))
}

/// The tool's own word that it failed, which proves nothing.
fn reported(effect: &Effect, what: &str) -> Trouble {
    let what = what.trim_end_matches('.');
    let (failed, key) = match effect.facts.action.split(':').next().unwrap_or_default() {
        "cli" => (format!("The command failed ({what})."), "give it a `--key`"),
        "mcp" => (format!("The tool failed: {what}."), "write a rule with `class = \"consequential\"`"),
        "fn" => (format!("It failed: {what}."), "give it a `key`"),
        _ => (format!("It failed: {what}."), "send an `Idempotency-Key`"),
    };
    trouble(
        Code::UpstreamRefused,
        format!("{failed} Whether it changed anything is not known."),
        format!(
            "It may run again, because nothing says that it must happen only once; {key} to change that."
        ),
        to_show(effect.id),
    )
}

/// An effect that cannot be taken back.
pub fn cannot_undo(effect: &Effect) -> Trouble {
    let named = named(effect);
    let id = effect.id;
    let show = to_show(id);
    let (why, human) = match (&effect.state, &effect.undo) {
        (State::NotApplied(NotApplied { why: NotAppliedWhy::Reported(what), .. }), _) => {
            (format!("it failed ({what}), and whether it changed anything is not known"), show)
        }
        (State::NotApplied(not), _) => (
            format!("it did not happen ({}), so there is nothing to take back", why_not_applied(&not.why)),
            show,
        ),
        (_, Some(Undo::Not(why))) => (format!("the undo of its rule cannot be used: {why}"), show),
        (State::Applied(applied), _) if applied.evidence == Evidence::Ruled => {
            ("a ruling marked it as done, and its answer is not known".to_owned(), show)
        }
        _ => (
            "when it was done, its rule did not say how to take it back".to_owned(),
            "Take it back by hand. A [rule.undo] lets semel undo later ones.".to_owned(),
        ),
    };
    trouble(
        Code::CannotUndo,
        format!("Nothing was undone: semel cannot take {named} back; {why}."),
        format!("Tell the user that {id} can only be taken back by hand."),
        human,
    )
}

/// Its undo is a command, and a request starts none.
pub fn undo_by_hand(effect: &Effect) -> Trouble {
    trouble(
        Code::HeldForPerson,
        format!(
            "Nothing was undone: the undo of {} is a command, and no request may start one.",
            named(effect)
        ),
        format!("Tell the user to undo {} on the machine itself.", effect.id),
        to_show(effect.id),
    )
}

/// Nobody takes back what may not be there.
pub fn undo_needs_ruling(effect: &Effect) -> Trouble {
    let doubt = in_doubt(effect);
    Trouble {
        what_happened: format!("Nothing was undone. {} Resolve it first.", doubt.what_happened),
        next_step: format!(
            "Do not undo it another way. Tell the user that {} needs a decision first.",
            effect.id
        ),
        ..doubt
    }
}

pub fn undo_too_early(effect: &Effect, now: At) -> Trouble {
    Trouble {
        what_happened: format!("Nothing was undone: {} has not reported its end.", named(effect)),
        next_step: "Ask again once it has ended.".into(),
        ..in_flight(effect, now, Duration::ZERO)
    }
}

pub fn not_started(why: &str) -> Trouble {
    trouble(
        Code::NotStarted,
        format!("Nothing was started: {why}."),
        "Fix the cause, then call it again.",
        "semel doctor",
    )
}

pub fn key_required(missing: &crate::intent::KeyMissing) -> Trouble {
    let next_step = match missing.missing.as_slice() {
        [] => "Call it with a key: one name for this effect, the same at every retry.".to_owned(),
        fields => format!("Call it with {} filled in, from the task at hand.", fields.join(", ")),
    };
    trouble(
        Code::KeyRequired,
        format!("Not run: {missing}."),
        next_step,
        "Give it a key of its own, or set key_required = false in the rule.",
    )
}

/// The upstream's preset, or the operator, wants every guarded request to bring a key.
pub fn key_header_required(header: &str) -> Trouble {
    trouble(
        Code::KeyRequired,
        format!("Not run: this API needs an idempotency key with every request, in {header}."),
        format!("Send it with {header}: one name for this effect, the same at every retry."),
        "To allow requests without keys, set required = false under [upstream.NAME.keys].",
    )
}

pub fn ledger_unavailable(why: &str) -> Trouble {
    trouble(
        Code::LedgerUnavailable,
        format!("Nothing was sent: the ledger is not available ({why})."),
        "Call it again later, unchanged. If that fails too, tell the user.",
        "semel doctor",
    )
}

/// The ledger could not be opened, and waiting alone may not change that. `waits`: it may.
pub fn ledger_not_opened(why: &str, waits: bool) -> Trouble {
    let next_step = match waits {
        true => {
            "Call it again later, unchanged. If the cause is a setting, or that fails too, tell the user."
        }
        false => "Fix the cause, then call it again, unchanged.",
    };
    Trouble { next_step: next_step.into(), ..ledger_unavailable(why) }
}

/// semel itself failed between sending and settling.
pub fn lost_sight() -> Trouble {
    trouble(
        Code::InDoubt,
        "semel stopped in the middle of this call. It may have happened.",
        "Do not call it again. Check with a read-only tool whether it happened, or tell the user.",
        "semel ledger",
    )
}
