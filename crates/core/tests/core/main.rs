//! The one integration binary of this crate.

mod answer;
mod catalogue;
mod decide;
mod error_text;
mod generate;
mod lifecycle;
mod lifecycle_properties;
mod packs;
mod packs_http;
mod page;
mod policy_page;
mod scene;
mod shell;
mod tools;
mod vectors;
