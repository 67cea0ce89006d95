//! Signals as in the foreground. Background jobs ignore SIGINT and SIGQUIT, a job without a terminal SIGHUP, and so do
//! all their children.

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};

/// From here on children start with these signals as usual: a signal that is caught here is not ignored there. In this
/// process each still does what it does by default.
pub fn restore_for_children() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for signal in [SIGINT, SIGQUIT, SIGHUP] {
            let always = Arc::new(AtomicBool::new(true));
            signal_hook::flag::register_conditional_default(signal, always).expect("a signal can be caught");
        }
    });
}
