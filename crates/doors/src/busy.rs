//! Work that must not be cut off: calls that were sent, answers that are being marked.

use tokio::sync::watch;

#[derive(Debug)]
pub struct Busy(watch::Sender<usize>);

/// Held while something is under way.
#[derive(Debug)]
pub struct Working(watch::Sender<usize>);

impl Default for Busy {
    fn default() -> Self {
        Busy(watch::channel(0).0)
    }
}

impl Busy {
    #[must_use]
    pub fn begin(&self) -> Working {
        self.0.send_modify(|count| *count += 1);
        Working(self.0.clone())
    }

    /// How much is under way.
    pub fn count(&self) -> usize {
        *self.0.borrow()
    }

    /// Waits until nothing is under way.
    pub async fn rest(&self) {
        let mut count = self.0.subscribe();
        // The sender lives in self, so the channel stays open.
        let _open = count.wait_for(|count| *count == 0).await.is_ok();
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
