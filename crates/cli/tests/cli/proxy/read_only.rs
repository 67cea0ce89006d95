//! A state directory that cannot be written, and can be again.

use super::stage::{Stage, became};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A directory that is mounted over itself, unmounted in the end.
struct Mounted(PathBuf);

impl Mounted {
    /// `None` where mounting is not permitted.
    fn over_itself(directory: &Path) -> Option<Mounted> {
        let mount = Command::new("mount").arg("--bind").args([directory; 2]).stderr(Stdio::null()).status();
        mount.is_ok_and(|status| status.success()).then(|| Mounted(directory.to_owned()))
    }

    fn is_now(&self, access: &str) {
        let options = format!("remount,bind,{access}");
        let status = Command::new("mount").args(["-o", &options]).arg(&self.0).status();
        assert!(status.is_ok_and(|status| status.success()), "it cannot be mounted {access}");
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _stays = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
#[ignore = "mounts filesystems: run it as root with --ignored"]
fn a_server_that_started_on_a_read_only_ledger_recovers_by_itself() {
    let mut stage = Stage::plain();
    assert_eq!(became(&stage.charge("before", "{}")).1, "ran");
    assert!(stage.served.stop().success());
    let state = Mounted::over_itself(&stage.home.state()).expect("only root may mount");
    state.is_now("ro");
    stage.restart_after_stop();
    for _ in 0..2 {
        assert_eq!(stage.charge("k", "{}").status, 503);
        assert_eq!(became(&stage.charge("before", "{}")).1, "replayed");
    }
    assert_eq!(stage.api.effects(), 1, "without a claim nothing is sent");
    state.is_now("rw");
    assert_eq!(became(&stage.charge("k", "{}")).1, "ran");
    assert_eq!(became(&stage.charge("k", "{}")).1, "replayed");
    assert_eq!(stage.api.effects(), 2);
    assert!(stage.served.stop().success());
}
