//! From bytes to an effect. A number that is missing is zero, as in all of Protocol Buffers; everything else that is
//! not optional must be there.

use super::numbers::Numbered;
use super::wire::{DecodeError, MessageFields, Value};
use semel_core::digest::Digest;
use semel_core::effect::{
    Applied, Attempt, CallMark, Doubt, Effect, Facts, InDoubt, LastSend, NotApplied, NotAppliedWhy,
    Occurrence, PreviousSuccess, Reply, Ruling, State,
};
use semel_core::identity::{IntentDigest, Marks, PathMark};
use semel_core::ids::{AttemptNo, EffectId, Nonce, OwnerId, Reason, Run};
use semel_core::time::{At, Uptime};
use semel_core::undo::BodyForm;
use semel_core::undo::{Undo, UndoBody, UndoCall, Undoes, Undone};
use std::sync::Arc;

/// Reads the fields of a message by their numbers. Unknown ones are passed over.
macro_rules! each_field {
    ($value:ident { $($number:literal => $read:expr),+ $(,)? }) => {
        let mut fields = $value.message()?;
        while let Some((number, $value)) = fields.next()? {
            match number {
                $($number => $read,)+
                _ => {}
            }
        }
    };
}

type DecodeResult<T> = Result<T, DecodeError>;

/// An effect, as far as this semel can read it.
#[derive(Debug)]
pub(super) struct Readable {
    pub(super) effect: Effect,
    /// Its state or one of its attempts is of a kind that only a newer semel knows; `effect` says otherwise.
    pub(super) newer: bool,
}

/// Reads an effect. Where the state or an attempt is unknown, `otherwise` takes the state's place.
pub(super) fn effect(body: &[u8], otherwise: impl FnOnce() -> State) -> DecodeResult<Readable> {
    let mut fields = MessageFields(body);
    let (mut id, mut occurrence, mut facts, mut marks, mut state) = (None, None, None, None, None);
    // Most effects have one attempt.
    let mut attempts = Ok(Vec::with_capacity(1));
    let (mut opened_at, mut epoch, mut delivered_at) = (At(0), 0, None);
    let (mut undo, mut undone, mut repeat_permitted) = (Ok(None), None, None);
    let mut refusals = 0;
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => id = Some(EffectId(u128::from_be_bytes(value.array()?))),
            2 => occurrence = Some(self::occurrence(value)?),
            3 => facts = Some(self::facts(value)?),
            4 => marks = Some(self::marks(value)?),
            5 => match (attempt(value), &mut attempts) {
                (Ok(attempt), Ok(attempts)) => attempts.push(attempt),
                (Ok(_), Err(_)) => {}
                (Err(unread), _) => attempts = Err(known(unread)?),
            },
            6 => state = Some(self::state(value)),
            7 => opened_at = at(value)?,
            8 => epoch = value.number()?,
            9 => delivered_at = Some(at(value)?),
            10 => match self::undo(value) {
                Ok(read) => undo = Ok(Some(read)),
                Err(unread) => undo = Err(known(unread)?),
            },
            11 => undone = Some(self::undone(value)?),
            12 => repeat_permitted = Some(ruling(value)?),
            13 => refusals = value.number()?,
            _ => {}
        }
    }
    let state = match there(state)? {
        Ok(state) => Ok(state),
        Err(unread) => Err(known(unread)?),
    };
    let newer = state.is_err() || attempts.is_err() || undo.is_err();
    let state = state.ok().filter(|_| !newer);
    let effect = Effect {
        id: there(id)?,
        occurrence: there(occurrence)?,
        facts: Arc::new(there(facts)?),
        marks: Arc::new(there(marks)?),
        attempts: attempts.unwrap_or_default(),
        state: state.unwrap_or_else(otherwise),
        opened_at,
        epoch,
        delivered_at,
        undo: undo.unwrap_or_default(),
        undone,
        repeat_permitted,
        refusals,
    };
    Ok(Readable { effect, newer })
}

/// Only what is not known can be in doubt; what is damaged is damaged.
fn known(unread: DecodeError) -> DecodeResult<DecodeError> {
    if unread == DecodeError::Unknown { Ok(unread) } else { Err(unread) }
}

fn there<T>(field: Option<T>) -> DecodeResult<T> {
    field.ok_or(DecodeError::Damaged)
}

fn at(value: Value<'_>) -> DecodeResult<At> {
    value.number().map(At)
}

fn attempt_number(value: Value<'_>) -> DecodeResult<AttemptNo> {
    value.small().map(AttemptNo)
}

fn reason(value: Value<'_>) -> DecodeResult<Reason> {
    value.str().map(Reason::recorded)
}

fn occurrence(value: Value<'_>) -> DecodeResult<Occurrence> {
    let mut read = Occurrence { number: 0, ..Occurrence::first(None) };
    each_field!(value {
        1 => read.number = value.small()?,
        2 => read.reason = Some(reason(value)?),
        3 => read.earlier.push(earlier(value)?),
        4 => read.calls.push(earlier_call(value)?),
        5 => read.before = Some(before(value)?),
        6 => read.by_permission = value.flag()?,
    });
    Ok(read)
}

fn earlier(value: Value<'_>) -> DecodeResult<(u32, Reason)> {
    let (mut number, mut why) = (0, None);
    each_field!(value {
        1 => number = value.small()?,
        2 => why = Some(reason(value)?),
    });
    Ok((number, there(why)?))
}

fn before(value: Value<'_>) -> DecodeResult<PreviousSuccess> {
    let mut before = PreviousSuccess { number: 0, delivered_at: At(0), uptime: None };
    each_field!(value {
        1 => before.number = value.small()?,
        2 => before.delivered_at = At(value.number()?),
        3 => before.uptime = Some(uptime(value)?),
    });
    Ok(before)
}

fn earlier_call(value: Value<'_>) -> DecodeResult<(u32, CallMark)> {
    let (mut number, mut mark) = (0, None);
    each_field!(value {
        1 => number = value.small()?,
        2 => mark = Some(value.number()?),
    });
    Ok((number, CallMark(there(mark)?)))
}

fn facts(value: Value<'_>) -> DecodeResult<Facts> {
    let (mut action, mut tenant, mut subject, mut rule) = (None, None, None, None);
    let (mut class, mut tier, mut run, mut digest, mut caller_key) = (None, None, None, None, false);
    let mut undoes = None;
    let (mut principal, mut upstream_key, mut authority, mut by_joining_key) = (0, 0, 0, false);
    each_field!(value {
        1 => action = Some(value.text()?),
        2 => class = Some(Numbered::read(value)?),
        3 => tier = Some(Numbered::read(value)?),
        4 => tenant = Some(value.text()?),
        5 => run = Some(self::run(value)?),
        6 => digest = Some(IntentDigest(Digest(value.array()?))),
        7 => caller_key = value.flag()?,
        8 => subject = Some(value.text()?),
        9 => rule = Some(value.text()?),
        10 => undoes = Some(self::undoes(value)?),
        12 => principal = value.number()?,
        13 => upstream_key = value.number()?,
        14 => by_joining_key = value.flag()?,
        15 => authority = value.number()?,
    });
    Ok(Facts {
        action: there(action)?,
        class: there(class)?,
        tier: there(tier)?,
        tenant: there(tenant)?,
        run,
        digest: there(digest)?,
        caller_key,
        by_joining_key,
        subject: there(subject)?,
        rule: there(rule)?,
        undoes,
        principal,
        upstream_key,
        authority,
    })
}

fn undoes(value: Value<'_>) -> DecodeResult<Undoes> {
    let (mut effect, mut by, mut why) = (None, None, None);
    each_field!(value {
        1 => effect = Some(EffectId(u128::from_be_bytes(value.array()?))),
        2 => by = Some(value.text()?),
        3 => why = Some(reason(value)?),
    });
    Ok(Undoes { effect: there(effect)?, by: there(by)?, reason: there(why)? })
}

fn undone(value: Value<'_>) -> DecodeResult<Undone> {
    let (mut by, mut at) = (None, At(0));
    each_field!(value {
        1 => by = Some(EffectId(u128::from_be_bytes(value.array()?))),
        2 => at = self::at(value)?,
    });
    Ok(Undone { by: there(by)?, at })
}

fn undo(value: Value<'_>) -> DecodeResult<Undo> {
    match one_of(value)? {
        (1, value) => value.text().map(Undo::Not),
        (2, value) => undo_by_tool(value).map(Undo::By),
        (3, value) => undo_by_request(value).map(Undo::By),
        (4, value) => undo_by_command(value).map(Undo::By),
        _ => Err(DecodeError::Unknown),
    }
}

fn undo_by_tool(value: Value<'_>) -> DecodeResult<UndoCall> {
    let (mut server, mut tool, mut arguments) = (None, None, None);
    each_field!(value {
        1 => server = Some(value.text()?),
        2 => tool = Some(value.text()?),
        3 => arguments = Some(value.text()?),
    });
    Ok(UndoCall::Mcp { server: there(server)?, tool: there(tool)?, arguments: there(arguments)? })
}

fn undo_by_request(value: Value<'_>) -> DecodeResult<UndoCall> {
    let (mut method, mut url, mut body) = (None, None, None);
    let mut fields = value.message()?;
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => method = Some(value.text()?),
            2 => url = Some(value.text()?),
            3 => body = Some(UndoBody { form: BodyForm::Json, members: value.text()? }),
            4 => body = Some(UndoBody { form: BodyForm::Urlencoded, members: value.text()? }),
            // A part of the request that only a newer semel knows: without it, it would be another request.
            _ => return Err(DecodeError::Unknown),
        }
    }
    Ok(UndoCall::Http { method: there(method)?, url: there(url)?, body })
}

fn undo_by_command(value: Value<'_>) -> DecodeResult<UndoCall> {
    let (mut argv, mut cwd) = (Vec::new(), None);
    let mut fields = value.message()?;
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => argv.push(value.text()?),
            2 => cwd = Some(value.text()?),
            _ => return Err(DecodeError::Unknown),
        }
    }
    Ok(UndoCall::Command { argv, cwd: there(cwd)? })
}

fn run(value: Value<'_>) -> DecodeResult<Run> {
    let (mut id, mut named) = (None, false);
    each_field!(value {
        1 => id = Some(value.text()?),
        2 => named = value.flag()?,
    });
    Ok(Run { id: there(id)?, named })
}

fn marks(value: Value<'_>) -> DecodeResult<Marks> {
    let (mut action, mut fingerprint, mut content, mut volatile) = (0, None, None, None);
    let (mut paths, mut content_paths) = (Vec::new(), Vec::new());
    each_field!(value {
        1 => action = value.number()?,
        2 => fingerprint = Some(Digest(value.array()?)),
        3 => content = Some(Digest(value.array()?)),
        4 => paths.push(path_mark(value)?),
        5 => content_paths.push(path_mark(value)?),
        6 => volatile = Some(value.number()?),
    });
    Ok(Marks { action, fingerprint: there(fingerprint)?, content, paths, content_paths, volatile })
}

fn path_mark(value: Value<'_>) -> DecodeResult<PathMark> {
    let (mut path, mut kind, mut mark) = (None, None, 0);
    each_field!(value {
        1 => path = Some(value.text()?),
        2 => kind = Some(Numbered::read(value)?),
        3 => mark = value.number()?,
    });
    Ok(PathMark { path: there(path)?, kind: there(kind)?, mark })
}

fn attempt(value: Value<'_>) -> DecodeResult<Attempt> {
    let (mut number, mut nonce, mut owner, mut last_send, mut verdict) =
        (AttemptNo(0), None, None, None, None);
    let (mut claimed_at, mut deadline, mut epoch, mut gone_at) = (At(0), At(0), 0, None);
    let (mut resend, mut call_id, mut run, mut trace, mut uptime) = (false, None, None, None, None);
    each_field!(value {
        1 => number = attempt_number(value)?,
        2 => nonce = Some(Nonce(u128::from_be_bytes(value.array()?))),
        3 => owner = Some(OwnerId(u128::from_be_bytes(value.array()?))),
        4 => claimed_at = at(value)?,
        5 => deadline = at(value)?,
        6 => last_send = Some(self::last_send(value)?),
        7 => verdict = Some(Numbered::read(value)?),
        8 => resend = value.flag()?,
        9 => call_id = Some(value.text()?),
        10 => run = Some(self::run(value)?),
        11 => epoch = value.number()?,
        12 => gone_at = Some(at(value)?),
        13 => trace = Some(u128::from_be_bytes(value.array()?)),
        14 => uptime = Some(self::uptime(value)?),
    });
    Ok(Attempt {
        number,
        nonce: there(nonce)?,
        owner: there(owner)?,
        claimed_at,
        deadline,
        last_send: there(last_send)?,
        verdict: there(verdict)?,
        resend,
        call_id,
        run,
        epoch,
        gone_at,
        trace,
        uptime,
    })
}

fn uptime(value: Value<'_>) -> DecodeResult<Uptime> {
    let (mut boot, mut micros) = (0, 0);
    each_field!(value {
        1 => boot = value.small()?,
        2 => micros = value.number()?,
    });
    Ok(Uptime { boot, micros })
}

/// The one field of a message that is one of several.
fn one_of(value: Value<'_>) -> DecodeResult<(u64, Value<'_>)> {
    // None at all is a variant too, and not one of ours.
    value.message()?.next()?.ok_or(DecodeError::Unknown)
}

fn last_send(value: Value<'_>) -> DecodeResult<LastSend> {
    match one_of(value)? {
        (1, value) => at(value).map(LastSend::By),
        (2, _) => Ok(LastSend::WhileAlive),
        _ => Err(DecodeError::Unknown),
    }
}

fn state(value: Value<'_>) -> DecodeResult<State> {
    match one_of(value)? {
        (1, value) => Ok(State::InFlight { attempt: attempt_number(value)? }),
        (2, value) => applied(value).map(State::Applied),
        (3, value) => not_applied(value).map(State::NotApplied),
        (4, value) => in_doubt(value).map(State::InDoubt),
        _ => Err(DecodeError::Unknown),
    }
}

fn applied(value: Value<'_>) -> DecodeResult<Applied> {
    let (mut at, mut evidence, mut by, mut word) = (At(0), None, None, None);
    let (mut reply, mut ruling) = (None, None);
    each_field!(value {
        1 => at = self::at(value)?,
        2 => evidence = Some(Numbered::read(value)?),
        3 => by = Some(attempt_number(value)?),
        4 => word = Some(Numbered::read(value)?),
        5 => reply = Some(self::reply(value)?),
        6 => ruling = Some(self::ruling(value)?),
    });
    Ok(Applied { at, evidence: there(evidence)?, by, word: there(word)?, reply: there(reply)?, ruling })
}

fn not_applied(value: Value<'_>) -> DecodeResult<NotApplied> {
    let (mut at, mut why, mut reply, mut ruling) = (At(0), None, None, None);
    each_field!(value {
        1 => at = self::at(value)?,
        2 => why = Some(why_not_applied(value)?),
        3 => reply = Some(self::reply(value)?),
        4 => ruling = Some(self::ruling(value)?),
    });
    Ok(NotApplied { at, why: there(why)?, reply: there(reply)?, ruling })
}

fn why_not_applied(value: Value<'_>) -> DecodeResult<NotAppliedWhy> {
    match one_of(value)? {
        (1, value) => value.text().map(NotAppliedWhy::Refused),
        (2, value) => value.text().map(NotAppliedWhy::NeverSent),
        (3, _) => Ok(NotAppliedWhy::AwaitingInput),
        (4, _) => Ok(NotAppliedWhy::Cancelled),
        (5, _) => Ok(NotAppliedWhy::Probed),
        (6, _) => Ok(NotAppliedWhy::Ruled),
        (7, value) => value.text().map(NotAppliedWhy::Refuted),
        (8, value) => value.text().map(NotAppliedWhy::Reported),
        _ => Err(DecodeError::Unknown),
    }
}

fn in_doubt(value: Value<'_>) -> DecodeResult<InDoubt> {
    let (mut since, mut why) = (At(0), None);
    each_field!(value {
        1 => since = at(value)?,
        2 => why = Some(doubt(value)?),
    });
    Ok(InDoubt { since, why: there(why)? })
}

fn doubt(value: Value<'_>) -> DecodeResult<Doubt> {
    match one_of(value)? {
        (1, _) => Ok(Doubt::HolderDied),
        (7, _) => Ok(Doubt::HolderSilent),
        (2, _) => Ok(Doubt::DeadlinePassed),
        (3, value) => value.text().map(Doubt::Ambiguous),
        (4, _) => Ok(Doubt::Epoch),
        (5, value) => reason(value).map(Doubt::Reopened),
        (6, _) => Ok(Doubt::WrittenByNewer),
        _ => Err(DecodeError::Unknown),
    }
}

fn reply(value: Value<'_>) -> DecodeResult<Reply> {
    match one_of(value)? {
        (1, _) => Ok(Reply::Kept),
        (2, _) => Ok(Reply::Unknown),
        (3, value) => value.number().map(Reply::TooLarge),
        _ => Err(DecodeError::Unknown),
    }
}

fn ruling(value: Value<'_>) -> DecodeResult<Ruling> {
    let (mut by, mut why, mut at) = (None, None, At(0));
    each_field!(value {
        1 => by = Some(value.text()?),
        2 => why = Some(reason(value)?),
        3 => at = self::at(value)?,
    });
    Ok(Ruling { by: there(by)?, reason: there(why)?, at })
}
