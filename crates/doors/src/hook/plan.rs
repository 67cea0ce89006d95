//! Plans: what the hook knows of a guarded command, for `semel began` and `semel ended`, which run within the client's shell.
//! A plan is a file of its own below the state directory. Losing one loses no effect: its claim becomes a doubt.

use super::client::Client;
use semel_core::digest::Digest;
use semel_core::time::At;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// No command is waited for longer.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

const ID_CHARACTERS: usize = 12;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Plan {
    pub id: String,
    pub client: Client,
    pub session: String,
    pub call_id: Option<String>,
    /// The run that its effects belong to, and whether somebody named it.
    pub run: String,
    pub run_is_named: bool,
    /// The guarded command, as the agent wrote it.
    pub line: String,
    pub action: String,
    pub arguments: Box<RawValue>,
    /// The effect that it repeats on purpose.
    pub again: Option<String>,
    pub timeout_seconds: Option<u64>,
    pub found: FoundFrom,
    pub stage: Stage,
}

/// The way by which the hook found its ledger and its policy. The command may run in another directory, with another environment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FoundFrom {
    pub cwd: PathBuf,
    pub ledger: Option<String>,
    pub policy: Option<PathBuf>,
}

/// How far it has come.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    Planned,
    /// Nothing is to run: the client shows this record instead.
    Recorded {
        stdout: String,
        stderr: String,
    },
    /// `semel began` holds this claim.
    Began {
        claim: String,
    },
    /// `semel ended` has settled it.
    Ended {
        claim: String,
    },
}

/// The directory of all plans of this user.
#[derive(Debug, Clone)]
pub struct Plans(PathBuf);

impl Plans {
    pub fn below(state_directory: &Path) -> Plans {
        Plans(state_directory.join("hook-plans"))
    }

    /// The plan of a call. The same call has the same plan, so that a hook which is configured twice makes one.
    pub fn id_of(client: Client, session: &str, call: &str) -> String {
        let digest = Digest::of(&[client.word().as_bytes(), session.as_bytes(), call.as_bytes()]).to_string();
        digest.chars().filter(char::is_ascii_alphanumeric).take(ID_CHARACTERS).collect()
    }

    pub fn is_id(text: &str) -> bool {
        text.len() == ID_CHARACTERS && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
    }

    /// `None`: there is none, or it is not readable any more.
    pub fn read(&self, id: &str) -> Option<Plan> {
        let bytes = Plans::is_id(id).then(|| fs::read(self.path(id)).ok())??;
        serde_json::from_slice(&bytes).ok()
    }

    pub fn write(&self, plan: &Plan) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        let new = self.0.join(format!("{}.{}", plan.id, std::process::id()));
        let mut file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(&serde_json::to_vec(plan)?)?;
        fs::rename(new, self.path(&plan.id))
    }

    pub fn forget(&self, id: &str) {
        let _it_is_swept_later = fs::remove_file(self.path(id));
    }

    /// Those of one session that have begun and not ended.
    pub fn begun(&self, client: Client, session: &str) -> Vec<Plan> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let plans = entries.filter_map(|entry| self.read(entry.file_name().to_str()?));
        plans
            .filter(|plan| plan.client == client && plan.session == session)
            .filter(|plan| matches!(plan.stage, Stage::Began { .. }))
            .collect()
    }

    /// Drops old ones.
    pub fn sweep(&self, now: At) {
        let now = SystemTime::UNIX_EPOCH + Duration::from_micros(now.0);
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let changed = entry.metadata().and_then(|metadata| metadata.modified());
            let is_old = changed.is_ok_and(|at| now.duration_since(at).is_ok_and(|age| age > KEPT));
            if is_old {
                let _the_next_sweep_tries_again = fs::remove_file(entry.path());
            }
        }
    }

    fn path(&self, id: &str) -> PathBuf {
        self.0.join(id)
    }
}
