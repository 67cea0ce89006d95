//! Connections that only read. A read never waits while it holds one, so there are as many as threads that read.

use super::connection;
use super::fault::Fault;
use crate::Error;
use crate::place::Place;
use rusqlite::Connection;
use std::sync::{Mutex, PoisonError};

/// So many are kept for the next reads; a burst of more closes its own.
const IDLE_MAX: usize = 8;

#[derive(Debug)]
pub(super) struct Readers {
    place: Place,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn new(place: Place) -> Self {
        Readers { place, idle: Mutex::default() }
    }

    pub(super) fn with<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, Error> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let failed = |error: &rusqlite::Error| Fault::while_reading(&self.place, error);
        let connection = match idle {
            Some(connection) => connection,
            None => connection::reader(&self.place).map_err(|error| failed(&error))?,
        };
        let result = read(&connection);
        if result.as_ref().err().is_none_or(|error| !Fault::of(error).spoils_connection()) {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            if idle.len() < IDLE_MAX {
                idle.push(connection);
            }
        }
        result.map_err(|error| failed(&error))
    }
}
