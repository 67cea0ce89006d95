//! An answer that came second. The first whole one is the answer of its effect; this one is kept as evidence.

use crate::Error;
use crate::entropy::{Entropy, nonce};
use crate::holders::Holders;
use crate::ledger::Ledger;
use crate::store::{Commit, Durability, Put, Require, Store};
use semel_core::digest::Digest;
use semel_core::effect::{Effect, Reply};
use semel_core::ids::{AttemptNo, EffectId};
use semel_core::outcome::Outcome;
use semel_core::time::At;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Of a longer one only what is said of it is kept: nobody is ever answered with it.
pub const SECOND_ANSWER_BYTES_MAX: usize = 1 << 20;

/// What is known of it, for as long as its effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SecondAnswer {
    /// The attempt that it answers.
    pub attempt: AttemptNo,
    pub at: At,
    pub bytes: u64,
    /// SHA-256 of the reply as it would have been recorded; `None` where that was too large to be read whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Digest>,
    /// What its door says of it: its status, the model, the tokens that it took.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub about: Value,
}

impl SecondAnswer {
    /// `None`: this is no success, or nothing came with it.
    pub(crate) fn of(
        attempt: AttemptNo,
        outcome: &Outcome,
        reply: Option<&[u8]>,
        about: Option<&Value>,
        at: At,
    ) -> Option<Self> {
        let Outcome::Applied { reply: kept, .. } = outcome else { return None };
        let (bytes, sha256) = match (reply, kept) {
            (Some(reply), _) => (reply.len() as u64, Some(Digest::plain(reply))),
            (None, Reply::TooLarge(bytes)) => (*bytes, None),
            (None, _) => return None,
        };
        Some(SecondAnswer { attempt, at, bytes, sha256, about: about.cloned().unwrap_or_default() })
    }

    /// What is known of it, in one line, and its text behind that, as long as that is kept.
    pub(crate) fn body(&self, text: Option<&[u8]>) -> Vec<u8> {
        let mut body = serde_json::to_vec(self).expect("it has only string keys");
        if let Some(text) = text.filter(|text| text.len() <= SECOND_ANSWER_BYTES_MAX) {
            body.push(b'\n');
            body.extend_from_slice(text);
        }
        body
    }

    fn read(body: &[u8]) -> Option<(SecondAnswer, Option<&[u8]>)> {
        let end = body.iter().position(|byte| *byte == b'\n');
        let head = serde_json::from_slice(&body[..end.unwrap_or(body.len())]).ok()?;
        Some((head, end.map(|end| &body[end + 1..])))
    }
}

impl<S: Store, H: Holders, E: Entropy> Ledger<S, H, E> {
    /// Answers of an effect that came after the one that it has, with their texts where these are still kept.
    pub async fn second_answers(
        &self,
        effect: &Effect,
    ) -> Result<Vec<(SecondAnswer, Option<Vec<u8>>)>, Error> {
        let mut answers = Vec::new();
        for attempt in several(effect) {
            if let Some(cell) = self.store.cell(self.second_answer_key(effect.id, attempt)).await?
                && let Some((answer, text)) = SecondAnswer::read(&cell.body)
            {
                answers.push((answer, text.map(<[u8]>::to_vec)));
            }
        }
        Ok(answers)
    }

    /// The cell of a second answer, whatever it held before.
    pub(crate) async fn put_second_answer(
        &self,
        id: EffectId,
        answer: &SecondAnswer,
        text: Option<&[u8]>,
    ) -> Result<Put, Error> {
        let key = self.second_answer_key(id, answer.attempt);
        let expected = self.store.cell(key).await?.map(|cell| cell.revision).unwrap_or_default();
        Ok(Put::Cell { key, expected, body: answer.body(text) })
    }

    /// Retention: the texts go with the replies, what is known of them stays.
    pub(crate) async fn drop_second_answers(&self, effect: &Effect) -> Result<(), Error> {
        for attempt in several(effect) {
            let key = self.second_answer_key(effect.id, attempt);
            let Some(cell) = self.store.cell(key).await? else { continue };
            if let Some((answer, Some(_))) = SecondAnswer::read(&cell.body) {
                let commit = Commit {
                    nonce: nonce(&self.entropy),
                    puts: vec![Put::Cell { key, expected: cell.revision, body: answer.body(None) }],
                    require: Require::default(),
                    journal: Vec::new(),
                    durability: Durability::Lazy,
                };
                self.store.commit(commit).await?;
            }
        }
        Ok(())
    }

    fn second_answer_key(&self, id: EffectId, attempt: AttemptNo) -> Digest {
        self.secret().mac("second_answer", &[&id.0.to_be_bytes(), &attempt.0.to_be_bytes()])
    }
}

/// The attempts of an effect, if there are several: else it has no second answer.
fn several(effect: &Effect) -> impl Iterator<Item = AttemptNo> {
    let attempts = effect.attempts.iter().map(|attempt| attempt.number);
    attempts.filter(|_| effect.attempts.len() > 1)
}
