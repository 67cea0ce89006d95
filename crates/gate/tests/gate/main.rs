//! The one integration binary of this crate.

mod house;
mod scenarios;
mod simulation;
