//! Tells somebody outside of every new doubt and of every duplicate, signed as Standard Webhooks are.
//!
//! The news comes from the journal, and how far it was told is kept in the ledger: so effects of every process
//! count, and nothing is lost when a server ends. A message may come twice, under the same id.

use super::post::post;
use crate::effect_json::EffectJson;
use crate::http::client::Client;
use crate::services::Services;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use semel_core::ids::EffectId;
use semel_core::time::At;
use semel_gate::Gate;
use semel_gate::clock::Clock;
use semel_ledger::Error;
use semel_ledger::outbox::JournalOutbox;
use semel_ledger::store::{Cursor, JOURNAL_PAGE_MAX, JournalLine};
use serde_json::{Value, json};
use sha2::Sha256;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// How often the journal is looked at.
const LOOKS_EVERY: Duration = Duration::from_secs(1);

/// A listener that is away is asked again, at first soon, then rarely.
const TRY_AGAIN_FIRST: Duration = Duration::from_secs(1);
const TRY_AGAIN_MAX: Duration = Duration::from_secs(300);

/// A message that the listener itself cannot take is not the listener's being away; others must not wait for it.
const REFUSALS_MAX: u32 = 5;

/// The listener, and the secret that both know.
pub struct WebhookSender {
    pub client: Client,
    /// `whsec_` and base 64, or any text. Without one nothing is signed.
    secret: Option<Vec<u8>>,
}

impl fmt::Debug for WebhookSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookSender").field("client", &self.client).finish_non_exhaustive()
    }
}

impl WebhookSender {
    pub fn new(client: Client, secret: Option<&str>) -> Result<WebhookSender, BadSecret> {
        let bytes = |secret: &str| match secret.strip_prefix("whsec_") {
            Some(encoded) => STANDARD.decode(encoded).ok().filter(|key| !key.is_empty()).ok_or(BadSecret),
            None => Ok(secret.as_bytes().to_vec()),
        };
        Ok(WebhookSender { client, secret: secret.map(bytes).transpose()? })
    }

    /// Tells what comes, for ever. Another process that does the same is left to it. What goes wrong is said by `warn`,
    /// once until it goes well again.
    pub async fn keep(self, services: Arc<Services>, warn: impl Fn(String) + Send + Sync) {
        let Ok(gate) = &services.gate else { return };
        let mut telling = WebhookTask { webhook: &self, gate, warn, away: false };
        loop {
            // A page that could not be read or written now is tried again.
            if let Err(error) = telling.tell_all().await {
                telling.trouble(&format!("the ledger: {error}"));
            }
            services.clock.sleep(LOOKS_EVERY).await;
        }
    }

    /// Sends one message, once. `id` is the same however often it is sent.
    pub async fn send(&self, id: &str, body: &str, now: At) -> Result<StatusCode, String> {
        post(&self.client, &self.headers(id, body, now), Bytes::from(body.to_owned())).await
    }

    fn headers(&self, id: &str, body: &str, now: At) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let timestamp = (now.0 / 1_000_000).to_string();
        let mut put = |name: HeaderName, value: &str| {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(name, value);
            }
        };
        put(ID, id);
        put(TIMESTAMP, &timestamp);
        if let Some(secret) = &self.secret {
            put(SIGNATURE, &format!("v1,{}", signature(secret, id, &timestamp, body)));
        }
        headers
    }
}

/// A text that begins as Standard Webhooks write their secrets must be one, or nobody could check the signatures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("after `whsec_` comes base 64")]
pub struct BadSecret;

/// The work of one process.
struct WebhookTask<'a, W> {
    webhook: &'a WebhookSender,
    gate: &'a Gate,
    warn: W,
    /// Somebody has heard that it does not go well, and not yet that it does again.
    away: bool,
}

impl<W: Fn(String) + Send + Sync> WebhookTask<'_, W> {
    async fn tell_all(&mut self) -> Result<(), Error> {
        let gate = self.gate;
        let Some(mut outbox) = gate.ledger.take_outbox("webhook").await? else { return Ok(()) };
        loop {
            let page = gate.ledger.journal(Some(outbox.sent_to), JOURNAL_PAGE_MAX).await?;
            for (cursor, line) in &page.items {
                if let Some(message) = message(gate, *cursor, line).await?
                    && !self.deliver(&mut outbox, &message).await?
                {
                    return Ok(());
                }
                // Most lines are no news; where they end is written once.
                outbox.sent_to = *cursor;
            }
            if let Some((last, _)) = page.items.last()
                && !gate.ledger.mark_sent(&mut outbox, *last).await?
            {
                return Ok(());
            }
            // A journal that grows faster than one page a look must still be caught up with.
            if page.next.is_none() {
                // A holder that died tells nobody; somebody has to look.
                gate.ledger.notice_lapses(gate.clock.now()).await?;
                gate.clock.sleep(LOOKS_EVERY).await;
            }
        }
    }

    /// Sends until it was taken. `false`: somebody else has taken over.
    async fn deliver(&mut self, outbox: &mut JournalOutbox, message: &WebhookMessage) -> Result<bool, Error> {
        let (mut pause, mut refusals) = (TRY_AGAIN_FIRST, 0);
        loop {
            match self.webhook.send(&message.id, &message.body, self.gate.clock.now()).await {
                Ok(status) if status.is_success() => {
                    self.taken();
                    break;
                }
                Ok(status) if is_about_the_message(status) => {
                    refusals += 1;
                    if refusals >= REFUSALS_MAX {
                        (self.warn)(format!(
                            "semel: the webhook answers {} to {}, which is not told: semel ledger show {}",
                            status.as_u16(),
                            message.id,
                            message.about
                        ));
                        break;
                    }
                }
                Ok(status) => self.trouble(&format!("it answers {}", status.as_u16())),
                Err(why) => self.trouble(&why),
            }
            self.gate.clock.sleep(pause).await;
            pause = (pause * 2).min(TRY_AGAIN_MAX);
        }
        self.gate.ledger.mark_sent(outbox, message.at).await
    }

    fn trouble(&mut self, why: &str) {
        if !std::mem::replace(&mut self.away, true) {
            let whom = self.webhook.client.target();
            (self.warn)(format!("semel: the webhook {whom} cannot be told: {why}. It is tried until it can"));
        }
    }

    fn taken(&mut self) {
        if std::mem::replace(&mut self.away, false) {
            (self.warn)(format!("semel: the webhook {} is told again", self.webhook.client.target()));
        }
    }
}

/// A line of the journal as a message, if it is news.
async fn message(gate: &Gate, cursor: Cursor, line: &JournalLine) -> Result<Option<WebhookMessage>, Error> {
    let Some(kind) = kind(line) else { return Ok(None) };
    let Some(id) = line.effect.map(EffectId) else { return Ok(None) };
    let (key, known) = match gate.ledger.by_id(id).await {
        Err(Error::NoSuchEffect(_)) => return Ok(None),
        found => found?,
    };
    let effect = EffectJson::read(&gate.ledger, key, &known.effect).await?;
    let body = json!({
        "type": kind,
        "timestamp": line.at.to_string(),
        "data": {"tenant": known.effect.facts.tenant, "effect": effect},
    });
    let name = gate.ledger.secret().mac("webhook", &[&cursor.0.to_be_bytes()]).to_string();
    Ok(Some(WebhookMessage {
        id: format!("msg_{}", &name[..32]),
        about: id,
        at: cursor,
        body: body.to_string(),
    }))
}

/// The listener is there and takes others, most likely.
fn is_about_the_message(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNPROCESSABLE_ENTITY
    )
}

/// One message, the same however often it is sent.
#[derive(Debug)]
struct WebhookMessage {
    id: String,
    about: EffectId,
    at: Cursor,
    body: String,
}

/// The news: that nobody knows any more whether something happened, and that something happened twice.
fn kind(line: &JournalLine) -> Option<&'static str> {
    let in_doubt = || {
        let data: Value = serde_json::from_str(&line.data).unwrap_or_default();
        data["state"] == "in_doubt"
    };
    match line.kind.as_str() {
        "duplicate_detected" => Some("effect.duplicate_detected"),
        "forgotten" => Some("effect.in_doubt"),
        "settled_in_doubt" | "settled_not_applied" | "lapsed" | "reopened" if in_doubt() => {
            Some("effect.in_doubt")
        }
        _ => None,
    }
}

fn signature(secret: &[u8], id: &str, timestamp: &str, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes a key of any length");
    for part in [id, ".", timestamp, ".", body] {
        mac.update(part.as_bytes());
    }
    STANDARD.encode(mac.finalize().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::target::Target;

    #[test]
    fn a_signature_is_the_one_that_the_standard_has_as_its_example() {
        let secret = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let (id, timestamp) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330");
        assert_eq!(
            signature(&secret, id, timestamp, r#"{"test": 2432232314}"#),
            "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
    }

    #[test]
    fn a_secret_that_cannot_be_what_it_says_is_refused() {
        let client = || Client::to(Target::parse("http://127.0.0.1:9").unwrap()).unwrap();
        let key = |secret: &str| WebhookSender::new(client(), Some(secret)).map(|webhook| webhook.secret);
        assert_eq!(key("whsec_AAEC"), Ok(Some(vec![0, 1, 2])));
        assert_eq!(key("any text"), Ok(Some(b"any text".to_vec())));
        assert_eq!(key("whsec_not base 64"), Err(BadSecret));
        assert_eq!(key("whsec_"), Err(BadSecret));
    }

    #[test]
    fn only_what_becomes_doubtful_or_happened_twice_is_news() {
        let line = |kind: &str, data: &str| {
            let (kind, data) = (kind.to_owned(), data.to_owned());
            JournalLine { at: At(1), effect: Some(1), run: None, kind, data }
        };
        let doubt = r#"{"state":"in_doubt"}"#;
        assert_eq!(kind(&line("lapsed", doubt)), Some("effect.in_doubt"));
        assert_eq!(kind(&line("settled_not_applied", doubt)), Some("effect.in_doubt"));
        assert_eq!(kind(&line("settled_not_applied", r#"{"state":"not_applied"}"#)), None);
        assert_eq!(kind(&line("sender_gone", doubt)), None);
        assert_eq!(kind(&line("settled_applied", r#"{"state":"applied"}"#)), None);
        assert_eq!(kind(&line("duplicate_detected", "{}")), Some("effect.duplicate_detected"));
    }
}
