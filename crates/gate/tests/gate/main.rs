//! The one integration binary of this crate.

mod begun;
mod generate;
mod house;
mod scenarios;
mod simulation;
