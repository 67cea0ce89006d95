//! The one integration binary of this crate.

mod generate;
mod house;
mod scenarios;
mod simulation;
