//! stub
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Created,
    Updated,
    Deleted,
    Sent,
    Noop,
    None,
    Unknown,
}
impl Effect {
    pub fn parse(word: &str) -> Option<Effect> {
        Some(match word {
            "created" => Effect::Created,
            "updated" => Effect::Updated,
            "deleted" => Effect::Deleted,
            "sent" => Effect::Sent,
            "noop" => Effect::Noop,
            "none" => Effect::None,
            "unknown" => Effect::Unknown,
            _ => return None,
        })
    }
}
