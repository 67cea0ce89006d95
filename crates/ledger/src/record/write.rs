//! From an effect to its bytes: `spec/record.proto`, top to bottom.

use super::numbers::Numbered;
use super::wire::Out;
use semel_core::effect::{
    Attempt, CallMark, Doubt, Effect, Facts, LastSend, NotAppliedWhy, Occurrence, PreviousSuccess, Reply,
    Ruling, State,
};
use semel_core::identity::{Marks, PathMark};
use semel_core::ids::Run;
use semel_core::time::Uptime;
use semel_core::undo::BodyForm;
use semel_core::undo::{Undo, UndoBody, UndoCall, Undoes, Undone};

/// The size of most records, so that writing one allocates once.
const BYTES_USUAL: usize = 512;

pub(super) fn effect(effect: &Effect) -> Vec<u8> {
    let Effect {
        id,
        occurrence,
        facts,
        marks,
        attempts,
        state,
        opened_at,
        epoch,
        delivered_at,
        undo,
        undone,
        repeat_permitted,
        refusals,
    } = effect;
    let mut out = Out::with_capacity(BYTES_USUAL);
    out.bytes(1, &id.0.to_be_bytes());
    out.message(2, |out| self::occurrence(out, occurrence));
    out.message(3, |out| self::facts(out, facts));
    out.message(4, |out| self::marks(out, marks));
    for attempt in attempts {
        out.message(5, |out| self::attempt(out, attempt));
    }
    out.number(7, opened_at.0);
    out.number(8, *epoch);
    if let Some(at) = delivered_at {
        out.number(9, at.0);
    }
    if let Some(undo) = undo {
        out.message(10, |out| self::undo(out, undo));
    }
    if let Some(Undone { by, at }) = undone {
        out.message(11, |out| {
            out.bytes(1, &by.0.to_be_bytes());
            out.number(2, at.0);
        });
    }
    ruling(&mut out, 12, repeat_permitted.as_ref());
    if *refusals != 0 {
        out.number(13, *refusals);
    }
    // Last, so that no record that was cut off passes for a whole one.
    out.message(6, |out| self::state(out, state));
    out.finish()
}

fn occurrence(out: &mut Out, occurrence: &Occurrence) {
    let Occurrence { number, reason, earlier, calls, before, by_permission } = occurrence;
    out.number(1, u64::from(*number));
    if let Some(reason) = reason {
        out.text(2, reason.as_str());
    }
    for (number, reason) in earlier {
        out.message(3, |out| {
            out.number(1, u64::from(*number));
            out.text(2, reason.as_str());
        });
    }
    for (number, CallMark(mark)) in calls {
        out.message(4, |out| {
            out.number(1, u64::from(*number));
            out.number(2, *mark);
        });
    }
    if let Some(PreviousSuccess { number, delivered_at, uptime }) = before {
        out.message(5, |out| {
            out.number(1, u64::from(*number));
            out.number(2, delivered_at.0);
            self::uptime(out, 3, uptime.as_ref());
        });
    }
    out.flag(6, *by_permission);
}

fn facts(out: &mut Out, facts: &Facts) {
    let Facts {
        action,
        class,
        tier,
        tenant,
        run,
        digest,
        caller_key,
        by_joining_key,
        subject,
        rule,
        undoes,
        principal,
        upstream_key,
        authority,
    } = facts;
    out.text(1, action);
    out.number(2, class.number());
    out.number(3, tier.number());
    out.text(4, tenant);
    self::run(out, 5, run.as_ref());
    out.bytes(6, &digest.0.0);
    out.flag(7, *caller_key);
    out.text(8, subject);
    out.text(9, rule);
    if let Some(Undoes { effect, by, reason }) = undoes {
        out.message(10, |out| {
            out.bytes(1, &effect.0.to_be_bytes());
            out.text(2, by);
            out.text(3, reason.as_str());
        });
    }
    if *principal != 0 {
        out.fixed(12, *principal);
    }
    if *upstream_key != 0 {
        out.fixed(13, *upstream_key);
    }
    out.flag(14, *by_joining_key);
    if *authority != 0 {
        out.fixed(15, *authority);
    }
}

fn undo(out: &mut Out, undo: &Undo) {
    match undo {
        Undo::Not(why) => out.text(1, why),
        Undo::By(UndoCall::Mcp { server, tool, arguments }) => out.message(2, |out| {
            out.text(1, server);
            out.text(2, tool);
            out.text(3, arguments);
        }),
        Undo::By(UndoCall::Http { method, url, body }) => out.message(3, |out| {
            out.text(1, method);
            out.text(2, url);
            match body {
                Some(UndoBody { form: BodyForm::Json, members }) => out.text(3, members),
                Some(UndoBody { form: BodyForm::Urlencoded, members }) => out.text(4, members),
                None => {}
            }
        }),
        Undo::By(UndoCall::Command { argv, cwd }) => out.message(4, |out| {
            for word in argv {
                out.text(1, word);
            }
            out.text(2, cwd);
        }),
    }
}

fn run(out: &mut Out, field: u64, run: Option<&Run>) {
    if let Some(Run { id, named }) = run {
        out.message(field, |out| {
            out.text(1, id);
            out.flag(2, *named);
        });
    }
}

fn marks(out: &mut Out, marks: &Marks) {
    let Marks { action, fingerprint, content, paths, content_paths, volatile } = marks;
    out.fixed(1, *action);
    out.bytes(2, &fingerprint.0);
    if let Some(content) = content {
        out.bytes(3, &content.0);
    }
    for (field, marks) in [(4, paths), (5, content_paths)] {
        for PathMark { path, kind, mark } in marks {
            out.message(field, |out| {
                out.text(1, path);
                out.number(2, kind.number());
                out.fixed(3, *mark);
            });
        }
    }
    if let Some(volatile) = volatile {
        out.fixed(6, *volatile);
    }
}

fn attempt(out: &mut Out, attempt: &Attempt) {
    let Attempt {
        number,
        nonce,
        owner,
        claimed_at,
        deadline,
        last_send,
        verdict,
        resend,
        call_id,
        run,
        epoch,
        gone_at,
        trace,
        uptime,
    } = attempt;
    out.number(1, u64::from(number.0));
    out.bytes(2, &nonce.0.to_be_bytes());
    out.bytes(3, &owner.0.to_be_bytes());
    out.number(4, claimed_at.0);
    out.number(5, deadline.0);
    out.message(6, |out| match last_send {
        LastSend::By(at) => out.number(1, at.0),
        LastSend::WhileAlive => out.flag(2, true),
    });
    out.number(7, verdict.number());
    out.flag(8, *resend);
    if let Some(call_id) = call_id {
        out.text(9, call_id);
    }
    self::run(out, 10, run.as_ref());
    out.number(11, *epoch);
    if let Some(at) = gone_at {
        out.number(12, at.0);
    }
    if let Some(trace) = trace {
        out.bytes(13, &trace.to_be_bytes());
    }
    self::uptime(out, 14, uptime.as_ref());
}

fn uptime(out: &mut Out, field: u64, uptime: Option<&Uptime>) {
    if let Some(Uptime { boot, micros }) = uptime {
        out.message(field, |out| {
            out.number(1, u64::from(*boot));
            out.number(2, *micros);
        });
    }
}

fn state(out: &mut Out, state: &State) {
    match state {
        State::InFlight { attempt } => out.number(1, u64::from(attempt.0)),
        State::Applied(applied) => out.message(2, |out| {
            out.number(1, applied.at.0);
            out.number(2, applied.evidence.number());
            if let Some(by) = applied.by {
                out.number(3, u64::from(by.0));
            }
            out.number(4, applied.word.number());
            reply(out, 5, applied.reply);
            ruling(out, 6, applied.ruling.as_ref());
        }),
        State::NotApplied(not_applied) => out.message(3, |out| {
            out.number(1, not_applied.at.0);
            out.message(2, |out| match &not_applied.why {
                NotAppliedWhy::Refused(why) => out.text(1, why),
                NotAppliedWhy::NeverSent(why) => out.text(2, why),
                NotAppliedWhy::AwaitingInput => out.flag(3, true),
                NotAppliedWhy::Cancelled => out.flag(4, true),
                NotAppliedWhy::Probed => out.flag(5, true),
                NotAppliedWhy::Ruled => out.flag(6, true),
                NotAppliedWhy::Refuted(what) => out.text(7, what),
                NotAppliedWhy::Reported(what) => out.text(8, what),
            });
            reply(out, 3, not_applied.reply);
            ruling(out, 4, not_applied.ruling.as_ref());
        }),
        State::InDoubt(doubt) => out.message(4, |out| {
            out.number(1, doubt.since.0);
            out.message(2, |out| match &doubt.why {
                Doubt::HolderDied => out.flag(1, true),
                Doubt::HolderSilent => out.flag(7, true),
                Doubt::DeadlinePassed => out.flag(2, true),
                Doubt::Ambiguous(why) => out.text(3, why),
                Doubt::Epoch => out.flag(4, true),
                Doubt::Reopened(reason) => out.text(5, reason.as_str()),
                Doubt::WrittenByNewer => out.flag(6, true),
            });
        }),
    }
}

fn reply(out: &mut Out, field: u64, reply: Reply) {
    out.message(field, |out| match reply {
        Reply::Kept => out.flag(1, true),
        Reply::Unknown => out.flag(2, true),
        Reply::TooLarge(bytes) => out.number(3, bytes),
    });
}

fn ruling(out: &mut Out, field: u64, ruling: Option<&Ruling>) {
    if let Some(Ruling { by, reason, at }) = ruling {
        out.message(field, |out| {
            out.text(1, by);
            out.text(2, reason.as_str());
            out.number(3, at.0);
        });
    }
}
