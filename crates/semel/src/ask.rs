//! The requests of the API that an SDK makes for each call, answered in process.

use crate::Error;
use crate::call::answer::{ToRun, status_of};
use crate::call::begin::{BeginForm, BeginRequest};
use crate::call::claim;
use crate::call::reply::encode_json;
use crate::call::settle::SettleForm;
use crate::session::{Begun, Claimed, Look, Looked, Semel};
use semel_core::answer::{Answer, Code};
use semel_core::ids::EffectId;
use semel_core::policy::duration;
use semel_core::wording;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::Thread;
use std::time::Duration;

/// A status and a body, as the API gives them.
pub type Reply = (u16, String);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProbeForm {
    found: FoundWord,
    asked_ms_ago: Option<u64>,
    quiet: Option<String>,
    reply: Option<Box<RawValue>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FoundWord {
    Yes,
    No,
}

/// As the API has it.
const BODY_BYTES_MAX: usize = 4 << 20;

/// How often a thread that waits looks whether it was interrupted.
const LOOKS_EVERY: Duration = Duration::from_millis(50);

impl Semel {
    /// Answers a POST to `/begin`, `/settle` or `/effects/ID/probe`: docs/api.md. Other paths are 404 here. Blocks this
    /// thread. `None`: it was interrupted; what was asked comes to an end by itself, and nothing that it claimed stays open.
    pub fn ask(&self, path: &str, body: &[u8], mut is_interrupted: impl FnMut() -> bool) -> Option<Reply> {
        let (semel, path, body) = (self.clone(), path.to_owned(), body.to_owned());
        let mut asked = Box::pin(async move { semel.answer(&path, &body).await });
        let _within = self.runtime().enter();
        let waker = Arc::new(Unpark(std::thread::current())).into();
        let mut context = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(reply) = asked.as_mut().poll(&mut context) {
                return Some(reply);
            }
            std::thread::park_timeout(LOOKS_EVERY);
            if is_interrupted() {
                let semel = self.clone();
                self.runtime().spawn(async move { semel.take_back(&asked.await).await });
                return None;
            }
        }
    }

    /// The same beside the caller. `then` gets the reply, and says whether anybody took it.
    pub fn ask_then(&self, path: String, body: Vec<u8>, then: impl FnOnce(&Reply) -> bool + Send + 'static) {
        let semel = self.clone();
        self.runtime().spawn(async move {
            let reply = semel.answer(&path, &body).await;
            if !then(&reply) {
                semel.take_back(&reply).await;
            }
        });
    }

    /// A claim that nobody took settles as never sent.
    async fn take_back(&self, (_, body): &Reply) {
        let claim =
            serde_json::from_str::<Value>(body).unwrap_or_default()["claim"].as_str().and_then(claim::read);
        let Some((effect, attempt, nonce)) = claim else { return };
        if let Ok((action, rule)) = self.kept_rule(effect).await {
            // What cannot be written now is a doubt at the claim's deadline, or at the end of this process.
            let _lapses = self.give_back(Claimed { effect, attempt, nonce }, &action, &rule).await;
        }
    }

    async fn answer(&self, path: &str, body: &[u8]) -> Reply {
        if body.len() > BODY_BYTES_MAX {
            return problem(413, "the call is larger than 4 MiB; nothing was sent");
        }
        let answered = match path {
            "/begin" => self.ask_begin(body).await,
            "/settle" => self.ask_settle(body).await,
            _ => match path.strip_prefix("/effects/").and_then(|rest| rest.strip_suffix("/probe")) {
                Some(id) => self.ask_probe(id, body).await,
                None => Ok(problem(404, "there is no such path")),
            },
        };
        answered.unwrap_or_else(|error| of_error(&error))
    }

    async fn ask_begin(&self, body: &[u8]) -> Result<Reply, Error> {
        let request = BeginRequest::read(form::<BeginForm>(body)?)?;
        if request.dry_run {
            return Ok(of_answer(&self.dry_run_here(&request).await?, None));
        }
        Ok(match self.begin_here(&request).await? {
            Begun::Run(right) => {
                let (handle, _) = right.take_away();
                (200, text(&ToRun::with(&handle)))
            }
            Begun::Unrecorded(tier) => (200, text(&ToRun::unrecorded(tier))),
            Begun::Done(done) => of_answer(&done.answer, done.reply.as_deref()),
            Begun::Held(answer) => of_answer(&answer, None),
        })
    }

    async fn ask_settle(&self, body: &[u8]) -> Result<Reply, Error> {
        let settled = form::<SettleForm>(body)?;
        let Some((effect, attempt, nonce)) = claim::read(&settled.claim) else {
            return Ok(problem(404, "there is no such claim"));
        };
        let recorded = async {
            let (action, rule) = self.kept_rule(effect).await?;
            self.settle_here(Claimed { effect, attempt, nonce }, &action, &rule, settled).await
        };
        match recorded.await {
            // It has run, so nothing may be said that sounds as if it had not.
            Ok(answer) if answer.effect_id.is_none() => Ok(problem(404, "there is no such claim")),
            Ok(answer) => Ok((200, text(&answer))),
            Err(Error::Ledger(semel_ledger::Error::NoSuchEffect(_))) => {
                Ok(problem(404, "there is no such claim"))
            }
            Err(Error::Ledger(error)) => {
                Ok(problem(503, &format!("the settlement could not be recorded: {error}")))
            }
            Err(error) => Err(error),
        }
    }

    async fn ask_probe(&self, id: &str, body: &[u8]) -> Result<Reply, Error> {
        let ProbeForm { found, asked_ms_ago, quiet, reply } = form(body)?;
        let Some(effect) = EffectId::parse(id) else { return Ok(problem(404, "there is no such effect")) };
        let bad = |why: String| Error::from(crate::call::BadCall::new(why));
        let look = match found {
            FoundWord::Yes => {
                let (_, rule) = self.kept_rule(effect).await?;
                let reply = reply.map(|reply| encode_json(reply.get().as_bytes(), &rule)).transpose();
                Look::Found { reply: reply.map_err(bad)? }
            }
            FoundWord::No => {
                let quiet = quiet.as_deref().map(duration::parse).transpose();
                let quiet = quiet.map_err(|error| bad(format!("quiet: {error}")))?;
                let ago = asked_ms_ago.ok_or_else(|| bad("asked_ms_ago is missing".to_owned()))?;
                Look::NotThere { quiet, asked_ago: Duration::from_millis(ago) }
            }
        };
        Ok(match self.probed_here(effect, look).await? {
            Looked::Cleared => (200, json!({"effect_id": id}).to_string()),
            Looked::NoDoubt => problem(409, "nothing is in doubt there any more"),
            Looked::TooEarly => {
                let detail = "semel: it was not found, but it may still be carried out; ask again later";
                let body = json!({"status": 409, "detail": detail, "is_it_safe_to_retry": "wait"});
                (409, body.to_string())
            }
        })
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn form<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Error> {
    serde_json::from_slice(body)
        .map_err(|error| crate::call::BadCall::new(format!("the body: {error}")).into())
}

fn text(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("forms have string keys")
}

/// The recorded reply stands as the text that it is: a tree would round its numbers.
fn of_answer(answer: &Answer, reply: Option<&[u8]>) -> Reply {
    if !answer.ok {
        return of_trouble(answer);
    }
    let whole = text(answer);
    let reply = reply.and_then(|reply| std::str::from_utf8(reply).ok());
    match (reply, whole.strip_suffix("\"data\":null}")) {
        (Some(reply), Some(head)) => (200, format!("{head}\"data\":{reply}}}")),
        _ => (200, whole),
    }
}

fn of_trouble(answer: &Answer) -> Reply {
    let code = answer.trouble.as_ref().map(|trouble| trouble.code);
    let status = code.map_or(502, status_of);
    let mut whole = serde_json::to_value(answer).expect("answers have string keys");
    let told = answer.trouble.as_ref().map_or_else(String::new, |trouble| trouble.what_happened.clone());
    whole["title"] = code.map_or("", Code::word).into();
    whole["status"] = status.into();
    whole["detail"] = Value::from(format!("semel: {told}"));
    (status, whole.to_string())
}

fn problem(status: u16, detail: &str) -> Reply {
    (status, json!({"status": status, "detail": format!("semel: {detail}")}).to_string())
}

fn of_error(error: &Error) -> Reply {
    match error {
        Error::Held(answer) => of_trouble(answer),
        Error::Call(crate::call::BadCall::Argument(_)) => problem(422, &error.to_string()),
        Error::Call(crate::call::BadCall::Class(_)) => problem(403, &error.to_string()),
        Error::Ledger(semel_ledger::Error::NoSuchEffect(_)) => problem(404, "there is no such effect"),
        Error::Call(_) => problem(400, &error.to_string()),
        Error::Setting(_) | Error::Policy(_) | Error::Ledger(_) | Error::Closed => {
            let trouble = wording::ledger_unavailable(&error.to_string());
            let tier = semel_core::class::Tier::Opaque;
            of_trouble(&Answer::of_trouble(tier, semel_core::answer::OutcomeWord::Refused, trouble))
        }
    }
}
