//! Real SDKs before an API that fails as told, with semel between them.
//!
//! What counts is the API's own log: how often the world changed, and whether every repeat was told the same, byte for
//! byte. All cases of a test run at once, told apart by a header.

mod faults;
mod findings;
mod line;
mod sdk;
mod stage;
mod world;

mod admission;
mod bytes;
mod crowd;
mod drops;
mod every_byte;
mod models;
mod network;
mod payments;
mod processes;
mod replies;
mod sameness;
mod stacks;
