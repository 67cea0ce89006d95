//! Behind a pooler that gives a connection of the server to one client for one transaction.

use super::exercise_on;
use semel_testkit::postgres_server::{
    PostgresServer, as_nobody, directory, free_port, give_to_nobody, socket, url,
};
use semel_testkit::wait_until;
use std::process::Child;

struct Pooler(Child);

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ended_already = self.0.kill();
        let _reaped = self.0.wait();
    }
}

#[test]
fn the_postgres_store_passes_the_suite_behind_pgbouncer() {
    let server = PostgresServer::start(&[]);
    let (directory, port) = (directory(), free_port());
    let file = directory.path().join("pgbouncer.ini");
    let configuration = format!(
        "[databases]\npostgres = host={} port={} user=semel\n[pgbouncer]\npool_mode = transaction\n\
         default_pool_size = 3\nmax_client_conn = 500\nlisten_port = {port}\nunix_socket_dir = {}\nauth_type = any\n",
        server.directory().display(),
        server.port,
        directory.path().display(),
    );
    std::fs::write(&file, configuration).expect("a file");
    give_to_nobody(&file);
    let _pooler = Pooler(as_nobody("pgbouncer").arg(&file).spawn().expect("pgbouncer is installed"));
    wait_until("pgbouncer listens", || socket(directory.path(), port).exists());
    exercise_on(|schema| url(directory.path(), port, schema));
}
