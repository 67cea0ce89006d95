//! The golden set: realistic pairs of calls through the real doors against a world that counts. `spec/golden/README.md`
//! says what the set is and how to read its numbers.

mod cases;
mod stage;
mod world;

use cases::{Between, Call, Door, Next, Out, Pair, Variant, Word, World as Deed};
use semel_core::ids::EffectId;
use stage::{Seen, Stage};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// What agents do, of which each has its pairs.
const THEMES: [&str; 12] = [
    "payment",
    "mail",
    "ticket",
    "deploy",
    "git",
    "files",
    "sql",
    "browser",
    "calendar",
    "chat",
    "kubernetes",
    "storage",
];

/// Sides that are judged at once: most of their time goes into the disk.
const AT_ONCE: usize = 8;

/// A side takes milliseconds; one that waits for something that never comes is named.
const SIDE_TAKES_MAX: Duration = Duration::from_secs(120);

/// As many ways as a held call is tried before it counts as stuck: a ruling, a permission, and the call itself.
const WAYS_MAX: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Duplicate,
    Repeat,
    Other,
}

impl Kind {
    fn of(self, pair: &Pair) -> Option<&Next> {
        match self {
            Kind::Duplicate => pair.duplicate.as_ref(),
            Kind::Repeat => pair.repeat.as_ref(),
            Kind::Other => pair.other.as_ref(),
        }
    }
}

/// How one side of a pair ended.
#[derive(Debug)]
struct Judged {
    name: String,
    kind: Kind,
    variant: Variant,
    expect: String,
    seen: Seen,
    first: Seen,
    ran_twice: bool,
    claimed: bool,
    held: bool,
    wrong: Vec<String>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_golden_set_is_judged_right() {
    let pairs = cases::load();
    let at_once = Arc::new(Semaphore::new(AT_ONCE));
    let mut tasks = Vec::new();
    for pair in pairs.iter().cloned().map(Arc::new) {
        for kind in [Kind::Duplicate, Kind::Repeat, Kind::Other] {
            let (pair, at_once) = (Arc::clone(&pair), Arc::clone(&at_once));
            tasks.push(tokio::spawn(async move {
                let _turn = at_once.acquire().await.expect("it is never closed");
                let next = kind.of(&pair)?;
                let judged = tokio::time::timeout(SIDE_TAKES_MAX, judge(&pair, kind, next)).await;
                Some(judged.unwrap_or_else(|_| panic!("{}: {kind:?} does not end", pair.name)))
            }));
        }
    }
    let mut judged = Vec::new();
    for task in tasks {
        judged.extend(task.await.expect("a side comes to its end"));
    }
    report(&judged);
    let count = |test: &dyn Fn(&Judged) -> bool| judged.iter().filter(|side| test(side)).count();
    assert_eq!(count(&|side| side.ran_twice && side.variant != Variant::Reworded), 0, "ran twice");
    assert_eq!(count(&|side| side.claimed), 0, "claimed done though it is not");
    assert_eq!(
        count(&|side| side.kind == Kind::Other && side.claimed),
        0,
        "another entity taken for the same"
    );
    let wanted = count(&|side| side.kind == Kind::Repeat);
    assert!(count(&|side| side.kind == Kind::Repeat && side.held) * 7 <= wanted, "held though wanted");
    assert_eq!(count(&|side| !side.wrong.is_empty()), 0, "each side is judged as it is written");
}

#[test]
fn the_golden_set_covers_every_door_and_theme() {
    let pairs = cases::load();
    let names: BTreeSet<&str> = pairs.iter().map(|pair| pair.name.as_str()).collect();
    assert_eq!(names.len(), pairs.len(), "every pair has a name of its own");
    assert!(whole(&pairs) >= 120, "at least 120 pairs have a duplicate and a repeat");
    let themes: BTreeSet<&str> = pairs.iter().map(|pair| pair.theme.as_str()).collect();
    for theme in THEMES {
        assert!(themes.contains(theme), "{theme}");
    }
    for door in [Door::Mcp, Door::Http, Door::Model, Door::Command] {
        assert!(pairs.iter().any(|pair| pair.door == door), "{door:?}");
    }
    let only_the_world = |pair: &&Pair| {
        let calls =
            [Kind::Duplicate, Kind::Repeat].map(|kind| kind.of(pair).map(|next| next.call(&pair.call)));
        calls.iter().all(|call| call.as_ref() == Some(&pair.call))
    };
    assert!(pairs.iter().filter(only_the_world).count() >= 30, "both sides are the first call itself");
    for pair in &pairs {
        let sides = [Kind::Duplicate, Kind::Repeat, Kind::Other].map(|kind| (kind, kind.of(pair)));
        assert!(sides.iter().any(|(_, side)| side.is_some()), "{} has no side", pair.name);
        let has_way = |(kind, side): &(Kind, Option<&Next>)| {
            let held = side.filter(|next| *kind != Kind::Duplicate && next.expect.word == Word::Held);
            held.is_none_or(|next| next.out.is_some())
        };
        assert!(sides.iter().all(has_way), "{}: who lets the held call run?", pair.name);
    }
}

fn whole(pairs: &[Pair]) -> usize {
    pairs.iter().filter(|pair| pair.duplicate.is_some() && pair.repeat.is_some()).count()
}

async fn judge(pair: &Pair, kind: Kind, next: &Next) -> Judged {
    let mut stage = Stage::open(pair, &next.between).await;
    let deed = next.first.as_ref().unwrap_or(&pair.first);
    let call = next.call(&pair.call);
    let (first, seen, before, after) = if next.at_once {
        let (first, seen) = together(&stage, pair, deed, &call).await;
        (first, seen, (1, 1), stage.world.counts())
    } else {
        let first = stage.call(&pair.call, Some(deed)).await;
        let done = stage.world.counts().0;
        for between in &next.between {
            let deed = Deed { reply: between.reply.clone(), ..Deed::default() };
            stage.call(&of_between(between, &pair.call), Some(&deed)).await;
        }
        if next.restart || next.policy.is_some() || next.preset.is_some() {
            stage = stage.restart(next).await;
        }
        if let Some(span) = &next.after {
            stage.pass_time(span);
        }
        let before = stage.world.counts();
        let seen = stage.call(&call, Some(&next.world)).await;
        let mut after = stage.world.counts();
        after.0 -= before.0 - done;
        (first, seen, (done, before.1), after)
    };
    let (done, ran) = (before.0, after.1 > before.1);
    let effects = if pair.converges { after.0.min(1) } else { after.0 };
    let mut wrong = Vec::new();
    if let Some(expect) = &deed.expect
        && !agrees(&first, expect.word, expect.code.as_deref())
    {
        wrong.push(format!("the first call should have been {expect}"));
    }
    if deed.answer == cases::Answer::Ok && first.word != Word::Ran {
        wrong.push("the first call did not run".to_owned());
    }
    if pair.fills_key && stage.world.keys().iter().any(Option::is_none) {
        wrong.push("an attempt came without a key".to_owned());
    }
    if !agrees(&seen, next.expect.word, next.expect.code.as_deref()) {
        wrong.push(format!("expected {}", next.expect));
    }
    // "Did not happen" is kept for what is proven.
    let denied = |seen: &Seen| seen.word == Word::Refused && seen.text.contains("did not happen");
    let untrue = (done > 0 && denied(&first)) || (after.0 > done && denied(&seen));
    if untrue {
        wrong.push("it is said not to have happened, and it has".to_owned());
    }
    let claimed = untrue
        || match kind {
            Kind::Duplicate => seen.ok && !ran && effects == 0,
            Kind::Repeat | Kind::Other => seen.ok && !ran,
        };
    let ran_twice = kind == Kind::Duplicate && effects > 1;
    let held = seen.word == Word::Held;
    let way = match (kind, seen.word) {
        // A person says what became of the first call. One of another run is another call by then.
        (Kind::Duplicate, Word::Held) if first.word == Word::InDoubt && next.run.is_none() => {
            settle(&stage, pair, next, &call, &seen, done > 0).await
        }
        (Kind::Repeat | Kind::Other, Word::Held) if next.out == Some(Out::Again) && !seen.offers_again() => {
            Err("the answer does not offer semel_again".to_owned())
        }
        (Kind::Repeat | Kind::Other, Word::Held) => run_after_all(&stage, &call, &seen, done > 0).await,
        // Whoever has read the first answer may want a second one after all.
        (Kind::Duplicate, Word::Replayed) if deed.delivered && is_nameless(pair, &call) && !next.at_once => {
            run_after_all(&stage, &call, &seen, true).await
        }
        _ => Ok(()),
    };
    wrong.extend(way.err());
    let expect = next.expect.to_string();
    let (name, variant) = (pair.name.clone(), next.variant);
    Judged { name, kind, variant, expect, seen, first, ran_twice, claimed, held, wrong }
}

fn agrees(seen: &Seen, word: Word, code: Option<&str>) -> bool {
    // A twin that comes a moment later finds the same answer on record.
    let as_good = word == Word::Joined && seen.word == Word::Replayed;
    (seen.word == word || as_good) && code.is_none_or(|code| seen.code.as_deref() == Some(code))
}

fn of_between(between: &Between, first: &Call) -> Call {
    let mut call = Call { call: between.call.clone(), args: between.args.clone(), ..first.clone() };
    call.key = None;
    call
}

/// Two calls at once: the second one comes while the world works on the first.
async fn together(stage: &Stage, pair: &Pair, deed: &Deed, call: &Call) -> (Seen, Seen) {
    stage.world.hold();
    let second = async {
        stage.world.has_arrived().await;
        let second = stage.call(call, None);
        let release = async {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            stage.world.go_on();
        };
        tokio::join!(second, release).0
    };
    tokio::join!(stage.call(&pair.call, Some(deed)), second)
}

/// Neither its caller nor its transport nor a step says which call it is.
fn is_nameless(pair: &Pair, call: &Call) -> bool {
    pair.door != Door::Model && call.key.is_none() && call.call_id.is_none()
}

/// A person says whether the first call happened. The duplicate is then answered, or runs because nothing did.
async fn settle(
    stage: &Stage,
    pair: &Pair,
    next: &Next,
    call: &Call,
    seen: &Seen,
    happened: bool,
) -> Result<(), String> {
    let before = stage.world.counts().0;
    let effect = named(seen).ok_or("the answer names no effect to rule on")?;
    stage.person_rules(effect, happened).await;
    let seen = stage.call(call, Some(&Deed::default())).await;
    let effects = stage.world.counts().0 - before;
    // Other words for what has happened stay held.
    let ended = seen.ok || (happened && seen.word == Word::Held && next.expect.code.is_none());
    // What converges may be sent again, and changes nothing then.
    match ended && (effects == usize::from(!happened) || pair.converges) {
        true => Ok(()),
        false => Err(format!("after a ruling it {}, {effects} more: {}", seen.word.text(), seen.text)),
    }
}

/// Takes the way that the answer offers, a reason of the agent's own or a person's word, until the call has run.
async fn run_after_all(stage: &Stage, call: &Call, seen: &Seen, happened: bool) -> Result<(), String> {
    let (mut call, mut seen) = (call.clone(), seen.clone());
    let before = stage.world.counts().0;
    for _ in 0..WAYS_MAX {
        if call.again.is_none() && seen.offers_again() {
            call.again = Some("a second one is wanted".to_owned());
        } else if !seen.text.contains("semel ledger") {
            return Err(format!("the answer names no way to run it: {}", seen.text));
        } else {
            let effect = named(&seen).ok_or("the answer names no effect to rule on")?;
            stage.person_rules(effect, happened).await;
        }
        seen = stage.call(&call, Some(&Deed::default())).await;
        if seen.word == Word::Ran {
            break;
        }
    }
    let effects = stage.world.counts().0 - before;
    match seen.ok && effects == 1 {
        true => Ok(()),
        false => Err(format!("the way out led to {}, {effects} more: {}", seen.word.text(), seen.text)),
    }
}

/// The effect that an answer speaks of.
fn named(seen: &Seen) -> Option<EffectId> {
    let in_words = || {
        let id = &seen.text[seen.text.find("ef_")?..];
        let end = id.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(id.len());
        EffectId::parse(&id[..end])
    };
    seen.effect.or_else(in_words)
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Judged { name, kind, variant, expect, seen, first, wrong, .. } = self;
        let code = |seen: &Seen| seen.code.as_ref().map(|code| format!(" ({code})")).unwrap_or_default();
        writeln!(f, "{name}: {kind:?}, {variant:?}: {}", wrong.join("; "))?;
        writeln!(f, "    first    {}{}", first.word.text(), code(first))?;
        writeln!(f, "    expected {expect}")?;
        write!(f, "    actual   {}{}", seen.word.text(), code(seen))
    }
}

#[allow(clippy::print_stdout, reason = "the numbers are what the set is for")]
fn report(judged: &[Judged]) {
    for side in judged.iter().filter(|side| !side.wrong.is_empty() || side.ran_twice || side.claimed) {
        println!("{side}");
    }
    let of = |kind: Kind| judged.iter().filter(move |side| side.kind == kind);
    let reworded = |side: &&Judged| side.variant == Variant::Reworded;
    let twice = judged.iter().filter(|side| side.ran_twice && !reworded(side)).count();
    let said_anew: Vec<_> = of(Kind::Duplicate).filter(reworded).collect();
    let anew = said_anew.iter().filter(|side| side.seen.word == Word::Ran).count();
    let (repeats, others) = (of(Kind::Repeat).count(), of(Kind::Other).count());
    let held = of(Kind::Repeat).filter(|side| side.held).count();
    let taken = of(Kind::Other).filter(|side| side.claimed).count();
    let right = judged.iter().filter(|side| side.wrong.is_empty()).count();
    println!(
        "golden set: {} duplicates, {repeats} repeats, {others} other entities",
        of(Kind::Duplicate).count()
    );
    println!("ran twice                     {twice} (reworded: {anew} of {})", said_anew.len());
    println!("claimed done though it is not {}", judged.iter().filter(|side| side.claimed).count());
    println!("held                          {held} of {repeats} repeats");
    println!("right                         {right} of {}", judged.len());
    println!("another entity taken for the same {taken} of {others}");
}
