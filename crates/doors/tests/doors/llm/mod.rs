//! The doors of models, before a model of our own that counts how often it was asked.

mod stage;

mod cancelling;
mod counting;
mod failing;
mod forms;
mod joining;
mod leaving;
mod limits;
mod steps;
mod twins;
