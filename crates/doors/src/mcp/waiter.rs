//! Who waits for the answer of a guarded call, and what its model is told where nobody does.

use super::news::News;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A guarded call, as far as its client is told of it later.
#[derive(Debug, Clone, Default)]
pub struct Begun {
    pub tool: String,
    pub progress_token: Option<String>,
    /// Where its model is told.
    pub news: Weak<News>,
}

#[derive(Debug)]
pub struct Waiter {
    call: Begun,
    state: Mutex<Wait>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Wait {
    Waiting,
    /// Nobody is there to take the answer. Whoever comes back for it gets it.
    Left(Running),
    /// The client has cancelled the call, and gets no answer.
    GivenUp(Running),
    /// The client had given up; this is what became of it.
    Finished(String),
    /// There is nothing more to tell.
    Over,
}

/// What is told of a call beside another one's answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Beside {
    StillRuns(String),
    Ended(String),
}

/// Whether its model was told that it runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Running {
    Untold,
    Told,
}

impl Waiter {
    pub fn new(call: Begun) -> Arc<Waiter> {
        Arc::new(Waiter { call, state: Mutex::new(Wait::Waiting) })
    }

    /// The client has cancelled the call.
    pub fn gives_up(self: &Arc<Self>) {
        self.goes(|wait| match wait {
            Wait::Waiting => Some(Wait::GivenUp(Running::Untold)),
            Wait::Left(running) => Some(Wait::GivenUp(*running)),
            Wait::GivenUp(_) | Wait::Finished(_) | Wait::Over => None,
        });
    }

    /// Nobody follows the call any more.
    pub fn is_left(self: &Arc<Self>) {
        self.goes(|wait| (*wait == Wait::Waiting).then_some(Wait::Left(Running::Untold)));
    }

    fn goes(self: &Arc<Self>, how: impl FnOnce(&Wait) -> Option<Wait>) {
        let mut wait = self.lock();
        let Some(gone) = how(&wait) else { return };
        *wait = gone;
        drop(wait);
        if let Some(news) = self.call.news.upgrade() {
            news.follow(self);
        }
    }

    /// Somebody has come back for the answer.
    pub fn is_followed(&self) {
        let mut wait = self.lock();
        if let Wait::Left(_) = *wait {
            *wait = Wait::Waiting;
        }
    }

    /// The call has ended, in these words. Whether its answer is for anybody.
    pub fn ended(&self, words: impl FnOnce() -> String) -> bool {
        let mut wait = self.lock();
        let is_for_somebody = matches!(*wait, Wait::Waiting | Wait::Left(_));
        *wait = if is_for_somebody { Wait::Over } else { Wait::Finished(words()) };
        is_for_somebody
    }

    pub fn has_given_up(&self) -> bool {
        matches!(*self.lock(), Wait::GivenUp(_))
    }

    pub fn is_waiting(&self) -> bool {
        matches!(*self.lock(), Wait::Waiting | Wait::Left(_))
    }

    pub fn has_progress_token(&self, token: &str) -> bool {
        self.call.progress_token.as_deref() == Some(token)
    }

    pub fn is_over(&self) -> bool {
        *self.lock() == Wait::Over
    }

    /// What its model has not been told yet. An answer of the same tool may be that of the very call, so it does not say
    /// that the call is still running.
    pub fn told_beside(&self, answered: &str) -> Option<Beside> {
        let tool = &self.call.tool;
        let mut wait = self.lock();
        let (told, next) = match &*wait {
            Wait::Finished(words) => {
                let words = format!("Your earlier call of {tool}, which you stopped waiting for: {words}");
                (Beside::Ended(words), Wait::Over)
            }
            Wait::Left(Running::Untold) if tool != answered => {
                let words = format!(
                    "Your earlier call of {tool}, whose answer has not reached you, is still running."
                );
                (Beside::StillRuns(words), Wait::Left(Running::Told))
            }
            Wait::GivenUp(Running::Untold) if tool != answered => {
                let words =
                    format!("Your earlier call of {tool}, which you stopped waiting for, is still running.");
                (Beside::StillRuns(words), Wait::GivenUp(Running::Told))
            }
            Wait::Waiting | Wait::Left(_) | Wait::GivenUp(_) | Wait::Over => return None,
        };
        *wait = next;
        Some(told)
    }

    fn lock(&self) -> MutexGuard<'_, Wait> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(news: &News, answered: &str) -> Vec<String> {
        news.take(answered, None, std::time::Duration::ZERO).lines()
    }

    fn call(news: &Arc<News>) -> Arc<Waiter> {
        Waiter::new(Begun { tool: "charge".into(), progress_token: None, news: Arc::downgrade(news) })
    }

    #[test]
    fn a_call_that_is_left_is_told_once_while_it_runs_and_its_answer_is_kept() {
        let news = Arc::new(News::default());
        let waiter = call(&news);
        assert!(told(&news, "other").is_empty());
        waiter.is_left();
        assert!(told(&news, "charge").is_empty(), "it may be the answer of this very call");
        assert_eq!(
            told(&news, "other"),
            ["Your earlier call of charge, whose answer has not reached you, is still running."]
        );
        assert!(told(&news, "other").is_empty(), "once is enough");
        assert!(waiter.ended(String::new), "somebody may come back for it, and the answer says the rest");
        assert!(told(&news, "other").is_empty());
    }

    #[test]
    fn a_call_that_somebody_came_back_for_is_not_told() {
        let news = Arc::new(News::default());
        let waiter = call(&news);
        waiter.is_left();
        waiter.is_followed();
        assert!(told(&news, "other").is_empty());
        waiter.is_left();
        assert_eq!(told(&news, "other").len(), 1);
    }

    #[test]
    fn a_call_that_is_left_and_then_given_up_is_told_once_and_with_its_end() {
        let news = Arc::new(News::default());
        let waiter = call(&news);
        waiter.is_left();
        assert_eq!(told(&news, "other").len(), 1);
        waiter.gives_up();
        assert!(told(&news, "other").is_empty());
        assert!(!waiter.ended(|| "it was done.".into()));
        assert_eq!(
            told(&news, "other"),
            ["Your earlier call of charge, which you stopped waiting for: it was done."]
        );
    }
}
