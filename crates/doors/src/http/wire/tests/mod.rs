mod answers;
mod questions;
mod written;
