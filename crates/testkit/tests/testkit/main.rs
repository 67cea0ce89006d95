//! The one integration binary of this crate.

mod crash_points;
mod model;
mod power;
mod scene;
mod servers;
mod torture;
mod trouble;
mod upstream;
