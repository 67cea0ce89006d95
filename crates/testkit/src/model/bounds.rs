//! How far the checker looks.

use super::variants::UpstreamVariant;

/// How often each thing may happen in one execution. All else is bounded by these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Claims, over all epochs; at most [`super::ATTEMPTS_MAX`].
    pub attempts: u8,
    /// Times that a client delivers the request: the first, and its retries after giving up.
    pub deliveries: u8,
    /// Deaths of workers.
    pub crashes: u8,
    /// Store failovers, each of which loses the newest claim.
    pub failovers: u8,
}

impl Bounds {
    /// What every test run affords.
    ///
    /// A keyed upstream gets less of everything, because its attempts overlap: each re-send multiplies the
    /// states, where elsewhere a new attempt begins only after the old one was disproved. Its re-sends need
    /// no delivery, so two of those still give it every attempt there is.
    pub const fn every_run(upstream: UpstreamVariant) -> Self {
        match upstream {
            UpstreamVariant::Opaque | UpstreamVariant::Probed => {
                Self { attempts: 3, deliveries: 4, crashes: 3, failovers: 1 }
            }
            UpstreamVariant::Keyed => Self { attempts: 3, deliveries: 2, crashes: 2, failovers: 1 },
        }
    }

    /// For a nightly run: minutes instead of seconds.
    pub const fn deep(upstream: UpstreamVariant) -> Self {
        match upstream {
            UpstreamVariant::Opaque | UpstreamVariant::Probed => {
                Self { attempts: 4, deliveries: 6, crashes: 5, failovers: 2 }
            }
            UpstreamVariant::Keyed => Self { attempts: 4, deliveries: 3, crashes: 3, failovers: 2 },
        }
    }
}
