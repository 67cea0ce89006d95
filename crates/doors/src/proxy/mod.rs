//! The HTTP door: any HTTP API, guarded, at `/p/NAME/`.

pub mod offer;
pub mod serve;

pub use offer::Offer;
pub use serve::{Offers, router};
