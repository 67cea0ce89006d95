//! The server, as `semel doctor` shows it.

use super::read::Reader;
use crate::Error;
use semel_core::time::At;

impl Reader {
    pub(super) async fn describe(&self, now: At) -> Result<Vec<(&'static str, String)>, Error> {
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
        let tier = match standbys.is_empty() {
            true => {
                "a claim is on the server's disk before anything is sent; a promoted standby may lack the newest"
            }
            false => "a claim is on the server's disk and its synchronous standbys' before anything is sent",
        };
        let skew = found[0].get::<_, i64>(3) - i64::try_from(now.0 / 1_000).unwrap_or(i64::MAX);
        Ok(vec![
            ("server", format!("PostgreSQL {version}")),
            (
                "persistence",
                format!("fsync on, synchronous_commit on for claims, full_page_writes {whole_pages}"),
            ),
            ("tier", tier.to_owned()),
            (
                "clock skew",
                format!("the server is {skew} ms ahead of this host, the question's way included"),
            ),
        ])
    }
}
