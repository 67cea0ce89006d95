//! PostgreSQL, beside `pgbench`: the same two durable statements on a table of their own, prepared.

use super::{Engine, Goals, ToolLoad, must_lie_on_disk};
use crate::measure::Times;
use semel_testkit::postgres_server::{self, PostgresServer, as_nobody};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use xtask::project::Result;
use xtask::tools;

/// Room for the clients of all, and a cache and a log as people give them to a server that works.
const SETTINGS: [&str; 6] = [
    "fsync=on",
    "full_page_writes=on",
    "synchronous_commit=on",
    "max_connections=400",
    "shared_buffers=512MB",
    "max_wal_size=4GB",
];

const TABLE: &str = "CREATE TABLE bare (key bytea PRIMARY KEY, state int NOT NULL, result bytea);
INSERT INTO bare SELECT sha256(int8send(n)), 2, convert_to(repeat('r', 200), 'UTF8') FROM generate_series(1, 100000) n;
VACUUM ANALYZE bare;";

const PAIR: &str = r"\set n random(1000000, 9000000000000000000)
INSERT INTO bare VALUES (sha256(int8send(:n)), 1) ON CONFLICT DO NOTHING;
UPDATE bare SET state = 2, result = convert_to(repeat('r', 200), 'UTF8') WHERE key = sha256(int8send(:n)) AND state = 1;
";

const READ: &str = r"\set n random(1, 100000)
SELECT result FROM bare WHERE key = sha256(int8send(:n)) AND state = 2;
";

#[derive(Debug)]
pub struct Postgres {
    server: PostgresServer,
}

impl Postgres {
    pub fn start() -> Result<Postgres> {
        must_lie_on_disk(Path::new("/tmp"))?;
        tools::postgresql()?;
        let server = PostgresServer::start(&SETTINGS);
        server.sql(TABLE);
        Ok(Postgres { server })
    }

    /// Host, port and user, as libpq takes them.
    pub fn place(&self) -> String {
        format!("host={} port={} user=semel", self.server.directory().display(), self.server.port)
    }

    /// The same as a URL, for a database that its client makes.
    pub fn url(&self, database: &str) -> String {
        let host = self.server.directory().display();
        format!("postgresql://semel@/{database}?host={host}&port={}", self.server.port)
    }

    fn pgbench(&self, script: &str, clients: usize, span: Duration) -> Result<ToolLoad> {
        let directory = postgres_server::directory();
        let file = directory.path().join("script.sql");
        fs::write(&file, script)?;
        let threads = std::thread::available_parallelism()?.get().min(clients);
        let mut pgbench = as_nobody("pgbench");
        pgbench.arg("-h").arg(self.server.directory()).args(["-p", &self.server.port.to_string()]);
        pgbench.args(["-U", "semel", "-d", "postgres", "--no-vacuum", "--protocol=prepared", "--log"]);
        pgbench.args(["-c", &clients.to_string(), "-j", &threads.to_string()]);
        pgbench.args(["-T", &span.as_secs().max(1).to_string()]);
        pgbench.arg("--log-prefix").arg(directory.path().join("log")).arg("--file").arg(&file);
        let output = pgbench.stdout(Stdio::piped()).stderr(Stdio::piped()).output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        let rate = said.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
        let Some(per_second) = rate.filter(|_| output.status.success()) else {
            return Err(format!("pgbench: {}", String::from_utf8_lossy(&output.stderr)).into());
        };
        let mut times = Times::default();
        for entry in fs::read_dir(directory.path())? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with("log") {
                let text = fs::read_to_string(entry.path())?;
                let micros = text.lines().filter_map(|line| line.split(' ').nth(2)?.parse().ok());
                micros.for_each(|micros| times.add(Duration::from_micros(micros)));
            }
        }
        Ok(ToolLoad { per_second, p50_us: times.median() })
    }
}

impl Engine for Postgres {
    fn name(&self) -> &'static str {
        "PostgreSQL"
    }

    fn tool(&self) -> &'static str {
        "pgbench, two statements"
    }

    fn goals(&self) -> Goals {
        Goals { alone_at_most: Some(1.5), busy_at_least: Some(2.0) }
    }

    fn address(&self, ledger: &str) -> String {
        self.server.url(ledger)
    }

    fn pairs(&self, clients: usize, span: Duration) -> Result<ToolLoad> {
        self.pgbench(PAIR, clients, span)
    }

    fn reads(&self, clients: usize, span: Duration) -> Result<Option<ToolLoad>> {
        self.pgbench(READ, clients, span).map(Some)
    }

    fn rest(&self) {
        self.server.sql("VACUUM ANALYZE; CHECKPOINT;");
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Its children end with it, and the time that they have used counts as the bench's own.
        let data = self.server.directory().join("data");
        let _killed_otherwise =
            as_nobody("pg_ctl").args(["stop", "--mode=immediate", "-D"]).arg(data).status();
    }
}
