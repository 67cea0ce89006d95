//! Programs that tests and benches run, installed where the system has a package of them.

use crate::project::{self, Result};
use std::process::{Command, Stdio};

/// The bundled SQLite is compiled from C; nothing else has to be there.
pub fn c_compiler() -> Result<()> {
    let works = || Command::new("cc").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if works().is_ok_and(|status| status.success()) {
        return Ok(());
    }
    project::install_with_apt("C compiler", &["gcc", "libc6-dev"])?;
    match works() {
        Ok(status) if status.success() => Ok(()),
        _ => Err("a C compiler named `cc` is needed to build SQLite; please install one".into()),
    }
}

/// `semel reconcile` reads a real one, in a cluster that lives as long as the test; ledgers lie on one, also behind a
/// pooler.
pub fn postgresql() -> Result<()> {
    let runs = |program: &str| {
        Command::new(program).arg("--help").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
    };
    // Pooler daemons are kept out of the search path of those who are not root.
    if runs("pg_virtualenv") && (runs("pgbouncer") || runs("/usr/sbin/pgbouncer")) {
        return Ok(());
    }
    project::install_with_apt("PostgreSQL", &["postgresql", "pgbouncer", "openssl"])
}

/// The ledger is tried on real ones, which live as long as their tests; OpenSSL makes their certificates.
pub fn key_value_servers() -> Result<()> {
    let packages = [
        ("redis-server", "redis-server"),
        ("etcd", "etcd-server"),
        ("etcdctl", "etcd-client"),
        ("openssl", "openssl"),
    ];
    for (program, package) in packages {
        match Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status() {
            Ok(_) => {}
            Err(_) => project::install_with_apt(program, &[package])?,
        }
    }
    Ok(())
}

/// Alert rules are tried by Prometheus's own tool, and the Compose file is read by Compose. Neither needs its server.
pub fn deployment_tools() -> Result<()> {
    for (program, package) in [("promtool", "prometheus"), ("docker-compose", "docker-compose")] {
        match Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status() {
            Ok(_) => {}
            Err(_) => project::install_with_apt(program, &[package])?,
        }
    }
    Ok(())
}

/// Counts instructions and allocations.
pub fn valgrind() -> Result<()> {
    match Command::new("valgrind").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status() {
        Ok(_) => Ok(()),
        // It needs the symbols of the loader, to count the allocations of a program.
        Err(_) => project::install_with_apt("valgrind", &["valgrind", "libc6-dbg"]),
    }
}
