//! A bit of a stored ledger flips, and every call comes again: none may run a second time.
//!
//! `SEMEL_FLIPS=1500 cargo xtask test -p semel-gate --test gate flipped_bit` tries more of them.

use crate::house::{House, Script, Wish, call, success, take, unclear};
use semel_core::policy::Mode;
use semel_gate::Gate;
use semel_gate::clock::Clock;
use semel_ledger::Ledger;
use semel_ledger::place::Place;
use semel_ledger::sqlite::{OpenOptions, SqliteStore};
use semel_testkit::random::Random;
use semel_testkit::simulation::clock::ManualClock;
use semel_testkit::simulation::executor::{self, OUTSIDE, Orders};
use semel_testkit::simulation::holders::{Locks, SharedHolders, SimulatedHolders};
use semel_testkit::simulation::random::SharedRandom;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::{fs, io};
use tempfile::TempDir;

/// Enough for two levels of every table and index.
const CALLS: usize = 160;

/// Flips tried in each file, unless told otherwise.
const FLIPS: u64 = 40;

/// Calls by what they say, and calls by their key.
fn wish(number: usize) -> Wish {
    let arguments = format!(r#"{{"args":{{"customer":"c{number}","amount":{number}}}}}"#);
    let wish = Wish::consequential().with_arguments(&arguments);
    match number % 2 {
        0 => wish,
        _ => Wish { key: Some(Box::leak(format!("order-{number}").into_boxed_str())), ..wish },
    }
}

/// A process on a ledger, as a command has it.
struct Desk {
    gate: Arc<Gate>,
    clock: ManualClock,
    random: SharedRandom,
}

impl Desk {
    fn open(place: &Place, locks: &Locks, seed: u64) -> Result<Desk, semel_ledger::Error> {
        let (clock, random) = (ManualClock::default(), SharedRandom::of(seed));
        let options = OpenOptions { blocking: true, ..OpenOptions::at(place.clone(), clock.now()) };
        let store = SqliteStore::open(options)?.store;
        let holders = SharedHolders(Arc::new(SimulatedHolders::of(OUTSIDE, locks, None)));
        let ledger = Ledger::new(Arc::new(store), Arc::new(holders), random.clone(), House::secret());
        Ok(Desk { gate: Arc::new(Gate::new(ledger, clock.clone(), Mode::Guard)), clock, random })
    }

    /// How often the call was sent, and whether it got an answer at all.
    fn call(&self, number: usize, script: &Script) -> (usize, bool) {
        let (orders, answer) = (Orders::default(), Arc::new(Mutex::new(None)));
        let (job, slot) = (call(&self.gate, &wish(number), script, &self.clock), Arc::clone(&answer));
        orders.start(OUTSIDE, async move { *slot.lock().expect("nobody panics") = Some(job.await.is_ok()) });
        executor::run(&orders, &self.clock, &self.random).expect("everything comes to an end");
        (script.sent(), take(&answer))
    }
}

/// A ledger on disk, and the locks of those who wrote it: nobody after them may have their names.
struct Written {
    _directory: TempDir,
    place: Place,
    locks: Locks,
}

/// A ledger of many calls. With a WAL, half of them lie there.
fn written(with_wal: bool) -> Written {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let place = Place::at(directory.path().join("ledger.db"));
    let locks = Locks::default();
    let desk = Desk::open(&place, &locks, 1).expect("it is founded");
    for number in 0..CALLS {
        let outcome = if number % 5 == 0 { unclear() } else { success() };
        assert_eq!(desk.call(number, &Script::answers([outcome])), (1, true), "{number}");
        if number == CALLS / 2 || !with_wal {
            desk.gate.ledger.store().fold_back();
        }
    }
    Written { _directory: directory, place, locks }
}

fn copied(from: &Path, into: &Path) -> io::Result<()> {
    for file in fs::read_dir(from)? {
        let file = file?;
        if file.file_type()?.is_file() && !file.file_name().to_string_lossy().ends_with("-shm") {
            fs::copy(file.path(), into.join(file.file_name()))?;
        }
    }
    Ok(())
}

#[derive(Debug, Default)]
struct Tally {
    flips: u64,
    /// The ledger did not open.
    refused: u64,
    /// A call was refused because the ledger could not be read.
    unanswered: u64,
    /// Bits that made a call run again.
    ran_again: Vec<u64>,
}

fn flip(Written { place, locks, .. }: &Written, file: impl Fn(&Place) -> PathBuf) -> Tally {
    let bytes = fs::read(file(place)).expect("readable");
    let mut random = Random::new(bytes.len() as u64);
    let mut tally = Tally { flips: flips(), ..Tally::default() };
    for _ in 0..tally.flips {
        let bit = random.below(bytes.len() as u64 * 8);
        let directory = tempfile::tempdir().expect("a temporary directory");
        copied(place.directory(), directory.path()).expect("copied");
        let copy = Place::at(directory.path().join("ledger.db"));
        let mut damaged = bytes.clone();
        damaged[(bit / 8) as usize] ^= 1 << (bit % 8);
        fs::write(file(&copy), damaged).expect("writable");
        let Ok(desk) = Desk::open(&copy, locks, 2 + bit) else {
            tally.refused += 1;
            continue;
        };
        let script = Script::answers([success()]);
        let answers: Vec<_> = (0..CALLS).map(|number| desk.call(number, &script)).collect();
        tally.unanswered += answers.iter().filter(|(_, answered)| !answered).count() as u64;
        if script.sent() > 0 {
            tally.ran_again.push(bit);
        }
    }
    tally
}

#[allow(clippy::disallowed_methods, reason = "how much to torture is the caller's choice")]
fn flips() -> u64 {
    std::env::var("SEMEL_FLIPS").ok().and_then(|text| text.parse().ok()).unwrap_or(FLIPS)
}

#[allow(clippy::print_stdout, reason = "the counts are the point of a long run")]
fn no_call_runs_again(tally: &Tally) {
    println!("{tally:?}");
    assert!(tally.refused < tally.flips, "the run is vacuous: {tally:?}");
    assert_eq!(tally.ran_again, Vec::<u64>::new(), "{tally:?}");
}

#[test]
fn a_flipped_bit_of_the_database_makes_no_call_run_again() {
    no_call_runs_again(&flip(&written(false), |place| place.database().to_owned()));
}

#[test]
fn a_flipped_bit_of_the_wal_makes_no_call_run_again() {
    no_call_runs_again(&flip(&written(true), Place::wal));
}
