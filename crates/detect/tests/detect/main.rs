//! The audit on files, as it reads them.

mod bad_input;
mod corpus;
mod follow;
mod policy_test;
mod render;
mod reported;
