//! The facade, on ledgers of their own. Effects are counted in the world.

#[cfg(feature = "command")]
mod command;

use semel::settings::Settings;
use semel::{Failure, Semel};
use semel_core::answer::Code;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// A home with a ledger, and what happened in the world.
struct House {
    home: TempDir,
    acts: Arc<AtomicUsize>,
}

impl House {
    fn new() -> House {
        House { home: tempfile::tempdir().expect("a directory"), acts: Arc::default() }
    }

    fn settings(&self) -> Settings {
        let (home, cwd) = (self.home.path().to_owned(), self.home.path().to_owned());
        let state_dir = Some(home.join("state"));
        let read = Settings::read().expect("an environment");
        Settings {
            home: Some(home),
            xdg_config: None,
            state_dir,
            ledger: None,
            policy: None,
            config: None,
            cwd,
            ..read
        }
    }

    fn open(&self) -> Semel {
        Semel::of(&self.settings()).expect("a ledger")
    }

    async fn charge(&self, semel: &Semel, order: &str, ending: Ending) -> Result<String, Failure<String>> {
        let acts = Arc::clone(&self.acts);
        let call = semel.once("charge").key(order).argument("amount", 4900);
        call.run(|effect| async move {
            acts.fetch_add(1, Ordering::SeqCst);
            match ending {
                Ending::Success => Ok(format!("charge {}", acts.load(Ordering::SeqCst))),
                Ending::LostAnswer => Err("timed out".to_owned()),
                Ending::Refusal => {
                    effect.refused();
                    Err("card declined".to_owned())
                }
            }
        })
        .await
    }

    fn acts(&self) -> usize {
        self.acts.load(Ordering::SeqCst)
    }
}

#[derive(Debug, Clone, Copy)]
enum Ending {
    Success,
    LostAnswer,
    Refusal,
}

#[tokio::test]
async fn a_repeat_gets_the_recorded_reply_also_in_the_next_process() {
    let house = House::new();
    let semel = house.open();
    assert_eq!(house.charge(&semel, "1001", Ending::Success).await.unwrap(), "charge 1");
    assert_eq!(house.charge(&semel, "1001", Ending::Success).await.unwrap(), "charge 1");
    drop(semel);
    assert_eq!(house.charge(&house.open(), "1001", Ending::Success).await.unwrap(), "charge 1");
    assert_eq!(house.acts(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twelve_equal_calls_at_once_are_one_run_and_twelve_answers() {
    let house = Arc::new(House::new());
    let semel = house.open();
    let calls = (0..12).map(|_| {
        let (house, semel) = (Arc::clone(&house), semel.clone());
        tokio::spawn(async move { house.charge(&semel, "1001", Ending::Success).await })
    });
    for call in calls.collect::<Vec<_>>() {
        assert_eq!(call.await.unwrap().unwrap(), "charge 1");
    }
    assert_eq!(house.acts(), 1);
}

#[tokio::test]
async fn a_lost_answer_is_a_doubt_and_its_repeat_is_held() {
    let house = House::new();
    let semel = house.open();
    let lost = house.charge(&semel, "1001", Ending::LostAnswer).await;
    let Err(Failure::InDoubt { error, answer }) = lost else { panic!("{lost:?}") };
    assert_eq!((error.as_str(), answer.trouble.unwrap().code), ("timed out", Code::InDoubt));
    let repeat = house.charge(&semel, "1001", Ending::Success).await;
    let Err(Failure::Held(answer)) = repeat else { panic!("{repeat:?}") };
    assert_eq!(answer.trouble.unwrap().code, Code::InDoubt);
    assert_eq!(house.acts(), 1);
}

#[tokio::test]
async fn after_a_refusal_the_next_call_runs() {
    let house = House::new();
    let semel = house.open();
    let refused = house.charge(&semel, "1001", Ending::Refusal).await;
    assert!(matches!(refused, Err(Failure::Refused(_))), "{refused:?}");
    assert_eq!(house.charge(&semel, "1001", Ending::Success).await.unwrap(), "charge 2");
}

#[tokio::test]
async fn a_call_that_is_dropped_while_it_acts_leaves_a_doubt() {
    let house = House::new();
    let semel = house.open();
    let acts = Arc::clone(&house.acts);
    let call = semel.once("charge").key("1001").argument("amount", 4900).run(|_| async move {
        acts.fetch_add(1, Ordering::SeqCst);
        std::future::pending::<Result<String, String>>().await
    });
    let dropped = tokio::time::timeout(Duration::from_millis(200), call).await;
    assert!(dropped.is_err(), "{dropped:?}");
    let repeat = house.charge(&semel, "1001", Ending::Success).await;
    assert!(matches!(repeat, Err(Failure::Held(_))), "{repeat:?}");
    assert_eq!(house.acts(), 1);
}

#[test]
fn a_claim_that_nobody_took_settles_as_never_sent() {
    let house = House::new();
    let semel = house.open();
    let body = br#"{"action":"fn:charge","arguments":{"amount":4900},"class":"consequential"}"#;
    let (told, heard) = std::sync::mpsc::channel();
    semel.ask_then("/begin".to_owned(), body.to_vec(), move |(status, _)| {
        told.send(*status).expect("the test waits");
        false
    });
    assert_eq!(heard.recv().unwrap(), 200);
    let ask = || semel.ask("/begin", body, || false).expect("nobody interrupts");
    // It may have waited for the claim that is given back, and hears that then.
    let (status, begun) = Some(ask()).filter(|(status, _)| *status == 200).unwrap_or_else(ask);
    assert!(status == 200 && begun.contains(r#""attempt":2"#), "{begun}");
}

#[test]
fn what_cannot_be_opened_is_a_named_error() {
    let house = House::new();
    let settings = |ledger: &str| Settings { ledger: Some(ledger.to_owned()), ..house.settings() };
    for (ledger, word) in
        [("postgre://x", "postgre"), ("relative.db", "relative"), ("/proc/nowhere/ledger.db", "ledger")]
    {
        let error = Semel::of(&settings(ledger)).expect_err(ledger).to_string();
        assert!(error.contains(word), "{ledger}: {error}");
    }
    std::fs::write(house.home.path().join("semel.toml"), "version = 1\n[[rule]]\nclas = 1\n").unwrap();
    let error = Semel::of(&house.settings()).expect_err("the policy is wrong");
    assert!(matches!(error, semel::Error::Policy(_)), "{error}");
    assert!(!Path::new("/proc/nowhere").exists());
}

#[test]
fn an_act_of_a_process_that_ends_at_once_may_be_done_again_by_the_next_one() {
    let house = House::new();
    // Undelivered it would be answered from the record the second time, and there would be no claim.
    for _ in 0..2 {
        let semel = house.open();
        let body = br#"{"action":"fn:note_visit","arguments":{"page":1}}"#;
        let (_, begun) = semel.ask("/begin", body, || false).expect("nobody interrupts");
        let claim = begun.split('"').find(|part| part.starts_with("cl_")).expect("it may run");
        let settle = format!(r#"{{"claim":"{claim}","outcome":"applied","reply":1}}"#);
        let (status, _) = semel.ask("/settle", settle.as_bytes(), || false).expect("nobody interrupts");
        assert_eq!(status, 200);
        semel.flush();
    }
}

#[tokio::test]
async fn a_recorded_null_is_a_reply_and_an_unknown_reply_is_none() {
    let house = House::new();
    let semel = house.open();
    let look = |key: &'static str, settle: &'static str| {
        let begin =
            format!(r#"{{"action":"fn:look","arguments":{{}},"key":"look:{key}","class":"consequential"}}"#);
        let (status, begun) = semel.ask("/begin", begin.as_bytes(), || false).expect("nobody interrupts");
        let claim = serde_json::from_str::<serde_json::Value>(&begun).unwrap()["claim"].to_string();
        assert_eq!(status, 200, "{begun}");
        let settle = format!(r#"{{"claim":{claim},"outcome":"applied"{settle}}}"#);
        let (status, settled) = semel.ask("/settle", settle.as_bytes(), || false).expect("nobody interrupts");
        assert_eq!(status, 200, "{settled}");
    };
    look("null", r#","reply":null"#);
    look("unknown", "");
    let asked = async |key: &str| -> Result<Option<u32>, Failure<String>> {
        semel.once("look").key(key).run(|_| std::future::ready(Err("it ran again".to_owned()))).await
    };
    assert_eq!(asked("null").await.unwrap(), None);
    let unknown = asked("unknown").await;
    assert!(matches!(unknown, Err(Failure::ReplyUnknown { .. })), "{unknown:?}");
    let nothing = semel.once("look").key("unknown");
    nothing.run::<(), String, _>(|_| std::future::ready(Err("it ran again".to_owned()))).await.unwrap();
}
