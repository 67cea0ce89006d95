//! Tells counters about effects that change although no attempt of them has answered.

use semel_core::effect::{Effect, State};
use semel_core::lifecycle::Event;
use std::fmt;

/// It must be quick and must not wait.
pub trait DoubtObserver: Send + Sync + fmt::Debug {
    /// The effect as it is since its attempt has lapsed, or since a probe or somebody's word has ended its doubt.
    fn observe_doubt(&self, effect: &Effect);

    /// An answer that was imported shows that this effect happened twice.
    fn observe_duplicate(&self, effect: &Effect);
}

/// Whether an event begins or ends a doubt without an answer; `before` is the effect before it.
pub(crate) fn changes_doubt(before: Option<&Effect>, event: &Event) -> bool {
    match event {
        Event::Lapsed { .. } => true,
        Event::ProbedYes { .. }
        | Event::ProbedNo { .. }
        | Event::RuledApplied { .. }
        | Event::RuledNotApplied { .. } => {
            before.is_some_and(|effect| matches!(effect.state, State::InDoubt(_)))
        }
        _ => false,
    }
}
