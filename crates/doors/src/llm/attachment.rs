//! How whoever asked learns which answer to follow.

use super::live_answer::AnswerReader;
use semel_core::ids::EffectId;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// An answer that is coming, for whoever asked.
#[derive(Debug)]
pub struct Attached {
    pub reader: AnswerReader,
    /// `None` where nothing is recorded.
    pub effect: Option<EffectId>,
    /// It is somebody else's attempt.
    pub joined: bool,
}

/// Tells of the newest answer to follow. Few are told of more than one, so there is room for one.
#[derive(Debug)]
pub struct Tell(Arc<Shared>);

/// Hears of it. Once this is gone, nobody follows.
#[derive(Debug)]
pub struct Told(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    newest: Mutex<Newest>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Newest {
    attached: Option<Attached>,
    nobody_listens: bool,
}

pub fn channel() -> (Tell, Told) {
    let shared = Arc::<Shared>::default();
    (Tell(Arc::clone(&shared)), Told(shared))
}

impl Tell {
    pub fn follow(&self, attached: Attached) {
        let mut newest = self.0.lock();
        if !newest.nobody_listens {
            newest.attached = Some(attached);
            drop(newest);
            self.0.changed.notify_one();
        }
    }
}

impl Told {
    pub async fn newer(&self) -> Attached {
        loop {
            if let Some(attached) = self.newest() {
                return attached;
            }
            self.0.changed.notified().await;
        }
    }

    pub fn newest(&self) -> Option<Attached> {
        self.0.lock().attached.take()
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        let mut newest = self.0.lock();
        newest.nobody_listens = true;
        newest.attached = None;
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Newest> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
