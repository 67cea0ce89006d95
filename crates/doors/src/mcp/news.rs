//! What a model should still be told: what came to light after its answer, and answers that it may never have had.

use super::waiter::Waiter;
use semel_core::ids::EffectId;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// News are for a model to read; more than this with one answer it would not.
pub const NEWS_MAX: usize = 20;

/// The rest waits for the next answers: as much as is looked at for what others have left.
const LEARNT_MAX: usize = 1_500;

/// Runs that are remembered apart from connections. One that is forgotten only loses its news.
const RUNS_MAX: usize = 1_000;

/// An answer of which nothing is known so long after it was there has nobody to leave to: its client was told to come
/// back for it, or takes it too slowly. Before that others overtake it.
const LEAVING_TAKES: Duration = Duration::from_secs(2);

/// What is known of an answer's way to whoever asked.
#[derive(Debug, Clone, Default)]
pub struct Heard(Arc<Mutex<Way>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Way {
    /// It may be on its way.
    #[default]
    Open,
    Heard,
    /// Its client went away before it had left.
    Missed,
}

impl Heard {
    pub fn is_so(&self) {
        *self.lock() = Way::Heard;
    }

    /// Nobody is there to hear it. One that has left stays heard, by whichever way.
    pub fn is_missed(&self) {
        let mut way = self.lock();
        if *way == Way::Open {
            *way = Way::Missed;
        }
    }

    /// Somebody takes it, perhaps come back for it.
    pub fn is_taken(&self) {
        let mut way = self.lock();
        if *way == Way::Missed {
            *way = Way::Open;
        }
    }

    fn way(&self) -> Way {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Way> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one model should still be told, each thing once.
#[derive(Debug, Default)]
pub struct News(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    learnt: VecDeque<(EffectId, String)>,
    given: Vec<Unheard>,
    /// Calls whose client has gone before they ended.
    left: Vec<Arc<Waiter>>,
}

/// An answer of which nobody knows yet whether it has arrived.
#[derive(Debug)]
struct Unheard {
    effect: EffectId,
    tool: String,
    /// What it said, for whoever has not heard it.
    words: String,
    heard: Heard,
    /// On the monotonic clock.
    at: Duration,
}

impl News {
    /// Something has turned out otherwise than it was answered.
    pub fn learns(&self, effect: EffectId, words: String) {
        let mut state = self.lock();
        if state.learnt.len() >= LEARNT_MAX {
            state.learnt.pop_front();
        }
        state.learnt.push_back((effect, words));
    }

    /// An answer about this effect is on its way.
    pub fn gave(&self, effect: EffectId, tool: &str, words: String, now: Duration) -> Heard {
        let heard = Heard::default();
        let mut state = self.lock();
        state.given.retain(|given| given.heard.way() != Way::Heard);
        // The oldest were told, or will never be asked for.
        if state.given.len() >= NEWS_MAX {
            state.given.remove(0);
        }
        let tool = tool.to_owned();
        state.given.push(Unheard { effect, tool, words, heard: heard.clone(), at: now });
        heard
    }

    /// What becomes of this call is told, for as long as nobody else tells it.
    pub fn follow(&self, call: &Arc<Waiter>) {
        let mut state = self.lock();
        state.left.retain(|left| !left.is_over() && !Arc::ptr_eq(left, call));
        if state.left.len() >= NEWS_MAX {
            state.left.remove(0);
        }
        state.left.push(Arc::clone(call));
    }

    /// What is told of calls whose client has gone, with an answer of this tool.
    pub fn became(&self, answered: &str) -> Vec<String> {
        let mut state = self.lock();
        let news = state.left.iter().filter_map(|call| call.told_beside(answered)).collect();
        state.left.retain(|call| !call.is_over());
        news
    }

    /// What is told with an answer about this effect, the oldest first. What the answer itself says is not told beside
    /// it.
    pub fn take(&self, answered: Option<EffectId>, now: Duration) -> Vec<String> {
        let mut state = self.lock();
        state.learnt.retain(|(effect, _)| Some(*effect) != answered);
        let told = state.learnt.len().min(NEWS_MAX);
        let mut news: Vec<String> = state.learnt.drain(..told).map(|(_, words)| words).collect();
        if !state.learnt.is_empty() {
            let more = state.learnt.len();
            news.push(format!(
                "There is news of {more} more earlier calls; it comes with your next answers."
            ));
        }
        state.given.retain(|given| {
            let missed = match given.heard.way() {
                Way::Heard => return false,
                Way::Missed => true,
                Way::Open => now.saturating_sub(given.at) > LEAVING_TAKES,
            };
            if Some(given.effect) == answered {
                return false;
            }
            if missed {
                news.push(format!(
                    "Your earlier call of {}, whose answer may not have reached you: {}",
                    given.tool, given.words
                ));
            }
            !missed
        });
        news
    }

    /// Whether something was left for the next answer.
    pub fn has_more(&self) -> bool {
        !self.lock().learnt.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The news of runs that somebody has named: they go on from connection to connection.
#[derive(Debug, Default)]
pub struct NewsOfRuns(Mutex<HashMap<(String, String), Arc<News>>>);

impl NewsOfRuns {
    pub fn of(&self, whose: &str, run: &str) -> Arc<News> {
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name = (whose.to_owned(), run.to_owned());
        if runs.len() >= RUNS_MAX && !runs.contains_key(&name) {
            runs.clear();
        }
        Arc::clone(runs.entry(name).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(10);
    const LATER: Duration = Duration::from_secs(13);

    #[test]
    fn what_is_found_out_is_told_once_and_not_beside_an_answer_that_says_it() {
        let news = News::default();
        let [one, other] = [EffectId(1), EffectId(2)];
        news.learns(one, "it did not happen".into());
        assert_eq!(news.take(Some(other), NOW), ["it did not happen"]);
        assert!(news.take(Some(other), NOW).is_empty());
        news.learns(one, "it did not happen".into());
        assert!(news.take(Some(one), NOW).is_empty() && news.take(Some(other), NOW).is_empty());
    }

    #[test]
    fn what_is_too_much_for_one_answer_is_told_with_the_next_ones() {
        let news = News::default();
        (0..45).for_each(|n| news.learns(EffectId(n), n.to_string()));
        let first = news.take(None, NOW);
        assert_eq!((first.len(), first[0].as_str(), first[19].as_str()), (NEWS_MAX + 1, "0", "19"));
        assert!(first[20].contains("news of 25 more") && news.has_more());
        assert!(news.take(Some(EffectId(44)), NOW)[20].contains("news of 4 more"));
        assert_eq!(news.take(None, NOW), ["40", "41", "42", "43"]);
        assert!(!news.has_more() && news.take(None, NOW).is_empty());
        (0..5_000).for_each(|n| news.learns(EffectId(n), n.to_string()));
        assert_eq!(news.lock().learnt.len(), LEARNT_MAX);
    }

    #[test]
    fn an_answer_that_nobody_heard_is_told_once_it_cannot_be_on_its_way_any_more() {
        let news = News::default();
        let give = |n: u128| news.gave(EffectId(n), "charge", format!("it was done ({n})."), NOW);
        let (heard, _unheard, _asked_again) = (give(1), give(2), give(3));
        heard.is_so();
        assert!(news.take(None, NOW).is_empty(), "it may be on its way");
        assert_eq!(
            news.take(Some(EffectId(3)), LATER),
            ["Your earlier call of charge, whose answer may not have reached you: it was done (2)."]
        );
        assert!(news.take(None, LATER).is_empty());
    }

    #[test]
    fn an_answer_that_found_nobody_is_told_at_once_unless_somebody_came_back_for_it() {
        let news = News::default();
        let give = |n: u128| news.gave(EffectId(n), "charge", n.to_string(), NOW);
        let [missed, back, heard] = [give(1), give(2), give(3)];
        [&missed, &back].into_iter().for_each(Heard::is_missed);
        back.is_taken();
        heard.is_so();
        heard.is_missed();
        let told = news.take(None, NOW);
        assert!(told.len() == 1 && told[0].ends_with(": 1"), "{told:?}");
        back.is_so();
        assert!(news.take(None, LATER).is_empty());
    }

    #[test]
    fn a_run_has_its_own_news_and_those_of_many_do_not_pile_up() {
        let runs = NewsOfRuns::default();
        runs.of("ann", "1").learns(EffectId(1), "it did not happen".into());
        assert!(
            runs.of("ann", "2").take(None, NOW).is_empty() && runs.of("bob", "1").take(None, NOW).is_empty()
        );
        assert_eq!(runs.of("ann", "1").take(None, NOW).len(), 1);
        (0..5_000).for_each(|n| drop(runs.of("ann", &n.to_string())));
        assert!(runs.0.lock().unwrap().len() <= RUNS_MAX);
    }
}
