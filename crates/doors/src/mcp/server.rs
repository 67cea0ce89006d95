//! One real server, as the door knows it: the way to it, its tools, and the era that it speaks.

use super::id::Id;
use super::link::Link;
use super::link::request::LinkRequest;
use super::message::{Message, text};
use super::task::registry::Tasks;
use super::tools::Tools;
use crate::wire::members::{Members, quoted};
use semel_core::digest::Secret;
use semel_core::effect::Facts;
use semel_core::intent::authority_mark;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The operator's settings of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Its annotations may take protection away.
    pub trusted: bool,
    /// Listings say which tools are guarded.
    pub decorate: bool,
    /// `semel_ledger` and `semel_report` are offered beside the server's own tools.
    pub own_tools: bool,
    /// Listings offer a dry run as an argument.
    pub dry_run_argument: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { trusted: false, decorate: true, own_tools: true, dry_run_argument: false }
    }
}

/// The servers that semel itself can ask, by name.
pub type Servers = BTreeMap<String, Arc<Server>>;

#[derive(Debug)]
pub struct Server {
    pub name: String,
    /// Tells two servers of one name apart: the origin of a remote one.
    pub authority: String,
    pub settings: Settings,
    pub link: Link,
    seen: Arc<ServerView>,
    shared: Arc<ServerCommon>,
}

/// Shared by all ways to the server.
#[derive(Debug)]
struct ServerCommon {
    ids: AtomicU64,
    /// Of this process alone, so that an id of an earlier one is not mistaken for ours.
    instance: String,
    /// The server as each other caller sees it.
    others: Mutex<HashMap<String, Arc<ServerView>>>,
}

/// The server as one caller sees it. A remote one may list other tools to another, and what it says to one takes no
/// protection from the other.
#[derive(Debug, Default)]
struct ServerView {
    known: Mutex<ViewState>,
    /// One fetch of the listing at a time.
    listing: tokio::sync::Mutex<()>,
    era_check: tokio::sync::Mutex<EraCheck>,
    tasks: Arc<Tasks>,
}

/// More callers are not remembered: for a forgotten one the server is asked anew.
const OTHERS_MAX: usize = 1_000;

#[derive(Debug, Default)]
struct ViewState {
    tools: Arc<Tools>,
    listed: bool,
    /// A server that did not list its tools is not asked again before.
    ask_again: Option<tokio::time::Instant>,
    /// Pages of a listing that a client is leafing through.
    leafing: Option<Tools>,
    protocol: ServerProtocol,
}

/// The server's protocol, as far as it was heard.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerProtocol {
    pub era: Option<Era>,
    /// It knows `params.idempotencyKey` itself (SEP-3182).
    pub idempotency: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Era {
    /// `initialize`, agreed on this version.
    Session(String),
    /// Stateless; these versions.
    Stateless(Vec<String>),
}

/// The answer of a server that was asked whether it is of the stateless era, for clients that come by many ways.
#[derive(Debug, Default)]
pub enum EraCheck {
    #[default]
    NotYet,
    Stateless,
    /// It is of the other era, in this version, and may be asked again then: servers learn.
    Session {
        agreed: String,
        again: tokio::time::Instant,
    },
    /// It said nothing that can be understood.
    Unclear {
        again: tokio::time::Instant,
    },
}

/// A listing that takes longer is not waited for.
const LISTING_TAKES_MAX: Duration = Duration::from_secs(10);

/// How long a server that did not answer is left alone: not every call should wait for it.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// Pages of one listing; a server that never ends is not followed for ever.
const PAGES_MAX: usize = 100;

impl Server {
    pub fn new(name: String, authority: String, settings: Settings, link: Link, instance: String) -> Server {
        let shared = ServerCommon { ids: AtomicU64::new(1), instance, others: Mutex::default() };
        Server { name, authority, settings, link, seen: Arc::default(), shared: Arc::new(shared) }
    }

    /// The same server by another way: over HTTP each caller has its own credential and session. `authority` tells two
    /// accounts at the server apart, `whose` two callers that it may show different tools to.
    pub fn through(&self, link: Link, authority: String, whose: String) -> Server {
        let mut others = self.shared.others.lock().unwrap_or_else(PoisonError::into_inner);
        if others.len() >= OTHERS_MAX && !others.contains_key(&whose) {
            others.clear();
        }
        Server {
            name: self.name.clone(),
            authority,
            settings: self.settings.clone(),
            link,
            seen: Arc::clone(others.entry(whose).or_default()),
            shared: Arc::clone(&self.shared),
        }
    }

    /// Whether an effect was done through a server of this name.
    pub fn shares_name_with(&self, facts: &Facts) -> bool {
        facts.action.starts_with(&self.action(""))
    }

    /// Whether an effect was done through this very server: another project may have one of its name, with a world of
    /// its own. Of records from before it was kept, the name is all that is known.
    pub fn has_done(&self, facts: &Facts, secret: &Secret) -> bool {
        let own = || authority_mark(secret, &facts.tenant, &self.authority);
        self.shares_name_with(facts) && (facts.authority == 0 || facts.authority == own())
    }

    pub fn tasks(&self) -> &Arc<Tasks> {
        &self.seen.tasks
    }

    pub fn action(&self, tool: &str) -> String {
        format!("mcp:{}/{tool}", self.name)
    }

    /// An id that no other request to this server has.
    pub fn next_id(&self) -> Id {
        let ServerCommon { instance, ids, .. } = &*self.shared;
        Id::own(instance, ids.fetch_add(1, Ordering::Relaxed))
    }

    /// The tools, if they were listed since they last changed.
    pub fn known_tools(&self) -> Option<Arc<Tools>> {
        let known = self.lock();
        known.listed.then(|| Arc::clone(&known.tools))
    }

    pub fn protocol(&self) -> ServerProtocol {
        self.lock().protocol.clone()
    }

    pub fn update_protocol(&self, change: impl FnOnce(&mut ServerProtocol)) {
        change(&mut self.lock().protocol);
    }

    /// The holder of this guard is the only one that asks.
    pub async fn era_check(&self) -> tokio::sync::MutexGuard<'_, EraCheck> {
        self.seen.era_check.lock().await
    }

    /// The listing is out of date; what is known of it still is better than nothing.
    pub fn tools_changed(&self) {
        self.lock().listed = false;
    }

    /// A client got this page of a listing.
    pub fn add_listing_page(&self, first: bool, result: &str) {
        let mut known = self.lock();
        let mut tools = match (first, known.leafing.take()) {
            (true, _) => Tools::default(),
            (false, Some(tools)) => tools,
            // The first page was another client's.
            (false, None) => return,
        };
        match tools.add_page(result) {
            Some(_) => known.leafing = Some(tools),
            None => {
                known.tools = Arc::new(tools);
                known.listed = true;
            }
        }
    }

    /// The tools; asks for them unless they are known. Of a server that does not tell none are known.
    pub async fn tools(&self, meta: &str) -> Arc<Tools> {
        if let Some(tools) = self.known_tools() {
            return tools;
        }
        let _one_at_a_time = self.seen.listing.lock().await;
        if let Some(tools) = self.known_tools() {
            return tools;
        }
        {
            let known = self.lock();
            if known.ask_again.is_some_and(|at| crate::runtime::moment() < at) {
                return Arc::clone(&known.tools);
            }
        }
        let fetched = tokio::time::timeout(LISTING_TAKES_MAX, self.fetch_tools(meta)).await.ok().flatten();
        let mut known = self.lock();
        match fetched {
            Some(tools) => {
                known.tools = Arc::new(tools);
                known.listed = true;
            }
            None => known.ask_again = Some(crate::runtime::moment() + ASK_AGAIN_AFTER),
        }
        Arc::clone(&known.tools)
    }

    async fn fetch_tools(&self, meta: &str) -> Option<Tools> {
        let mut tools = Tools::default();
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let mut params = Members::default();
            if let Some(cursor) = &cursor {
                params.set("cursor", quoted(cursor));
            }
            if meta != "{}" {
                params.set("_meta", meta.to_owned());
            }
            let answer = self.ask("tools/list", &params.to_string()).await.ok()?;
            if let super::message::MessageKind::Response { failed: true, .. } = answer.kind {
                return None;
            }
            cursor = tools.add_page(answer.body.as_ref().map_or("null", text));
            if cursor.is_none() {
                return Some(tools);
            }
        }
        Some(tools)
    }

    /// A request of semel's own that changes nothing.
    pub async fn ask(&self, method: &str, params: &str) -> Result<Message, String> {
        self.link.ready().await?;
        let id = self.next_id();
        let request =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{},"params":{params}}}"#, quoted(method));
        let outgoing =
            LinkRequest { id, frame: request.into(), last_moment: None, is_read: true, news: None };
        self.link.exchange(outgoing).await.into_reply()
    }

    fn lock(&self) -> MutexGuard<'_, ViewState> {
        self.seen.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
