//! The command line, as real processes on ledgers of their own.

mod home;

mod api;
mod api_peers;
mod asking;
mod damaged;
mod demo;
mod docs;
mod doctor;
mod documents;
mod epoch;
mod init;
mod ledger;
mod links;
mod llm;
mod mcp;
mod operation;
mod person;
mod policy;
mod proxy;
mod reference;
mod restored;
mod rulings;
mod run;
mod runs;
mod serve;
mod stats;
mod streams;
mod tutorial;
mod undo;
