//! An effect as bytes (`spec/record.proto`), and back. A state of a newer semel reads as in doubt and is never
//! overwritten.
//!
//! The format is the wire format of Protocol Buffers: every language reads it, unknown fields are skipped, and a record
//! takes half the bytes of JSON. Generated types would be a second shape of every effect beside the one that
//! `lifecycle::next` works on.

mod numbers;
mod read;
mod wire;
mod write;

use crate::Error;
use crate::store::{Index, Row};
use semel_core::digest::Secret;
use semel_core::effect::{Doubt, Effect, InDoubt, State};
use semel_core::intent::{Intent, run_key};

/// An effect with what the store keeps around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEffect {
    pub effect: Effect,
    pub index: Index,
    /// A newer semel wrote a state that this one does not know: it may be read, not changed.
    pub newer: bool,
}

pub fn encode(effect: &Effect) -> Vec<u8> {
    write::effect(effect)
}

pub fn decode(row: Row) -> Result<StoredEffect, Error> {
    let doubt = || State::InDoubt(InDoubt { since: row.index.changed_at, why: Doubt::WrittenByNewer });
    match read::effect(&row.body, doubt) {
        Ok(read::Readable { effect, newer }) => Ok(StoredEffect { effect, index: row.index, newer }),
        Err(_) => Err(Error::NotRead {
            what: format!("the record of effect {} is damaged", semel_core::ids::EffectId(row.index.effect)),
        }),
    }
}

/// The columns of an effect's row.
pub fn index_of_first(intent: &Intent, effect: &Effect) -> Index {
    let index = Index {
        effect: effect.id.0,
        run: intent.run_key,
        family: intent.family,
        alike: intent.alike.key(),
        open: true,
        owner: None,
        opened_at: effect.opened_at,
        changed_at: effect.opened_at,
    };
    index_after(&index, effect)
}

pub fn index_after(index: &Index, effect: &Effect) -> Index {
    Index {
        effect: effect.id.0,
        open: effect.is_open(),
        owner: effect.open_attempt().map(|attempt| attempt.owner),
        opened_at: effect.opened_at,
        changed_at: effect.changed_at(),
        ..index.clone()
    }
}

/// The run an effect belongs to, as scans know it.
pub fn run_digest(secret: &Secret, effect: &Effect) -> Option<semel_core::digest::Digest> {
    effect.facts.run.as_ref().map(|run| run_key(secret, &effect.facts.tenant, &run.id))
}

#[cfg(test)]
mod tests {
    use super::wire::{MessageFields, Out, Value};
    use super::*;
    use crate::store::Revision;
    use semel_core::answer::EffectWord;
    use semel_core::digest::{Digest, Secret};
    use semel_core::effect::Facts;
    use semel_core::effect::{
        Applied, CallMark, Evidence, LastSend, NotApplied, NotAppliedWhy, Occurrence, PreviousSuccess, Reply,
        Ruling,
    };
    use semel_core::ids::{AttemptNo, EffectId, Nonce, OwnerId, Reason, Run};
    use semel_core::intent::{Ask, AskedBy};
    use semel_core::json::Json;
    use semel_core::lifecycle::NewAttempt;
    use semel_core::policy::{ActionFacts, Policy};
    use semel_core::time::{At, Uptime};
    use semel_core::undo::BodyForm;
    use semel_core::undo::{Undo, UndoBody, UndoCall, Undoes, Undone};
    use std::sync::Arc;

    fn row() -> (Effect, Row) {
        let rule = Policy::default().rule_for(&ActionFacts::new("fn:charge", &Json::Null));
        let ask = Ask {
            tenant: "t",
            principal: "p",
            authority: "",
            action: "fn:charge",
            arguments: &Json::Null,
            run: None,
            key: None,
            again: None,
            asked_by: AskedBy::Agent,
            call_id: None,
            live_connection: false,
            serialize_by: None,
            replay_refusals: false,
        };
        let intent = Intent::of(&ask, &rule, &Secret::new([7; 32])).expect("no key is required");
        let occurrence = semel_core::effect::Occurrence::first(None);
        let new = NewAttempt {
            nonce: Nonce(1),
            owner: OwnerId(1),
            at: At(1_000),
            deadline: At(2_000),
            last_send: semel_core::effect::LastSend::By(At(1_500)),
            call_id: None,
            run: None,
            epoch: 0,
            facts: intent.facts(&rule),
            marks: intent.marks.clone(),
            trace: None,
            uptime: Some(Uptime { boot: 7, micros: 900 }),
        };
        let effect = Effect::claimed(intent.seed(EffectId(7), occurrence, &rule), &new);
        let index = index_of_first(&intent, &effect);
        let (body, key) = (encode(&effect), Digest([1; 32]));
        (effect, Row { key, ordinal: 1, revision: Revision(1), index, body, reply: None })
    }

    /// The record with one of its fields written anew: what it was is given, and what it becomes is written.
    fn changed(field: u64, change: impl Fn(&mut Out, Value<'_>)) -> Result<StoredEffect, Error> {
        let (_, mut row) = row();
        row.body = rewritten(&row.body, field, change);
        decode(row)
    }

    fn rewritten(body: &[u8], field: u64, change: impl Fn(&mut Out, Value<'_>)) -> Vec<u8> {
        let mut out = Out::default();
        let mut fields = MessageFields(body);
        while let Some((number, value)) = fields.next().expect("a body is made of fields") {
            match value {
                _ if number == field => change(&mut out, value),
                Value::Number(value) => out.number(number, value),
                Value::Bytes(bytes) => out.bytes(number, bytes),
            }
        }
        out.finish()
    }

    fn is_newer(known: &StoredEffect) -> bool {
        let doubt =
            matches!(&known.effect.state, State::InDoubt(doubt) if doubt.why == Doubt::WrittenByNewer);
        known.newer && doubt
    }

    #[test]
    fn a_record_reads_back() {
        let (effect, row) = row();
        let known = decode(row).expect("it reads back");
        assert_eq!((known.effect, known.newer), (effect, false));
    }

    /// `spec/vectors/record.json`: what other programs may rely on.
    #[test]
    fn records_are_the_bytes_that_the_vectors_say() {
        #[derive(serde::Deserialize)]
        struct Vector {
            name: String,
            effect: Effect,
            body: String,
        }
        let text = include_str!("../../../spec/vectors/record.json");
        let vectors: Vec<Vector> = serde_json::from_str(text).expect("the vectors are JSON");
        for Vector { name, effect, body } in vectors {
            let hexadecimal: String = encode(&effect).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hexadecimal, body, "{name}");
            let read = read::effect(&encode(&effect), || unreachable!("{name} is known"));
            assert_eq!(read.expect("it reads back").effect, effect, "{name}");
        }
    }

    #[test]
    fn every_state_reads_back() {
        let reason = Reason::parse("looked it up").expect("a reason");
        let ruling = Ruling { by: "ann".into(), reason: reason.clone(), at: At(3) };
        let applied = Applied {
            at: At(2),
            evidence: Evidence::Reported,
            by: Some(AttemptNo(1)),
            word: EffectWord::Created,
            reply: Reply::TooLarge(u64::MAX),
            ruling: Some(ruling.clone()),
        };
        let not_applied = |why| {
            State::NotApplied(NotApplied {
                at: At(2),
                why,
                reply: Reply::Unknown,
                ruling: Some(ruling.clone()),
            })
        };
        let doubt = |why| State::InDoubt(InDoubt { since: At(2), why });
        let states = [
            State::InFlight { attempt: AttemptNo(7) },
            State::Applied(Applied { by: None, ruling: None, reply: Reply::Kept, ..applied.clone() }),
            State::Applied(applied),
            not_applied(NotAppliedWhy::Refused("no".into())),
            not_applied(NotAppliedWhy::NeverSent(String::new())),
            not_applied(NotAppliedWhy::AwaitingInput),
            not_applied(NotAppliedWhy::Cancelled),
            not_applied(NotAppliedWhy::Probed),
            not_applied(NotAppliedWhy::Ruled),
            not_applied(NotAppliedWhy::Refuted("x".repeat(300))),
            not_applied(NotAppliedWhy::Reported("exit 1".into())),
            doubt(Doubt::HolderDied),
            doubt(Doubt::HolderSilent),
            doubt(Doubt::DeadlinePassed),
            doubt(Doubt::Ambiguous("502".into())),
            doubt(Doubt::Epoch),
            doubt(Doubt::Reopened(reason.clone())),
            doubt(Doubt::WrittenByNewer),
        ];
        for state in states {
            let (mut effect, mut row) = row();
            effect.state = state;
            effect.delivered_at = Some(At(9));
            effect.occurrence = Occurrence {
                number: 3,
                reason: Some(reason.clone()),
                earlier: vec![(1, reason.clone()), (2, reason.clone())],
                calls: vec![(1, CallMark(7)), (2, CallMark(u64::MAX))],
                before: Some(PreviousSuccess {
                    number: 2,
                    delivered_at: At(4),
                    uptime: Some(Uptime { boot: 7, micros: 800 }),
                }),
                by_permission: true,
            };
            effect.attempts[0].call_id = Some("call_1".into());
            effect.attempts[0].run = Some(Run::named("run-1").expect("a run"));
            effect.attempts[0].gone_at = Some(At(8));
            effect.attempts[0].last_send = LastSend::WhileAlive;
            row.body = encode(&effect);
            let known = decode(row).expect("it reads back");
            assert_eq!((known.effect, known.newer), (effect, false));
        }
    }

    fn undoes() -> Vec<Undo> {
        let body = |form| Some(UndoBody { form, members: r#"{"a":1}"#.into() });
        let request = |body| UndoCall::Http { method: "POST".into(), url: "https://x/1".into(), body };
        let arguments = "{}".to_owned();
        vec![
            Undo::Not("`reply.id` is not there".into()),
            Undo::By(UndoCall::Mcp { server: "billing".into(), tool: "refund".into(), arguments }),
            Undo::By(request(None)),
            Undo::By(request(body(BodyForm::Json))),
            Undo::By(request(body(BodyForm::Urlencoded))),
            Undo::By(UndoCall::Command { argv: vec!["refund".into(), String::new()], cwd: "/w".into() }),
        ]
    }

    #[test]
    fn every_undo_and_both_links_read_back() {
        for undo in undoes() {
            let (mut effect, mut row) = row();
            effect.undo = Some(undo);
            effect.undone = Some(Undone { by: EffectId(9), at: At(5) });
            let reason = Reason::parse("wrong order").expect("a reason");
            effect.repeat_permitted = Some(Ruling { by: "ann".into(), reason: reason.clone(), at: At(6) });
            let undoes = Some(Undoes { effect: EffectId(3), by: "ann".into(), reason });
            effect.facts = Arc::new(Facts {
                undoes,
                upstream_key: 7,
                authority: 8,
                by_joining_key: true,
                ..Facts::clone(&effect.facts)
            });
            effect.refusals = 2;
            row.body = encode(&effect);
            let known = decode(row).expect("it reads back");
            assert_eq!((known.effect, known.newer), (effect, false));
        }
    }

    /// A call with a part left out is another call, so a version that does not know the part does not make it.
    #[test]
    fn an_undo_that_only_a_newer_semel_knows_reads_as_in_doubt() {
        let (mut effect, whole) = row();
        effect.undo = undoes().pop();
        let body = encode(&effect);
        let another_way = |out: &mut Out, _: Value<'_>| out.message(10, |out| out.text(99, "smoke signals"));
        let another_part = |out: &mut Out, value: Value<'_>| {
            let command =
                MessageFields(value.bytes().expect("an undo")).next().expect("a field").expect("a command").1;
            let command = [command.bytes().expect("a command"), b"\x9a\x06\x04blue"].concat();
            out.message(10, |out| out.bytes(4, &command));
        };
        for body in [rewritten(&body, 10, another_way), rewritten(&body, 10, another_part)] {
            let known = decode(Row { body, ..whole.clone() }).expect("it reads");
            assert!(is_newer(&known), "{known:?}");
        }
    }

    #[test]
    fn fields_that_only_a_newer_semel_knows_are_passed_over() {
        let added = |out: &mut Out, value: Value<'_>| {
            out.text(99, "blue");
            out.bytes(5, &[value.bytes().expect("an attempt"), b"\x9a\x06\x04blue"].concat());
        };
        let known = changed(5, added).expect("it reads");
        assert!(!known.newer);
        assert_eq!(known.effect, row().0);
    }

    #[test]
    fn a_state_that_only_a_newer_semel_knows_reads_as_in_doubt() {
        let undone = |out: &mut Out, _: Value<'_>| out.message(6, |out| out.number(99, 7));
        let known = changed(6, undone).expect("it reads");
        assert!(is_newer(&known));
        assert_eq!(known.effect.attempts.len(), 1);
    }

    #[test]
    fn a_verdict_that_only_a_newer_semel_knows_reads_as_in_doubt() {
        let undone = |out: &mut Out, value: Value<'_>| {
            let attempt = value.bytes().expect("an attempt");
            out.bytes(5, &rewritten(attempt, 7, |out, _| out.number(7, 99)));
        };
        let known = changed(5, undone).expect("it reads");
        assert!(is_newer(&known));
        assert!(known.effect.attempts.is_empty());
    }

    #[test]
    fn what_is_no_record_is_damaged_and_not_in_doubt() {
        let (_, whole) = row();
        for length in 0..whole.body.len() {
            let cut = Row { body: whole.body[..length].to_vec(), ..whole.clone() };
            assert!(matches!(decode(cut), Err(Error::NotRead { .. })), "{length}");
        }
    }
}
