//! semel for Rust programs that call tools: each intended effect happens at most once.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let home = tempfile::tempdir()?;
//! # let ledger = home.path().join("ledger.db").display().to_string();
//! # let settings = semel::settings::Settings { ledger: Some(ledger), ..semel::settings::Settings::read()? };
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! # runtime.block_on(async {
//! let semel = semel::Semel::of(&settings)?; // or `Semel::open()`: the ledger that the environment names
//! let charge = async |order: &str| {
//!     let call = semel.once("charge").key(order).argument("amount", 4900);
//!     call.run(|effect| async move {
//!         // Call the payment service here, with `effect.idempotency_key`.
//!         println!("charging");
//!         Ok::<_, std::io::Error>("ch_1".to_owned())
//!     })
//!     .await
//! };
//! assert_eq!(charge("order-1001").await?, "ch_1"); // runs
//! assert_eq!(charge("order-1001").await?, "ch_1"); // the recorded reply
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! It holds the ledger in process, beside the command line's, and follows the same `semel.toml`. It refuses to know
//! protocols: those are for `semel run`, `semel mcp` and `semel serve`.
//!
//! Without features the ledger is a file, on SQLite. `postgres`, `redis` and `etcd` add ledgers on a server, and `command`
//! adds the options and answers of command-line tools that agents call.
#![warn(missing_docs)]

mod ask;
pub mod bad_setting;
pub mod call;
#[cfg(feature = "command")]
pub mod command;
mod error;
pub mod ledger_address;
mod once;
pub mod policy_files;
pub mod runtime;
mod session;
pub mod settings;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use ask::Reply;
pub use bad_setting::BadSetting;
pub use error::{Error, told};
pub use once::{Effect, Failure, Once, once};
pub use session::{Begun, Done, LOCAL, Look, Looked, Right, Semel};
