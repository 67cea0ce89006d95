//! Every named crash point, with every action and tier: the real binary dies or fails there, and the next call
//! finds out. Judged by the world's log.

use crate::scene::{Scene, say};
use semel_ledger::failpoint;
use semel_testkit::history::{Saw, Standing};
use semel_testkit::semel_process::{ProcessAnswer, RunCall};
use semel_testkit::world;
use std::os::unix::process::ExitStatusExt;

const QUIET: &str = "100ms";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Abort,
    Error,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tier {
    Opaque,
    Probed,
}

/// How far the first call got in the world and in the ledger when the point struck, if it was to die there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reached {
    /// Nothing is recorded and nothing was sent.
    Nothing,
    /// The claim stands, and nothing was sent.
    Claim,
    /// It happened, and the ledger only knows the claim.
    Effect,
    /// It happened, and that is recorded.
    Settlement,
}

/// What a point leaves behind for a process that dies there. The store's points are passed once for each commit of
/// a call: claim, settlement, delivery.
fn reached(point: &str, hit: u64) -> Reached {
    match (point, hit) {
        ("found.before_tables" | "found.after_tables" | "found.after_secret" | "gate.before_claim", _) => {
            Reached::Nothing
        }
        ("gate.after_claim" | "gate.before_send", _) => Reached::Claim,
        ("gate.after_send" | "gate.before_settle", _) => Reached::Effect,
        ("gate.after_settle" | "gate.before_deliver" | "gate.after_deliver", _) => Reached::Settlement,
        ("sqlite.before_begin" | "sqlite.after_begin" | "sqlite.before_commit", 1) => Reached::Nothing,
        ("sqlite.before_begin" | "sqlite.after_begin" | "sqlite.before_commit", 2) => Reached::Effect,
        ("sqlite.after_commit" | "sqlite.commit_unknown", 1) => Reached::Claim,
        (point, 2 | 3) if point.starts_with("sqlite.") => Reached::Settlement,
        _ => panic!("the crash point {point} has no line in this table"),
    }
}

/// The hits of a point to strike at; 0 strikes at every one.
fn hits(point: &str) -> &'static [u64] {
    if point.starts_with("sqlite.") { &[1, 2, 3, 0] } else { &[1, 0] }
}

#[test]
fn every_crash_point_leaves_at_most_one_change_and_no_hidden_one() {
    let (mut struck, mut doubts, mut changes) = (0, 0, 0);
    // An undo is another command; its own tests pass its points.
    // The others are not on the way of a call, and have tests of their own.
    let on_the_way =
        |point: &&&str| ["found.", "gate.", "sqlite."].iter().any(|part| point.starts_with(part));
    for point in failpoint::NAMES.iter().filter(on_the_way) {
        for action in [Action::Abort, Action::Error] {
            for hit in hits(point).iter().copied().filter(|hit| *hit != 0 || action == Action::Error) {
                for tier in [Tier::Opaque, Tier::Probed] {
                    let case = Case { point, action, hit, tier };
                    let recovered = case.run();
                    struck += 1;
                    doubts += u32::from(recovered.saw == Saw::InDoubt);
                    changes += u32::from(matches!(recovered.saw, Saw::Success { .. }));
                }
            }
        }
    }
    say(format_args!("crash points: {struck} strikes, then {changes} applied and {doubts} in doubt"));
    assert!(doubts >= 10 && changes >= 50, "the sweep is vacuous");
}

#[derive(Debug, Clone, Copy)]
struct Case {
    point: &'static str,
    action: Action,
    hit: u64,
    tier: Tier,
}

impl Case {
    /// Strikes, recovers, and judges both. Returns the answer of the recovery.
    fn run(self) -> ProcessAnswer {
        let scene = Scene::new();
        let word = if self.action == Action::Abort { "abort" } else { "error" };
        let spec = match self.hit {
            0 => format!("{}={word}", self.point),
            hit => format!("{}={word}@{hit}", self.point),
        };
        let probe_quiet = (self.tier == Tier::Probed).then_some(QUIET);
        let ask = RunCall { key: "k", probe_quiet, wait: Some("5s"), json: true, ..RunCall::default() };
        let first = scene.call(&RunCall { failpoints: Some(&spec), ..ask.clone() });
        let fired = format!("failpoint {}", self.point);
        assert!(first.stderr.contains(&fired), "{self:?}: it never struck: {first:?}");
        let before = scene.changes("k");
        match self.action {
            Action::Abort => self.judge_death(&first, before),
            Action::Error => self.judge_error(&first, before),
        }
        let standing = scene.process.standing(&ask).expect("semel starts");
        let standing = standing.unwrap_or_else(|what| panic!("{self:?}: {what}"));
        if before == 1 {
            assert_ne!(standing, Standing::Free, "{self:?}: it happened, and the ledger would run it again");
        }
        let second = scene.call(&ask);
        let after = scene.changes("k");
        assert!(after <= 1, "{self:?}: it happened {after} times");
        self.judge_recovery(&first, &second, (before, after), &scene);
        second
    }

    fn judge_death(self, first: &ProcessAnswer, changes: usize) {
        assert_eq!(first.status.signal(), Some(6), "{self:?}: it did not die: {first:?}");
        let expected =
            usize::from(matches!(reached(self.point, self.hit), Reached::Effect | Reached::Settlement));
        assert_eq!(changes, expected, "{self:?}: {first:?}");
    }

    fn judge_error(self, first: &ProcessAnswer, changes: usize) {
        match &first.saw {
            Saw::Success { .. } => assert_eq!(changes, 1, "{self:?}: success without a change"),
            Saw::Unavailable { .. } => {
                assert_eq!(changes, 0, "{self:?}: unavailable, and it happened: {first:?}")
            }
            Saw::InDoubt => {}
            other => panic!("{self:?}: no answer for this: {other:?}"),
        }
        let sent = matches!(self.point, "gate.after_send" | "gate.after_settle");
        if matches!(self.point, "gate.before_claim" | "gate.after_claim" | "gate.before_send") {
            assert!(matches!(first.saw, Saw::Unavailable { .. }), "{self:?}: {first:?}");
        }
        if self.point == "gate.before_settle" {
            assert!(matches!(first.saw, Saw::Success { .. }), "{self:?}: its answer is spooled: {first:?}");
        }
        if sent {
            assert_eq!((&first.saw, changes), (&Saw::InDoubt, 1), "{self:?}: {first:?}");
        }
    }

    fn judge_recovery(
        self,
        first: &ProcessAnswer,
        second: &ProcessAnswer,
        changes: (usize, usize),
        scene: &Scene,
    ) {
        let reached = match (self.action, &first.saw) {
            (Action::Abort, _) => reached(self.point, self.hit),
            (Action::Error, Saw::Success { .. }) => Reached::Settlement,
            // The error of a call that had already claimed.
            (Action::Error, _) => match self.point {
                "gate.after_settle" => Reached::Settlement,
                _ if changes.0 == 1 => Reached::Effect,
                "gate.after_claim" | "gate.before_send" => Reached::Claim,
                _ => Reached::Nothing,
            },
        };
        let applied = matches!(second.saw, Saw::Success { .. });
        let expected = match (reached, self.tier) {
            (Reached::Nothing | Reached::Settlement, _) | (_, Tier::Probed) => (true, 1),
            (Reached::Claim, Tier::Opaque) => (false, 0),
            (Reached::Effect, Tier::Opaque) => (false, 1),
        };
        assert_eq!((applied, changes.1), expected, "{self:?}: {reached:?}: {first:?}, then {second:?}");
        if !applied {
            assert_eq!((&second.saw, second.code()), (&Saw::InDoubt, Some(121)), "{self:?}: {second:?}");
            return;
        }
        let log = scene.world.log().expect("the world's log can be read");
        let truth = Saw::Success { body: world::body(&log["k"][0].id) };
        assert_eq!(second.saw, truth, "{self:?}: the answer is not the world's");
        if let Saw::Success { .. } = first.saw {
            assert_eq!(first.saw, second.saw, "{self:?}: two answers");
        }
    }
}
