//! A command said that it did it: is it true? Asked before it exits, because nobody is left afterwards.

use super::serve::CommandUpstream;
use crate::reply::CommandOutput;
use async_trait::async_trait;
use semel_core::json::Json;
use semel_core::policy::rule::Confirm;
use semel_gate::confirm::Witness;
use semel_gate::{GivenReply, Passed};

/// CommandWitness about the command of an upstream.
#[derive(Debug)]
pub struct CommandWitness<'a, 'b> {
    upstream: &'b mut CommandUpstream<'a>,
    confirm: &'b Confirm,
    arguments: Json,
    reply: Json,
}

impl<'a, 'b> CommandWitness<'a, 'b> {
    pub fn about(passed: &Passed, confirm: &'b Confirm, upstream: &'b mut CommandUpstream<'a>) -> Self {
        let reply = match &passed.reply {
            GivenReply::Recorded(bytes) => CommandOutput::decode(bytes).map(|output| output.stdout),
            GivenReply::Live => Some(upstream.printed().to_vec()),
            GivenReply::None => None,
        };
        let reply = reply.map_or(Json::Null, |stdout| super::render::reply(&stdout));
        CommandWitness { arguments: upstream.arguments(), upstream, confirm, reply }
    }
}

#[async_trait]
impl Witness for CommandWitness<'_, '_> {
    async fn ask(&mut self) -> Result<bool, String> {
        self.upstream.query(&self.arguments, None, Some(&self.reply)).confirm(self.confirm).await
    }

    fn name(&self) -> String {
        self.confirm.call.name(self.upstream.action())
    }

    fn gives_up(&self) -> bool {
        self.upstream.was_asked_to_end()
    }
}
