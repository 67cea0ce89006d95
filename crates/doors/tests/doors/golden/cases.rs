//! The golden set as it is written: `spec/golden/README.md` says what each field means.

use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    pair: Vec<Pair>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    pub name: String,
    pub theme: String,
    pub door: Door,
    /// Packs of the policy.
    #[serde(default)]
    pub packs: Vec<String>,
    /// The rest of the policy.
    #[serde(default)]
    pub policy: String,
    /// The preset of an HTTP upstream.
    pub preset: Option<String>,
    /// The service of an HTTP upstream without a preset.
    pub service: Option<String>,
    /// The tool's declared arguments; those of the call unless given.
    pub schema: Option<Value>,
    /// The tool's annotations.
    pub hints: Option<Value>,
    /// The upstream takes an `Idempotency-Key` for what it is.
    #[serde(default)]
    pub honours_key: bool,
    /// The same call again leaves the world as it is.
    #[serde(default)]
    pub converges: bool,
    /// Every attempt brings a key that the caller did not give.
    #[serde(default)]
    pub fills_key: bool,
    #[serde(flatten)]
    pub call: Call,
    #[serde(default)]
    pub first: World,
    pub duplicate: Option<Next>,
    pub repeat: Option<Next>,
    pub other: Option<Next>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Door {
    Mcp,
    Http,
    Model,
    Command,
}

/// One call, as an agent makes it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Call {
    /// `server/tool`, `POST /path` or a command line.
    pub call: String,
    /// The tool's arguments, or the body.
    #[serde(default)]
    pub args: Map<String, Value>,
    /// The body is a form.
    #[serde(default)]
    pub form: bool,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    pub key: Option<String>,
    pub run: Option<String>,
    /// The model's own id of the call.
    pub call_id: Option<String>,
    pub stdin: Option<String>,
    /// `--class` of a command.
    pub class: Option<String>,
    #[serde(skip)]
    pub again: Option<String>,
}

/// The world's part in a call, and whether the caller got the answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct World {
    pub done: bool,
    pub answer: Answer,
    /// What it answers when all is well.
    pub reply: Option<String>,
    pub status: Option<u16>,
    pub exit: Option<i32>,
    pub stdout: Option<String>,
    pub delivered: bool,
    /// What it does with the same call, should semel itself send it again; done and answered unless given.
    pub then: Option<Box<World>>,
    /// Checked where it is given.
    pub expect: Option<Expect>,
}

impl Default for World {
    fn default() -> Self {
        World {
            done: true,
            answer: Answer::Ok,
            reply: None,
            status: None,
            exit: None,
            stdout: None,
            delivered: true,
            then: None,
            expect: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub enum Answer {
    Ok,
    Lost,
    Error(String),
}

impl From<String> for Answer {
    fn from(text: String) -> Answer {
        match text.as_str() {
            "ok" => Answer::Ok,
            "lost" => Answer::Lost,
            _ => Answer::Error(text),
        }
    }
}

/// The call after the first one.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Next {
    #[serde(default)]
    pub variant: Variant,
    /// What the world did with the first call, where this differs from the pair's.
    pub first: Option<World>,
    /// Arguments that differ.
    #[serde(default)]
    pub change: Map<String, Value>,
    /// Arguments that are left out.
    #[serde(default)]
    pub without: Vec<String>,
    pub call: Option<String>,
    pub headers: Option<BTreeMap<String, String>>,
    pub key: Option<String>,
    pub run: Option<String>,
    pub call_id: Option<String>,
    pub stdin: Option<String>,
    pub again: Option<String>,
    /// Calls in between, delivered.
    #[serde(default)]
    pub between: Vec<Between>,
    /// The policy is edited in between: what it says then. The process begins anew.
    pub policy: Option<String>,
    pub preset: Option<String>,
    /// The process ends in between, and another one goes on with the ledger.
    #[serde(default)]
    pub restart: bool,
    /// Time that passes.
    pub after: Option<String>,
    /// It comes while the first one runs.
    #[serde(default)]
    pub at_once: bool,
    #[serde(default)]
    pub world: World,
    #[serde(default)]
    pub expect: Expect,
    /// Who lets a held call run.
    pub out: Option<Out>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Between {
    pub call: String,
    #[serde(default)]
    pub args: Map<String, Value>,
    pub reply: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Variant {
    #[default]
    Exact,
    Reworded,
    Volatile,
    Stamp,
    InDoubt,
    Aba,
    Removed,
    Window,
    Again,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Out {
    /// `semel_again`.
    Again,
    Person,
}

/// What a caller should get. A held call may name its code.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Expect {
    pub word: Word,
    pub code: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    Ran,
    Replayed,
    Joined,
    Held,
    /// The upstream said no.
    Refused,
    /// It was sent, and nobody knows what came of it.
    InDoubt,
}

impl Word {
    pub fn text(self) -> &'static str {
        match self {
            Word::Ran => "ran",
            Word::Replayed => "replayed",
            Word::Joined => "joined",
            Word::Held => "held",
            Word::Refused => "refused",
            Word::InDoubt => "in_doubt",
        }
    }
}

impl Default for Expect {
    fn default() -> Self {
        Expect { word: Word::Ran, code: None }
    }
}

impl TryFrom<String> for Expect {
    type Error = String;

    fn try_from(text: String) -> Result<Expect, String> {
        let (word, code) = match text.split_once(' ') {
            Some((word, code)) => (word, Some(code.to_owned())),
            None => (text.as_str(), None),
        };
        let all = [Word::Ran, Word::Replayed, Word::Joined, Word::Held, Word::Refused, Word::InDoubt];
        let word = all.into_iter().find(|known| known.text() == word);
        word.map(|word| Expect { word, code }).ok_or_else(|| format!("{text} is no answer"))
    }
}

impl fmt::Display for Expect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word.text())?;
        self.code.as_ref().map_or(Ok(()), |code| write!(f, " ({code})"))
    }
}

impl Next {
    /// The call that it is, made of the first one.
    pub fn call(&self, first: &Call) -> Call {
        let mut call = first.clone();
        call.args.retain(|name, _| !self.without.contains(name));
        call.args.extend(self.change.clone());
        call.call = self.call.clone().unwrap_or(call.call);
        call.headers.extend(self.headers.clone().unwrap_or_default());
        call.key = self.key.clone().or(call.key);
        call.run = self.run.clone().or(call.run);
        call.call_id = self.call_id.clone().or(call.call_id);
        call.stdin = self.stdin.clone().or(call.stdin);
        call.again = self.again.clone();
        call
    }
}

/// All pairs, in the order of their files.
pub fn load() -> Vec<Pair> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/golden");
    let entries = std::fs::read_dir(&directory).expect("spec/golden is there");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a directory can be read").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    let read = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).expect("a file can be read");
        let file: File = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        file.pair
    };
    files.iter().flat_map(read).collect()
}
