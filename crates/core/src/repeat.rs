//! Who sent a call again, as far as the call and its record tell. It decides nothing; it is counted and traced.

use crate::beside::{Beside, Layer};
use crate::effect::{Doubt, Effect, InDoubt, NotApplied, NotAppliedWhy, State};
use crate::intent::{Intent, NamedBy};
use crate::time::At;
use std::time::Duration;

/// How long after a failure a library has sent again by itself: the SDKs of OpenAI and Anthropic pause for 0.5 s, twice
/// as long each time, 8 s at most, and connecting anew takes its time too. Whoever is later is the framework or the
/// model, or a library that was told when to come back, and those say that they retry.
pub const BACK_OFF_MAX: Duration = Duration::from_secs(10);

/// The shortest of these pauses, which take up to a quarter off. What comes sooner beside an attempt in flight is no
/// retry of it: somebody asked twice at once.
pub const BACK_OFF_MIN: Duration = Duration::from_millis(375);

/// What a call found of its own record when it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Met {
    pub was: Was,
    /// For how long it had been so.
    pub age: Duration,
    /// The caller's own key had stood for it before.
    pub equal_key: bool,
    /// It was made for a call with the same id.
    pub equal_call: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Was {
    InFlight,
    /// It did not happen, or nobody knows.
    Failed,
    /// It happened, and its answer is not known to have reached anybody.
    Undelivered,
    Delivered,
}

impl Met {
    /// `None`: the call is no repeat of it. It says something else, answers a question that was asked in between, or
    /// wants it once more on purpose.
    pub fn of(effect: &Effect, intent: &Intent, key_stood_for_it: bool, now: At) -> Option<Met> {
        let on_purpose = intent.again.as_ref().is_some_and(|reason| !effect.occurrence.was_for(reason));
        if effect.marks.fingerprint != intent.marks.fingerprint || on_purpose {
            return None;
        }
        let newest = effect.newest_attempt();
        let (was, since) = match &effect.state {
            State::NotApplied(NotApplied { why: NotAppliedWhy::AwaitingInput, .. }) => return None,
            State::InFlight { .. } => (Was::InFlight, effect.changed_at()),
            State::NotApplied(_) => (Was::Failed, effect.changed_at()),
            // A lapse is written down by whoever looks next, which may be much later.
            State::InDoubt(InDoubt { why, since }) => (
                Was::Failed,
                match (why, newest) {
                    (Doubt::HolderDied, Some(attempt)) => attempt.claimed_at,
                    (Doubt::DeadlinePassed, Some(attempt)) => attempt.deadline.min(*since),
                    _ => *since,
                },
            ),
            State::Applied(_) if effect.delivered_at.is_none() => (Was::Undelivered, effect.changed_at()),
            State::Applied(_) => (Was::Delivered, effect.changed_at()),
        };
        let equal_call = intent.call_id.as_ref().is_some_and(|id| effect.calls().any(|call| call == id));
        let equal_key = key_stood_for_it || intent.named_by == NamedBy::CallerKey;
        Some(Met { was, age: now.since(since), equal_key, equal_call })
    }

    /// Whether a library that sends again by itself would have come now.
    fn is_in_back_off(&self) -> bool {
        match self.was {
            Was::InFlight => (BACK_OFF_MIN..=BACK_OFF_MAX).contains(&self.age),
            Was::Failed | Was::Undelivered => self.age <= BACK_OFF_MAX,
            Was::Delivered => false,
        }
    }
}

/// What became of the call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Became {
    /// It was answered or held because of what was there, or ran although that may have been the same.
    pub collapsed: bool,
    /// It was answered as the very call that was made before.
    pub reissued: bool,
    /// It waited for an attempt of another process.
    pub joined_elsewhere: bool,
}

/// `None`: it is no repeat. What was delivered is asked for anew wherever its class lets it run again.
pub fn repeated_by(beside: &Beside, met: Option<Met>, became: Became) -> Option<Layer> {
    let library = beside.library.as_ref();
    if library.is_some_and(|library| library.retries > 0) {
        return Some(Layer::Sdk);
    }
    let failed = met.filter(|met| met.was != Was::Delivered);
    if !became.collapsed && failed.is_none() {
        return None;
    }
    let by_its_key = library.is_some_and(|library| library.mints_key) && met.is_some_and(|met| met.equal_key);
    let in_back_off = library.is_some() && met.is_some_and(|met| met.is_in_back_off());
    Some(match became {
        _ if by_its_key => Layer::Sdk,
        _ if became.reissued || failed.is_some_and(|met| met.equal_call) => Layer::Transport,
        _ if became.joined_elsewhere => Layer::Process,
        _ if in_back_off => Layer::Sdk,
        _ => Layer::Agent,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beside::Library;

    const BARE: Option<Library> = Some(Library { retries: 0, mints_key: false });
    const KEYED: Option<Library> = Some(Library { retries: 0, mints_key: true });
    const TOLD: Option<Library> = Some(Library { retries: 2, mints_key: false });
    const RAN: Became = Became { collapsed: false, reissued: false, joined_elsewhere: false };
    const COLLAPSED: Became = Became { collapsed: true, ..RAN };
    const REISSUED: Became = Became { reissued: true, ..COLLAPSED };
    const ELSEWHERE: Became = Became { joined_elsewhere: true, ..COLLAPSED };

    fn met(was: Was, age_ms: u64) -> Option<Met> {
        Some(Met { was, age: Duration::from_millis(age_ms), equal_key: false, equal_call: false })
    }

    fn with_key(met: Option<Met>) -> Option<Met> {
        met.map(|met| Met { equal_key: true, ..met })
    }

    fn with_call(met: Option<Met>) -> Option<Met> {
        met.map(|met| Met { equal_call: true, ..met })
    }

    #[test]
    fn who_repeats_is_told_by_the_header_the_key_the_call_and_the_pause() {
        use Layer::{Agent, Process, Sdk, Transport};
        use Was::{Delivered, Failed, InFlight, Undelivered};
        for (library, met, became, layer) in [
            // What the library says is believed, whether the first try was seen or not.
            (TOLD, None, RAN, Some(Sdk)),
            (TOLD, met(Delivered, 60_000), COLLAPSED, Some(Sdk)),
            // Nothing was there, or it was delivered and is wanted anew.
            (BARE, None, RAN, None),
            (BARE, met(Delivered, 5), RAN, None),
            (None, met(Delivered, 5), RAN, None),
            // After a failure: sent again, refused for its budget, held.
            (BARE, met(Failed, 3), RAN, Some(Sdk)),
            (BARE, met(Failed, 10_000), RAN, Some(Sdk)),
            (BARE, met(Failed, 10_001), RAN, Some(Agent)),
            (BARE, met(Failed, 500), COLLAPSED, Some(Sdk)),
            // What no library sends is sent again by agents.
            (None, met(Failed, 3), RAN, Some(Agent)),
            (None, met(Undelivered, 3), COLLAPSED, Some(Agent)),
            // The answer was lost.
            (BARE, met(Undelivered, 500), COLLAPSED, Some(Sdk)),
            (BARE, met(Undelivered, 11_000), COLLAPSED, Some(Agent)),
            // Two at once are no retry, and neither is whoever comes after all pauses.
            (BARE, met(InFlight, 0), COLLAPSED, Some(Agent)),
            (BARE, met(InFlight, 375), COLLAPSED, Some(Sdk)),
            (BARE, met(InFlight, 11_000), COLLAPSED, Some(Agent)),
            (BARE, met(InFlight, 5_000), ELSEWHERE, Some(Process)),
            // A delivered answer is given again.
            (BARE, met(Delivered, 5), COLLAPSED, Some(Agent)),
            // Libraries mint a key for each request, so an equal one is a retry, however late.
            (KEYED, with_key(met(Delivered, 60_000)), COLLAPSED, Some(Sdk)),
            (KEYED, with_key(met(Delivered, 60_000)), REISSUED, Some(Sdk)),
            (KEYED, with_key(met(Failed, 60_000)), RAN, Some(Sdk)),
            (KEYED, met(Delivered, 60_000), COLLAPSED, Some(Agent)),
            // A key that an agent or a person chose says nothing of a library.
            (None, with_key(met(Delivered, 5)), COLLAPSED, Some(Agent)),
            (BARE, with_key(met(Delivered, 5)), COLLAPSED, Some(Agent)),
            // The same call came again.
            (None, met(Delivered, 60_000), REISSUED, Some(Transport)),
            (None, with_call(met(Undelivered, 60_000)), COLLAPSED, Some(Transport)),
            (None, with_call(met(Failed, 5)), RAN, Some(Transport)),
            (None, with_call(met(Delivered, 5)), RAN, None),
            // A lookalike stands in its way.
            (BARE, None, COLLAPSED, Some(Agent)),
        ] {
            let beside = Beside { library, ..Beside::default() };
            assert_eq!(repeated_by(&beside, met, became), layer, "{library:?} {met:?} {became:?}");
        }
    }
}
