//! The command line, as real processes on ledgers of their own.

mod home;

mod api;
mod damaged;
mod demo;
mod detect;
mod docs;
mod doctor;
mod documents;
mod epoch;
mod eval;
mod init;
mod ledger;
mod links;
mod llm;
mod mcp;
mod operation;
mod own_score;
mod person;
mod policy;
mod policy_test;
mod probes;
mod proxy;
mod reconcile;
mod reference;
mod restored;
mod rulings;
mod run;
mod runs;
mod sdk_faults;
mod serve;
mod stats;
mod streams;
mod tutorial;
mod undo;
mod whole_answers;
