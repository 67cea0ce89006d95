//! Forms that several doors speak: JSON objects that are edited without changing the rest, and what a form holds.

pub mod form;
pub mod members;
