//! `cargo xtask dist`: the packages that a release has, in `target/dist`. The tests of the SDKs install these very files.

use crate::peers;
use crate::project::{self, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The oldest system that the binaries run on: glibc 2.17, manylinux2014.
const ZIG_TARGET: &str = "x86_64-unknown-linux-gnu.2.17";

/// How the Rust in a package is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Build {
    /// As the tests have it: quick to build, for this system alone.
    Test,
    /// As the other benches have it: the release profile, for this system alone.
    Bench,
    /// With zig, for old systems too, where its wheel can be installed; else for this system.
    Release,
}

/// `cargo xtask dist python|npm`
pub fn run(arguments: &[&str]) -> Result<ExitCode> {
    let made = match arguments {
        ["python"] => vec![python(Build::Release)?],
        ["npm"] => npm(Build::Release)?,
        _ => return Err("usage: cargo xtask dist python|npm".into()),
    };
    for file in made {
        println!("{}", file.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// One wheel: the module, the typed Python, and the command as a script.
pub fn python(build: Build) -> Result<PathBuf> {
    let tools = peers::for_dist(build == Build::Release)?;
    let package = project::root().join("sdk/python");
    let scripts = package.join("semel.data/scripts");
    fs::create_dir_all(&scripts)?;
    put(&binary(build, &tools)?, &scripts.join("semel"))?;
    let out = fresh(build, "python")?;
    let mut maturin = Command::new(tools.join("python/bin/maturin"));
    maturin.args(["build", "--strip", "--out"]).arg(&out).current_dir(&package);
    maturin.env("CARGO_TARGET_DIR", project::target());
    match build {
        Build::Test => maturin.args(["--profile", "dev", "--compatibility", "linux"]),
        Build::Bench => maturin.args(["--profile", "release", "--compatibility", "linux"]),
        Build::Release if has_zig(&tools) => {
            maturin.args(["--profile", "dist", "--zig", "--compatibility", "manylinux2014"])
        }
        Build::Release => maturin.args(["--profile", "dist"]),
    };
    let path = format!("{}:{}", tools.join("python/bin").display(), search_path());
    project::must(maturin.env("PATH", path))?;
    only_file_of(&out)
}

/// Two tarballs: the library, and the command for this system.
pub fn npm(build: Build) -> Result<Vec<PathBuf>> {
    let tools = peers::for_dist(build == Build::Release)?;
    let sources = project::root().join("sdk/typescript");
    let package = peers::for_typescript_sdk(&sources)?;
    let out = fresh(build, "npm")?;
    peers::npm(&["run", "build"], &package)?;
    peers::npm(&["pack", "--ignore-scripts", "--pack-destination", &out.display().to_string()], &package)?;
    let platform = out.join("platform");
    fs::create_dir_all(platform.join("bin"))?;
    let form = fs::read_to_string(sources.join("platform/package.json"))?;
    fs::write(
        platform.join("package.json"),
        form.replace("PLATFORM", "linux").replace("ARCH", npm_architecture()),
    )?;
    put(&binary(build, &tools)?, &platform.join("bin/semel"))?;
    peers::npm(&["pack", "--pack-destination", &out.display().to_string()], &platform)?;
    fs::remove_dir_all(platform)?;
    let mut made: Vec<PathBuf> = fs::read_dir(&out)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    made.sort();
    Ok(made)
}

fn npm_architecture() -> &'static str {
    if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" }
}

/// The command, built as asked for.
fn binary(build: Build, tools: &Path) -> Result<PathBuf> {
    let target = project::target();
    let path = format!("{}:{}", tools.join("python/bin").display(), search_path());
    let mut cargo = project::cargo();
    match build {
        Build::Test => {
            project::must(cargo.args(["build", "--quiet", "--package", "semel-cli"]))?;
            Ok(target.join("debug/semel"))
        }
        Build::Bench => {
            project::must(cargo.args(["build", "--quiet", "--release", "--package", "semel-cli"]))?;
            Ok(target.join("release/semel"))
        }
        Build::Release if has_zig(tools) => {
            cargo.args(["zigbuild", "--profile", "dist", "--package", "semel-cli", "--target", ZIG_TARGET]);
            // Else it would be linked for the loader of this system.
            cargo.env("SEMEL_BUILT_FOR_OLD_SYSTEMS", "1");
            project::must(cargo.env("PATH", path))?;
            Ok(target.join("x86_64-unknown-linux-gnu/dist/semel"))
        }
        Build::Release => {
            project::must(cargo.args(["build", "--profile", "dist", "--package", "semel-cli"]))?;
            Ok(target.join("dist/semel"))
        }
    }
}

/// Without what a debugger needs: that is most of a test build.
fn put(binary: &Path, at: &Path) -> Result<()> {
    project::must(Command::new("strip").arg("-o").arg(at).arg(binary))
}

fn has_zig(tools: &Path) -> bool {
    let zig = Command::new(tools.join("python/bin/python")).args(["-m", "ziglang", "version"]).output();
    zig.is_ok_and(|output| output.status.success())
}

/// The packages of a bench lie apart: a test must not take them away while they are installed.
fn fresh(build: Build, name: &str) -> Result<PathBuf> {
    let above = if build == Build::Bench { project::scratch()? } else { project::target() };
    let out = above.join("dist").join(name);
    if out.exists() {
        fs::remove_dir_all(&out)?;
    }
    fs::create_dir_all(&out)?;
    Ok(out)
}

fn only_file_of(directory: &Path) -> Result<PathBuf> {
    let mut files = fs::read_dir(directory)?;
    match (files.next(), files.next()) {
        (Some(file), None) => Ok(file?.path()),
        _ => Err(format!("{} should hold one file", directory.display()).into()),
    }
}

#[allow(clippy::disallowed_methods, reason = "a task starts the tools that its user has")]
fn search_path() -> String {
    std::env::var("PATH").unwrap_or_default()
}
