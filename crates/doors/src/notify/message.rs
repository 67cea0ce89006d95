//! The news in the journal, and how they are told.

use crate::effect_json::EffectJson;
use semel_core::class::Class;
use semel_core::effect::{Effect, State};
use semel_core::ids::EffectId;
use semel_core::wording;
use semel_ledger::outbox::OutboxProgress;
use semel_ledger::store::{Cursor, JournalLine};
use semel_ledger::{Error, Ledger};
use serde_json::{Value, json};

/// So many open doubts are remembered as told. Of more than that, some would be told again at a further line.
const TOLD_MAX: usize = 100;

/// One message, the same however often it is sent.
#[derive(Debug)]
pub struct Message {
    pub id: String,
    pub about: EffectId,
    pub kind: Kind,
    pub body: String,
}

/// The news: that nobody knows any more whether something happened, and that something happened twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    InDoubt,
    Duplicate,
}

impl Kind {
    fn of(line: &JournalLine) -> Option<Kind> {
        match line.kind.as_str() {
            "duplicate_detected" => Some(Kind::Duplicate),
            "forgotten" => Some(Kind::InDoubt),
            "settled_in_doubt" | "settled_not_applied" | "lapsed" | "reopened"
                if state(line) == "in_doubt" =>
            {
                Some(Kind::InDoubt)
            }
            _ => None,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Kind::InDoubt => "effect.in_doubt",
            Kind::Duplicate => "effect.duplicate_detected",
        }
    }
}

fn state(line: &JournalLine) -> String {
    let data: Value = serde_json::from_str(&line.data).unwrap_or_default();
    data["state"].as_str().unwrap_or_default().to_owned()
}

/// The line needs no telling any more.
pub fn pass(progress: &mut OutboxProgress, cursor: Cursor, line: &JournalLine) {
    progress.sent_to = cursor;
    if let Some(about) = line.effect.map(EffectId)
        && progress.told.contains(&about)
        && matches!(state(line).as_str(), "applied" | "not_applied")
    {
        progress.told.retain(|told| *told != about);
    }
}

impl Message {
    /// What a line says, if it is news. A doubt that is over by now is none, and neither is one that was told and goes on:
    /// semel may have sent it again. A generation is asked for again, and nobody has to decide about it.
    pub async fn of(
        ledger: &Ledger,
        progress: &OutboxProgress,
        cursor: Cursor,
        line: &JournalLine,
    ) -> Result<Option<Message>, Error> {
        let (Some(kind), Some(about)) = (Kind::of(line), line.effect.map(EffectId)) else { return Ok(None) };
        if kind == Kind::InDoubt && progress.told.contains(&about) {
            return Ok(None);
        }
        let (key, known) = match ledger.by_id(about).await {
            Err(Error::NoSuchEffect(_)) => return Ok(None),
            found => found?,
        };
        let effect = &known.effect;
        let is_open = matches!(effect.state, State::InDoubt(_)) && effect.facts.class != Class::Generate;
        if kind == Kind::InDoubt && !is_open {
            return Ok(None);
        }
        let body = json!({
            "type": kind.word(),
            "timestamp": line.at.to_string(),
            "data": {
                "text": text(kind, effect),
                "door": effect.facts.action.split(':').next(),
                "show": show(effect),
                "tenant": effect.facts.tenant,
                "effect": EffectJson::read(ledger, key, effect).await?,
            },
        });
        let name = ledger.secret().mac("webhook", &[&cursor.0.to_be_bytes()]).to_string();
        Ok(Some(Message { id: format!("msg_{}", &name[..32]), about, kind, body: body.to_string() }))
    }

    /// It was told.
    pub fn tell(&self, progress: &mut OutboxProgress) {
        if self.kind == Kind::InDoubt {
            let over = (progress.told.len() + 1).saturating_sub(TOLD_MAX);
            progress.told.drain(..over);
            progress.told.push(self.about);
        }
    }
}

/// For a person, in a line of a chat.
fn text(kind: Kind, effect: &Effect) -> String {
    let show = show(effect);
    match kind {
        Kind::InDoubt => {
            let what = wording::in_doubt(effect).what_happened;
            format!("{what} Find out whether it happened, then decide: {show}")
        }
        Kind::Duplicate => {
            let facts = &effect.facts;
            format!(
                "{} ({}) happened twice: two attempts of it succeeded. {show}",
                facts.action, facts.subject
            )
        }
    }
}

fn show(effect: &Effect) -> String {
    format!("semel ledger show {}", effect.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use semel_core::time::At;

    fn line(kind: &str, data: &str) -> JournalLine {
        let (kind, data) = (kind.to_owned(), data.to_owned());
        JournalLine { at: At(1), effect: Some(1), run: None, kind, data }
    }

    #[test]
    fn only_what_becomes_doubtful_or_happened_twice_is_news() {
        let kind = |kind: &str, data: &str| Kind::of(&line(kind, data));
        let doubt = r#"{"state":"in_doubt"}"#;
        assert_eq!(kind("lapsed", doubt), Some(Kind::InDoubt));
        assert_eq!(kind("settled_not_applied", doubt), Some(Kind::InDoubt));
        assert_eq!(kind("settled_not_applied", r#"{"state":"not_applied"}"#), None);
        assert_eq!(kind("sender_gone", doubt), None);
        assert_eq!(kind("settled_applied", r#"{"state":"applied"}"#), None);
        assert_eq!(kind("duplicate_detected", "{}"), Some(Kind::Duplicate));
    }

    #[test]
    fn a_doubt_is_told_until_its_effect_has_come_to_an_end() {
        let about = |id: u128| Message {
            id: String::new(),
            about: EffectId(id),
            kind: Kind::InDoubt,
            body: String::new(),
        };
        let mut progress = OutboxProgress::default();
        about(1).tell(&mut progress);
        for (kind, state, stays) in
            [("resent", "in_flight", true), ("lapsed", "in_doubt", true), ("probed", "applied", false)]
        {
            pass(&mut progress, Cursor(9), &line(kind, &format!(r#"{{"state":"{state}"}}"#)));
            assert_eq!(progress.told.contains(&EffectId(1)), stays, "{kind}");
        }
        (0..2 * TOLD_MAX as u128).for_each(|id| about(id).tell(&mut progress));
        assert_eq!((progress.told.len(), progress.told[0]), (TOLD_MAX, EffectId(TOLD_MAX as u128)));
    }
}
