//! The certificate of `semel serve`, and its renewal.

use crate::output::{Hinted, Output};
use semel_core::policy::servers::Serve;
use semel_doors::http::server::ServerTls;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Certificates are renewed days before they end.
const LOOKS_EVERY: Duration = Duration::from_secs(5);

pub fn of(serve: &Serve) -> anyhow::Result<Option<Arc<ServerTls>>> {
    let Some(files) = &serve.tls else { return Ok(None) };
    match ServerTls::read(files.clone()) {
        Ok(tls) => Ok(Some(Arc::new(tls))),
        Err(error) => Err(Hinted::error(error.to_string(), error.help())),
    }
}

/// Reads the files again from time to time, and whenever it is notified. Must be called within a runtime.
pub fn keep(tls: Arc<ServerTls>, output: Output) -> Arc<Notify> {
    let reload = Arc::<Notify>::default();
    let asked = Arc::clone(&reload);
    tokio::spawn(async move {
        let mut told = None;
        loop {
            if tokio::time::timeout(LOOKS_EVERY, asked.notified()).await.is_ok() {
                told = None;
            }
            let tls = Arc::clone(&tls);
            // A disk that hangs holds up nobody.
            let Ok(read) = tokio::task::spawn_blocking(move || tls.read_again()).await else { continue };
            let trouble = read.as_ref().err().map(|error| format!("{error} ({})", error.help()));
            match (&trouble, read) {
                (Some(why), _) if trouble != told => output.warn(format_args!(
                    "semel: the certificate in use stays, because the new one cannot be used: {why}"
                )),
                (None, Ok(true)) => output.warn("semel: new connections get the new certificate"),
                _ => {}
            }
            told = trouble;
        }
    });
    reload
}
