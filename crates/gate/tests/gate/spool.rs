//! Answers that the ledger did not take, and where they wait.

use crate::house::*;
use semel_core::answer::{Code, OutcomeWord};
use semel_core::ids::Reason;
use semel_core::outcome::Outcome;
use semel_core::policy::Mode;
use semel_gate::clock::{Clock, block_on};
use semel_gate::upstream::Sent;
use semel_gate::{BeginAnswer, ClaimHandle, ClaimHolder, Gate, GivenReply, Passed, SettleAnswer, Settlement};
use semel_ledger::memory::{InjectedFault, MemoryStore};
use semel_ledger::rulings::RulingVerdict;
use semel_testkit::simulation::executor::Process;
use semel_testkit::simulation::holders::SharedHolders;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

const ONE: Process = 1;
const TWO: Process = 2;

fn fails(memory: &MemoryStore) {
    (0..10_000).for_each(|_| memory.inject(InjectedFault::NotWritten));
}

impl House {
    /// The files that wait for the ledger.
    fn spooled(&self) -> Vec<PathBuf> {
        let base = self.spool.as_ref().expect("a house with a spool");
        let ledgers = fs::read_dir(base.path()).expect("it is there").map(|entry| entry.unwrap().path());
        ledgers.flat_map(|ledger| fs::read_dir(ledger).unwrap()).map(|entry| entry.unwrap().path()).collect()
    }

    /// A process sends, and its ledger cannot be written from then on.
    fn spools(&self, wish: &Wish, outcome: Outcome) -> (Arc<Gate>, SharedHolders, Script, Passed) {
        let (gate, holders) = self.process(ONE, Mode::Guard);
        let memory = Arc::clone(&self.memory);
        let script = Script::answers([outcome]).while_sending(move || fails(&memory));
        let passed = self.pass(&gate, wish, &script);
        (gate, holders, script, passed)
    }

    fn journal_of(&self) -> Vec<String> {
        self.journal().into_iter().map(|line| line.kind).collect()
    }
}

#[test]
fn an_answer_that_the_ledger_did_not_take_is_told_once_it_is_on_the_disk() {
    let (house, wish) = (House::with_spool(), Wish::consequential());
    let (_, holders, script, passed) = house.spools(&wish, success());
    assert!(passed.answer.ok && passed.answer.outcome == OutcomeWord::Ran && passed.delivery.is_none());
    assert!(passed.answer.reason.expect("a reason").contains("recorded on this host"));
    let files = house.spooled();
    assert_eq!(files.len(), 1);
    assert_eq!(fs::metadata(&files[0]).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(house.effect().state.word(), "in flight");
    // The process dies, and the next one finds what it left before it looks at the death.
    holders.release_lock();
    house.memory.recover();
    let next = house.pass(&house.process(TWO, Mode::Guard).0, &wish, &script);
    assert_eq!(next.answer.outcome, OutcomeWord::Replayed);
    assert_eq!(next.reply, GivenReply::Recorded(b"reply 1".to_vec()));
    assert_eq!((script.sent(), house.journal_of()), (1, vec!["claimed".into(), "settled_applied".into()]));
    let base = house.spool.as_ref().unwrap().path();
    assert_eq!(fs::read_dir(base).unwrap().count(), 0, "nothing waits, so there is no directory");
}

/// The same without a spool: this is what it is for.
#[test]
fn without_a_spool_the_answer_dies_with_its_process() {
    let (house, wish) = (House::new(), Wish::consequential());
    let (_, holders, script, passed) = house.spools(&wish, success());
    assert_eq!(code(&passed), Some(Code::InDoubt));
    holders.release_lock();
    house.memory.recover();
    let next = house.pass(&house.process(TWO, Mode::Guard).0, &wish, &script);
    assert_eq!((code(&next), script.sent()), (Some(Code::InDoubt), 1));
}

/// A server that is gone without a word takes far longer than a caller's patience to be given up.
#[test]
fn an_answer_is_on_the_disk_when_patience_ends_in_the_middle_of_a_try() {
    for lands_first in [true, false] {
        let (house, wish) = (House::with_spool(), Wish::consequential());
        let (gate, holders) = house.process(ONE, Mode::Guard);
        let script = Script::succeeds().while_sending(house.holds_commits());
        let began = house.clock.elapsed();
        let passed = house.pass(&gate, &wish, &script);
        assert_eq!(house.clock.elapsed() - began, seconds(5));
        assert!(passed.answer.ok && passed.answer.reason.is_some_and(|reason| reason.contains("this host")));
        assert_eq!((house.spooled().len(), house.effect().state.word()), (1, "in flight"));
        // A program that ends does not wait for it either.
        let ending = Arc::clone(&gate);
        house.run(async move { ending.settle_pending().await });
        assert_eq!((house.clock.elapsed() - began, house.spooled().len()), (seconds(10), 1));
        holders.release_lock();
        let held = house.answers_again();
        assert_eq!(held.len(), 2, "of the call, and of the program that ended");
        if lands_first {
            house.lands_late(held.clone());
        }
        let next = house.pass(&house.process(TWO, Mode::Guard).0, &wish, &script);
        assert_eq!(next.reply, GivenReply::Recorded(b"reply 1".to_vec()));
        house.lands_late(held);
        assert_eq!((script.sent(), house.spooled().len()), (1, 0));
        assert_eq!(house.journal_of(), ["claimed", "settled_applied"]);
    }
}

#[test]
fn nothing_of_an_intent_starts_while_its_answer_cannot_be_imported() {
    let (house, wish) = (House::with_spool(), Wish::consequential());
    let (_, _, script, passed) = house.spools(&wish, refusal());
    assert_eq!(code(&passed), Some(Code::UpstreamRefused));
    let (next, _) = house.process(TWO, Mode::Guard);
    assert!(house.try_pass(&next, &wish, &script).is_err(), "the ledger cannot be written yet");
    assert_eq!((script.sent(), house.spooled().len()), (1, 1));
    house.memory.recover();
    assert_eq!(code(&house.pass(&next, &wish, &script)), Some(Code::UpstreamRefused));
    assert_eq!((script.sent(), house.spooled().len()), (2, 0), "a refusal may be tried again");
    assert_eq!(house.journaled("settled_not_applied"), 2);
}

/// A client that sends by itself brings its answer once, and may go.
#[test]
fn an_answer_that_a_client_brings_is_kept_too() {
    let (house, wish) = (House::with_spool(), Wish::consequential());
    let gate = house.gate();
    let BeginAnswer::Run(taken) = house.run(begin(&gate, &wish, 7, &house.clock)) else {
        panic!("it may send")
    };
    fails(&house.memory);
    let sent = Sent { reply: Some(b"done".to_vec()), ..Sent::of(success()) };
    let ClaimHandle { effect, attempt, nonce, .. } = *taken;
    let settlement = Settlement { effect, attempt, nonce, holder: ClaimHolder::Client, sent, undo: None };
    let settling = Arc::clone(&gate);
    let settled = house.run(async move { settling.settle(settlement).await.expect("it is on the disk") });
    let SettleAnswer::Recorded(passed) = settled else { panic!("{settled:?}") };
    assert!(passed.answer.ok && passed.answer.reason.is_some_and(|reason| reason.contains("this host")));
    house.memory.recover();
    let next = house.pass(&house.process(TWO, Mode::Guard).0, &wish, &Script::succeeds());
    assert_eq!(next.reply, GivenReply::Recorded(b"done".to_vec()));
    assert_eq!((house.journaled("settled_applied"), house.spooled().len()), (1, 0));
}

#[test]
fn a_server_imports_everything_that_waits() {
    let house = House::with_spool();
    let wishes = ["ann", "bob", "cid"].map(|customer| {
        Wish::consequential().with_arguments(&format!(r#"{{"args":{{"customer":"{customer}"}}}}"#))
    });
    for wish in &wishes {
        assert!(house.spools(wish, success()).3.answer.ok);
        house.memory.recover();
    }
    let server = house.process(TWO, Mode::Guard).0;
    let settling = Arc::clone(&server);
    house.run(async move { settling.settle_pending().await });
    assert_eq!((house.spooled().len(), house.journaled("settled_applied")), (0, 3));
    for wish in &wishes {
        assert_eq!(house.pass(&server, wish, &Script::succeeds()).answer.outcome, OutcomeWord::Replayed);
    }
}

#[test]
fn a_file_that_a_crash_cut_short_or_a_disk_changed_leaves_a_doubt() {
    let (house, wish) = (House::with_spool(), Wish::consequential());
    let (_, holders, script, _) = house.spools(&wish, success());
    holders.release_lock();
    let file = house.spooled().remove(0);
    let whole = fs::read(&file).unwrap();
    let cut = (0..whole.len()).step_by(7).map(|length| whole[..length].to_vec());
    let flipped = (0..whole.len()).step_by(11).map(|place| {
        let mut bytes = whole.clone();
        bytes[place] ^= 1;
        bytes
    });
    let gate = house.process(TWO, Mode::Guard).0;
    for damaged in cut.chain(flipped) {
        fs::write(&file, damaged).unwrap();
        let report = gate.ledger.spooled().unwrap();
        assert_eq!((report.waiting.len(), &report.damaged[..]), (0, &[file.clone()][..]));
    }
    house.memory.recover();
    assert_eq!(code(&house.pass(&gate, &wish, &script)), Some(Code::InDoubt));
    assert_eq!((script.sent(), house.spooled().len()), (1, 1));
    // Whole again, it still clears the doubt.
    fs::write(&file, whole).unwrap();
    assert_eq!(house.pass(&gate, &wish, &script).answer.outcome, OutcomeWord::Replayed);
    assert_eq!(script.sent(), 1);
}

#[test]
fn a_deletion_that_a_power_cut_takes_back_settles_nothing_twice() {
    let (house, wish) = (House::with_spool(), Wish::consequential());
    let (_, _, script, _) = house.spools(&wish, success());
    house.memory.recover();
    let file = house.spooled().remove(0);
    let bytes = fs::read(&file).unwrap();
    let gate = house.process(TWO, Mode::Guard).0;
    for _ in 0..3 {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, &bytes).unwrap();
        assert_eq!(house.pass(&gate, &wish, &script).answer.outcome, OutcomeWord::Replayed);
    }
    assert_eq!((script.sent(), house.journaled("settled_applied"), house.spooled().len()), (1, 1, 0));
}

/// Another host cannot see the file. Its person ruled wrongly, and it sent again: that is told aloud.
#[test]
fn an_answer_that_comes_after_its_record_has_moved_on_is_late() {
    let (house, wish) = (House::with_spool(), Wish::consequential());
    let (gate, holders, script, _) = house.spools(&wish, success());
    holders.release_lock();
    house.memory.recover();
    let (elsewhere, _) = house.process_on(TWO, Mode::Guard, None);
    assert_eq!(code(&house.pass(&elsewhere, &wish, &script)), Some(Code::InDoubt));
    let reason = Reason::parse("nothing there").unwrap();
    let ruling = semel_core::effect::Ruling { by: "ann".into(), reason, at: house.clock.now() };
    block_on(elsewhere.ledger.resolve(house.effect().id, RulingVerdict::NotApplied, ruling)).unwrap();
    assert!(house.pass(&elsewhere, &wish, &script).answer.ok);
    assert_eq!(script.sent(), 2);
    house.run(async move { gate.settle_pending().await });
    assert_eq!((house.journaled("duplicate_detected"), house.spooled().len()), (1, 0));
}

#[test]
fn an_answer_whose_claim_the_ledger_has_lost_begins_an_epoch() {
    let (house, wish) = (House::with_spool(), Wish::consequential());
    let old = house.memory.snapshot();
    let (_, _, script, passed) = house.spools(&wish, success());
    assert!(passed.answer.ok);
    house.memory.recover();
    house.memory.fail_over_to(&old);
    let gate = house.process(TWO, Mode::Guard).0;
    assert_eq!(code(&house.pass(&gate, &wish, &script)), Some(Code::InDoubt), "unseen is not unsent");
    assert_eq!((script.sent(), house.journaled("late_answer"), house.spooled().len()), (1, 1, 0));
}

#[test]
fn a_ledger_never_imports_what_waits_for_another() {
    let (house, other) = (House::with_spool(), House::new());
    let wish = Wish::consequential();
    house.spools(&wish, success());
    let base = house.spool.as_ref().unwrap().path();
    let stranger = semel_ledger::Ledger::new(
        Arc::clone(&other.memory) as Arc<dyn semel_ledger::store::Store>,
        Arc::new(other.process(TWO, Mode::Guard).1),
        other.random.clone(),
        semel_core::digest::Secret::new([8; 32]),
    )
    .spooled_below(base);
    assert_eq!(stranger.spooled().unwrap(), Default::default());
    block_on(stranger.import_all(other.clock.now())).unwrap();
    assert_eq!((house.spooled().len(), other.journal().len()), (1, 0));
    // Not even if somebody puts it there.
    let (theirs, file) =
        (base.join(stranger.secret().mac("spool", &[]).to_string()), house.spooled().remove(0));
    fs::create_dir(&theirs).unwrap();
    fs::copy(&file, theirs.join(file.file_name().unwrap())).unwrap();
    assert_eq!(stranger.spooled().unwrap().damaged.len(), 1);
    block_on(stranger.import_all(other.clock.now())).unwrap();
    assert_eq!(other.journal().len(), 0);
}

#[test]
fn a_spool_that_is_full_takes_no_more_and_says_so() {
    let (house, wish) = (House::with_spool(), Wish::consequential());
    house.spools(&wish, success());
    let file = house.spooled().remove(0);
    let other = wish.with_arguments(r#"{"args":{"customer":"bob"}}"#);
    house.memory.recover();
    (1..1_000).for_each(|number| fs::write(file.with_file_name(format!("{number}")), b"").unwrap());
    let (gate, _, script, passed) = house.spools(&other, success());
    assert_eq!((code(&passed), script.sent()), (Some(Code::InDoubt), 1));
    // In memory, as long as its process lives.
    (1..1_000).for_each(|number| fs::remove_file(file.with_file_name(format!("{number}"))).unwrap());
    let settling = Arc::clone(&gate);
    house.run(async move { settling.settle_pending().await });
    assert_eq!(house.spooled().len(), 2, "there is room on the disk again, though not in the ledger");
    house.memory.recover();
    house.run(async move { gate.settle_pending().await });
    assert_eq!(house.journaled("settled_applied"), 2);
}
