//! The one integration binary of this crate.

mod begun;
mod house;
mod scenarios;
mod simulation;
