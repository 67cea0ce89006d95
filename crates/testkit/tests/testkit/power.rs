//! Power cuts: the disk under a busy ledger is copied at one instant, the copy is mounted and asked.
//!
//! `SEMEL_POWER_CUTS=20 cargo test -p semel-testkit --test testkit power_cut -- --ignored`, as root; it needs `mount`,
//! `mkfs.ext4` and `fsfreeze`.
//!
//! The disk is an image in a filesystem of its own. Freezing that outer filesystem stops the image between two
//! writes, and nothing inside is flushed for it. With a volatile cache one more filesystem lies between: what the
//! ledger's filesystem wrote without flushing then stays in that one's memory and is lost, as in a drive's cache.

use crate::scene::{Mounted, Scene, now, number, private_directory, say, sleep};
use semel_core::effect::State;
use semel_core::time::At;
use semel_gate::clock::block_on;
use semel_ledger::place::Place;
use semel_ledger::record::decode;
use semel_ledger::sqlite::{OpenOptions, SqliteStore};
use semel_ledger::store::{By, PAGE_ROWS_MAX, Store};
use semel_testkit::history::{Saw, Standing};
use semel_testkit::random::Random;
use semel_testkit::semel_process::{RunCall, SemelProcess};
use semel_testkit::world::WorldLog;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
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

/// Who writes. Commands end after each call; the others go on, with lazy commits among the durable ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Door {
    Run,
    Mcp,
    Serve,
}

const DOORS: [Door; 3] = [Door::Run, Door::Mcp, Door::Serve];

/// How often each, unless told otherwise.
const CUTS: u64 = 5;

#[test]
#[ignore = "mounts filesystems: run it as root with --ignored"]
fn a_power_cut_loses_no_acknowledged_claim_or_settlement() {
    DOORS.into_iter().for_each(|door| power_cuts(door, Cache::Kept));
}

#[test]
#[ignore = "mounts filesystems: run it as root with --ignored"]
fn a_power_cut_of_a_drive_with_a_volatile_cache_loses_none_either() {
    DOORS.into_iter().for_each(|door| power_cuts(door, Cache::Volatile));
}

fn power_cuts(door: Door, cache: Cache) {
    let cuts = number("SEMEL_POWER_CUTS").unwrap_or(CUTS);
    let directory = private_directory();
    // Dropped before the directory that it is mounted in.
    let drive = Drive::new(directory.path(), cache).expect("loop devices, mkfs.ext4 and fsfreeze, and root");
    let began = now();
    let scene = Scene::with_ledger_in(private_directory(), drive.state());
    let served = (door == Door::Serve).then(|| Served::start(&scene));
    let writers = Writers::default();
    let mut tally = Tally::default();
    std::thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| match (door, &served) {
                (Door::Run, _) => writers.write(|key| call(&scene.process, key)),
                (Door::Serve, Some(served)) => writers.write(|key| served.call(key)),
                (Door::Mcp | Door::Serve, _) => {
                    let mut line = Line::open(&scene.process);
                    writers.write(|key| line.call(key));
                }
            });
        }
        // The writers must end even if a check fails.
        let _stop = StopOnDrop(&writers.stop);
        let mut random = Random::new(cuts);
        for _ in 0..cuts {
            sleep(Duration::from_millis(150 + random.below(400)));
            let acknowledged = writers.acknowledged();
            let log = scene.world.log().expect("the world's log can be read");
            let cut = drive.cut();
            let copy = SemelProcess { state: cut.state(), ..scene.process.clone() };
            tally.add(&judge(door, &copy, &scene, &acknowledged, &log, &mut random));
        }
    });
    say(format_args!(
        "{cuts} power cuts under {door:?} ({cache:?} cache): {tally:?} in {:.0} s",
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
    door: Door,
    copy: &SemelProcess,
    scene: &Scene,
    acknowledged: &BTreeMap<u64, Saw>,
    log: &WorldLog,
    random: &mut Random,
) -> Tally {
    let mut tally = Tally::default();
    let known = known(copy);
    let born = acknowledged.keys().next_back().map_or(0, |newest| newest + WRITERS as u64 + 1);
    let newest = born.saturating_sub(NEWEST_ASKED as u64)..born;
    let older = (0..OLDER_ASKED).map(|_| random.below(born.max(1))).collect::<Vec<_>>();
    for number in newest.chain(older) {
        let key = name(number);
        let standing = match door {
            Door::Run => copy.standing(&asked(&key)).expect("semel starts"),
            Door::Mcp | Door::Serve => Ok(known.get(&key).copied().unwrap_or(Standing::Free)),
        };
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
            let replayed = match door {
                Door::Run => call(copy, &key),
                Door::Mcp | Door::Serve => Line::open(copy).call(&key),
            };
            assert_eq!(replayed, Saw::Success { body: body.clone() }, "{key} after the cut");
            assert_eq!(scene.changes(&key), happened, "{key} ran again after the cut");
        }
    }
    tally
}

/// Opens the ledger as it is after a cut, and says what it knows of each order.
fn known(copy: &SemelProcess) -> BTreeMap<String, Standing> {
    let place = Place::at(copy.ledger());
    let options = OpenOptions { read_only: true, blocking: true, ..OpenOptions::at(place, At(0)) };
    let store = SqliteStore::open(options).expect("the ledger opens after the cut").store;
    let damage = store.integrity_check().expect("it can be read");
    assert_eq!(damage, Vec::<String>::new(), "the cut damaged the ledger");
    let (mut known, mut after) = (BTreeMap::new(), None);
    loop {
        let page = block_on(store.scan(By::All, after, PAGE_ROWS_MAX)).expect("it can be read");
        for row in page.items {
            let effect = decode(row).effect;
            assert!(!effect.is_damaged(), "the cut damaged {}", effect.id);
            let order = effect.facts.subject.trim_start_matches("order=").to_owned();
            let standing = match effect.state {
                State::InFlight { .. } => Standing::InFlight,
                State::InDoubt(_) => Standing::InDoubt,
                State::Applied(_) => Standing::Applied,
                State::NotApplied(_) => Standing::Free,
            };
            known.insert(order, standing);
        }
        after = page.next;
        if after.is_none() {
            return known;
        }
    }
}

fn call(process: &SemelProcess, key: &str) -> Saw {
    process.call(&asked(key)).expect("semel starts").saw
}

fn name(number: u64) -> String {
    format!("key-{number}")
}

fn asked(key: &str) -> RunCall<'_> {
    RunCall {
        key,
        json: true,
        wait: Some("0s"),
        touch: &["--delay-ms", "5", "--life-ms", "60000"],
        ..RunCall::default()
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
    fn write(&self, mut call: impl FnMut(&str) -> Saw) {
        while !self.stop.load(Ordering::Relaxed) {
            let number = self.born.fetch_add(1, Ordering::Relaxed);
            let saw = call(&name(number));
            self.answers.lock().unwrap_or_else(PoisonError::into_inner).insert(number, saw);
        }
    }

    fn acknowledged(&self) -> BTreeMap<u64, Saw> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A server behind semel that changes the world for each order.
fn server(process: &SemelProcess) -> Vec<String> {
    let [touch, world] = [&process.touch, &process.world].map(|path| path.display().to_string());
    let options = ["--speak", "mcp", "--delay-ms", "5", "--life-ms", "60000"].map(str::to_owned);
    [touch, "--world".to_owned(), world].into_iter().chain(options).collect()
}

/// A client of `semel mcp`, over its pipes.
struct Line {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Line {
    fn open(process: &SemelProcess) -> Line {
        let mut command = process.semel();
        command.args(["mcp", "--name", "shop", "--"]).args(server(process)).stdin(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn().expect("semel starts");
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (input, output) = (input.expect("a pipe"), BufReader::new(output.expect("a pipe")));
        let mut line = Line { child, input, output };
        line.ask(&initialize());
        line
    }

    fn ask(&mut self, request: &Value) -> Option<Value> {
        writeln!(self.input, "{request}").ok()?;
        loop {
            let mut said = String::new();
            self.output.read_line(&mut said).ok().filter(|read| *read > 0)?;
            if let Some(answer) = answer_in(&said, &request["id"]) {
                return Some(answer);
            }
        }
    }

    fn call(&mut self, key: &str) -> Saw {
        let answer = self.ask(&order(key));
        saw(answer)
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let _gone_already = self.child.kill();
        let _gone_already = self.child.wait();
    }
}

/// `semel serve`, with a client over HTTP.
struct Served {
    child: Child,
    address: String,
    session: String,
}

impl Served {
    fn start(scene: &Scene) -> Served {
        let policy = format!("[mcp.shop]\ncommand = {}\n", json!(server(&scene.process)));
        fs::write(scene.directory.path().join("semel.toml"), policy).expect("there is room");
        let mut command = scene.process.semel();
        command.args(["--json", "serve", "--listen", "127.0.0.1:0"]).current_dir(scene.directory.path());
        command.env("SEMEL_SERVE_TOKEN", TOKEN).stderr(Stdio::null());
        let mut child = command.spawn().expect("semel starts");
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        output.read_line(&mut line).expect("it says where it listens");
        let said: Value = serde_json::from_str(&line).expect("it says where it listens");
        let address = said["listen"].as_str().expect("an address").to_owned();
        let mut served = Served { child, address, session: String::new() };
        let said = served.post(&initialize()).expect("it takes a client");
        let session = said.lines().find(|line| line.starts_with("mcp-session-id: "));
        served.session = format!("{}\r\n", session.expect("it opens a session"));
        served
    }

    fn post(&self, message: &Value) -> std::io::Result<String> {
        let (body, address) = (message.to_string(), &self.address);
        let request = format!(
            "POST /mcp/shop HTTP/1.1\r\nHost: {address}\r\nSemel-Token: {TOKEN}\r\n{}Content-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            self.session,
            body.len()
        );
        let mut stream = TcpStream::connect(address)?;
        stream.write_all(request.as_bytes())?;
        let mut said = String::new();
        stream.read_to_string(&mut said).map(|_| said)
    }

    fn call(&self, key: &str) -> Saw {
        let said = self.post(&order(key)).unwrap_or_default();
        saw(said.lines().find_map(|line| answer_in(line.trim_start_matches("data: "), &json!(key))))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _gone_already = self.child.kill();
        let _gone_already = self.child.wait();
    }
}

const TOKEN: &str = "a-token-of-this-test";

fn initialize() -> Value {
    let about = json!({"name": "writer", "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

fn order(key: &str) -> Value {
    let params = json!({"name": "create_order", "arguments": {"order": key}});
    json!({"jsonrpc": "2.0", "id": key, "method": "tools/call", "params": params})
}

fn answer_in(line: &str, id: &Value) -> Option<Value> {
    serde_json::from_str(line).ok().filter(|message: &Value| message["id"] == *id)
}

/// The server's own words are among the content; semel may have added its own.
fn saw(answer: Option<Value>) -> Saw {
    let Some(answer) = answer else { return Saw::Nothing };
    let result = &answer["result"];
    let texts = result["content"].as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
    match texts.into_iter().find(|text| text.contains("\"done\"")) {
        Some(body) if result["isError"] == false => Saw::Success { body: body.to_owned() },
        _ => Saw::Other { exit: None, text: answer.to_string() },
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
