//! Effects, events and intents to test with.

use semel_core::answer::EffectWord;
use semel_core::class::{Class, Tier};
use semel_core::digest::Secret;
use semel_core::effect::{
    Applied, Attempt, Effect, Evidence, Facts, LastSend, NotApplied, NotAppliedWhy, Occurrence, Reply,
    Ruling, SEND_WITHIN, State, Verdict,
};
use semel_core::identity::{IntentDigest, Marks, Sorting, sort};
use semel_core::ids::{AttemptNo, EffectId, Nonce, OwnerId, Reason};
use semel_core::json::{Json, parse};
use semel_core::lifecycle::NewAttempt;
use semel_core::outcome::Outcome;
use semel_core::time::At;
use std::sync::Arc;
use std::time::Duration;

/// When the effects of these tests were claimed.
pub const CLAIMED: At = At(1_780_000_000_000_000);
pub const QUIET: Duration = Duration::from_secs(5);

pub fn after(span: Duration) -> At {
    CLAIMED.plus(span)
}

/// Long after everything that a sender could do.
pub fn late() -> At {
    after(Duration::from_secs(3600))
}

pub fn secret() -> Secret {
    Secret::new([7; 32])
}

pub fn arguments(amount: u64) -> Json {
    parse(&format!(r#"{{"args":{{"customer":"ann","amount":{amount}}}}}"#)).expect("valid JSON")
}

pub fn marks(amount: u64) -> Arc<Marks> {
    Arc::new(Marks::of(&secret(), "fn:charge", &sort(&arguments(amount), &Sorting::default())))
}

pub fn reason(text: &str) -> Reason {
    Reason::parse(text).expect("a reason")
}

pub fn ruling() -> Ruling {
    Ruling { by: "ann".into(), reason: reason("looked it up"), at: late() }
}

pub fn attempt(number: u32, verdict: Verdict) -> Attempt {
    Attempt {
        number: AttemptNo(number),
        nonce: Nonce(u128::from(number)),
        owner: OwnerId(u128::from(number)),
        claimed_at: CLAIMED,
        deadline: after(Duration::from_secs(60)),
        last_send: LastSend::By(after(SEND_WITHIN)),
        verdict,
        resend: number > 1,
        call_id: None,
        run: None,
        epoch: 0,
        gone_at: None,
        trace: None,
        uptime: None,
    }
}

pub fn facts() -> Arc<Facts> {
    Arc::new(Facts {
        action: "fn:charge".into(),
        class: Class::Consequential,
        tier: Tier::Opaque,
        tenant: "tenant".into(),
        run: None,
        digest: IntentDigest::of_caller_key("k"),
        caller_key: false,
        by_joining_key: false,
        subject: "customer=ann".into(),
        rule: "default".into(),
        undoes: None,
        principal: 0,
        upstream_key: 0,
        authority: 0,
        reading: 0,
    })
}

pub fn effect(state: State, verdicts: &[Verdict]) -> Effect {
    Effect {
        id: EffectId(0x0190_0000_0000_7000_8000_0000_0000_0001),
        occurrence: Occurrence::first(None),
        facts: facts(),
        marks: marks(1),
        attempts: verdicts.iter().zip(1..).map(|(verdict, number)| attempt(number, *verdict)).collect(),
        state,
        opened_at: CLAIMED,
        epoch: 0,
        delivered_at: None,
        undo: None,
        undone: None,
        refusals: 0,
        repeat_permitted: None,
    }
}

pub fn applied(evidence: Evidence, by: Option<u32>) -> State {
    let ruling = (evidence == Evidence::Ruled).then(ruling);
    let reply = if by.is_some() { Reply::Kept } else { Reply::Unknown };
    let at = after(Duration::from_secs(1));
    State::Applied(Applied { at, evidence, by: by.map(AttemptNo), word: EffectWord::Created, reply, ruling })
}

pub fn not_applied(why: NotAppliedWhy) -> State {
    let ruling = (why == NotAppliedWhy::Ruled).then(ruling);
    State::NotApplied(NotApplied { at: after(Duration::from_secs(1)), why, reply: Reply::Kept, ruling })
}

pub fn new_attempt() -> NewAttempt {
    NewAttempt {
        nonce: Nonce(99),
        owner: OwnerId(99),
        at: late(),
        deadline: late().plus(Duration::from_secs(60)),
        last_send: LastSend::By(late().plus(SEND_WITHIN)),
        call_id: None,
        run: None,
        epoch: 0,
        facts: facts(),
        trace: None,
        uptime: None,
        marks: marks(1),
    }
}

pub fn success() -> Outcome {
    Outcome::Applied { evidence: Evidence::Reported, word: EffectWord::Created, reply: Reply::Kept }
}

pub fn refusal() -> Outcome {
    Outcome::NotApplied { why: NotAppliedWhy::Refused("declined".into()), reply: Reply::Kept }
}

pub fn unclear() -> Outcome {
    Outcome::InDoubt { why: "timed out".into(), sender_gone: false }
}
