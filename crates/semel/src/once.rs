//! One call of a tool, at most once.

use crate::call::begin::{BeginForm, BeginRequest};
use crate::call::key::wire_key;
use crate::call::settle::{DoneWord, SettleForm, SettledWord, WHY_CHARS_MAX};
use crate::error::told;
use crate::session::{Begun, Done, Right, Semel};
use crate::{BadSetting, Error};
use semel_core::answer::Answer;
use semel_core::class::Class;
use semel_core::policy::duration;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A call of the tool NAME on the ledger that the environment names. That is opened at the first call.
pub fn once(name: impl Into<String>) -> Once {
    Once::on(None, name.into())
}

impl Semel {
    /// A call of the tool NAME on this ledger.
    pub fn once(&self, name: impl Into<String>) -> Once {
        Once::on(Some(self.clone()), name.into())
    }
}

/// A call that is being described.
#[derive(Debug)]
#[must_use]
pub struct Once {
    semel: Option<Semel>,
    name: String,
    arguments: Map<String, Value>,
    /// An argument that is no JSON.
    unfit: Option<String>,
    form: BeginForm,
}

/// The effect, for the code that makes it happen.
#[derive(Debug, Clone)]
pub struct Effect {
    /// None for a read, and in observe mode.
    pub id: Option<String>,
    /// For the tool: one per effect, not per attempt. Empty where nothing is recorded.
    pub idempotency_key: String,
    refused: Arc<AtomicBool>,
}

impl Effect {
    /// Says that the error which follows proves that nothing happened: the tool refused. The next call may try again.
    pub fn refused(&self) {
        self.refused.store(true, Ordering::Relaxed);
    }
}

/// Why there is no reply.
#[derive(Debug)]
pub enum Failure<E> {
    /// The tool refused; nothing happened.
    Refused(E),
    /// The tool failed, and nobody knows whether it happened. Do not call it again blindly: a repeat is held too.
    InDoubt {
        /// The tool's own error.
        error: E,
        /// The answer on record, with what to do.
        answer: Box<Answer>,
    },
    /// The tool was not called: it is in flight, in doubt, cancelled, … as the answer says.
    Held(Box<Answer>),
    /// It happened, and its reply is not known here, or is not of this type.
    ReplyUnknown {
        /// The answer on record.
        answer: Box<Answer>,
        /// Why there is no reply.
        why: String,
    },
    /// Reads alone: the tool's own error.
    Read(E),
    /// semel itself failed.
    Semel(Error),
}

impl Once {
    fn on(semel: Option<Semel>, name: String) -> Once {
        let form = BeginForm { class: Some(Class::Consequential), ..BeginForm::default() };
        Once { semel, name, arguments: Map::new(), unfit: None, form }
    }

    /// Names the effect for ever: the same key again is the same effect. It is the name of one tool's call; another tool may
    /// use it too.
    pub fn key(mut self, key: impl fmt::Display) -> Once {
        self.form.key = Some(wire_key(&self.name, &key.to_string()));
        self
    }

    /// An argument. Without a key, equal arguments make two calls the same.
    pub fn argument(mut self, name: impl Into<String>, value: impl Serialize) -> Once {
        let name = name.into();
        match serde_json::to_value(value) {
            Ok(value) => drop(self.arguments.insert(name, value)),
            Err(error) => self.unfit = Some(format!("the argument {name} is no JSON: {error}")),
        }
        self
    }

    /// All arguments at once: an object.
    pub fn arguments(mut self, of: impl Serialize) -> Once {
        match serde_json::to_value(of) {
            Ok(Value::Object(all)) => self.arguments.extend(all),
            _ => self.unfit = Some("the arguments are no JSON object".to_owned()),
        }
        self
    }

    /// The arguments that alone make two calls the same, within the run.
    pub fn by<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Once {
        self.form.by = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// The run that it belongs to; `SEMEL_RUN_ID` unless given.
    pub fn run_id(mut self, run: impl Into<String>) -> Once {
        self.form.run = Some(run.into());
        self
    }

    /// Once more on purpose. The same reason again is the same repeat.
    pub fn again(mut self, why: impl Into<String>) -> Once {
        self.form.again = Some(why.into());
        self
    }

    /// The tool itself honours [`Effect::idempotency_key`] for so long: after a doubt it is called again with it.
    pub fn keyed_for(mut self, span: Duration) -> Once {
        self.form.keyed_for = Some(duration::text(span));
        self
    }

    /// How long the tool may take before its silence is a doubt; 5 minutes unless given. A late answer still counts.
    pub fn timeout(mut self, span: Duration) -> Once {
        self.form.timeout = Some(duration::text(span));
        self
    }

    /// Calls the tool, or brings what it answered before.
    pub async fn run<T, E, F>(self, tool: impl FnOnce(Effect) -> F) -> Result<T, Failure<E>>
    where
        T: Serialize + DeserializeOwned,
        E: fmt::Display,
        F: Future<Output = Result<T, E>>,
    {
        self.run_or_repeat(tool, |_| None).await.map(|(reply, _)| reply)
    }

    /// The same, and whether it was done before. `word` finds in a reply what the tool did.
    pub(crate) async fn run_or_repeat<T, E, F>(
        self,
        tool: impl FnOnce(Effect) -> F,
        word: fn(&T) -> Option<DoneWord>,
    ) -> Result<(T, bool), Failure<E>>
    where
        T: Serialize + DeserializeOwned,
        E: fmt::Display,
        F: Future<Output = Result<T, E>>,
    {
        let (semel, request) = self.request().map_err(Failure::Semel)?;
        match semel.begin(request).await.map_err(Failure::Semel)? {
            Begun::Done(done) => reply(done).map(|reply| (reply, true)),
            Begun::Held(answer) => Err(Failure::Held(answer)),
            Begun::Unrecorded(_) => {
                let effect = Effect { id: None, idempotency_key: String::new(), refused: Arc::default() };
                tool(effect).await.map(|reply| (reply, false)).map_err(Failure::Read)
            }
            Begun::Run(right) => act(right, tool, word).await.map(|reply| (reply, false)),
        }
    }

    /// Says what a run would do, and does nothing.
    pub async fn dry_run(self) -> Result<Answer, Error> {
        let (semel, request) = self.request()?;
        semel.dry_run(request).await
    }

    fn request(self) -> Result<(Semel, BeginRequest), Error> {
        let Once { semel, name, arguments, unfit, form } = self;
        if let Some(why) = unfit {
            return Err(crate::call::BadCall::new(why).into());
        }
        let semel = match semel {
            Some(semel) => semel,
            None => shared()?.clone(),
        };
        let arguments = to_raw_value(&arguments).expect("a map of JSON is JSON");
        let run = match form.run {
            None => semel.run_id(),
            run => run,
        };
        let form = BeginForm { action: format!("fn:{name}"), arguments: Some(arguments), run, ..form };
        Ok((semel, BeginRequest::read(form)?))
    }
}

/// The ledger that the environment names, opened once for all calls of this process.
fn shared() -> Result<&'static Semel, Error> {
    static SHARED: OnceLock<Semel> = OnceLock::new();
    if let Some(semel) = SHARED.get() {
        return Ok(semel);
    }
    let opened = Semel::open()?;
    // Another thread may have been faster: then this one is closed again.
    Ok(SHARED.get_or_init(|| opened))
}

async fn act<T, E, F>(
    mut right: Right,
    tool: impl FnOnce(Effect) -> F,
    word: fn(&T) -> Option<DoneWord>,
) -> Result<T, Failure<E>>
where
    T: Serialize,
    E: fmt::Display,
    F: Future<Output = Result<T, E>>,
{
    let handle = right.handle();
    let refused = Arc::<AtomicBool>::default();
    let effect = Effect {
        id: Some(handle.effect.to_string()),
        idempotency_key: handle.idempotency_key.clone(),
        refused: Arc::clone(&refused),
    };
    right.act();
    let done = tool(effect).await;
    let form = match &done {
        Ok(reply) => SettleForm {
            effect: word(reply),
            ..SettleForm::of(SettledWord::Applied, to_raw_value(reply).ok(), None)
        },
        Err(error) => {
            let why: String = error.to_string().chars().take(WHY_CHARS_MAX).collect();
            let word = match refused.load(Ordering::Relaxed) {
                true => SettledWord::NotApplied,
                false => SettledWord::InDoubt,
            };
            SettleForm::of(word, None, Some(why))
        }
    };
    let answer = right.settle(form).await.map_err(Failure::Semel)?;
    match done {
        Ok(reply) => Ok(reply),
        Err(error) if refused.load(Ordering::Relaxed) => Err(Failure::Refused(error)),
        Err(error) => Err(Failure::InDoubt { error, answer: Box::new(answer) }),
    }
}

fn reply<T: DeserializeOwned, E>(done: Done) -> Result<T, Failure<E>> {
    let Done { answer, reply } = done;
    let read = match &reply {
        Some(bytes) => serde_json::from_slice(bytes).map_err(|error| error.to_string()),
        // A type without a size has one value, so nothing is missing.
        None if size_of::<T>() == 0 => serde_json::from_str("null").map_err(|error| error.to_string()),
        None => Err(answer.reason.clone().unwrap_or_else(|| "its reply is not known".to_owned())),
    };
    read.map_err(|why| Failure::ReplyUnknown { answer, why })
}

impl SettleForm {
    /// A report by the holder of a [`Right`], which stands for its claim.
    pub fn of(outcome: SettledWord, reply: Option<Box<RawValue>>, why: Option<String>) -> SettleForm {
        SettleForm { claim: String::new(), outcome, reply, effect: None, accepted: false, why }
    }
}

impl<E: fmt::Display> fmt::Display for Failure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Refused(error) => write!(f, "refused: {error}"),
            Failure::InDoubt { error, answer } => write!(f, "{} ({error})", told(answer)),
            Failure::Held(answer) => f.write_str(&told(answer)),
            Failure::ReplyUnknown { why, .. } => write!(f, "it was done before, but {why}"),
            Failure::Read(error) => error.fmt(f),
            Failure::Semel(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for Failure<E> {}

impl<E> From<BadSetting> for Failure<E> {
    fn from(bad: BadSetting) -> Failure<E> {
        Failure::Semel(bad.into())
    }
}
