//! Links the binary with packed relative relocations where the loader knows them: 78,000 of them take 24 bytes each
//! otherwise, and the loader goes through all before `main`.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "this is how a build script hears and talks"
)]

use std::process::Command;

/// Of the GNU C library. Older loaders refuse such a binary; one that is built runs where the library is as new.
const LOADER_NEEDED: (u32, u32) = (2, 36);

/// Set for a binary that runs on systems older than this one, for which the target has the same name.
const FOR_OLD_SYSTEMS: &str = "SEMEL_BUILT_FOR_OLD_SYSTEMS";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed={FOR_OLD_SYSTEMS}");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let is_gnu = variable("CARGO_CFG_TARGET_OS") == "linux" && variable("CARGO_CFG_TARGET_ENV") == "gnu";
    let runs_here = variable("HOST") == variable("TARGET");
    let is_for_old_systems = !variable(FOR_OLD_SYSTEMS).is_empty();
    if is_gnu && runs_here && !is_for_old_systems && loader().is_some_and(|version| version >= LOADER_NEEDED)
    {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// `glibc 2.36`
fn loader() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
