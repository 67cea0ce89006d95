//! Power cuts: the disk under a busy ledger is copied at one instant, the copy is mounted and asked.
//!
//! `SEMEL_POWER_CUTS=20 cargo test -p semel-testkit --test testkit power_cut`. Needs root, `mount`, `mkfs.ext4` and
//! `fsfreeze`; says so and proves nothing elsewhere.
//!
//! The disk is an image in a filesystem of its own. Freezing that outer filesystem stops the image between two
//! writes, and nothing inside is flushed for it. With a volatile cache one more filesystem lies between: what the
//! ledger's filesystem wrote without flushing then stays in that one's memory and is lost, as in a drive's cache.

use crate::scene::{Mounted, Scene, now, number, private_directory, say, skip, sleep};
use semel_core::time::At;
use semel_ledger::place::Place;
use semel_ledger::sqlite::{OpenOptions, SqliteStore};
use semel_testkit::boundary::{Ask, Boundary};
use semel_testkit::history::{Saw, Standing};
use semel_testkit::random::Random;
use semel_testkit::world::Log;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const WRITERS: usize = 4;

/// Older keys are looked at by lot; the last ones, which the cut is most likely to have hurt, all.
const NEWEST_ASKED: usize = 40;
const OLDER_ASKED: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cache {
    /// The drive keeps all that it was given.
    Kept,
    /// The drive keeps what was flushed, and of the rest what it likes.
    Volatile,
}

#[test]
fn a_power_cut_loses_no_acknowledged_claim_or_settlement() {
    power_cuts("a_power_cut_loses_no_acknowledged_claim_or_settlement", Cache::Kept);
}

#[test]
fn a_power_cut_of_a_drive_with_a_volatile_cache_loses_none_either() {
    power_cuts("a_power_cut_of_a_drive_with_a_volatile_cache_loses_none_either", Cache::Volatile);
}

fn power_cuts(test: &str, cache: Cache) {
    let Some(cuts) = number("SEMEL_POWER_CUTS").filter(|cuts| *cuts > 0) else {
        return skip(test, "SEMEL_POWER_CUTS says how many");
    };
    let directory = private_directory();
    // Dropped before the directory that it is mounted in.
    let Some(drive) = Drive::new(directory.path(), cache) else {
        return skip(test, "loop devices, mkfs.ext4 or fsfreeze are not to be had here");
    };
    let began = now();
    let scene = Scene::with_ledger_in(private_directory(), drive.state());
    let writers = Writers::default();
    let mut tally = Tally::default();
    std::thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| writers.write(&scene.boundary));
        }
        // The writers must end even if a check fails.
        let _stop = StopOnDrop(&writers.stop);
        let mut random = Random::new(cuts);
        for _ in 0..cuts {
            sleep(Duration::from_millis(150 + random.below(400)));
            let acknowledged = writers.acknowledged();
            let log = scene.world.log().expect("the world's log can be read");
            let cut = drive.cut();
            let copy = Boundary { state: cut.state(), ..scene.boundary.clone() };
            tally.add(&judge(&copy, &scene, &acknowledged, &log, &mut random));
        }
    });
    say(format_args!(
        "{cuts} power cuts ({cache:?} cache): {tally:?} in {:.0} s",
        began.elapsed().as_secs_f64()
    ));
    assert!(tally.successes >= cuts * 2, "the run is vacuous: {tally:?}");
    assert!(tally.open >= cuts / 4, "no cut fell between claim and settlement: {tally:?}");
}

#[derive(Debug, Default)]
struct Tally {
    asked: u64,
    /// Acknowledged successes that were looked for, and found.
    successes: u64,
    /// Changes of the world whose claim was looked for, and found.
    changes: u64,
    /// Effects that the cut left between claim and settlement.
    open: u64,
}

impl Tally {
    fn add(&mut self, other: &Tally) {
        self.asked += other.asked;
        self.successes += other.successes;
        self.changes += other.changes;
        self.open += other.open;
    }
}

/// Everything that was known before the cut must be known after it.
fn judge(
    copy: &Boundary,
    scene: &Scene,
    acknowledged: &BTreeMap<u64, Saw>,
    log: &Log,
    random: &mut Random,
) -> Tally {
    let mut tally = Tally::default();
    let born = acknowledged.keys().next_back().map_or(0, |newest| newest + WRITERS as u64 + 1);
    let newest = born.saturating_sub(NEWEST_ASKED as u64)..born;
    let older = (0..OLDER_ASKED).map(|_| random.below(born.max(1))).collect::<Vec<_>>();
    for number in newest.chain(older) {
        let key = name(number);
        let ask = asked(&key);
        let standing = copy.standing(&ask).expect("semel starts");
        let standing =
            standing.unwrap_or_else(|what| panic!("after the cut {key} cannot be asked about: {what}"));
        tally.asked += 1;
        tally.open += u64::from(matches!(standing, Standing::InDoubt | Standing::InFlight));
        let happened = log.get(&key).map_or(0, Vec::len);
        if happened > 0 {
            tally.changes += 1;
            assert_ne!(standing, Standing::Free, "{key} happened, and after the cut it would run again");
        }
        let Some(Saw::Success { body }) = acknowledged.get(&number) else { continue };
        tally.successes += 1;
        assert_eq!(standing, Standing::Applied, "the acknowledged success of {key} is lost");
        if number % 8 == 0 {
            let replayed = copy.call(&ask).expect("semel starts");
            assert_eq!(replayed.saw, Saw::Success { body: body.clone() }, "{key}: {replayed:?}");
            assert_eq!(scene.changes(&key), happened, "{key} ran again after the cut");
        }
    }
    let place = Place::at(copy.ledger());
    let options = OpenOptions { read_only: true, blocking: true, ..OpenOptions::at(place, At(0)) };
    let opened = SqliteStore::open(options).expect("the ledger opens after the cut");
    let damage = opened.store.integrity_check().expect("it can be read");
    assert_eq!(damage, Vec::<String>::new(), "the cut damaged the ledger");
    tally
}

fn name(number: u64) -> String {
    format!("key-{number}")
}

fn asked(key: &str) -> Ask<'_> {
    Ask {
        key,
        json: true,
        wait: Some("0s"),
        touch: &["--delay-ms", "5", "--life-ms", "60000"],
        ..Ask::default()
    }
}

/// Callers that never stop asking for something new.
#[derive(Default)]
struct Writers {
    born: AtomicU64,
    answers: Mutex<BTreeMap<u64, Saw>>,
    stop: AtomicBool,
}

impl Writers {
    fn write(&self, boundary: &Boundary) {
        while !self.stop.load(Ordering::Relaxed) {
            let number = self.born.fetch_add(1, Ordering::Relaxed);
            let saw = boundary.call(&asked(&name(number))).expect("semel starts").saw;
            self.answers.lock().unwrap_or_else(PoisonError::into_inner).insert(number, saw);
        }
    }

    fn acknowledged(&self) -> BTreeMap<u64, Saw> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Filesystems within filesystems, innermost first, because they are dropped in this order.
struct Drive {
    cached: Option<Mounted>,
    disk: Mounted,
    /// The one that is frozen for a cut.
    outer: Mounted,
    cache: Cache,
    root: PathBuf,
}

impl Drive {
    fn new(root: &Path, cache: Cache) -> Option<Drive> {
        for name in ["outer", "disk", "cached", "cut", "cut-cached"] {
            fs::create_dir(root.join(name)).ok()?;
        }
        let outer = new_filesystem(&root.join("outer.img"), "192M", &root.join("outer"))?;
        let disk = new_filesystem(&root.join("outer/disk.img"), "128M", &root.join("disk"))?;
        let cached = match cache {
            Cache::Kept => None,
            Cache::Volatile => {
                Some(new_filesystem(&root.join("disk/cached.img"), "64M", &root.join("cached"))?)
            }
        };
        let drive = Drive { cached, disk, outer, cache, root: root.to_owned() };
        // Where freezing does not work, the first cut would be none.
        let froze = freeze(&root.join("outer"), "--freeze") && freeze(&root.join("outer"), "--unfreeze");
        froze.then_some(drive)
    }

    fn state(&self) -> PathBuf {
        let filesystem = if self.cached.is_some() { "cached" } else { "disk" };
        self.root.join(filesystem).join("state")
    }

    /// Copies the disk as it is at this instant, and mounts the copy.
    fn cut(&self) -> Cut {
        let _held_open = (&self.disk, &self.outer);
        let outer = self.root.join("outer");
        let image = self.root.join("cut.img");
        assert!(freeze(&outer, "--freeze"), "the outer filesystem does not freeze");
        let copied =
            Command::new("cp").arg("--sparse=always").arg(outer.join("disk.img")).arg(&image).status();
        assert!(freeze(&outer, "--unfreeze"), "the outer filesystem does not thaw");
        assert!(copied.is_ok_and(|status| status.success()), "the disk cannot be copied");
        let disk = mount(&image, &self.root.join("cut")).expect("the disk mounts after a cut");
        let cached = (self.cache == Cache::Volatile).then(|| {
            let inner = self.root.join("cut/cached.img");
            mount(&inner, &self.root.join("cut-cached")).expect("the cached disk mounts after a cut")
        });
        Cut { cached, _disk: disk, root: self.root.clone() }
    }
}

/// A disk after a cut.
struct Cut {
    cached: Option<Mounted>,
    _disk: Mounted,
    root: PathBuf,
}

impl Cut {
    fn state(&self) -> PathBuf {
        let filesystem = if self.cached.is_some() { "cut-cached" } else { "cut" };
        self.root.join(filesystem).join("state")
    }
}

fn new_filesystem(image: &Path, size: &str, at: &Path) -> Option<Mounted> {
    let quietly = |command: &mut Command| {
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success()).then_some(())
    };
    quietly(Command::new("truncate").args(["--size", size]).arg(image))?;
    quietly(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(image))?;
    mount(image, at)
}

fn mount(image: &Path, at: &Path) -> Option<Mounted> {
    Mounted::new(image.to_str()?, at, &["-o", "loop"])
}

fn freeze(filesystem: &Path, how: &str) -> bool {
    let status = Command::new("fsfreeze").arg(how).arg(filesystem).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}
