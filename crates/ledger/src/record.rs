//! An effect as bytes (`spec/record.cddl`), and back. The numbers of the fields stand on the types in core. A record of
//! a newer semel reads as in doubt and is never overwritten.

use crate::checksum;
use crate::store::{Body, Index, Part, Revision, Row};
use minicbor::Decode;
use semel_core::digest::{Digest, Secret};
use semel_core::effect::{Attempt, Doubt, Effect, Facts, InDoubt, Occurrence, Ruling, State};
use semel_core::identity::Marks;
use semel_core::ids::EffectId;
use semel_core::intent::{Intent, run_key};
use semel_core::time::At;
use semel_core::undo::{Undo, Undone};
use std::sync::Arc;

/// An effect with what the store keeps around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEffect {
    pub effect: Effect,
    pub index: Index,
    /// Of its own row.
    pub revision: Revision,
    /// A newer semel wrote something that this one does not know: it may be read, not changed.
    pub newer: bool,
    /// [`Body::fixed`], as it lies in the store.
    pub(crate) fixed: Arc<[u8]>,
}

/// The lowest format whose readers understand all of a part: its first byte.
const FORMAT: u8 = 1;

/// The size of most parts, so that writing one allocates once.
const BYTES_USUAL: usize = 512;

const TO_MEMORY: &str = "memory takes all that is written to it";

/// The parts of an effect as they are read. They are written as tuples of the same members in the same order.
#[derive(Decode)]
struct FixedPart {
    #[n(0)]
    id: EffectId,
    #[n(1)]
    occurrence: Occurrence,
    #[n(2)]
    facts: Facts,
    #[n(3)]
    marks: Marks,
    #[n(4)]
    opened_at: At,
}

#[derive(Decode)]
struct StatePart {
    #[n(0)]
    attempts: Vec<Attempt>,
    #[n(1)]
    state: State,
    #[n(2)]
    epoch: u64,
    #[n(3)]
    undo: Option<Undo>,
    #[n(4)]
    undone: Option<Undone>,
    #[n(5)]
    repeat_permitted: Option<Ruling>,
    #[n(6)]
    refusals: u64,
}

#[derive(Decode)]
struct DeliveryPart {
    #[n(0)]
    delivered_at: At,
}

impl StoredEffect {
    /// The effect of a row that is about to be inserted.
    pub fn first(key: Digest, index: Index, effect: Effect) -> StoredEffect {
        let fixed = seal(&fixed_place(key, &index, effect.occurrence.number), fixed_part(&effect)).into();
        StoredEffect { effect, index, revision: Revision::ABSENT, newer: false, fixed }
    }

    /// The same row after a change, and the parts that it changes.
    pub fn after(&self, key: Digest, index: Index, effect: Effect) -> (StoredEffect, Part) {
        let (old, new) = (&self.effect, &effect);
        let fixed = |of: &Index| (of.effect, of.run, of.family, of.alike, of.content, of.opened_at);
        let same_fixed = Arc::ptr_eq(&old.facts, &new.facts)
            && Arc::ptr_eq(&old.marks, &new.marks)
            && (old.id, &old.occurrence) == (new.id, &new.occurrence)
            && fixed(&self.index) == fixed(&index);
        // Nothing of a damaged one is written again as it was.
        if !same_fixed || old.is_damaged() {
            let first = StoredEffect::first(key, index, effect);
            return (StoredEffect { revision: self.revision, ..first }, Part::Fixed);
        }
        let part = if state_members(old) == state_members(new) { Part::Delivery } else { Part::State };
        (StoredEffect { effect, index, fixed: Arc::clone(&self.fixed), ..*self }, part)
    }

    pub fn body(&self, key: Digest) -> Body {
        let number = self.effect.occurrence.number;
        let state = seal(&state_place(key, &self.index, number), state_part(&self.effect));
        let delivery = delivery_part(&self.effect).map(|part| seal(&delivery_place(key, number), part));
        Body { fixed: Arc::clone(&self.fixed), state, delivery: delivery.unwrap_or_default() }
    }
}

fn fixed_part(effect: &Effect) -> Vec<u8> {
    let Effect { id, occurrence, facts, marks, opened_at, .. } = effect;
    encoded((id, occurrence, &**facts, &**marks, opened_at))
}

type StateMembers<'e> =
    (&'e Vec<Attempt>, &'e State, u64, &'e Option<Undo>, &'e Option<Undone>, &'e Option<Ruling>, u64);

fn state_members(effect: &Effect) -> StateMembers<'_> {
    let Effect { attempts, state, epoch, undo, undone, repeat_permitted, refusals, .. } = effect;
    (attempts, state, *epoch, undo, undone, repeat_permitted, *refusals)
}

fn state_part(effect: &Effect) -> Vec<u8> {
    encoded(state_members(effect))
}

fn delivery_part(effect: &Effect) -> Option<Vec<u8>> {
    effect.delivered_at.map(|at| encoded((at,)))
}

fn encoded(part: impl minicbor::Encode<()>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(BYTES_USUAL);
    bytes.push(FORMAT);
    minicbor::encode(part, &mut bytes).expect(TO_MEMORY);
    bytes
}

/// The rest of a row, for the checksums of its parts.
fn fixed_place(key: Digest, index: &Index, ordinal: u32) -> Vec<u8> {
    let Index { effect, run, family, alike, content, opened_at, .. } = index;
    minicbor::to_vec((key, ordinal, effect, run, family, alike, content, opened_at)).expect(TO_MEMORY)
}

fn state_place(key: Digest, index: &Index, ordinal: u32) -> Vec<u8> {
    let Index { open, owner, changed_at, .. } = index;
    minicbor::to_vec((key, ordinal, open, owner, changed_at)).expect(TO_MEMORY)
}

fn delivery_place(key: Digest, ordinal: u32) -> Vec<u8> {
    minicbor::to_vec((key, ordinal)).expect(TO_MEMORY)
}

fn seal(place: &[u8], part: Vec<u8>) -> Vec<u8> {
    checksum::seal(&[place], part)
}

/// A part, and whether all of it is known here. `None`: it is damaged.
fn open<'b, P: Decode<'b, ()>>(place: &[u8], sealed: &'b [u8]) -> Option<(Option<P>, bool)> {
    let (format, part) = checksum::open(&[place], sealed)?.split_first()?;
    Some((minicbor::decode(part).ok(), *format == FORMAT))
}

/// Reads a record. A damaged one is in doubt, for whatever it said may have happened.
pub fn decode(row: Row) -> StoredEffect {
    let Row { key, ordinal, revision, index, body, .. } = row;
    let read = || {
        let (fixed, knows_fixed) = open::<FixedPart>(&fixed_place(key, &index, ordinal), &body.fixed)?;
        let (state, knows_state) = open::<StatePart>(&state_place(key, &index, ordinal), &body.state)?;
        let FixedPart { id, occurrence, facts, marks, opened_at } = fixed?;
        let newer = !knows_fixed || !knows_state || state.is_none();
        let doubt = State::InDoubt(InDoubt { since: index.changed_at, why: Doubt::WrittenByNewer });
        let StatePart { attempts, state, epoch, undo, undone, repeat_permitted, refusals } =
            state.filter(|_| !newer).unwrap_or(StatePart {
                attempts: Vec::new(),
                state: doubt,
                epoch: 0,
                undo: None,
                undone: None,
                repeat_permitted: None,
                refusals: 0,
            });
        // Without its mark, as with a damaged one, an effect is undelivered.
        let delivery = open::<DeliveryPart>(&delivery_place(key, ordinal), &body.delivery);
        let delivered_at = delivery.and_then(|(part, _)| part).map(|part| part.delivered_at);
        let (facts, marks) = (Arc::new(facts), Arc::new(marks));
        let effect = Effect {
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
        };
        Some((effect, newer))
    };
    let (effect, newer) = read().unwrap_or_else(|| {
        // One of the two may be what is damaged, and earlier than it was.
        let since = index.opened_at.max(index.changed_at);
        (Effect::unreadable(EffectId(index.effect), ordinal, since), false)
    });
    StoredEffect { effect, index, revision, newer, fixed: body.fixed }
}

/// The columns of an effect's row.
pub fn index_of_first(intent: &Intent, effect: &Effect) -> Index {
    let index = Index {
        effect: effect.id.0,
        run: intent.run_key,
        family: intent.family,
        alike: intent.alike.key(),
        content: intent.alike.content(),
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
pub(crate) mod tests {
    use super::*;
    use minicbor::{Decoder, Encoder};
    use semel_core::answer::EffectWord;
    use semel_core::digest::{Digest, Secret};
    use semel_core::effect::Facts;
    use semel_core::effect::{
        Applied, CallMark, Evidence, LastSend, NotApplied, NotAppliedWhy, Occurrence, PreviousSuccess, Reply,
        Ruling,
    };
    use semel_core::ids::{AttemptNo, EffectId, Nonce, OwnerId, Reason, Run};
    use semel_core::intent::Ask;
    use semel_core::json::Json;
    use semel_core::lifecycle::NewAttempt;
    use semel_core::policy::{ActionFacts, Policy};
    use semel_core::time::{At, Uptime};
    use semel_core::undo::BodyForm;
    use semel_core::undo::{Undo, UndoBody, UndoCall, Undoes, Undone};
    use std::sync::Arc;

    pub(crate) fn row() -> (Effect, Row) {
        let rule = Policy::default().rule_for(&ActionFacts::new("fn:charge", &Json::Null));
        let ask = Ask::of(("t", "p"), "fn:charge", &Json::Null);
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
        let body = StoredEffect::first(key, index.clone(), effect.clone()).body(key);
        (effect, Row { key, ordinal: 1, revision: Revision(1), index, body, reply: None })
    }

    const ATTEMPTS: u64 = 0;
    const STATE: u64 = 1;

    /// The record with one member of its state written anew.
    fn changed(number: u64, bytes: &[u8]) -> Row {
        let (_, row) = row();
        sealed(row, FORMAT, |state| with_part(state, number, bytes))
    }

    fn sealed(row: Row, format: u8, change: impl Fn(&[u8]) -> Vec<u8>) -> Row {
        let place = state_place(row.key, &row.index, 1);
        let part = checksum::open(&[&place], &row.body.state).expect("a sound row");
        let state = checksum::seal(&[&place], [&[format], &*change(&part[1..])].concat());
        Row { body: Body { state, ..row.body }, ..row }
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
            fixed: String,
            state: String,
            delivery: String,
        }
        let text = include_str!("../../../spec/vectors/record.json");
        let vectors: Vec<Vector> = serde_json::from_str(text).expect("the vectors are JSON");
        for Vector { name, effect, fixed, state, delivery } in vectors {
            let hexadecimal =
                |bytes: Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            let parts =
                [fixed_part(&effect), state_part(&effect), delivery_part(&effect).unwrap_or_default()];
            assert_eq!(parts.map(hexadecimal), [fixed, state, delivery], "{name}");
            let (key, ordinal) = (Digest([1; 32]), effect.occurrence.number);
            let index = Index { open: effect.is_open(), ..row().1.index };
            let body = StoredEffect::first(key, index.clone(), effect.clone()).body(key);
            let read = decode(Row { key, ordinal, revision: Revision(1), index, body, reply: None });
            assert_eq!(read.effect, effect, "{name}");
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
            row.body = StoredEffect::first(row.key, row.index.clone(), effect.clone()).body(row.key);
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
            row.body = StoredEffect::first(row.key, row.index.clone(), effect.clone()).body(row.key);
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
        for length in 0..sound.body.fixed.len() {
            let body = Body { fixed: sound.body.fixed[..length].into(), ..sound.body.clone() };
            assert!(is_damaged(Row { body, ..sound.clone() }), "{length}");
        }
        for length in 0..sound.body.state.len() {
            let body = Body { state: sound.body.state[..length].into(), ..sound.body.clone() };
            assert!(is_damaged(Row { body, ..sound.clone() }), "{length}");
        }
        assert!(is_damaged(Row { key: Digest([2; 32]), ..sound.clone() }));
        assert!(is_damaged(Row { ordinal: 2, ..sound.clone() }));
        assert!(is_damaged(Row { index: Index { open: false, ..sound.index.clone() }, ..sound.clone() }));
        let family = Digest([3; 32]);
        assert!(is_damaged(Row { index: Index { family, ..sound.index.clone() }, ..sound.clone() }));
        assert!(!is_damaged(sound));
    }

    #[test]
    fn a_damaged_mark_is_no_mark() {
        let (effect, mut row) = row();
        let delivered = Effect { delivered_at: Some(At(7)), ..effect };
        row.body = StoredEffect::first(row.key, row.index.clone(), delivered.clone()).body(row.key);
        assert_eq!(decode(row.clone()).effect, delivered);
        row.body.delivery[1] ^= 1;
        assert_eq!(decode(row).effect, Effect { delivered_at: None, ..delivered });
    }

    #[test]
    fn a_change_names_the_parts_that_it_changes() {
        let (effect, row) = row();
        let (key, stored) = (row.key, decode(row));
        let after = |change: &dyn Fn(&mut Effect)| {
            let mut effect = effect.clone();
            // As every change in core does.
            (effect.facts, effect.marks) = (stored.effect.facts.clone(), stored.effect.marks.clone());
            change(&mut effect);
            let (after, part) = stored.after(key, stored.index.clone(), effect);
            assert_eq!(decode_body(key, &after), after.effect);
            part
        };
        assert_eq!(after(&|effect| effect.delivered_at = Some(At(7))), Part::Delivery);
        assert_eq!(after(&|effect| effect.refusals += 1), Part::State);
        let refused = |effect: &mut Effect| effect.facts = Arc::new(Facts::clone(&effect.facts));
        assert_eq!(after(&refused), Part::Fixed);
    }

    fn decode_body(key: Digest, stored: &StoredEffect) -> Effect {
        let (index, body) = (stored.index.clone(), stored.body(key));
        decode(Row { key, ordinal: 1, revision: Revision(2), index, body, reply: None }).effect
    }
}
