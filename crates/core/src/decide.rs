//! Decides about a call from the ledger's knowledge of it. Pure: looks, never acts.

use crate::class::{Class, Tier};
use crate::effect::{
    Attempt, CallMark, Doubt, EARLIER_REASONS_KEPT, Effect, NotApplied, NotAppliedWhy, Occurrence, Reply,
    STORM, State,
};
use crate::ids::{AttemptNo, Reason};
use crate::intent::{AskedBy, Intent, NamedBy};
use crate::policy::rule::{Again, Rule};
use crate::time::{At, Clocks, Uptime};
use std::time::Duration;

/// Everything else that bears on the decision.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    pub now: At,
    pub uptime: Option<Uptime>,
    /// The newest instant that the ledger has on record, where a key's life is asked for.
    pub newest_on_record: Option<At>,
    /// The intent's run was cancelled.
    pub fenced: bool,
    /// The newest instant after which the agent of the intent's run may have forgotten the calls that it made.
    pub memory_boundary: Option<At>,
    /// The store may have forgotten claims of this record made before this instant, and nobody has accepted that yet.
    /// A record that was claimed, or whose loss was recorded, in the epoch at hand is whole.
    pub forgotten_before: Option<At>,
    /// The effect of the record that the caller's own key stands for: the one that it was claimed for, or that answered
    /// it.
    pub stands_for: Option<u32>,
    /// The record is another than the intent's own: the caller's own key leads to it.
    pub reached_by_key: bool,
    pub past: Past<'a>,
}

/// The earlier actions of this very call, before it looks now.
#[derive(Debug, Clone, Copy, Default)]
pub struct Past<'a> {
    pub sent: SentBefore,
    /// The attempt of this record that the call has waited for.
    pub joined: Option<Joined>,
    /// The effect that the call has sent or waited for, if its record has a newer one by now.
    pub older: Option<&'a Effect>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SentBefore {
    #[default]
    No,
    /// The caller looks again after a timeout. Its first look has sent the call, and may still wait for the answer.
    ByEarlierLook,
    /// The attempt had no clear answer.
    Unresolved { occurrence: u32, caller_waits: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Joined {
    pub occurrence: u32,
    pub attempt: AttemptNo,
}

impl Past<'_> {
    fn has_sent(&self) -> bool {
        self.sent != SentBefore::No
    }

    fn is_unresolved(&self) -> bool {
        matches!(self.sent, SentBefore::Unresolved { .. })
    }
}

/// Clocks may disagree, and then the age counts that sends less.
impl Situation<'_> {
    /// The age of a key that this attempt was the first to send.
    fn longest_since(&self, first: &Attempt) -> Duration {
        let on_record = self.newest_on_record.unwrap_or(self.now);
        let since = self.now.max(on_record).since(first.claimed_at);
        since.max(self.uptime_since(first.uptime).unwrap_or_default())
    }

    fn shortest_since(&self, delivered: At, claimed: Option<Uptime>) -> Duration {
        Clocks { now: self.now, uptime: self.uptime }.shortest_since(delivered, claimed)
    }

    fn uptime_since(&self, earlier: Option<Uptime>) -> Option<Duration> {
        self.uptime?.since(earlier?)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// A read: passes through, is never answered from the record.
    Pass,
    /// Take the claim and send.
    Claim(Claiming),
    /// Send the same effect again, after a doubt.
    Resend,
    /// Wait for the attempt in flight and give its answer.
    Join(AttemptNo),
    /// The attempt that this call has sent has its answer now.
    AnswerOwn,
    /// The attempt that this call has waited for has its answer now.
    AnswerJoined,
    /// An earlier look of this call has sent it. The caller gets the outcome; nothing is sent again here.
    AnswerSentEarlier,
    /// This call has sent it, nobody knows the outcome, and nothing more is to be done about that here.
    StayInDoubt,
    /// Look first: probe if there is a way to, else hold.
    Look,
    /// Nothing known stands against a claim, but the store may have forgotten one: record the doubt, then look.
    Unremembered,
    /// Answer from the record.
    Replay(Replay),
    /// Answer with what the upstream refused, as the caller's kind of key demands.
    ReplayRefusal,
    /// The call is an earlier effect of the record, which answers.
    ReplayEarlier(u32, Replay),
    Refuse(Refusal),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claiming {
    /// The record's first effect.
    First,
    /// Another attempt of an effect that certainly did not happen.
    NextAttempt,
    /// The record's next effect.
    NextEffect { reason: Option<Reason>, possible_repeat: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replay {
    /// The answer never reached a caller; it is handed over.
    Undelivered,
    /// A transport sent the call again.
    Reissue,
    /// The same reason for repeating: the same occurrence.
    SameOccurrence,
    /// A repeat of a delivered success.
    Repeat,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    Cancelled {
        /// The call would have been sent. Otherwise it would have been answered or held all the same.
        prevents: bool,
    },
    Drift {
        paths: Vec<String>,
    },
    Refuted,
    BudgetSpent,
    /// The rule leaves deliberate repeats to a person, or to nobody.
    AgainNotAllowed(Again),
    /// The run has done it, and its agent may have forgotten that since.
    Forgotten,
}

/// In this order: the answer to an attempt of this call itself; a caller's key that stands for something else; then as
/// for any call, except that a call which has sent once is never sent again as if it were new.
pub fn decide(newest: Option<&Effect>, intent: &Intent, rule: &Rule, situation: &Situation<'_>) -> Decision {
    if rule.class == Class::Read {
        return Decision::Pass;
    }
    if let Some(decision) = answer_to_own_attempt(newest, intent, rule, situation) {
        return decision;
    }
    let past = situation.past;
    match decide_as_new(newest, intent, rule, situation) {
        Decision::Claim(_) | Decision::Refuse(_) if past.is_unresolved() => Decision::StayInDoubt,
        // The store has lost the record of it.
        Decision::Claim(_) if past.has_sent() && newest.is_none() => Decision::Unremembered,
        Decision::Claim(_) if past.has_sent() => Decision::AnswerSentEarlier,
        Decision::Resend if caller_resends(newest, rule, &past) => Decision::StayInDoubt,
        // A probe changes nothing, even if the caller is gone.
        Decision::Resend if nobody_waits_for_resend(rule, &past) => Decision::Look,
        decision => decision,
    }
}

/// The answer of the attempt that this call made or waited for, once it is known. The class says nothing here: this is
/// the same call, not a repeat.
fn answer_to_own_attempt(
    newest: Option<&Effect>,
    intent: &Intent,
    rule: &Rule,
    situation: &Situation<'_>,
) -> Option<Decision> {
    let Past { sent, joined, older } = situation.past;
    let (occurrence, answer) = match (sent, joined) {
        (SentBefore::Unresolved { occurrence, .. }, _) => (occurrence, Decision::AnswerOwn),
        (_, Some(joined)) => (joined.occurrence, Decision::AnswerJoined),
        (_, None) => return None,
    };
    let is_own = answer == Decision::AnswerOwn;
    // A repeat for a reason of its own waits for its turn to be one; it is not the effect that it waited for.
    let is_other = |effect: &Effect| !is_own && is_repeat_of(intent, effect);
    let answers = match newest {
        Some(effect) if effect.occurrence.number > occurrence => {
            older.is_some_and(|older| matches!(older.state, State::Applied(_)) && !is_other(older))
        }
        Some(effect) if effect.occurrence.number == occurrence => match &effect.state {
            State::Applied(_) => !is_other(effect),
            State::NotApplied(_) if is_own => true,
            State::NotApplied(not_applied) => {
                let is_newest = |joined: Joined| {
                    effect.newest_attempt().is_some_and(|newest| newest.number == joined.attempt)
                };
                // A generation of a cancelled run was ended from here; the upstream did not refuse it.
                let ended = situation.fenced && rule.class == Class::Generate;
                joined.is_some_and(is_newest)
                    && !ended
                    && refusal_is_shared(not_applied, intent)
                    && wants_something_else(effect, intent, rule, situation).is_none()
            }
            State::InFlight { .. } | State::InDoubt(_) => false,
        },
        _ => false,
    };
    answers.then_some(answer)
}

/// Whether the upstream's own answer to one caller answers a twin too. The finding of a probe or a person lets the twin
/// run, and so does a refusal of a call that only named what this one says in full.
fn refusal_is_shared(not_applied: &NotApplied, intent: &Intent) -> bool {
    let NotApplied { why, reply, .. } = not_applied;
    let by_upstream =
        matches!(why, NotAppliedWhy::Refused(_) | NotAppliedWhy::Reported(_) | NotAppliedWhy::NeverSent(_));
    by_upstream && (*reply == Reply::Kept || !intent.says_in_full)
}

/// Whether a call is a deliberate repeat for another reason than this effect.
pub fn is_repeat_of(intent: &Intent, effect: &Effect) -> bool {
    intent.again.as_ref().is_some_and(|reason| effect.occurrence.reason.as_ref() != Some(reason))
}

/// Whether sending again is the caller's own matter. A generation that failed while this call waited for it is asked
/// for again by its client, after a pause of its own, and a part of it may have been given on already. One whose holder
/// died has no client left.
fn caller_resends(newest: Option<&Effect>, rule: &Rule, past: &Past<'_>) -> bool {
    let seen_failing = newest.is_some_and(|effect| {
        let orphaned = matches!(&effect.state, State::InDoubt(doubt) if doubt.why == Doubt::HolderDied);
        let waited_for = effect.newest_attempt().is_some_and(|attempt| {
            let newest = Joined { occurrence: effect.occurrence.number, attempt: attempt.number };
            past.joined == Some(newest)
        });
        waited_for && !orphaned
    });
    rule.class == Class::Generate && (past.is_unresolved() || seen_failing)
}

/// A convergent call converges as long as nothing else is written in between, and a caller that has gone may have
/// written since. A key says to the upstream that it is the same as before.
fn nobody_waits_for_resend(rule: &Rule, past: &Past<'_>) -> bool {
    let gone = matches!(past.sent, SentBefore::Unresolved { caller_waits: false, .. });
    rule.class == Class::Convergent && rule.inject.is_none() && gone
}

/// In this order: fence; the caller's own key stands for something else, or for an effect that was done; a call that was
/// an earlier effect; open state (join or look; drift is refused); re-issue; class says run; drift; replay.
fn decide_as_new(
    newest: Option<&Effect>,
    intent: &Intent,
    rule: &Rule,
    situation: &Situation<'_>,
) -> Decision {
    if situation.fenced {
        let unfenced = Situation { fenced: false, ..*situation };
        let without = decide_as_new(newest, intent, rule, &unfenced);
        let prevents = matches!(without, Decision::Claim(_) | Decision::Resend);
        return Decision::Refuse(Refusal::Cancelled { prevents });
    }
    if let Some(drift) = key_stands_for_another(newest, intent, situation) {
        return drift;
    }
    let Some(effect) = newest else {
        return match situation.forgotten_before {
            Some(before) if intent.born_at.is_none_or(|born| born <= before) => Decision::Unremembered,
            _ => Decision::Claim(Claiming::First),
        };
    };
    if let Some(decision) = stands_for(effect, intent, situation) {
        return decision;
    }
    if let Some(decision) = wants_something_else(effect, intent, rule, situation) {
        return decision;
    }
    let drift = || Decision::Refuse(Refusal::Drift { paths: effect.marks.differing(&intent.marks) });
    let drifted = effect.marks.drifted(&intent.marks);
    match &effect.state {
        State::InFlight { .. } | State::InDoubt(_) if drifted => drift(),
        State::InFlight { attempt } => Decision::Join(*attempt),
        State::InDoubt(_) if effect.is_damaged() => Decision::Look,
        // Rule 9: a failover may have lost a later claim of it, or of the next effect.
        State::InDoubt(_) if situation.forgotten_before.is_some() => Decision::Unremembered,
        State::InDoubt(_) => in_doubt(effect, intent, rule, situation),
        State::NotApplied(NotApplied { why: NotAppliedWhy::Refuted(_), .. }) => {
            Decision::Refuse(Refusal::Refuted)
        }
        State::NotApplied(_) if situation.forgotten_before.is_some() => Decision::Unremembered,
        State::NotApplied(_) if answers_with_refusal(effect, intent, situation.now) => match drifted {
            true => drift(),
            false => Decision::ReplayRefusal,
        },
        // Nothing happened, so a corrected call under the same key is no drift.
        State::NotApplied(_) => Decision::Claim(Claiming::NextAttempt),
        State::Applied(_) => match applied(effect, intent, rule, situation, drifted) {
            Err(_) if drifted => drift(),
            Err(replay) => Decision::Replay(replay),
            Ok(Decision::Claim(_)) if next_may_be_lost(rule, situation) => Decision::Unremembered,
            Ok(decision) => decision,
        },
    }
}

/// A caller's key that came to stand for one effect cannot come with another intent, whatever a repeat of that gets. An
/// effect before the newest one is compared where it answers.
fn key_stands_for_another(
    newest: Option<&Effect>,
    intent: &Intent,
    situation: &Situation<'_>,
) -> Option<Decision> {
    let effect = newest.filter(|_| situation.reached_by_key)?;
    let drifted = effect.marks.drifted(&intent.marks)
        && situation.stands_for.is_none_or(|number| number == effect.occurrence.number);
    drifted.then(|| Decision::Refuse(Refusal::Drift { paths: effect.marks.differing(&intent.marks) }))
}

/// A call whose own key stands for an effect that was done gets the same again, after the window too. A repeat for a
/// reason is known by its reason, and a person may have allowed one more, for the next caller.
fn stands_for(effect: &Effect, intent: &Intent, situation: &Situation<'_>) -> Option<Decision> {
    let number = situation.stands_for?;
    let drifted = effect.marks.drifted(&intent.marks);
    // The permission is for the call that it was given for.
    let by_permission = effect.repeat_permitted.is_some() && !drifted;
    if intent.again.is_some() || by_permission {
        return None;
    }
    if number < effect.occurrence.number {
        return Some(Decision::ReplayEarlier(number, Replay::Reissue));
    }
    let delivered = matches!(effect.state, State::Applied(_)) && effect.delivered_at.is_some();
    delivered.then(|| match drifted {
        true => Decision::Refuse(Refusal::Drift { paths: effect.marks.differing(&intent.marks) }),
        false => Decision::Replay(Replay::Reissue),
    })
}

/// Whether what the upstream refused is the answer to this call, as its caller's kind of key demands. A refusal of
/// which nothing was to be kept speaks for its own moment alone.
pub fn answers_with_refusal(effect: &Effect, intent: &Intent, now: At) -> bool {
    let State::NotApplied(NotApplied { at, why: NotAppliedWhy::Refused(_), reply, .. }) = &effect.state
    else {
        return false;
    };
    intent.replay_refusals
        && intent.again == effect.occurrence.reason
        && !effect.occurrence.by_permission
        && *reply != Reply::Unknown
        && intent.window.is_none_or(|window| now < at.plus(window))
}

/// Decides a call that does not want the newest effect of its record: it was an effect before that one, or the
/// newest did not happen and was asked for by somebody else, in another way. What did not happen is tried again by
/// its callers; the success before it answers those who want that, and another repeat needs its own permission.
fn wants_something_else(
    effect: &Effect,
    intent: &Intent,
    rule: &Rule,
    situation: &Situation<'_>,
) -> Option<Decision> {
    let Occurrence { number, reason, before, by_permission, .. } = &effect.occurrence;
    if let Some((known, replay)) = known_before(effect, intent, situation).filter(|(known, _)| known < number)
    {
        return Some(Decision::ReplayEarlier(known, replay));
    }
    let (State::NotApplied(_), Some(before)) = (&effect.state, before) else { return None };
    let drifted = effect.marks.drifted(&intent.marks);
    // A permission that came to nothing is not spent: it holds for its own call, and for nothing else.
    let may_try = if *by_permission { !drifted } else { reason.is_none() };
    match &intent.again {
        again if may_try || (again.is_some() && again == reason) => None,
        Some(_) if may_repeat(intent, rule, false) => None,
        Some(_) => Some(Decision::Refuse(Refusal::AgainNotAllowed(rule.again))),
        None => {
            let age = situation.shortest_since(before.delivered_at, before.uptime);
            answers_repeats(intent, rule, age)
                .then_some(Decision::ReplayEarlier(before.number, Replay::Repeat))
        }
    }
}

/// Which effect of the record this very call was, if the newest one knows of it: by its reason, or by the model's id
/// for it.
fn known_before(effect: &Effect, intent: &Intent, situation: &Situation<'_>) -> Option<(u32, Replay)> {
    let Occurrence { earlier, calls, .. } = &effect.occurrence;
    if let Some(reason) = &intent.again {
        let (number, _) = earlier.iter().find(|(_, known)| known == reason)?;
        return Some((*number, Replay::SameOccurrence));
    }
    // Those before the newest success are not younger than it.
    let (since, uptime) = match effect.occurrence.before {
        Some(before) => (before.delivered_at, before.uptime),
        None => (effect.opened_at, effect.attempts.first().and_then(|first| first.uptime)),
    };
    let age = situation.shortest_since(since, uptime);
    let id = intent.call_id.as_ref().filter(|id| still_means_it(id, age))?;
    let mark = CallMark::of(id, &intent.marks);
    let (number, _) = calls.iter().find(|(_, known)| *known == mark)?;
    Some((*number, Replay::Reissue))
}

/// A transport repeats itself within minutes, and an agent that starts again from where it was may do so after days.
/// But an id that is a mere count, as some agents give, begins again with each conversation.
fn still_means_it(call_id: &str, age: Duration) -> bool {
    const COUNTED_FOR: Duration = Duration::from_secs(3_600);
    !is_count(call_id) || age < COUNTED_FOR
}

/// `7`, `call_0`, `functions.charge:12`: a few digits behind a name, or a name alone.
fn is_count(call_id: &str) -> bool {
    const DIGITS_MAX: usize = 6;
    let name = call_id.trim_end_matches(|c: char| c.is_ascii_digit());
    call_id.len() - name.len() <= DIGITS_MAX && !name.contains(|c: char| c.is_ascii_digit())
}

/// Whether the rule lets this caller repeat for a reason of its own.
fn may_repeat(intent: &Intent, rule: &Rule, repeat_permitted: bool) -> bool {
    match rule.again {
        Again::Agent => true,
        Again::Person => repeat_permitted || intent.asked_by == AskedBy::Person,
        Again::Never => false,
    }
}

/// Whether a success that was delivered so long ago answers a call that gives no reason to repeat it.
pub fn answers_repeats(intent: &Intent, rule: &Rule, age: Duration) -> bool {
    let over = intent.window.is_some_and(|window| age >= window);
    let by_class = rule.class == Class::Consequential && !rule.converges;
    !over && (intent.named_by == NamedBy::CallerKey || by_class)
}

/// A lost claim of something that may run at any time again is no loss.
fn next_may_be_lost(rule: &Rule, situation: &Situation<'_>) -> bool {
    situation.forgotten_before.is_some() && !matches!(rule.class, Class::Convergent | Class::Generate)
}

fn in_doubt(effect: &Effect, intent: &Intent, rule: &Rule, situation: &Situation<'_>) -> Decision {
    let now = situation.now;
    if !may_resend(effect, intent, rule, situation) {
        return Decision::Look;
    }
    if rule.class == Class::Convergent && !situation.past.has_sent() {
        // A caller that wants it once more gets it, as after a success. Only semel's own re-sends are counted.
        return Decision::Resend;
    }
    let resends = match rule.class {
        // A generation may be asked for as long as anybody wants it; the cap is on one storm.
        Class::Generate | Class::Convergent => effect.resends_within(STORM, now),
        _ => effect.resends(),
    };
    match rule.probe {
        _ if resends < rule.budget => Decision::Resend,
        // Where there is a way to ask, nobody need decide yet.
        Some(_) => Decision::Look,
        None => Decision::Refuse(Refusal::BudgetSpent),
    }
}

/// Keyed (within the upstream key's life), convergent and generate only.
fn may_resend(effect: &Effect, intent: &Intent, rule: &Rule, situation: &Situation<'_>) -> bool {
    let (sent, sends) = (effect.facts.upstream_key, intent.upstream_key);
    // Rule 7. Under another key it is another effect upstream, and in other words a key's second use is refused there.
    let (first, now_asked) = (&effect.marks, &intent.marks);
    let same_words = first.content == now_asked.content && first.volatile == now_asked.volatile;
    let as_before = (sent == sends || sent == 0) && same_words;
    // A forgotten attempt may have been refused and sent again, under another key than the record knows of.
    let forgot = matches!(&effect.state, State::InDoubt(doubt) if doubt.why == Doubt::Epoch);
    // The earlier attempt decides too: a call that describes itself differently now cannot make it repeatable.
    match rule.tier() {
        Tier::Keyed if effect.facts.tier == Tier::Keyed && as_before && !forgot => {
            let Some(valid) = rule.inject.as_ref().and_then(|inject| inject.valid_for) else { return true };
            // Nobody knows how old the key is if its first claim was forgotten, or if the clock went back.
            effect.attempts.first().is_some_and(|first| {
                situation.now >= first.claimed_at && situation.longest_since(first) + KEY_LIFE_MARGIN < valid
            })
        }
        _ => {
            let repeatable = |class| matches!(class, Class::Convergent | Class::Generate);
            repeatable(rule.class) && repeatable(effect.facts.class)
        }
    }
}

/// Two clocks and a slow request may lie between us and the upstream's own count of its key's life.
const KEY_LIFE_MARGIN: Duration = Duration::from_secs(60);

/// Whether the intent's run was told of this effect before its memory boundary, so that a repeat may come from an agent
/// that does not know of it any more.
fn may_be_forgotten(effect: &Effect, intent: &Intent, situation: &Situation<'_>) -> bool {
    let (Some(boundary), Some(delivered)) = (situation.memory_boundary, effect.delivered_at) else {
        return false;
    };
    let is_its_run = |attempt: &Attempt| match (&attempt.run, &intent.run) {
        (Some(made_in), Some(asked_in)) => made_in.id == asked_in.id,
        _ => false,
    };
    delivered < boundary && effect.newest_attempt().is_some_and(is_its_run)
}

/// `Err` names the replay that applies unless the call has drifted.
fn applied(
    effect: &Effect,
    intent: &Intent,
    rule: &Rule,
    situation: &Situation<'_>,
    drifted: bool,
) -> Result<Decision, Replay> {
    let earlier = &effect.occurrence.earlier;
    let delivered = effect.delivered_at;
    let claimed = effect.newest_attempt().and_then(|newest| newest.uptime);
    let age = delivered.map(|delivered| situation.shortest_since(delivered, claimed));
    match (&intent.again, &intent.call_id) {
        (Some(reason), _) if effect.occurrence.was_for(reason) => return Err(Replay::SameOccurrence),
        (None, Some(id))
            if effect.calls().any(|call| call == id) && age.is_none_or(|age| still_means_it(id, age)) =>
        {
            return Err(if delivered.is_some() { Replay::Reissue } else { Replay::Undelivered });
        }
        _ => {}
    }
    // A convergent call is sent again: something else may have been written since, and an old answer would hide that.
    let converges =
        (rule.class == Class::Convergent || rule.converges) && intent.named_by != NamedBy::CallerKey;
    // A generation whose answer is not kept has nothing to hand over; of another effect it is told that it happened.
    let kept = matches!(&effect.state, State::Applied(applied) if applied.reply == Reply::Kept);
    let generates_anew = rule.class == Class::Generate && !kept;
    if delivered.is_none() && !converges && !generates_anew {
        return Err(Replay::Undelivered);
    }
    // The permission is for the call that happened, and for nothing else under its name.
    let repeat_permitted = effect.repeat_permitted.is_some() && rule.again != Again::Never && !drifted;
    if let Some(reason) = &intent.again {
        if earlier.len() >= EARLIER_REASONS_KEPT {
            // To forget a reason would be to let its retry run.
            return Ok(Decision::Refuse(Refusal::AgainNotAllowed(Again::Never)));
        }
        return Ok(match may_repeat(intent, rule, repeat_permitted) {
            true => {
                Decision::Claim(Claiming::NextEffect { reason: Some(reason.clone()), possible_repeat: false })
            }
            false => Decision::Refuse(Refusal::AgainNotAllowed(rule.again)),
        });
    }
    let next = |possible_repeat| Decision::Claim(Claiming::NextEffect { reason: None, possible_repeat });
    if repeat_permitted {
        return Ok(next(false));
    }
    if age.is_some_and(|age| answers_repeats(intent, rule, age)) {
        return Err(Replay::Repeat);
    }
    Ok(match rule.class {
        Class::Read => Decision::Pass,
        // A key means something new once the upstream's own keys are over.
        _ if intent.named_by == NamedBy::CallerKey => next(true),
        Class::Act if !rule.converges && !drifted && may_be_forgotten(effect, intent, situation) => {
            Decision::Refuse(Refusal::Forgotten)
        }
        Class::Act | Class::Consequential => next(!rule.converges),
        Class::Convergent | Class::Generate => next(false),
    })
}
