//! A witness for the gate: puts one confirm's question about one subject.

use super::Query;
use async_trait::async_trait;
use semel_core::policy::rule::Confirm;
use semel_gate::confirm::Witness;

#[derive(Debug)]
pub struct ConfirmWitness<'a> {
    pub query: Query<'a>,
    pub confirm: &'a Confirm,
}

#[async_trait]
impl Witness for ConfirmWitness<'_> {
    async fn ask(&mut self) -> Result<bool, String> {
        self.query.confirm(self.confirm).await
    }

    fn name(&self) -> String {
        self.confirm.call.name(self.query.subject.action)
    }
}
