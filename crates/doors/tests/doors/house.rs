//! All doors of one server, served in this process on a port of their own. The ledger is a real one.

use axum::Router;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use semel_core::ids::Run;
use semel_core::policy::servers::McpEndpoint;
use semel_core::policy::upstreams::HttpApi;
use semel_core::policy::{Policy, PolicyFile};
use semel_core::redact::is_secret_name;
use semel_doors::api::{self, ApiServer};
use semel_doors::http::client::Client;
use semel_doors::http::server::{
    self, Admission, Keyring, OperatorToken, ReadTokens, Room, ServerLoad, ServerSetup, Workers,
};
use semel_doors::http::target::Target;
use semel_doors::mcp::configured::ConfiguredServers;
use semel_doors::mcp::link::Link;
use semel_doors::mcp::link::remote::RemoteLink;
use semel_doors::mcp::serve::http::{self as mcp, Remote, ServerBackend};
use semel_doors::mcp::server::{Server, Settings};
use semel_doors::proxy::{self, Offer, offer::OfferSettings};
use semel_doors::query::Backends;
use semel_doors::query::origins::Origins;
use semel_doors::router::DoorRouter;
use semel_doors::runtime::RuntimeClock;
use semel_doors::services::Services;
use semel_doors::telemetry::{self, ServerHealth};
use semel_doors::undo::Undoer;
use semel_gate::Gate;
use semel_gate::clock::{Clock, block_on};
use semel_gate::look::SILENCE_MAX;
use semel_ledger::Ledger;
use semel_ledger::entropy::OsEntropy;
use semel_ledger::holders::FileHolders;
use semel_ledger::place::Place;
use semel_ledger::sqlite::{OpenOptions, OpenedStore, SqliteStore};
use semel_ledger::store::{JOURNAL_PAGE_MAX, JournalLine};
use semel_ledger::tokens::{AccessScope, TokenRequest};
use semel_testkit::http::{RawClient, Response};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Builder;
use tokio::sync::oneshot;

pub const TOKEN: &str = "a-token-of-this-test";

/// More than any test opens.
const FILES: usize = 4_096;

/// A ledger's directory.
#[derive(Debug)]
pub struct Home(TempDir);

impl Home {
    pub fn new() -> Home {
        Home(tempfile::tempdir().expect("a directory"))
    }

    pub fn ledger(&self) -> PathBuf {
        self.0.path().join("ledger.db")
    }

    /// Whether any file of the ledger has this text.
    pub fn holds(&self, text: &str) -> bool {
        files_below(self.0.path()).iter().any(|file| {
            let bytes = std::fs::read(file).unwrap_or_default();
            bytes.windows(text.len()).any(|window| window == text.as_bytes())
        })
    }
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// A server that runs.
pub struct House {
    pub address: String,
    services: Arc<Services>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    operator: OnceLock<String>,
}

impl House {
    pub fn start(home: &Home, policy: &str) -> House {
        House::bearing(home, policy, SILENCE_MAX)
    }

    /// One that bears so much silence of an upstream.
    pub fn bearing(home: &Home, policy: &str, silence_max: Duration) -> House {
        let file = PolicyFile { path: "semel.toml".into(), text: policy.to_owned() };
        let policy = Policy::load(vec![file]).unwrap_or_else(|found| panic!("{}", found.render(false)));
        let ledger = home.ledger();
        let (tell, told) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(serve(policy, silence_max, &ledger, &tell, stopped));
            runtime.shutdown_background();
        });
        let (address, services) = told.recv().expect("it says where it listens");
        House { address, services, stop: Some(stop), thread: Some(thread), operator: OnceLock::new() }
    }

    /// Tells it to stop, and waits for its end.
    pub fn stop(&mut self) {
        self.tell_to_stop();
        self.thread.take().into_iter().for_each(|thread| thread.join().expect("it ends"));
    }

    fn tell_to_stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ended_already = stop.send(());
        }
    }

    /// Time passes at once.
    pub fn pass(&self, span: Duration) {
        self.services.clock.pass(span);
    }

    /// First line, headers and body; the answer is still to be read.
    pub fn ask(&self, line: &str, headers: &str, body: &str) -> RawClient {
        RawClient::ask(&self.address, line, headers, body)
    }

    pub fn token(&self, scope: AccessScope, tenant: &str, name: &str) -> String {
        let new = TokenRequest::new(tenant, scope, Some(name), None).expect("a plain name");
        let gate = self.services.gate.as_ref().expect("a ledger");
        block_on(gate.ledger.make_token(&new, self.services.clock.now())).expect("a token").text
    }

    /// What an operator asks of the API.
    pub fn operate(&self, method: &str, path: &str, body: Option<&Value>) -> Response {
        let body = body.map(Value::to_string).unwrap_or_default();
        self.operate_with(method, path, "Content-Type: application/json\r\n", &body)
    }

    fn operate_with(&self, method: &str, path: &str, headers: &str, body: &str) -> Response {
        let token = self.operator.get_or_init(|| self.token(AccessScope::Admin, "local", "alice"));
        let headers = format!("Authorization: Bearer {token}\r\n{headers}");
        self.ask(&format!("{method} /api/v1{path} HTTP/1.1"), &headers, body).answer()
    }

    /// The effects that the ledger lists, with this query.
    pub fn effects(&self, query: &str) -> Vec<Value> {
        let mut listed = self.operate("GET", &format!("/effects{query}"), None).json();
        let Value::Array(items) = listed["items"].take() else { panic!("{listed}") };
        items
    }

    /// One effect, whole.
    pub fn effect(&self, id: &str) -> Value {
        self.operate("GET", &format!("/effects/{id}"), None).json()
    }

    /// The journal: what kind of line, and what it says.
    pub fn journal(&self) -> Vec<(String, Value)> {
        let gate = self.services.gate.as_ref().expect("a ledger");
        let page = block_on(gate.ledger.journal(None, JOURNAL_PAGE_MAX)).expect("a journal");
        let line = |line: JournalLine| {
            let data = serde_json::from_str(&line.data).unwrap_or_default();
            (line.kind, data)
        };
        page.items.into_iter().map(|(_, of)| line(of)).collect()
    }

    /// What a person reads of a run.
    pub fn run_in_words(&self, run: &str) -> String {
        self.operate_with("GET", &format!("/runs/{run}"), "Accept: text/markdown\r\n", "").body
    }

    pub fn rule(&self, path: &str, body: &Value) -> Response {
        self.operate("POST", path, Some(body))
    }
}

/// A request that is held back would keep it for long, and nobody waits for it any more.
impl Drop for House {
    fn drop(&mut self) {
        self.tell_to_stop();
    }
}

async fn serve(
    policy: Policy,
    silence_max: Duration,
    ledger: &Path,
    tell: &mpsc::Sender<(String, Arc<Services>)>,
    stopped: oneshot::Receiver<()>,
) {
    let clock = RuntimeClock::start();
    let gate = gate(ledger, &clock, &policy);
    let apis: BTreeMap<String, Arc<Offer>> = policy
        .upstreams
        .iter()
        .map(|(name, api)| (name.clone(), Arc::new(offer(&policy, name, api))))
        .collect();
    let servers = policy.mcp.iter().map(|(name, server)| (name.clone(), mcp_offer(name, server, &clock)));
    let servers = servers.collect();
    let configured = Arc::new(ConfiguredServers::default());
    let backends = Backends { origins: origins(&policy), ..Backends::default() };
    let mut services = Services::new(gate, policy, clock).with_backends(backends);
    services.silence_max = silence_max;
    let services = Arc::new(services);
    let undoer = Undoer { services: Arc::clone(&services), servers: configured };
    let load = ServerLoad::within(Room::for_files(FILES));
    let router = Router::new()
        .merge(telemetry::router(Arc::new(ServerHealth::new(Arc::clone(&services), load.clone()))))
        .merge(mcp::router(Arc::new(mcp::ServerOffers { services: Arc::clone(&services), by_name: servers })))
        .merge(api::router(Arc::new(ApiServer::new(Arc::clone(&services), undoer))));
    let listener = server::listen("127.0.0.1:0".parse().expect("an address")).expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    let served = ServerSetup {
        tls: None,
        admission: admission(&services),
        doors: DoorRouter::new(proxy::Offers::new(Arc::clone(&services), apis), router),
        load,
        workers: Workers::with(0).expect("threads"),
        grace: services.policy.serve.grace.unwrap_or(server::GRACE),
    };
    tell.send((address, Arc::clone(&services))).expect("a test waits for it");
    let stop = async { drop(stopped.await) };
    server::serve(
        listener,
        served,
        stop,
        async || services.in_flight.idle().await,
        || services.in_flight.give_up(),
    )
    .await;
    if let Ok(gate) = &services.gate {
        gate.settle_pending().await;
        // A ledger that cannot be written shows in what the test reads next.
        let _shown = gate.ledger.lapse_own(services.clock.now()).await;
        let _shown = gate.write_counts().await;
    }
}

fn gate(ledger: &Path, clock: &RuntimeClock, policy: &Policy) -> Result<Gate, String> {
    let options = OpenOptions::at(Place::at(ledger), clock.now());
    let OpenedStore { store, secret, .. } = SqliteStore::open(options).map_err(|error| error.to_string())?;
    let holders = FileHolders::in_directory(store.place().owners());
    Ok(Gate::new(
        Ledger::new(Arc::new(store), Arc::new(holders), OsEntropy, secret),
        clock.clone(),
        policy.mode,
    ))
}

fn admission(services: &Arc<Services>) -> Admission {
    let Policy { serve, upstreams, .. } = &services.policy;
    let keeper = Arc::clone(services);
    let read: ReadTokens = Arc::new(move || {
        let services = Arc::clone(&keeper);
        Box::pin(async move {
            let gate = services.gate.as_ref().map_err(Clone::clone)?;
            gate.ledger.tokens().await.map_err(|error| error.to_string())
        })
    });
    let required = serve.require_token != Some(false);
    let token = required.then(|| OperatorToken::new(TOKEN.to_owned()));
    let rooms = upstreams.keys().map(|name| format!("/p/{name}/"));
    let open = upstreams.iter().filter(|(_, api)| !api.lends_credentials());
    Admission {
        hosts: vec!["127.0.0.1".to_owned()],
        origins: serve.allowed_origins.clone(),
        keyring: Arc::new(Keyring::new(token, Some(read), services.clock.clone())),
        required,
        passing: open.map(|(name, _)| format!("/p/{name}/")).collect(),
        open: Vec::new(),
        rooms: rooms.chain(["/mcp", "/api", "/metrics"].map(str::to_owned)).collect(),
        nothing_here: proxy::nothing_here(upstreams.keys()),
        by_host: upstreams.keys().map(|name| (format!("{name}.localhost"), format!("/p/{name}"))).collect(),
    }
}

fn offer(policy: &Policy, name: &str, api: &HttpApi) -> Offer {
    let target = Target::parse(&api.url).expect("an address").with_private(api.private);
    let with = OfferSettings {
        authority: api.account.as_ref().map_or_else(|| authority(&target), |name| format!("account {name}")),
        client: Client::to(target).expect("a client"),
        headers: headers(&api.headers, &api.headers_env),
        run: api.run.as_deref().map(|run| Run::named(run).expect("a run")),
    };
    Offer::new(name, api, with, policy).expect("an offer")
}

fn mcp_offer(
    name: &str,
    configured: &semel_core::policy::servers::McpServer,
    clock: &RuntimeClock,
) -> mcp::ServerOffer {
    let McpEndpoint::Url { url, private, headers: fixed, headers_env } = &configured.reach else {
        panic!("a server that is a process belongs into a test of processes")
    };
    let target = Target::parse(url).expect("an address").with_private(*private);
    let authority = authority(&target);
    let (client, headers) = (Client::to(target).expect("a client"), headers(fixed, headers_env));
    let link = RemoteLink::for_client(client.clone(), headers.clone(), None, clock.clone());
    let otherwise = Settings::default();
    let settings = Settings {
        trusted: configured.trusted.unwrap_or(otherwise.trusted),
        decorate: configured.decorate.unwrap_or(otherwise.decorate),
        own_tools: configured.own_tools.unwrap_or(otherwise.own_tools),
        dry_run_argument: configured.dry_run_argument.unwrap_or(otherwise.dry_run_argument),
    };
    let server = Server::new(name.to_owned(), authority, settings, Link::Remote(link), "house".to_owned());
    let backend = ServerBackend::Remote(Box::new(Remote::new(Arc::new(server), client, headers)));
    mcp::ServerOffer { backend, run: configured.run.as_deref().map(|run| Run::named(run).expect("a run")) }
}

/// The addresses that probes and undos may ask.
fn origins(policy: &Policy) -> Origins {
    let mut origins = Origins::default();
    for api in policy.upstreams.values() {
        let target = Target::parse(&api.url).expect("an address");
        let headers = Ok(headers(&api.headers, &api.headers_env));
        origins.add(&target, Some(api.service.as_str()), api.private, headers);
    }
    origins
}

fn authority(target: &Target) -> String {
    let uri = target.uri();
    let segments: Vec<&str> = uri.path().split('/').filter(|segment| !segment.is_empty()).collect();
    format!("{}://{}/{}", uri.scheme_str().unwrap_or_default(), target.authority(), segments.join("/"))
}

/// The environment of a test has one variable.
fn headers(fixed: &[(String, String)], from_env: &[(String, String)]) -> HeaderMap {
    let fixed = fixed.iter().map(|(name, value)| (name, value.as_str(), is_secret_name(name)));
    let from_env = from_env.iter().map(|(name, variable)| {
        assert_eq!(variable, "UPSTREAM_TOKEN", "the only variable that is set");
        (name, "Bearer operator", true)
    });
    let header = |(name, value, secret): (&String, &str, bool)| {
        let mut value = HeaderValue::from_str(value).expect("a value");
        value.set_sensitive(secret);
        (name.parse::<HeaderName>().expect("a name"), value)
    };
    fixed.chain(from_env).map(header).collect()
}
