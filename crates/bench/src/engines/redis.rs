//! Redis that writes to its disk before it answers, beside `redis-benchmark`: one guarded call is two of its `SET NX`.

use super::{Engine, Goals, ToolLoad, must_lie_on_disk};
use semel_testkit::redis_server::RedisServer;
use std::process::Command;
use std::time::Duration;
use xtask::project::Result;
use xtask::tools;

/// About the operations a second that one client and that many have reached here: how many to ask for.
const RATE_ALONE: f64 = 6_000.0;
const RATE_MAX: f64 = 50_000.0;

/// Of so many random keys few come twice. The tool takes no more.
const KEYS_FRESH: u64 = 2_000_000_000;

/// Keys that reads find.
const KEYS: u64 = 100_000;

#[derive(Debug)]
pub struct Redis {
    server: RedisServer,
}

impl Redis {
    pub fn start() -> Result<Redis> {
        must_lie_on_disk(&std::env::temp_dir())?;
        tools::key_value_servers()?;
        let server = RedisServer::start(&[]);
        let fill = "for n = 0, ARGV[1] - 1 do redis.call('SET', string.format('%012d', n), string.rep('r', 200)) end";
        server.ask(&["EVAL", fill, "0", &KEYS.to_string()]);
        Ok(Redis { server })
    }

    fn benchmark(&self, keys: u64, clients: usize, span: Duration, words: &[&str]) -> Result<ToolLoad> {
        let rate = (RATE_ALONE * clients as f64).min(RATE_MAX);
        let count = (rate * span.as_secs_f64()) as u64;
        let mut tool = Command::new("redis-benchmark");
        tool.args(["-p", &self.server.port().to_string(), "-c", &clients.to_string(), "--csv"]);
        tool.args(["-n", &count.to_string(), "-r", &keys.to_string()]).args(words);
        let output = tool.output()?;
        // The command as it was given, operations a second, and times in milliseconds: mean, least, median, …
        let said = String::from_utf8_lossy(&output.stdout);
        let last = said.lines().last().unwrap_or_default();
        let numbers: Vec<f64> =
            last.split(',').filter_map(|word| word.trim_matches('"').parse().ok()).collect();
        match numbers[..] {
            [per_second, _, _, p50, ..] => Ok(ToolLoad { per_second, p50_us: p50 * 1e3 }),
            _ => Err(format!("redis-benchmark said {said}").into()),
        }
    }
}

impl Engine for Redis {
    fn name(&self) -> &'static str {
        "Redis"
    }

    fn tool(&self) -> &'static str {
        "redis-benchmark, two SET NX"
    }

    fn goals(&self) -> Goals {
        Goals { alone_at_most: None, busy_at_least: Some(0.7) }
    }

    fn address(&self, ledger: &str) -> String {
        format!("{}?ledger={ledger}", self.server.url())
    }

    fn pairs(&self, clients: usize, span: Duration) -> Result<ToolLoad> {
        let set = ["SET", "fresh:__rand_int__", &"r".repeat(200), "NX"];
        Ok(self.benchmark(KEYS_FRESH, clients, span, &set)?.of_pairs())
    }

    fn reads(&self, clients: usize, span: Duration) -> Result<Option<ToolLoad>> {
        self.benchmark(KEYS, clients, span, &["GET", "__rand_int__"]).map(Some)
    }
}
