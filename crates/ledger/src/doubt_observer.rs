//! Tells counters about effects that change although no attempt of them has answered.

use semel_core::effect::{Effect, State};
use semel_core::lifecycle::Event;
use std::fmt;

/// It must be quick and must not wait.
pub trait DoubtObserver: Send + Sync + fmt::Debug {
    /// The effect as it is since its attempt has lapsed.
    fn lapsed(&self, effect: &Effect);

    /// The effect as it is since a probe or somebody's word has ended its doubt.
    fn cleared(&self, effect: &Effect);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Noteworthy {
    Lapsed,
    Cleared,
}

impl Noteworthy {
    /// The event for a witness, from the effect as it was before.
    pub(crate) fn of(before: Option<&Effect>, event: &Event) -> Option<Noteworthy> {
        let in_doubt = || before.is_some_and(|effect| matches!(effect.state, State::InDoubt(_)));
        match event {
            Event::Lapsed { .. } => Some(Noteworthy::Lapsed),
            Event::ProbedYes { .. }
            | Event::ProbedNo { .. }
            | Event::RuledApplied { .. }
            | Event::RuledNotApplied { .. } => in_doubt().then_some(Noteworthy::Cleared),
            _ => None,
        }
    }
}
