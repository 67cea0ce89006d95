//! Work that must not be cut off: calls that were sent, answers that are being marked.

use tokio::sync::watch;

#[derive(Debug)]
pub struct Busy {
    count: watch::Sender<usize>,
    given_up: watch::Sender<bool>,
}

/// Held while something is under way.
#[derive(Debug)]
pub struct Working(watch::Sender<usize>);

impl Default for Busy {
    fn default() -> Self {
        Busy { count: watch::channel(0).0, given_up: watch::channel(false).0 }
    }
}

impl Busy {
    #[must_use]
    pub fn begin(&self) -> Working {
        self.count.send_modify(|count| *count += 1);
        Working(self.count.clone())
    }

    /// How much is under way.
    pub fn count(&self) -> usize {
        *self.count.borrow()
    }

    /// Waits until nothing is under way.
    pub async fn rest(&self) {
        let mut count = self.count.subscribe();
        // The sender lives in self, so the channel stays open.
        let _open = count.wait_for(|count| *count == 0).await.is_ok();
    }

    /// What is still under way is not waited for any more.
    pub fn give_up(&self) {
        self.given_up.send_replace(true);
    }

    /// Resolves once that is so.
    pub async fn given_up(&self) {
        let mut given_up = self.given_up.subscribe();
        let _open = given_up.wait_for(|given_up| *given_up).await.is_ok();
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
