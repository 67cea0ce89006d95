//! The tests of the SDKs, in fresh environments that hold the packages and not the sources.

use crate::dist::{self, Build};
use crate::peers;
use crate::project::{self, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What they need from package registries.
pub fn install() -> Result<()> {
    peers::for_dist(false)?;
    peers::for_python_sdk()?;
    peers::for_typescript_sdk(&project::root().join("sdk/typescript")).map(drop)
}

/// Runs them all, with these variables.
pub fn test(asked: &[(&str, &str)]) -> Result<()> {
    python(asked)?;
    typescript(asked)
}

fn python(asked: &[(&str, &str)]) -> Result<()> {
    let wheel = dist::python(Build::Test)?;
    let [most, pinned] = peers::for_python_sdk()?;
    python_in(&most, &wheel, &["tests"], asked)?;
    // Tests of what is not installed there are skipped.
    python_in(&pinned, &wheel, &["tests/adapters", "tests/test_reference.py"], asked)
}

fn python_in(home: &Path, wheel: &Path, which: &[&str], asked: &[(&str, &str)]) -> Result<()> {
    let python = home.join("python/bin/python");
    let mut pip = Command::new(&python);
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--force-reinstall",
    ]);
    project::must(pip.arg(wheel))?;
    // Beside the installed package, so that nothing is imported from the sources.
    let tests = home.join("tests");
    for (from, to) in [("sdk/python/tests", &tests), ("sdk/python/examples", &home.join("examples"))] {
        if to.exists() {
            fs::remove_dir_all(to)?;
        }
        copy(&project::root().join(from), to)?;
    }
    put_beside(&[VECTORS, "docs/reference-python.md"], &tests)?;
    let mut pytest = Command::new(&python);
    pytest.args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider", "-n", THREADS, "--rootdir"]);
    pytest.env_remove("PYTHONPATH").envs(asked.iter().copied());
    project::must(pytest.arg(&tests).args(which).current_dir(home))
}

fn typescript(asked: &[(&str, &str)]) -> Result<()> {
    let packages = dist::npm(Build::Test)?;
    let home = peers::with_typescript_packages(&packages)?;
    // The compiled tests name the sources beside them: here those are the installed package's.
    let built = home.parent().ok_or("it lies below the frameworks")?.join("dist");
    let here = home.join("dist");
    fs::create_dir_all(&here)?;
    copy(&built.join("test"), &here.join("test"))?;
    copy(&built.join("examples"), &here.join("examples"))?;
    std::os::unix::fs::symlink(home.join("node_modules/semel/dist/src"), here.join("src"))?;
    put_beside(&[VECTORS, "docs/reference-typescript.md"], &here.join("test"))?;
    let mut node = Command::new(home.join("node"));
    let concurrency = format!("--test-concurrency={THREADS}");
    node.args(["--test", &concurrency])
        .args(tests_in(&here.join("test"))?)
        .args(tests_in(&here.join("test/adapters"))?);
    project::must(node.current_dir(&home).envs(asked.iter().copied()))
}

fn tests_in(directory: &Path) -> Result<Vec<PathBuf>> {
    let files = fs::read_dir(directory)?.filter_map(|entry| Some(entry.ok()?.path()));
    let is_test = |path: &PathBuf| path.to_string_lossy().ends_with(".test.js");
    Ok(files.filter(is_test).collect())
}

/// Files of the project that the tests read.
fn put_beside(files: &[&str], tests: &Path) -> Result<()> {
    for file in files {
        fs::copy(project::root().join(file), tests.join(Path::new(file).file_name().ok_or("a file")?))?;
    }
    Ok(())
}

const VECTORS: &str = "spec/vectors/sdk-key.json";

/// Most of these tests wait for processes.
const THREADS: &str = "3";

fn copy(from: &Path, to: &Path) -> Result<()> {
    project::must(Command::new("cp").arg("-r").arg(from).arg(to))
}
