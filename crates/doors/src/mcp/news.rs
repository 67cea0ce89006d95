//! What a model should still be told: what came to light after its answer, and answers that it may never have had.

use super::waiter::{Beside, Waiter};
use semel_core::ids::EffectId;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// News are for a model to read; more than this with one answer it would not.
pub const NEWS_MAX: usize = 20;

/// The rest waits for the next answers: as much as is looked at for what others have left.
const LEARNT_MAX: usize = 1_500;

/// Answers whose way is followed; whoever lets more of them lie is not told of the oldest.
const GIVEN_MAX: usize = 200;

/// Runs that are remembered apart from connections. One that is forgotten only loses its news.
const RUNS_MAX: usize = 1_000;

/// An answer that nobody has taken so long after it was there has nobody to leave to: its client was told to come back
/// for it. Before that others overtake it.
const LEAVING_TAKES: Duration = Duration::from_secs(2);

/// What is known of an answer's way to whoever asked.
#[derive(Debug, Clone, Default)]
pub struct Heard(Arc<Mutex<Way>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Way {
    /// Nobody takes it yet.
    #[default]
    Open,
    /// It is on its way, and what becomes of it will be known.
    Taken,
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
        if *way != Way::Heard {
            *way = Way::Missed;
        }
    }

    /// Somebody takes it, perhaps come back for it.
    pub fn is_taken(&self) {
        let mut way = self.lock();
        if *way != Way::Heard {
            *way = Way::Taken;
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
    learnt: VecDeque<Item>,
    given: VecDeque<Unheard>,
    /// Calls whose client has gone before they ended.
    left: Vec<Arc<Waiter>>,
}

/// One thing to be told.
#[derive(Debug)]
struct Item {
    /// The effect that it is about: what an answer itself says is not told beside it.
    about: Option<EffectId>,
    words: String,
}

/// An answer of which nobody knows yet whether it has arrived.
#[derive(Debug)]
struct Unheard {
    /// What is told of it to whoever has not heard it.
    own: Option<Item>,
    /// What was told with it, and has to be told again if it is not heard either.
    carries: Vec<Item>,
    heard: Heard,
    /// On the monotonic clock.
    at: Duration,
}

/// What is told with one answer.
#[derive(Debug, Default)]
pub struct Taken {
    still_run: Vec<String>,
    items: Vec<Item>,
    /// So much is left for the next answers.
    more: usize,
}

impl Taken {
    pub fn lines(&self) -> Vec<String> {
        let items = self.items.iter().map(|item| &item.words);
        let mut lines: Vec<String> = self.still_run.iter().chain(items).cloned().collect();
        if self.more > 0 {
            let more = self.more;
            lines.push(format!(
                "There is news of {more} more earlier calls; it comes with your next answers."
            ));
        }
        lines
    }
}

impl News {
    /// Something has turned out otherwise than it was answered.
    pub fn learns(&self, effect: EffectId, words: String) {
        self.lock().learn(Item { about: Some(effect), words });
    }

    /// An answer of this tool is on its way, about this effect if it is about one, with this news.
    pub fn gave(
        &self,
        effect: Option<EffectId>,
        tool: &str,
        words: impl FnOnce() -> String,
        news: Taken,
        now: Duration,
    ) -> Option<Heard> {
        let own = effect.map(|effect| Item {
            about: Some(effect),
            words: format!("Your earlier call of {tool}, whose answer may not have reached you: {}", words()),
        });
        if own.is_none() && news.items.is_empty() {
            return None;
        }
        let heard = Heard::default();
        let mut state = self.lock();
        state.given.retain(|given| given.heard.way() != Way::Heard);
        if state.given.len() >= GIVEN_MAX {
            state.given.pop_front();
        }
        state.given.push_back(Unheard { own, carries: news.items, heard: heard.clone(), at: now });
        Some(heard)
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

    /// What is told with an answer of this tool, about this effect, the oldest first.
    pub fn take(&self, tool: &str, answered: Option<EffectId>, now: Duration) -> Taken {
        let mut state = self.lock();
        let still_run = state.ask_those_left(tool);
        state.learn_what_was_missed(answered, now);
        state.learnt.retain(|item| !item.is_said_by(answered));
        let told = state.learnt.len().min(NEWS_MAX);
        let items = state.learnt.drain(..told).collect();
        Taken { still_run, items, more: state.learnt.len() }
    }

    /// Whether something was left for the next answer.
    pub fn has_more(&self) -> bool {
        !self.lock().learnt.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn learn(&mut self, item: Item) {
        if self.learnt.len() >= LEARNT_MAX {
            self.learnt.pop_front();
        }
        self.learnt.push_back(item);
    }

    /// What calls have come to whose client has gone. Which of them still run.
    fn ask_those_left(&mut self, tool: &str) -> Vec<String> {
        let mut still_run = Vec::new();
        let told: Vec<Beside> = self.left.iter().filter_map(|call| call.told_beside(tool)).collect();
        self.left.retain(|call| !call.is_over());
        for told in told {
            match told {
                Beside::StillRuns(words) => still_run.push(words),
                Beside::Ended(words) => self.learn(Item { about: None, words }),
            }
        }
        still_run
    }

    /// Of answers that nobody has heard what they said, and what was told with them.
    fn learn_what_was_missed(&mut self, answered: Option<EffectId>, now: Duration) {
        for mut given in std::mem::take(&mut self.given) {
            // It is said once more, and better.
            given.own = given.own.filter(|own| !own.is_said_by(answered));
            let missed = match given.heard.way() {
                Way::Heard => continue,
                Way::Missed => true,
                Way::Taken => false,
                Way::Open => now.saturating_sub(given.at) > LEAVING_TAKES,
            };
            match missed {
                true => given.carries.into_iter().chain(given.own).for_each(|item| self.learn(item)),
                false => self.given.push_back(given),
            }
        }
    }
}

impl Item {
    fn is_said_by(&self, answered: Option<EffectId>) -> bool {
        self.about.is_some() && self.about == answered
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

    fn lines(news: &News, answered: Option<EffectId>, now: Duration) -> Vec<String> {
        news.take("other", answered, now).lines()
    }

    fn gives(news: &News, n: u128) -> Heard {
        give_with(news, n, Taken::default())
    }

    fn give_with(news: &News, n: u128, taken: Taken) -> Heard {
        news.gave(Some(EffectId(n)), "charge", || format!("it was done ({n})."), taken, NOW)
            .expect("it is followed")
    }

    fn missed(n: u128) -> String {
        format!("Your earlier call of charge, whose answer may not have reached you: it was done ({n}).")
    }

    #[test]
    fn what_is_found_out_is_told_once_and_not_beside_an_answer_that_says_it() {
        let news = News::default();
        let [one, other] = [EffectId(1), EffectId(2)];
        news.learns(one, "it did not happen".into());
        assert_eq!(lines(&news, Some(other), NOW), ["it did not happen"]);
        assert!(lines(&news, Some(other), NOW).is_empty());
        news.learns(one, "it did not happen".into());
        assert!(lines(&news, Some(one), NOW).is_empty() && lines(&news, Some(other), NOW).is_empty());
    }

    #[test]
    fn what_is_too_much_for_one_answer_is_told_with_the_next_ones() {
        let news = News::default();
        (0..45).for_each(|n| news.learns(EffectId(n), n.to_string()));
        let first = lines(&news, None, NOW);
        assert_eq!((first.len(), first[0].as_str(), first[19].as_str()), (NEWS_MAX + 1, "0", "19"));
        assert!(first[20].contains("news of 25 more") && news.has_more());
        assert!(lines(&news, Some(EffectId(44)), NOW)[20].contains("news of 4 more"));
        assert_eq!(lines(&news, None, NOW), ["40", "41", "42", "43"]);
        assert!(!news.has_more() && lines(&news, None, NOW).is_empty());
        (0..5_000).for_each(|n| news.learns(EffectId(n), n.to_string()));
        assert_eq!(news.lock().learnt.len(), LEARNT_MAX);
    }

    #[test]
    fn an_answer_that_nobody_heard_is_told_once_it_cannot_be_on_its_way_any_more() {
        let news = News::default();
        let [heard, _unheard, _asked_again] = [1, 2, 3].map(|n| gives(&news, n));
        heard.is_so();
        assert!(lines(&news, None, NOW).is_empty(), "it may be on its way");
        assert_eq!(lines(&news, Some(EffectId(3)), LATER), [missed(2)]);
        assert!(lines(&news, None, LATER).is_empty());
    }

    #[test]
    fn an_answer_that_found_nobody_is_told_at_once_unless_somebody_came_back_for_it() {
        let news = News::default();
        let [gone, back, heard] = [1, 2, 3].map(|n| gives(&news, n));
        [&gone, &back].into_iter().for_each(Heard::is_missed);
        back.is_taken();
        heard.is_so();
        heard.is_missed();
        assert_eq!(lines(&news, None, NOW), [missed(1)]);
        assert!(lines(&news, None, LATER).is_empty(), "who reads slowly is not told what it reads");
        back.is_so();
        assert!(lines(&news, None, LATER).is_empty());
    }

    #[test]
    fn news_that_was_told_with_an_answer_that_nobody_heard_is_told_again() {
        let news = News::default();
        news.learns(EffectId(9), "it did not happen".into());
        gives(&news, 1).is_missed();
        let told = news.take("other", Some(EffectId(2)), NOW);
        assert_eq!(told.lines(), ["it did not happen".to_owned(), missed(1)]);
        give_with(&news, 2, told).is_missed();
        let told = news.take("other", None, NOW);
        assert_eq!(told.lines(), ["it did not happen".to_owned(), missed(1), missed(2)]);
        // An answer about nothing carries it too, and what another one says itself is not told beside it.
        let bare = news.gave(None, "charge", String::new, told, NOW).expect("it is followed");
        bare.is_missed();
        let told = news.take("other", Some(EffectId(1)), NOW);
        assert_eq!(told.lines(), ["it did not happen".to_owned(), missed(2)]);
        give_with(&news, 1, told).is_so();
        assert!(lines(&news, None, LATER).is_empty());
        assert!(news.gave(None, "charge", String::new, Taken::default(), NOW).is_none());
    }

    #[test]
    fn of_many_answers_that_nobody_heard_each_is_told() {
        let news = News::default();
        (0..30).for_each(|n| gives(&news, n).is_missed());
        let (first, rest) = (lines(&news, None, NOW), lines(&news, None, NOW));
        assert_eq!((first.len(), rest.len()), (NEWS_MAX + 1, 10));
        (0..1_000).for_each(|n| drop(gives(&news, n)));
        assert_eq!(news.lock().given.len(), GIVEN_MAX);
    }

    #[test]
    fn a_run_has_its_own_news_and_those_of_many_do_not_pile_up() {
        let runs = NewsOfRuns::default();
        runs.of("ann", "1").learns(EffectId(1), "it did not happen".into());
        assert!(
            lines(&runs.of("ann", "2"), None, NOW).is_empty()
                && lines(&runs.of("bob", "1"), None, NOW).is_empty()
        );
        assert_eq!(lines(&runs.of("ann", "1"), None, NOW).len(), 1);
        (0..5_000).for_each(|n| drop(runs.of("ann", &n.to_string())));
        assert!(runs.0.lock().unwrap().len() <= RUNS_MAX);
    }
}
