//! The counting world: a process of its own that changes when it is asked to, and remembers every change.
//!
//! `semel-world --socket PATH --log PATH`. It speaks one line of JSON per connection and direction:
//!
//! - `{"do": {"key": K, "id": I, "attempt": N, "sent_at_ms": T, "life_ms": L}, "mode": M, "delay_ms": D, "linger_ms":
//!   G}` changes the world (one line in the log, fsynced) and answers `{"done": I}`. Mode `lose` makes the change and
//!   hangs up without an answer; `refuse` answers `{"refused": …}` and changes nothing; `lie` answers and changes
//!   nothing. It sleeps `delay_ms` before the change and `linger_ms` after it.
//! - `{"find": K}` answers `{"found": I}` or `{"found": null}`, `{"count": K}` answers `{"count": N}`.
//!
//! A change that arrives later than `life_ms` after it was sent is refused. So a probe that asks later than that
//! after the last sender died sees all that will ever be, however slow the machine is.

use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [socket_flag, socket, log_flag, log] = words.as_slice() else { return usage() };
    if socket_flag != "--socket" || log_flag != "--log" {
        return usage();
    }
    match serve(socket, log) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _nobody_listens = writeln!(std::io::stderr(), "semel-world: {error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    let _nobody_listens = writeln!(std::io::stderr(), "usage: semel-world --socket PATH --log PATH");
    ExitCode::from(2)
}

fn serve(socket: &str, log: &str) -> std::io::Result<()> {
    let world = Arc::new(Mutex::new(WorldState::open(log)?));
    let listener = UnixListener::bind(socket)?;
    for stream in listener.incoming() {
        let stream = stream?;
        let world = Arc::clone(&world);
        // A client that goes away in the middle is the normal case here.
        std::thread::spawn(move || {
            let _client_went_away = answer(&stream, &world);
        });
    }
    Ok(())
}

/// All that has ever happened.
struct WorldState {
    log: File,
    happened: HashMap<String, Vec<String>>,
}

impl WorldState {
    fn open(path: &str) -> std::io::Result<WorldState> {
        let log = OpenOptions::new().create(true).read(true).append(true).open(path)?;
        let mut happened: HashMap<String, Vec<String>> = HashMap::new();
        for line in BufReader::new(&log).lines() {
            let line: Value = serde_json::from_str(&line?)?;
            happened.entry(text(&line["key"])).or_default().push(text(&line["id"]));
        }
        Ok(WorldState { log, happened })
    }

    fn change(&mut self, asked: &Value) -> std::io::Result<()> {
        let line = json!({"key": asked["key"], "id": asked["id"], "attempt": asked["attempt"]});
        self.log.write_all(format!("{line}\n").as_bytes())?;
        self.log.sync_data()?;
        self.happened.entry(text(&asked["key"])).or_default().push(text(&asked["id"]));
        Ok(())
    }
}

fn answer(stream: &UnixStream, world: &Mutex<WorldState>) -> std::io::Result<()> {
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    let asked: Value = serde_json::from_str(&line)?;
    let locked = || world.lock().unwrap_or_else(PoisonError::into_inner);
    let reply = if let Some(key) = asked["find"].as_str() {
        json!({"found": locked().happened.get(key).and_then(|ids| ids.first())})
    } else if let Some(key) = asked["count"].as_str() {
        json!({"count": locked().happened.get(key).map_or(0, Vec::len)})
    } else {
        pause(&asked["delay_ms"]);
        let wanted = &asked["do"];
        let mode = asked["mode"].as_str().unwrap_or("answer");
        if mode == "refuse" {
            json!({"refused": "the world was asked to refuse"})
        } else if mode == "lie" {
            json!({"done": wanted["id"]})
        } else {
            {
                let mut world = locked();
                if too_old(wanted) {
                    writeln!(&mut &*stream, "{}", json!({"refused": "it arrived too late"}))?;
                    return Ok(());
                }
                world.change(wanted)?;
            }
            pause(&asked["linger_ms"]);
            if mode == "lose" {
                return Ok(());
            }
            json!({"done": wanted["id"]})
        }
    };
    writeln!(&mut &*stream, "{reply}")
}

#[allow(clippy::disallowed_methods, reason = "the world has a clock of its own")]
fn too_old(wanted: &Value) -> bool {
    let (Some(sent), Some(life)) = (wanted["sent_at_ms"].as_u64(), wanted["life_ms"].as_u64()) else {
        return false;
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    now > u128::from(sent) + u128::from(life)
}

#[allow(clippy::disallowed_methods, reason = "a slow world is what the test asked for")]
fn pause(span: &Value) {
    if let Some(span) = span.as_u64().filter(|span| *span > 0) {
        std::thread::sleep(Duration::from_millis(span));
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
