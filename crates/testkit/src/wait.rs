//! Waits for something that another thread or process does.

use std::time::Duration;

const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Two minutes: only a test that fails waits so long.
const LOOKS_MAX: u32 = 24_000;

pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..LOOKS_MAX {
        if is_so() {
            return;
        }
        std::thread::park_timeout(LOOK_EVERY);
    }
    panic!("it did not come to pass that {what}");
}
