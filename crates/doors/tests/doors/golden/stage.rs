//! One ledger, one policy and one world, with the real doors in between.

use super::cases::{Between, Call, Door as Kind, Next, Pair, Word, World as Deed};
use super::world::World;
use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::BodyExt;
use semel_core::class::Class;
use semel_core::effect::{Ruling, State};
use semel_core::ids::{EffectId, IdempotencyKey, Reason, Run};
use semel_core::intent::{Ask, Intent};
use semel_core::policy::{ActionFacts, Policy, PolicyFile, duration};
use semel_doors::call_options::CallOptions;
use semel_doors::caller::Caller;
use semel_doors::command::intent::CommandLine;
use semel_doors::command::serve::{CommandOptions, CommandUpstream, Show};
use semel_doors::http::client::Client;
use semel_doors::http::server::Answers;
use semel_doors::http::server::on_sent::OnSent;
use semel_doors::http::target::Target;
use semel_doors::mcp::connection::ClientConnection;
use semel_doors::mcp::guard::guard;
use semel_doors::mcp::link::Link;
use semel_doors::mcp::link::remote::RemoteLink;
use semel_doors::mcp::link::request::LinkRequest;
use semel_doors::mcp::message::Message;
use semel_doors::mcp::route::{CallRoute, route};
use semel_doors::mcp::server::{Server, Settings};
use semel_doors::proxy::{self, Offer, Offers};
use semel_doors::query::backends::{Backends, Shell};
use semel_doors::router::DoorRouter;
use semel_doors::runtime::RuntimeClock;
use semel_doors::services::Services;
use semel_gate::clock::Clock;
use semel_gate::{Gate, GivenReply};
use semel_ledger::Ledger;
use semel_ledger::entropy::OsEntropy;
use semel_ledger::holders::FileHolders;
use semel_ledger::place::Place;
use semel_ledger::rulings::RulingVerdict;
use semel_ledger::sqlite::{OpenOptions, OpenedStore, SqliteStore};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempDir;

/// What a caller saw.
#[derive(Debug, Clone)]
pub struct Seen {
    pub word: Word,
    pub ok: bool,
    pub code: Option<String>,
    pub effect: Option<EffectId>,
    /// All of it, as text.
    pub text: String,
}

impl Seen {
    /// It says how to repeat the call on purpose.
    pub fn offers_again(&self) -> bool {
        ["semel_again", "Semel-Again", "--again"].iter().any(|name| self.text.contains(name))
    }
}

pub struct Stage {
    directory: TempDir,
    pub world: World,
    pair: Pair,
    policy: String,
    clock: RuntimeClock,
    house: House,
    ids: AtomicU64,
}

/// All that a process holds.
struct House {
    services: Arc<Services>,
    router: DoorRouter,
    servers: BTreeMap<String, Arc<Server>>,
    connection: Arc<ClientConnection>,
}

impl Stage {
    pub async fn open(pair: &Pair, between: &[Between]) -> Stage {
        let directory = tempfile::tempdir().expect("a directory");
        let world = World::start(directory.path(), pair.honours_key, tools(pair, between)).await;
        let clock = RuntimeClock::start();
        let policy = policy(pair, &world);
        let house = House::open(directory.path(), pair, between, &policy, &clock, &world);
        let ids = AtomicU64::new(1);
        Stage { directory, world, pair: pair.clone(), policy, clock, house, ids }
    }

    /// The process ends, and another one goes on with what the ledger kept, perhaps under another policy.
    pub async fn restart(mut self, next: &Next) -> Stage {
        self.rest().await;
        let between = &next.between;
        if let Some(policy) = &next.policy {
            self.pair.policy = policy.clone();
        }
        if next.preset.is_some() {
            self.pair.preset = next.preset.clone();
        }
        self.policy = policy(&self.pair, &self.world);
        self.house =
            House::open(self.directory.path(), &self.pair, between, &self.policy, &self.clock, &self.world);
        self
    }

    pub fn pass_time(&self, span: &str) {
        self.clock.pass(duration::parse(span).expect("a duration"));
    }

    /// Waits for what goes on after an answer.
    pub async fn rest(&self) {
        self.house.services.in_flight.idle().await;
    }

    /// One call. `deed` is what the world does with it, `None` leaves that as it is.
    pub async fn call(&self, call: &Call, deed: Option<&Deed>) -> Seen {
        let delivered = deed.is_none_or(|deed| deed.delivered);
        if let Some(deed) = deed {
            self.world.will(deed);
        }
        match self.pair.door {
            Kind::Mcp => self.tool(call, delivered).await,
            Kind::Http | Kind::Model => self.request(call, delivered).await,
            Kind::Command => self.command(call, delivered).await,
        }
    }

    async fn tool(&self, call: &Call, delivered: bool) -> Seen {
        let House { services, servers, connection, .. } = &self.house;
        let (server, tool) = call.call.split_once('/').expect("server/tool");
        let server = &servers[server];
        let mut arguments = call.args.clone();
        arguments.extend(call.again.as_ref().map(|why| ("semel_again".to_owned(), json!(why))));
        let mut params = json!({"name": tool, "arguments": arguments});
        if let Some(key) = &call.key {
            params["idempotencyKey"] = json!(key);
        }
        let mut meta = Map::new();
        meta.extend(call.run.as_ref().map(|run| ("dev.semel/run-id".to_owned(), json!(run))));
        meta.extend(call.call_id.as_ref().map(|id| ("claudecode/toolUseId".to_owned(), json!(id))));
        if !meta.is_empty() {
            params["_meta"] = Value::Object(meta);
        }
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let request = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        let message = Message::parse(Bytes::from(request.to_string())).expect("a message");
        let id = message.request_id().expect("a request").clone();
        let tools = server.tools("{}").await;
        match route(services, &id, &message, server, connection, &tools, &CallOptions::default()) {
            CallRoute::Pass => {
                let outgoing = LinkRequest {
                    id,
                    frame: message.bytes.into(),
                    last_moment: None,
                    is_read: false,
                    news: None,
                };
                let passed = server.link.exchange(outgoing).await;
                Seen { word: Word::Ran, ok: true, code: None, effect: None, text: format!("{passed:?}") }
            }
            CallRoute::Answer(frame) => of_frame(&frame.to_bytes()),
            CallRoute::Own(_) => panic!("no case calls semel's own tools"),
            CallRoute::Guard(guarded) => {
                let given = guard(services, *guarded).await.expect("its caller waits");
                let seen = of_frame(&given.frame.to_bytes());
                given.delivery.filter(|_| delivered).into_iter().for_each(|delivery| delivery.mark());
                self.rest().await;
                seen
            }
        }
    }

    async fn request(&self, call: &Call, delivered: bool) -> Seen {
        let (method, path) = call.call.split_once(' ').expect("METHOD /path");
        let mut request = Request::builder().method(method).uri(format!("/p/api{path}"));
        for (name, value) in &call.headers {
            request = request.header(name, value);
        }
        let own = [("idempotency-key", &call.key), ("semel-run-id", &call.run), ("semel-again", &call.again)];
        for (name, value) in own {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        let (kind, body) = match (call.args.is_empty(), call.form) {
            (true, _) => ("application/json", String::new()),
            (false, false) => ("application/json", Value::Object(call.args.clone()).to_string()),
            (false, true) => ("application/x-www-form-urlencoded", form(&call.args)),
        };
        let request = request.header("content-type", kind).body(Body::from(body)).expect("a request");
        let response = self.house.router.answer(request).await;
        let (head, body) = response.into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
        let text = format!("{} {:?} {}", head.status, head.headers, String::from_utf8_lossy(&body));
        let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
        let own = header("content-type") == Some("application/problem+json")
            || answer["human_next_step"].is_string();
        let code = answer["code"].as_str().filter(|_| own).map(str::to_owned);
        let refused = head.status.as_u16() >= 400;
        let code = code.or_else(|| refused.then(|| "upstream_refused".to_owned()));
        let seen = Seen {
            word: word(header("semel-outcome").unwrap_or("ran"), code.as_deref()),
            ok: !refused,
            code,
            effect: header("semel-effect-id").and_then(EffectId::parse),
            text,
        };
        if let Some(on_sent) = head.extensions.get::<OnSent>().filter(|_| delivered) {
            on_sent.run();
        }
        drop(head);
        self.rest().await;
        seen
    }

    async fn command(&self, call: &Call, delivered: bool) -> Seen {
        let services = &self.house.services;
        let gate = services.gate.as_ref().expect("a ledger");
        let argv: Vec<OsString> =
            shlex::split(&call.call).expect("a command").into_iter().map(OsString::from).collect();
        let search = self.world.install(argv[0].to_str().expect("text"));
        let cwd = self.directory.path();
        let line =
            CommandLine::new(&argv, cwd, call.stdin.clone().map(String::into_bytes)).expect("a command");
        let (action, arguments) = (line.action(), line.arguments());
        let class_override = call.class.as_deref().map(|class| Class::parse(class).expect("a class"));
        let facts = ActionFacts { class_override, ..ActionFacts::new(&action, &arguments) };
        let mut rule = Arc::unwrap_or_clone(services.policy.rule_for(&facts));
        line.set_surroundings_aside(&mut rule.sorting, call.key.is_some());
        let ask = Ask {
            run: call.run.as_deref().map(|run| Run::named(run).expect("a run")),
            key: call.key.as_deref().map(|key| IdempotencyKey::parse(key).expect("a key")),
            again: call.again.as_deref().map(|why| Reason::parse(why).expect("a reason")),
            ..Ask::of(("local", "local"), &action, &arguments)
        };
        let intent = Intent::of(&ask, &rule, gate.ledger.secret()).expect("no key is required");
        let shell = Shell { search: search.into_os_string(), cwd: cwd.to_owned(), curl_settings: Vec::new() };
        let options = CommandOptions {
            show: Show::InAnswer,
            pass_input: false,
            effect: None,
            backends: Arc::new(Backends { shell, ..Backends::default() }),
            waits: None,
            output_drain: None,
        };
        let holders = gate.ledger.holders();
        let mut upstream =
            CommandUpstream::new(&line, action, (&rule, &services.policy), holders, &*gate.clock, options);
        let passed = gate.pass(&intent, &rule, &mut upstream).await.expect("the ledger is well");
        if let Some(delivery) = passed.delivery.as_ref().filter(|_| delivered) {
            gate.delivered(delivery).await.expect("the ledger is well");
        }
        holders.release_lock();
        let mut answer = serde_json::to_value(&passed.answer).expect("an answer");
        if let GivenReply::Recorded(reply) = &passed.reply {
            answer["data"] = json!(String::from_utf8_lossy(reply));
        }
        of_answer(&answer, answer.to_string())
    }

    /// A person looks, and says what is so.
    pub async fn person_rules(&self, effect: EffectId, happened: bool) {
        let gate = self.house.services.gate.as_ref().expect("a ledger");
        let reason = Reason::parse("a person looked").expect("a reason");
        let ruling = Ruling { by: "golden".into(), reason, at: self.clock.now() };
        let (_, known) = gate.ledger.by_id(effect).await.expect("the effect is there");
        let ruled = match known.effect.state {
            State::InDoubt(_) => {
                let verdict =
                    if happened { RulingVerdict::Applied { reply: None } } else { RulingVerdict::NotApplied };
                gate.ledger.resolve(effect, verdict, ruling).await
            }
            _ => gate.ledger.permit_repeat(effect, ruling).await,
        };
        // A person who cannot rule leaves it held, which the next call shows.
        drop(ruled);
    }
}

impl House {
    fn open(
        directory: &Path,
        pair: &Pair,
        between: &[Between],
        policy: &str,
        clock: &RuntimeClock,
        world: &World,
    ) -> House {
        let file = PolicyFile { path: "semel.toml".into(), text: policy.to_owned() };
        let policy =
            Policy::load(vec![file]).unwrap_or_else(|found| panic!("{}: {}", pair.name, found.render(false)));
        let options = OpenOptions::at(Place::at(directory.join("ledger.db")), clock.now());
        let OpenedStore { store, secret, .. } = SqliteStore::open(options).expect("a ledger");
        let holders = FileHolders::in_directory(store.place().owners());
        let ledger = Ledger::new(Arc::new(store), Arc::new(holders), OsEntropy, secret);
        let gate: Gate = Gate::new(ledger, clock.clone(), policy.mode);
        let services = Arc::new(Services::new(Ok(gate), policy, clock.clone()));
        let names: BTreeSet<&str> = std::iter::once(pair.call.call.as_str())
            .chain(between.iter().map(|between| between.call.as_str()))
            .filter_map(|call| call.split_once('/').map(|(server, _)| server))
            .collect();
        let server = |name: &str| {
            let url = format!("http://{}/mcp/{name}", world.address);
            let client = Client::to(Target::parse(&url).expect("an address")).expect("a client");
            let link = RemoteLink::for_client(client, HeaderMap::new(), None, clock.clone());
            let link = Link::Remote(link);
            let server = Server::new(name.to_owned(), url, Settings::default(), link, "golden".to_owned());
            (name.to_owned(), Arc::new(server))
        };
        let servers = match pair.door {
            Kind::Mcp => names.into_iter().map(server).collect(),
            _ => BTreeMap::new(),
        };
        let api = |(name, api): (&String, &_)| {
            let api: &semel_core::policy::upstreams::HttpApi = api;
            let client = Client::to(Target::parse(&api.url).expect("an address")).expect("a client");
            let with = proxy::offer::OfferSettings {
                client,
                authority: api.url.clone(),
                headers: HeaderMap::new(),
                run: None,
            };
            (name.clone(), Arc::new(Offer::new(name, api, with, &services.policy).expect("an offer")))
        };
        let offers = services.policy.upstreams.iter().map(api).collect();
        let local = || "local".to_owned();
        let caller =
            Caller { tenant: local(), principal: local(), run: None, surrounding_run: None, token: None };
        House {
            router: DoorRouter::new(Offers::new(Arc::clone(&services), offers), Router::new()),
            servers,
            connection: Arc::new(ClientConnection::new(caller)),
            services,
        }
    }
}

fn policy(pair: &Pair, world: &World) -> String {
    let packs: Vec<String> = pair.packs.iter().map(|pack| format!("\"pack:{pack}\"")).collect();
    let mut policy = format!("version = 1\ninclude = [{}]\n{}\n", packs.join(", "), pair.policy);
    if matches!(pair.door, Kind::Http | Kind::Model) {
        policy.push_str(&format!("[upstream.api]\nurl = \"http://{}\"\n", world.address));
        match &pair.preset {
            Some(preset) => policy.push_str(&format!("preset = \"{preset}\"\n")),
            None => {
                let service = pair.service.as_deref().unwrap_or("api.example.com");
                policy.push_str(&format!("service = \"{service}\"\n"));
            }
        }
        if pair.door == Kind::Model && pair.preset.is_none() {
            policy.push_str("speaks = \"openai\"\n");
        }
    }
    policy
}

/// The tools that the pair's server lists.
fn tools(pair: &Pair, between: &[Between]) -> Vec<Value> {
    let mut tools: BTreeMap<String, Value> = BTreeMap::new();
    let tool = |call: &str| call.split_once('/').map_or_else(String::new, |(_, tool)| tool.to_owned());
    let schema = |args: &Map<String, Value>| {
        let properties: Map<String, Value> = args.keys().map(|name| (name.clone(), json!({}))).collect();
        json!({"type": "object", "properties": properties})
    };
    for other in between {
        let name = tool(&other.call);
        tools.insert(name.clone(), json!({"name": name, "inputSchema": schema(&other.args)}));
    }
    for next in [&pair.duplicate, &pair.repeat, &pair.other].into_iter().flatten() {
        let call = next.call(&pair.call);
        let name = tool(&call.call);
        tools.insert(name.clone(), json!({"name": name, "inputSchema": schema(&call.args)}));
    }
    let name = tool(&pair.call.call);
    let schema = pair.schema.clone().unwrap_or_else(|| schema(&pair.call.args));
    let mut own = json!({"name": name, "inputSchema": schema});
    if let Some(hints) = &pair.hints {
        own["annotations"] = hints.clone();
    }
    tools.insert(name, own);
    tools.into_values().collect()
}

fn form(args: &Map<String, Value>) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let encode = |text: &str| -> String {
        text.bytes()
            .map(|byte| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
                _ => format!("%{byte:02X}"),
            })
            .collect()
    };
    let fields: Vec<String> =
        args.iter().map(|(name, value)| format!("{}={}", encode(name), encode(&text(value)))).collect();
    fields.join("&")
}

fn of_frame(frame: &[u8]) -> Seen {
    let text = String::from_utf8_lossy(frame).into_owned();
    let message: Value = serde_json::from_slice(frame).expect("a response is JSON");
    let receipt = [&message["result"]["_meta"], &message["error"]["data"]]
        .into_iter()
        .map(|place| &place["dev.semel/receipt"])
        .find(|receipt| receipt.is_object());
    match receipt {
        Some(receipt) => of_answer(receipt, text),
        None => Seen {
            word: Word::Refused,
            ok: message["result"].is_object() && message["result"]["isError"] != true,
            code: None,
            effect: None,
            text,
        },
    }
}

fn of_answer(answer: &Value, text: String) -> Seen {
    let code = answer["code"].as_str().map(str::to_owned);
    Seen {
        word: word(answer["outcome"].as_str().unwrap_or_default(), code.as_deref()),
        ok: answer["ok"] == true,
        code,
        effect: answer["effect_id"].as_str().and_then(EffectId::parse),
        text,
    }
}

fn word(outcome: &str, code: Option<&str>) -> Word {
    match (outcome, code) {
        (_, Some("upstream_refused")) => Word::Refused,
        ("ran", Some("in_doubt")) => Word::InDoubt,
        ("ran", _) => Word::Ran,
        ("replayed", _) => Word::Replayed,
        ("joined", _) => Word::Joined,
        ("held", _) => Word::Held,
        _ => Word::Refused,
    }
}
