//! nginx as a reverse proxy, with the settings that people give it: all cores, kept connections to both sides, no log
//! of requests.

use super::measure;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use xtask::project::{self, Result};

const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub struct Nginx {
    process: Child,
    pub address: SocketAddr,
    _directory: TempDir,
}

impl Nginx {
    pub fn before(upstream: SocketAddr) -> Result<Nginx> {
        let program = program()?;
        let directory = tempfile::tempdir_in(project::scratch()?)?;
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let own = directory.path();
        let file = own.join("nginx.conf");
        fs::write(&file, configuration(&own.display().to_string(), address, upstream))?;
        let mut command = Command::new(program);
        command.arg("-p").arg(own).arg("-c").arg(&file).arg("-e").arg(own.join("errors"));
        let process = command.stdin(Stdio::null()).spawn()?;
        let mut nginx = Nginx { process, address, _directory: directory };
        let started = measure::now();
        while TcpStream::connect(address).is_err() {
            if nginx.process.try_wait()?.is_some() || started.elapsed() > PATIENCE {
                return Err("nginx does not start".into());
            }
            measure::pause(Duration::from_millis(20));
        }
        Ok(nginx)
    }

    /// The processes that it consists of.
    pub fn processes(&self) -> Vec<u32> {
        let id = self.process.id();
        let workers = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        std::iter::once(id).chain(workers.split_whitespace().filter_map(|id| id.parse().ok())).collect()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Its master ends the workers, which a plain kill would not see to.
        let told = Command::new("kill").args(["-TERM", &self.process.id().to_string()]).status();
        if !told.is_ok_and(|status| status.success()) {
            drop(self.process.kill());
        }
        drop(self.process.wait());
    }
}

fn configuration(own: &str, address: SocketAddr, upstream: SocketAddr) -> String {
    format!(
        "daemon off; worker_processes auto; pid {own}/pid; error_log {own}/errors;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  keepalive_requests 100000000;
  client_body_temp_path {own}/1; proxy_temp_path {own}/2; fastcgi_temp_path {own}/3; uwsgi_temp_path {own}/4;
  scgi_temp_path {own}/5;
  upstream behind {{ server {upstream}; keepalive 256; keepalive_requests 100000000; }}
  server {{
    listen {address};
    location / {{ proxy_pass http://behind; proxy_http_version 1.1; proxy_set_header Connection \"\"; }}
  }}
}}
"
    )
}

fn program() -> Result<PathBuf> {
    let places = ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx", "/usr/local/bin/nginx"];
    let find = || places.iter().map(PathBuf::from).find(|place| place.exists());
    if let Some(found) = find() {
        return Ok(found);
    }
    project::install_with_apt("nginx", &["nginx-light"])?;
    find().ok_or_else(|| "there is no nginx on this machine".into())
}
