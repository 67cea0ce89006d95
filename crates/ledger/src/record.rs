//! An effect as bytes (`spec/record.cddl`), and back. The numbers of the fields stand on the types in core. A record of
//! a newer semel reads as in doubt and is never overwritten.

use crate::checksum;
use crate::store::{Index, Row};
use minicbor::{Decoder, Encoder};
use semel_core::digest::{Digest, Secret};
use semel_core::effect::{Doubt, Effect, InDoubt, State};
use semel_core::ids::EffectId;
use semel_core::intent::{Intent, run_key};

/// An effect with what the store keeps around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEffect {
    pub effect: Effect,
    pub index: Index,
    /// A newer semel wrote a state that this one does not know: it may be read, not changed.
    pub newer: bool,
}

/// The lowest format whose readers understand all of a record: its first byte.
const FORMAT: u8 = 1;

/// The numbers of the parts of an effect in which a newer semel may say what this one cannot read.
const ATTEMPTS: u64 = 4;
const STATE: u64 = 5;
const UNDO: u64 = 9;

/// The size of most records, so that writing one allocates once.
const BYTES_USUAL: usize = 512;

const TO_MEMORY: &str = "memory takes all that is written to it";

pub fn encode(key: Digest, index: &Index, effect: &Effect) -> Vec<u8> {
    checksum::seal(&[&key.0, &columns(index)], unsealed(effect))
}

fn unsealed(effect: &Effect) -> Vec<u8> {
    let mut body = Vec::with_capacity(BYTES_USUAL);
    body.push(FORMAT);
    minicbor::encode(effect, &mut body).expect(TO_MEMORY);
    body
}

/// The rest of a row, for the checksum.
pub(crate) fn columns(index: &Index) -> Vec<u8> {
    let Index { effect, run, family, alike, open, owner, opened_at, changed_at } = index;
    let columns = (effect, run, family, alike, open, owner, opened_at, changed_at);
    minicbor::to_vec(columns).expect(TO_MEMORY)
}

/// Reads a record. A damaged one is in doubt, for whatever it said may have happened.
pub fn decode(row: Row) -> StoredEffect {
    let Row { key, ordinal, index, body, .. } = row;
    let known = checksum::open(&[&key.0, &columns(&index)], &body).and_then(|body| {
        let (format, body) = body.split_first()?;
        match minicbor::decode::<Effect>(body) {
            Ok(effect) if *format == FORMAT => Some((effect, false)),
            _ => {
                let doubt = InDoubt { since: index.changed_at, why: Doubt::WrittenByNewer };
                Some((decode_newer(body, &State::InDoubt(doubt)).ok()?, true))
            }
        }
    });
    match known.filter(|(effect, _)| effect.occurrence.number == ordinal) {
        Some((effect, newer)) => StoredEffect { effect, index, newer },
        None => {
            // One of the two may be what is damaged, and earlier than it was.
            let since = index.opened_at.max(index.changed_at);
            let effect = Effect::unreadable(EffectId(index.effect), ordinal, since);
            StoredEffect { effect, index, newer: false }
        }
    }
}

/// Reads the record of a newer semel, as far as this one can.
fn decode_newer(body: &[u8], doubt: &State) -> Result<Effect, minicbor::decode::Error> {
    let mut decoder = Decoder::new(body);
    let parts = decoder.array()?.ok_or_else(minicbor::decode::Error::end_of_input)?;
    let mut known = Encoder::new(Vec::with_capacity(BYTES_USUAL));
    known.array(parts).expect(TO_MEMORY);
    for part in 0..parts {
        let from = decoder.position();
        decoder.skip()?;
        match part {
            ATTEMPTS => drop(known.array(0).expect(TO_MEMORY)),
            STATE => drop(known.encode(doubt).expect(TO_MEMORY)),
            UNDO => drop(known.null().expect(TO_MEMORY)),
            _ => known.writer_mut().extend_from_slice(&body[from..decoder.position()]),
        }
    }
    minicbor::decode(known.writer())
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
        let key = Digest([1; 32]);
        let body = encode(key, &index, &effect);
        (effect, Row { key, ordinal: 1, revision: Revision(1), index, body, reply: None })
    }

    /// The record with one of its parts written anew.
    fn changed(number: u64, bytes: &[u8]) -> Row {
        let (_, row) = row();
        sealed(row, FORMAT, |body| with_part(body, number, bytes))
    }

    fn sealed(row: Row, format: u8, change: impl Fn(&[u8]) -> Vec<u8>) -> Row {
        let place = [&row.key.0[..], &columns(&row.index)];
        let body = checksum::open(&place, &row.body).expect("a sound row");
        Row { body: checksum::seal(&place, [&[format], &*change(&body[1..])].concat()), ..row }
    }

    /// A list with one of its elements written anew.
    fn with_part(list: &[u8], number: u64, bytes: &[u8]) -> Vec<u8> {
        let mut decoder = Decoder::new(list);
        let count = decoder.array().expect("a list").expect("of a known length");
        let mut out = Encoder::new(Vec::new());
        out.array(count.max(number + 1)).expect(TO_MEMORY);
        for element in 0..count.max(number + 1) {
            let from = decoder.position();
            if element < count {
                decoder.skip().expect("an element");
            }
            let old = &list[from..decoder.position()];
            let old = if old.is_empty() { b"\xf6" } else { old };
            out.writer_mut().extend_from_slice(if element == number { bytes } else { old });
        }
        out.into_writer()
    }

    fn is_newer(known: &StoredEffect) -> bool {
        let doubt =
            matches!(&known.effect.state, State::InDoubt(doubt) if doubt.why == Doubt::WrittenByNewer);
        known.newer && doubt
    }

    #[test]
    fn a_record_reads_back() {
        let (effect, row) = row();
        let known = decode(row);
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
            let hexadecimal: String = unsealed(&effect).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hexadecimal, body, "{name}");
            let read: Effect = minicbor::decode(&unsealed(&effect)[1..]).expect("it reads back");
            assert_eq!(read, effect, "{name}");
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
            row.ordinal = 3;
            row.body = encode(row.key, &row.index, &effect);
            let known = decode(row);
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
            row.body = encode(row.key, &row.index, &effect);
            let known = decode(row);
            assert_eq!((known.effect, known.newer), (effect, false));
        }
    }

    #[test]
    fn parts_that_only_a_newer_semel_knows_are_passed_over() {
        let known = decode(changed(20, b"\x64blue"));
        assert!(!known.newer);
        assert_eq!(known.effect, row().0);
    }

    #[test]
    fn a_state_an_attempt_or_a_format_that_only_a_newer_semel_knows_reads_as_in_doubt() {
        let (effect, sound) = row();
        let verdict = 6;
        let attempt = minicbor::to_vec(&effect.attempts[0]).expect(TO_MEMORY);
        let attempts = [b"\x81", &*with_part(&attempt, verdict, &[24, 99])].concat();
        let format = sealed(sound, FORMAT + 1, <[u8]>::to_vec);
        for row in [changed(STATE, b"\x82\x18\x63\x07"), changed(ATTEMPTS, &attempts), format] {
            let known = decode(row);
            assert!(is_newer(&known), "{known:?}");
            assert_eq!(known.effect.facts, effect.facts);
        }
    }

    #[test]
    fn a_record_that_was_cut_or_lies_in_another_place_reads_as_damaged_and_in_doubt() {
        let (effect, sound) = row();
        let is_damaged = |row: Row| {
            let known = decode(row);
            known.effect.is_damaged() && known.effect.id == effect.id && !known.newer
        };
        for length in 0..sound.body.len() {
            assert!(is_damaged(Row { body: sound.body[..length].to_vec(), ..sound.clone() }), "{length}");
        }
        assert!(is_damaged(Row { key: Digest([2; 32]), ..sound.clone() }));
        assert!(is_damaged(Row { ordinal: 2, ..sound.clone() }));
        assert!(is_damaged(Row { index: Index { open: false, ..sound.index.clone() }, ..sound.clone() }));
        assert!(!is_damaged(sound));
    }
}
