//! The command line, as real processes on ledgers of their own.

mod home;

mod demo;
mod docs;
mod doctor;
mod documents;
mod epoch;
mod ledger;
mod policy;
mod run;
mod rulings;
mod runs;
mod streams;
