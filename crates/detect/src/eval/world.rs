//! The world: a directory with a plan and a log of all that was done to it. Processes share it under a lock.

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
/// A slow answer takes this long: less than the patience of an agent that joins it.
const SLOW_ANSWER_TAKES: Duration = Duration::from_secs(1);
/// How often a condition is looked at, and how many times.
const LOOKS_EVERY: Duration = Duration::from_millis(20);
const LOOKS_MAX: usize = 250;

/// The treatment of the first call that changes the world. Later calls happen and are answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorldPlan {
    pub effect: EffectTime,
    pub answer: FirstAnswer,
    /// So many reads show nothing yet.
    pub stale_reads: usize,
    /// The tools that it lists instead of its own.
    pub tools: Vec<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectTime {
    Now,
    Late,
    Never,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FirstAnswer {
    /// A success, in these words if there are any.
    Success(Option<String>),
    /// A success that takes long.
    Slow,
    /// An error with its HTTP status.
    Error(u16, String),
    /// The connection ends without an answer.
    Lost,
    /// The process dies.
    Crash,
}

impl WorldPlan {
    pub fn new(effect: EffectTime, answer: FirstAnswer) -> WorldPlan {
        WorldPlan { effect, answer, stale_reads: 0, tools: Vec::new() }
    }

    /// Whether the first answer leaves open what happened. A slow one comes within the agent's patience.
    pub fn leaves_a_doubt(&self) -> bool {
        !matches!(self.answer, FirstAnswer::Success(_) | FirstAnswer::Slow)
    }
}

#[derive(Debug, Clone)]
pub struct World {
    directory: PathBuf,
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

/// The tool's next step.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolReply {
    Success(String),
    /// A success after [`wait_for_slow_answer`].
    Slow(String),
    Error(u16, String),
    Lost,
    Crash,
}

impl World {
    pub fn create(directory: &Path, plan: &WorldPlan) -> io::Result<World> {
        fs::create_dir_all(directory)?;
        fs::write(directory.join("plan.json"), serde_json::to_vec(plan)?)?;
        File::create(directory.join("log.jsonl"))?;
        Ok(World { directory: directory.to_owned() })
    }

    pub fn open(directory: &Path) -> World {
        World { directory: directory.to_owned() }
    }

    pub fn plan(&self) -> io::Result<WorldPlan> {
        Ok(serde_json::from_slice(&fs::read(self.directory.join("plan.json"))?)?)
    }

    /// Carries out a call of a tool.
    pub fn call(&self, tool: &str, args: &Value) -> io::Result<ToolReply> {
        if tool.starts_with("list_") {
            return self.read(tool, args);
        }
        let plan = self.plan()?;
        let is_first = {
            let _lock = self.lock()?;
            let is_first = !self.log()?.iter().any(|line| line.what == Noted::Arrived);
            self.append(Noted::Arrived, tool, args)?;
            if !is_first || plan.effect == EffectTime::Now {
                self.append(Noted::Effect, tool, args)?;
            }
            is_first
        };
        if is_first && plan.effect == EffectTime::Late {
            let (world, tool, args) = (self.clone(), tool.to_owned(), args.clone());
            std::thread::spawn(move || world.commit_late(&tool, &args));
        }
        let number = self.effects()?.len();
        let done = json!({"id": format!("{tool}_{number}"), "status": "done"}).to_string();
        Ok(match plan.answer {
            FirstAnswer::Success(Some(words)) if is_first => ToolReply::Success(words),
            FirstAnswer::Slow if is_first => ToolReply::Slow(done),
            FirstAnswer::Error(status, words) if is_first => ToolReply::Error(status, words),
            FirstAnswer::Lost if is_first => ToolReply::Lost,
            FirstAnswer::Crash if is_first => ToolReply::Crash,
            _ => ToolReply::Success(done),
        })
    }

    fn commit_late(&self, tool: &str, args: &Value) -> io::Result<()> {
        pause(LATE_BY);
        let _lock = self.lock()?;
        self.append(Noted::Effect, tool, args)
    }

    fn read(&self, tool: &str, args: &Value) -> io::Result<ToolReply> {
        let plan = self.plan()?;
        let _lock = self.lock()?;
        self.append(Noted::Read, tool, args)?;
        let reads = self.log()?.iter().filter(|line| line.what == Noted::Read).count();
        let asked = |line: &LogLine| {
            let mut wanted = args.as_object().into_iter().flatten();
            wanted.all(|(name, value)| line.args.get(name) == Some(value))
        };
        let found: Vec<Value> = self
            .effects()?
            .into_iter()
            .filter(|line| asked(line) && reads > plan.stale_reads)
            .map(|line| line.args)
            .collect();
        Ok(ToolReply::Success(json!({ "items": found }).to_string()))
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

pub fn wait_for_slow_answer() {
    pause(SLOW_ANSWER_TAKES);
}

/// Waits until a condition holds, within reason.
pub fn wait_until(mut holds: impl FnMut() -> bool) {
    for _ in 0..LOOKS_MAX {
        if holds() {
            return;
        }
        pause(LOOKS_EVERY);
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "late effects and slow answers are what some scenarios are about"
)]
fn pause(span: Duration) {
    std::thread::sleep(span);
}
