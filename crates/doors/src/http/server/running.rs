//! How many calls are on their way: a server that was told to stop waits for them.

use std::sync::Arc;
use tokio::sync::watch;

#[derive(Debug, Clone)]
pub struct Running {
    count: Arc<watch::Sender<usize>>,
}

/// One of them. It has ended when this is dropped.
#[derive(Debug)]
pub struct Settling {
    count: Arc<watch::Sender<usize>>,
}

impl Default for Running {
    fn default() -> Self {
        Running { count: Arc::new(watch::Sender::new(0)) }
    }
}

impl Running {
    #[must_use]
    pub fn begins(&self) -> Settling {
        self.count.send_modify(|count| *count += 1);
        Settling { count: Arc::clone(&self.count) }
    }

    /// Waits until none is left.
    pub async fn ended(&self) {
        let mut count = self.count.subscribe();
        let _never_closed = count.wait_for(|count| *count == 0).await;
    }
}

impl Drop for Settling {
    fn drop(&mut self) {
        self.count.send_modify(|count| *count -= 1);
    }
}
