//! Where clients come in.

pub mod stdio;
