//! Parts of an answer that a rule calls secret: `reply.card.number` is never written.

use semel_core::identity::REDACTED;
use semel_core::json::{Json, Path, Step};
use semel_core::policy::Rule;

/// Their paths, without the leading `reply`.
#[derive(Debug, Default)]
pub struct SecretParts(Vec<Path>);

impl SecretParts {
    pub fn of(rule: &Rule) -> SecretParts {
        SecretParts(rule.sorting.secret.iter().filter_map(within_reply).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes them out. `false`: it has none.
    pub fn out_of(&self, reply: &mut Json) -> bool {
        let mut found = false;
        for path in &self.0 {
            path.change_in(reply, &mut |value| {
                *value = Json::str(REDACTED);
                found = true;
            });
        }
        found
    }
}

fn within_reply(path: &Path) -> Option<Path> {
    match path.steps().first() {
        Some(Step::Member(root)) if root == "reply" => {
            let text = path.to_string();
            let rest = text.strip_prefix("reply")?;
            Path::parse(rest.strip_prefix('.').unwrap_or(rest)).ok()
        }
        _ => None,
    }
}
