//! The HTTP door: any HTTP API, guarded, at `/p/NAME/`.
//!
//! In the order in which data flows: `open` finds the API, `arrive` takes the request, `path` and `method` say what it may be, `arguments` what
//! it says, `intent` what it means; `relay` passes on what changes nothing, `guard` takes the rest through the gate;
//! `classify` reads the answer, `reply` keeps it, `render` gives it.

pub mod arguments;
pub mod arrive;
pub mod broken_multipart;
pub mod classify;
pub mod content_type;
pub mod disposition;
pub mod dry_run;
pub mod graphql;
pub mod guard;
pub mod guarded;
pub mod headers;
pub mod inject;
pub mod intake;
pub mod intent;
pub mod key;
pub mod method;
pub mod multipart;
pub mod observe;
pub mod offer;
pub mod offers;
pub mod opaque;
pub mod opened;
pub mod path;
pub mod query;
pub mod refusal;
pub mod relay;
pub mod render;
pub mod serve;
pub mod streamed;
pub mod upstream;
pub mod upstream_answer;

pub use offer::Offer;
pub use offers::{Offers, PATH, nothing_here};
pub use opened::{OpenedRequest, open};
pub use serve::serve;
