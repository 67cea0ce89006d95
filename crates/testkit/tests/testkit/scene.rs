//! What the tests of the real binary share: the programs, a place of their own, a world.

use semel_testkit::semel_process::{ProcessAnswer, RunCall, SemelProcess};
use semel_testkit::world::WorldProcess;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A ledger and a world in a directory that goes with it.
pub struct Scene {
    pub world: WorldProcess,
    pub process: SemelProcess,
    pub directory: TempDir,
}

impl Scene {
    pub fn new() -> Scene {
        let directory = private_directory();
        let state = directory.path().join("state");
        Scene::with_ledger_in(directory, state)
    }

    pub fn with_ledger_in(directory: TempDir, state: PathBuf) -> Scene {
        let world = WorldProcess::start(Path::new(env!("CARGO_BIN_EXE_semel-world")), directory.path());
        let world = world.expect("the world starts");
        let process = SemelProcess {
            semel: semel().to_owned(),
            touch: PathBuf::from(env!("CARGO_BIN_EXE_semel-touch")),
            state,
            server: None,
            world: world.socket().to_owned(),
        };
        Scene { world, process, directory }
    }

    pub fn call(&self, ask: &RunCall<'_>) -> ProcessAnswer {
        self.process.call(ask).expect("semel starts")
    }

    /// How often the world changed under a key.
    pub fn changes(&self, key: &str) -> usize {
        self.world.changes(key).expect("the world's log can be read")
    }
}

pub fn private_directory() -> TempDir {
    let directory = tempfile::tempdir().expect("there is room for a test");
    let mode = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(directory.path(), mode).expect("it is ours");
    directory
}

/// The real binary. It is built here, once: a test of yesterday's `semel` would prove little, and Cargo does not know
/// that these tests depend on it.
pub fn semel() -> &'static Path {
    static SEMEL: OnceLock<PathBuf> = OnceLock::new();
    SEMEL.get_or_init(|| {
        let touch = Path::new(env!("CARGO_BIN_EXE_semel-touch"));
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--package", "semel-cli"]).current_dir(env!("CARGO_MANIFEST_DIR"));
        if touch.parent().is_some_and(|profile| profile.ends_with("release")) {
            build.arg("--release");
        }
        if let Some(target) = touch.parent().and_then(Path::parent) {
            build.arg("--target-dir").arg(target);
        }
        let built = build.output().expect("cargo starts");
        assert!(built.status.success(), "semel does not build: {}", String::from_utf8_lossy(&built.stderr));
        touch.with_file_name("semel")
    })
}

/// Straight to stderr: counts must be seen without `--nocapture`.
pub fn say(text: impl std::fmt::Display) {
    let _nobody_listens = writeln!(std::io::stderr(), "{text}");
}

/// Real processes have no clock of ours.
#[allow(clippy::disallowed_methods, reason = "the tests of real processes wait in real time")]
pub fn sleep(span: Duration) {
    std::thread::sleep(span);
}

#[allow(clippy::disallowed_methods, reason = "the tests of real processes wait in real time")]
pub fn now() -> Instant {
    Instant::now()
}

/// A number from the environment of the test command.
#[allow(clippy::disallowed_methods, reason = "how long to torture is the caller's choice")]
pub fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

/// Waits for something that another process does.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "waited in vain: {what}");
        sleep(Duration::from_millis(2));
    }
}

/// The processes that a process has started and that still run.
pub fn children(process: u32) -> Vec<u32> {
    let listed =
        std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    listed.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

pub fn signal(process: u32, signal: rustix::process::Signal) -> bool {
    let pid = rustix::process::Pid::from_raw(process.cast_signed()).expect("a process id is not 0");
    rustix::process::kill_process(pid, signal).is_ok()
}

/// A filesystem of its own, unmounted in the end.
pub struct Mounted(PathBuf);

impl Mounted {
    /// `None` where mounting is not permitted.
    pub fn new(what: &str, at: &Path, options: &[&str]) -> Option<Mounted> {
        let mounted = Command::new("mount").args(options).arg(what).arg(at).stderr(Stdio::null()).status();
        mounted.is_ok_and(|status| status.success()).then(|| Mounted(at.to_owned()))
    }

    pub fn remount(&self, options: &str) {
        let status = Command::new("mount").args(["-o", options]).arg(&self.0).status();
        assert!(status.is_ok_and(|status| status.success()), "cannot remount {} {options}", self.0.display());
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(&self.0).stderr(Stdio::null()).status();
        if !unmounted.is_ok_and(|status| status.success()) {
            let _left_to_the_kernel = Command::new("umount").arg("-l").arg(&self.0).status();
        }
    }
}

/// A started call, ended at the latest with its test.
pub struct Started(Option<Child>);

impl Started {
    pub fn new(mut command: Command) -> Started {
        Started(Some(command.spawn().expect("semel starts")))
    }

    pub fn id(&self) -> u32 {
        self.0.as_ref().expect("it has not been waited for").id()
    }

    pub fn finish(mut self, json: bool) -> ProcessAnswer {
        let child = self.0.take().expect("it has not been waited for");
        ProcessAnswer::of(child.wait_with_output().expect("it can be waited for"), json)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _gone_already = child.kill();
            let _gone_already = child.wait();
        }
    }
}
