//! The world: a directory with a plan of faults and a log of all that was done to it. Processes share it under a lock.

use super::scenario::WorldFault;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A late effect happens after this time.
const LATE_BY: Duration = Duration::from_millis(150);
/// After this time a late effect is there.
const SETTLED_AFTER: Duration = Duration::from_millis(400);
/// So many reads show nothing yet.
const STALE_READS: usize = 2;

#[derive(Debug, Clone)]
pub struct World {
    directory: PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
struct WorldPlan {
    fault: WorldFault,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogLine {
    pub what: Noted,
    pub tool: String,
    pub args: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Noted {
    /// A call that would change the world arrived.
    Arrived,
    /// It changed the world.
    Effect,
    Read,
}

/// What the tool does next.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolReply {
    Success(Value),
    /// An error with its HTTP status.
    Error(u16, &'static str),
    /// The connection ends without an answer.
    Lost,
    /// The process dies.
    Crash,
}

impl World {
    pub fn create(directory: &Path, fault: WorldFault) -> io::Result<World> {
        fs::create_dir_all(directory)?;
        fs::write(directory.join("plan.json"), serde_json::to_vec(&WorldPlan { fault })?)?;
        File::create(directory.join("log.jsonl"))?;
        Ok(World { directory: directory.to_owned() })
    }

    pub fn open(directory: &Path) -> World {
        World { directory: directory.to_owned() }
    }

    /// Carries out a call of a tool.
    pub fn call(&self, tool: &str, args: &Value) -> io::Result<ToolReply> {
        if tool.starts_with("list_") {
            return self.read(tool, args);
        }
        let plan: WorldPlan = serde_json::from_slice(&fs::read(self.directory.join("plan.json"))?)?;
        let first = {
            let lock = self.lock()?;
            let is_first = !self.log()?.iter().any(|line| line.what == Noted::Arrived);
            self.append(Noted::Arrived, tool, args)?;
            let commits_now = !is_first || (plan.fault.commits() && plan.fault != WorldFault::LateCommit);
            if commits_now {
                self.append(Noted::Effect, tool, args)?;
            }
            drop(lock);
            is_first
        };
        let number = self.effects()?.len();
        let success = ToolReply::Success(json!({"id": format!("{tool}_{number}"), "status": "done"}));
        Ok(match plan.fault {
            _ if !first => success,
            WorldFault::None | WorldFault::DeliveredTwice | WorldFault::NeverDone => success,
            WorldFault::LostAfter | WorldFault::LostBefore | WorldFault::StaleRead => ToolReply::Lost,
            WorldFault::LateCommit => {
                let (world, tool, args) = (self.clone(), tool.to_owned(), args.clone());
                std::thread::spawn(move || world.commit_late(&tool, &args));
                ToolReply::Lost
            }
            WorldFault::UnavailableAfter => ToolReply::Error(503, "503 Service Unavailable"),
            WorldFault::RateLimitedAfter => ToolReply::Error(429, "429 Too Many Requests"),
            WorldFault::CrashAfter | WorldFault::CrashBefore => ToolReply::Crash,
        })
    }

    fn commit_late(&self, tool: &str, args: &Value) -> io::Result<()> {
        pause(LATE_BY);
        let _lock = self.lock()?;
        self.append(Noted::Effect, tool, args)
    }

    fn read(&self, tool: &str, args: &Value) -> io::Result<ToolReply> {
        let plan: WorldPlan = serde_json::from_slice(&fs::read(self.directory.join("plan.json"))?)?;
        let _lock = self.lock()?;
        self.append(Noted::Read, tool, args)?;
        let reads = self.log()?.iter().filter(|line| line.what == Noted::Read).count();
        let is_stale = plan.fault == WorldFault::StaleRead && reads <= STALE_READS;
        let asked = |line: &LogLine| {
            let wanted = args.as_object().into_iter().flatten();
            wanted.clone().all(|(name, value)| line.args.get(name) == Some(value))
        };
        let found: Vec<Value> = self
            .effects()?
            .iter()
            .filter(|line| asked(line) && !is_stale)
            .map(|line| line.args.clone())
            .collect();
        Ok(ToolReply::Success(json!({ "items": found })))
    }

    pub fn log(&self) -> io::Result<Vec<LogLine>> {
        let lines = BufReader::new(File::open(self.directory.join("log.jsonl"))?).lines();
        lines.map(|line| Ok(serde_json::from_str(&line?)?)).collect()
    }

    pub fn effects(&self) -> io::Result<Vec<LogLine>> {
        Ok(self.log()?.into_iter().filter(|line| line.what == Noted::Effect).collect())
    }

    fn append(&self, what: Noted, tool: &str, args: &Value) -> io::Result<()> {
        let line = LogLine { what, tool: tool.to_owned(), args: args.clone() };
        let mut file = OpenOptions::new().append(true).open(self.directory.join("log.jsonl"))?;
        file.write_all(format!("{}\n", serde_json::to_string(&line)?).as_bytes())
    }

    fn lock(&self) -> io::Result<File> {
        let file = OpenOptions::new().create(true).append(true).open(self.directory.join("lock"))?;
        file.lock()?;
        Ok(file)
    }
}

/// Waits until no effect is late any more.
pub fn wait_for_late_effects() {
    pause(SETTLED_AFTER);
}

#[allow(clippy::disallowed_methods, reason = "an effect that comes late is what some scenarios are about")]
fn pause(span: Duration) {
    std::thread::sleep(span);
}
