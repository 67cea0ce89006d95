//! The server, as `semel doctor` shows it.

use super::read::Reader;
use crate::Error;
use crate::engine_facts::{EngineFacts, ahead_ms};
use semel_core::time::At;

impl Reader {
    pub(super) async fn describe(&self, now: At) -> Result<EngineFacts, Error> {
        let found = self
            .query(
                "SELECT current_setting('server_version'), current_setting('synchronous_standby_names'), \
                 current_setting('full_page_writes'), (extract(epoch FROM clock_timestamp()) * 1000)::bigint",
                &[],
            )
            .await?;
        let (version, standbys, whole_pages): (String, String, String) =
            (found[0].get(0), found[0].get(1), found[0].get(2));
        // A claim waits for the servers that `synchronous_standby_names` lists; an asynchronous one may lag behind.
        let durability = match standbys.is_empty() {
            true => {
                "durable: on the server's disk before anything is sent; a promoted standby may lack the newest"
            }
            false => {
                "durable: on the disks of the server and its synchronous standbys before anything is sent"
            }
        };
        let there = At::from_millis(u64::try_from(found[0].get::<_, i64>(3)).unwrap_or_default());
        Ok(EngineFacts {
            server: format!("PostgreSQL {version}"),
            persistence: format!(
                "fsync on, synchronous_commit on for claims, full_page_writes {whole_pages}"
            ),
            durability: durability.to_owned(),
            clock_ahead_ms: Some(ahead_ms(there, now)),
        })
    }
}
