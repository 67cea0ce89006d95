//! The gate of a process whose ledger is behind a server: what it sends, when, and on how many connections.

use crate::house::{Home, House};
use async_trait::async_trait;
use semel_core::answer::{Code, EffectWord, OutcomeWord};
use semel_core::effect::{Effect, Evidence, Reply};
use semel_core::ids::{AttemptNo, IdempotencyKey};
use semel_core::intent::Ask;
use semel_core::json::{self, Json};
use semel_core::outcome::Outcome;
use semel_core::policy::rule::{Probe, Rule};
use semel_core::policy::{ActionFacts, Mode, Policy};
use semel_doors::remote_gate::{RemoteCall, RemoteGate, RemotePassed, ServerAccess};
use semel_doors::reply::CommandOutput;
use semel_doors::runtime::RuntimeClock;
use semel_gate::GivenReply;
use semel_gate::look::{Look, Patience, look_until_answered};
use semel_gate::upstream::{CallView, NotStarted, ProbeAnswer, Sending, Sent, Upstream};
use semel_ledger::tokens::AccessScope;
use semel_testkit::proxy::{Proxy, Target};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, oneshot};

/// A server, a way to it that is counted, and a tool that counts how often it changed the world.
struct Stage {
    house: House,
    proxy: Proxy,
    gate: Arc<RemoteGate>,
    tool: Tool,
    runtime: Runtime,
    _home: Home,
}

#[derive(Clone, Default)]
struct Tool {
    effects: Arc<AtomicUsize>,
    is_away: Arc<AtomicBool>,
    /// It waits until it is told to go on.
    hangs: Option<Arc<Notify>>,
}

impl Stage {
    fn open() -> Stage {
        let home = Home::new();
        let house = House::start(&home, "");
        let (_, port) = house.address.rsplit_once(':').expect("an address");
        let proxy = Proxy::to(Target::Port(port.parse().expect("a port")));
        let token = house.token(AccessScope::Agent, "local", "ci");
        let access = ServerAccess::new(&format!("http://127.0.0.1:{}", proxy.port()), &token, None);
        let gate = RemoteGate::new(access.expect("an address"), Arc::new(RuntimeClock::start()), Mode::Guard);
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        Stage { house, proxy, gate: Arc::new(gate), tool: Tool::default(), runtime, _home: home }
    }

    fn pass(&self, key: &'static str) -> RemotePassed {
        self.runtime.block_on(pass(Arc::clone(&self.gate), self.tool.clone(), key, Look::default()))
    }

    fn effects(&self) -> usize {
        self.tool.effects.load(Ordering::Relaxed)
    }

    fn states(&self) -> Vec<Value> {
        self.house.effects("").iter().map(|effect| effect["state"].clone()).collect()
    }
}

async fn pass(gate: Arc<RemoteGate>, mut tool: Tool, key: &'static str, look: Look) -> RemotePassed {
    let arguments = json::parse(r#"{"argv":["pay"],"cwd":"/"}"#).expect("JSON");
    let rule = rule(&arguments);
    let mut ask = Ask::of(("local", "ci"), "cli:pay", &arguments);
    ask.key = Some(IdempotencyKey::parse(key).expect("a key"));
    gate.pass(RemoteCall { ask: &ask, rule: &rule, class: None }, &look, &mut tool).await
}

fn rule(arguments: &Json) -> Arc<Rule> {
    Policy::default().rule_for(&ActionFacts::new("cli:pay", arguments))
}

#[async_trait]
impl Upstream for Tool {
    async fn prepare(&mut self) -> Result<(), NotStarted> {
        match self.is_away.load(Ordering::Relaxed) {
            true => Err(NotStarted { why: "no route".into(), data: json!({"exit_code": 127}) }),
            false => Ok(()),
        }
    }

    async fn send(&mut self, _: Sending<'_>) -> Sent {
        self.effects.fetch_add(1, Ordering::Relaxed);
        if let Some(hangs) = &self.hangs {
            hangs.notified().await;
        }
        let outcome =
            Outcome::Applied { evidence: Evidence::Reported, word: EffectWord::Created, reply: Reply::Kept };
        let reply = CommandOutput::of_stdout(b"paid\n".to_vec()).encode();
        Sent { reply: Some(reply), ..Sent::of(outcome) }
    }

    async fn probe(&mut self, _: &Probe, _: Option<&Effect>) -> ProbeAnswer {
        unreachable!("its rule asks nothing")
    }

    fn sends_while_alive(&self) -> bool {
        false
    }

    fn view(&self) -> Option<CallView> {
        None
    }

    fn join(&mut self, _: &Effect, _: AttemptNo) {}

    fn release(&mut self) {}
}

fn code(passed: &RemotePassed) -> Option<Code> {
    passed.passed.answer.trouble.as_ref().map(|trouble| trouble.code)
}

#[test]
fn begin_settle_and_delivered_share_one_connection() {
    let stage = Stage::open();
    let ran = stage.pass("k");
    assert_eq!(ran.passed.answer.outcome, OutcomeWord::Ran, "{ran:?}");
    let effect = ran.undelivered.expect("a success").effect;
    stage.runtime.block_on(stage.gate.delivered(effect)).expect("it is marked");
    assert!(stage.house.effects("")[0]["delivered_at"].is_string());
    assert_eq!((stage.proxy.connections(), stage.effects(), stage.states().len()), (1, 1, 1));
}

#[test]
fn a_server_that_has_closed_the_connection_meanwhile_is_asked_on_a_new_one() {
    let mut stage = Stage::open();
    assert_eq!(stage.pass("k").passed.answer.outcome, OutcomeWord::Ran);
    stage.house.stop();
    stage.house = House::start(&stage._home, "");
    let (_, port) = stage.house.address.rsplit_once(':').expect("an address");
    stage.proxy.lead_to(Target::Port(port.parse().expect("a port")));
    assert_eq!(stage.pass("other").passed.answer.outcome, OutcomeWord::Ran);
    assert_eq!((stage.effects(), stage.states()), (2, vec![json!("applied"), json!("applied")]));
}

#[test]
fn what_cannot_be_prepared_is_never_claimed_and_what_is_on_record_is_answered() {
    let stage = Stage::open();
    stage.tool.is_away.store(true, Ordering::Relaxed);
    let away = stage.pass("k");
    assert_eq!((code(&away), away.passed.answer.attempt), (Some(Code::NotStarted), None), "{away:?}");
    assert_eq!(away.passed.answer.data, json!({"exit_code": 127}));
    assert_eq!((stage.effects(), stage.states().len()), (0, 0), "nothing was claimed");
    stage.tool.is_away.store(false, Ordering::Relaxed);
    assert_eq!(stage.pass("k").passed.answer.outcome, OutcomeWord::Ran);
    stage.tool.is_away.store(true, Ordering::Relaxed);
    let replayed = stage.pass("k").passed;
    assert_eq!(replayed.answer.outcome, OutcomeWord::Replayed, "{replayed:?}");
    assert!(matches!(replayed.reply, GivenReply::Recorded(_)));
    assert_eq!((stage.effects(), stage.states()), (1, vec![json!("applied")]));
}

#[test]
fn a_tool_that_hangs_is_a_doubt_at_the_server_until_its_late_answer() {
    let mut stage = Stage::open();
    let goes_on = Arc::<Notify>::default();
    stage.tool.hangs = Some(Arc::clone(&goes_on));
    let patience = Patience::Silence(Duration::from_millis(200));
    stage.runtime.block_on(async {
        let (clock, sent) = (RuntimeClock::start(), Mutex::new(Vec::new()));
        let told = look_until_answered(&clock, patience, |look| {
            let (tell, answer) = oneshot::channel();
            let passing = pass(Arc::clone(&stage.gate), stage.tool.clone(), "k", look);
            let passing = tokio::spawn(async move { drop(tell.send(passing.await)) });
            sent.lock().unwrap().push(passing);
            async { answer.await.expect("it ends") }
        });
        assert_eq!(code(&told.await), Some(Code::InDoubt));
        assert_eq!(stage.states(), [json!("in_doubt")]);
        goes_on.notify_one();
        let first = sent.into_inner().unwrap().remove(0);
        first.await.expect("it ends");
    });
    assert_eq!(stage.states(), [json!("applied")]);
    stage.tool.hangs = None;
    assert_eq!(stage.pass("k").passed.answer.outcome, OutcomeWord::Replayed);
    assert_eq!(stage.effects(), 1);
}
