//! `semel mcp` between the official Python client and a server that only echoes, beside FastMCP's proxy.

use super::Effort;
use super::child::number;
use super::command::release_binary;
use super::report::{ReportLine, figure};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use tempfile::TempDir;
use xtask::peers;
use xtask::project::{self, Result};

/// Calls of each kind, one after the other; the same number again for each round of concurrent ones.
const CALLS: usize = 400;
const TOGETHER: usize = 16;
/// A client has one way to its server, and calls it again and again.
const IN_A_ROW: usize = 40;
const ROUNDS: usize = 3;

/// The size of a large tool result.
const MEGABYTES: usize = 50;

pub fn run(effort: Effort) -> Result<Vec<ReportLine>> {
    let directory = tempfile::tempdir_in(project::scratch()?)?;
    let stage = McpStage { semel: release_binary()?, python: peers::for_bench()?, directory };
    let mut lines = beside_fastmcp(&stage, effort)?;
    lines.extend(memory(&stage, effort)?);
    Ok(lines)
}

struct McpStage {
    semel: PathBuf,
    python: PathBuf,
    directory: TempDir,
}

impl McpStage {
    fn python(&self, name: &str) -> Vec<PathBuf> {
        vec![self.python.clone(), project::root().join("crates/testkit/peers").join(name)]
    }

    fn guarded(&self) -> Vec<PathBuf> {
        let semel = [self.semel.clone(), "mcp".into(), "--name".into(), "echo".into(), "--".into()];
        [&semel[..], &self.python("echo.py")].concat()
    }

    /// Nothing of whoever runs the bench may change what is measured.
    fn furnish(&self, command: &mut Command) {
        let home = self.directory.path();
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", home);
        command.env("SEMEL_STATE_DIR", home.join("state")).current_dir(home);
    }
}

fn beside_fastmcp(stage: &McpStage, effort: Effort) -> Result<Vec<ReportLine>> {
    let proxy = [stage.python("fastmcp_proxy.py"), stage.python("echo.py")].concat();
    let ways = json!({"direct": stage.python("echo.py"), "proxy": proxy, "semel": stage.guarded()});
    let plan = json!({
        "ways": ways, "calls": effort.count(CALLS).max(IN_A_ROW), "in_a_row": IN_A_ROW,
        "together": TOGETHER, "rounds": ROUNDS
    });
    let words = stage.python("measure.py");
    let mut command = Command::new(&words[0]);
    command.arg(&words[1]).arg(plan.to_string());
    stage.furnish(&mut command);
    let output = command.output()?;
    let found: Value = serde_json::from_slice(&output.stdout)
        .map_err(|_| format!("the client gave no result: {}", String::from_utf8_lossy(&output.stderr)))?;
    let added = |way: &str, tool: &str| number(&found[way], tool) - number(&found["direct"], tool);
    let share = |tool: &str| {
        let made_of = format!(
            "semel adds {} us, FastMCP {} us, to {} us",
            figure(added("semel", tool)),
            figure(added("proxy", tool)),
            figure(number(&found["direct"], tool))
        );
        (added("semel", tool) / added("proxy", tool), made_of)
    };
    let ((guarded, guarded_of), (read, read_of)) = (share("charge"), share("get"));
    let mixed = [("guarded stdio call", "charge_mixed"), ("read call", "get_mixed")].map(|(what, tool)| {
        let (value, made_of) = share(tool);
        ReportLine::plain(format!("{what}, each after one of another way: the same"), value, "", made_of)
    });
    let [direct, proxied, ours] = ["direct", "proxy", "semel"].map(|way| number(&found[way], "rate"));
    let rates = format!("{} of {} calls/s; FastMCP {}", figure(ours), figure(direct), figure(proxied));
    let mut lines = vec![
        ReportLine::plain(
            "guarded stdio call: added p50 / what the FastMCP proxy adds",
            guarded,
            "",
            guarded_of,
        )
        .at_most(0.3, None),
        ReportLine::plain("read call: added p50 / what the FastMCP proxy adds", read, "", read_of)
            .at_most(0.05, None),
        ReportLine::plain("16 concurrent guarded calls / direct throughput", ours / direct, "", rates)
            .at_least(0.6, None),
    ];
    lines.extend(mixed);
    Ok(lines)
}

/// Resident memory of the one process that is semel's own.
fn memory(stage: &McpStage, effort: Effort) -> Result<Vec<ReportLine>> {
    let mut session = McpSession::open(stage)?;
    for n in 0..effort.count(CALLS) {
        session.call("charge", json!({"k": format!("memory-{n}")}))?;
    }
    let resident = session.megabytes("VmRSS:")?;
    let line = ReportLine::plain("memory", resident, " MB", "resident, after as many guarded calls")
        .at_most(30.0, None);
    let mut lines = vec![line];
    for (what, tool) in [("read", "get_big"), ("guarded", "charge_big")] {
        let mut session = McpSession::open(stage)?;
        let before = session.megabytes("VmHWM:")?;
        let length = session.call(tool, json!({"megabytes": MEGABYTES, "k": what}))?;
        let peak = session.megabytes("VmHWM:")?;
        let size = length as f64 / f64::from(1 << 20);
        let made_of =
            format!("peak {} MB, {} MB before; {} MB passed", figure(peak), figure(before), figure(size));
        let name = format!("{MEGABYTES} MB tool result, {what}: peak memory of semel / size of the result");
        lines.push(ReportLine::plain(name, peak / size, "", made_of));
    }
    Ok(lines)
}

/// Bare pipes: whoever measures semel's memory needs its process id.
struct McpSession {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl McpSession {
    fn open(stage: &McpStage) -> Result<McpSession> {
        let words = stage.guarded();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        stage.furnish(&mut command);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().expect("its input was asked for");
        let output = BufReader::new(child.stdout.take().expect("its output was asked for"));
        let mut session = McpSession { child, input, output };
        let about = json!({"name": "bench", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about});
        session.request("initialize", params)?;
        writeln!(session.input, "{}", json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(session)
    }

    fn request(&mut self, method: &str, params: Value) -> Result<usize> {
        writeln!(self.input, "{}", json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))?;
        let mut line = Vec::new();
        self.output.read_until(b'\n', &mut line)?;
        let shown = String::from_utf8_lossy(&line[..line.len().min(300)]);
        if shown.contains("\"result\"") { Ok(line.len()) } else { Err(format!("{method}: {shown}").into()) }
    }

    /// The length of the answer.
    fn call(&mut self, tool: &str, arguments: Value) -> Result<usize> {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    fn megabytes(&self, name: &str) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(name)).ok_or("no such line")?;
        let kib: f64 = line.split_whitespace().next().ok_or("no figure")?.parse()?;
        Ok(kib / 1024.0)
    }
}

impl Drop for McpSession {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}
