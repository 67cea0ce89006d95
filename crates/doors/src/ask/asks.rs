//! A witness for the gate: asks one confirm about one matter.

use super::Asker;
use semel_core::policy::rule::Confirm;
use semel_gate::confirm::Witness;

#[derive(Debug)]
pub struct Asks<'a> {
    pub asker: Asker<'a>,
    pub confirm: &'a Confirm,
}

impl Witness for Asks<'_> {
    async fn ask(&mut self) -> Result<bool, String> {
        self.asker.confirms(self.confirm).await
    }

    fn name(&self) -> String {
        self.confirm.call.name(self.asker.matter.action)
    }
}
