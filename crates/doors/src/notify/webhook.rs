//! Telling by a request, signed as Standard Webhooks are.

use super::Untaken;
use crate::http::client::Client;
use crate::telemetry::post::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use semel_core::time::At;
use sha2::Sha256;
use std::fmt;
use std::time::Duration;

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

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

    /// Sends one message, once.
    pub(super) async fn post(
        &self,
        id: &str,
        body: &str,
        now: At,
        patience: Option<Duration>,
    ) -> Result<(), Untaken> {
        let headers = self.headers(id, body, now);
        let posted = post(&self.client, &headers, Bytes::from(body.to_owned()));
        let answered = match patience {
            None => posted.await,
            Some(patience) => tokio::time::timeout(patience, posted)
                .await
                .unwrap_or_else(|_| Err("it did not answer at once".to_owned())),
        };
        match answered {
            Ok(status) if status.is_success() => Ok(()),
            Ok(status) if is_about_the_message(status) => {
                Err(Untaken::Refused(format!("answers {}", status.as_u16())))
            }
            Ok(status) => Err(Untaken::Away(format!("it answers {}", status.as_u16()))),
            Err(why) => Err(Untaken::Away(why)),
        }
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

/// The listener is there and takes others, most likely.
fn is_about_the_message(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNPROCESSABLE_ENTITY
    )
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
}
