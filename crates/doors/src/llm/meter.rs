//! The cost of requests, and the savings of joining and replaying.

use super::usage::TokenUsage;
use crate::services::Services;
use semel_gate::counts::Usage;

/// On whose account tokens go, and at which price.
#[derive(Debug, Clone)]
pub struct Meter {
    pub tenant: String,
    pub model: String,
}

impl Meter {
    pub fn used(&self, services: &Services, tokens: TokenUsage) {
        if let Ok(gate) = &services.gate {
            gate.counts.used(&self.tenant, self.usage(services, tokens));
        }
    }

    pub fn saved(&self, services: &Services, tokens: TokenUsage) {
        if let Ok(gate) = &services.gate {
            gate.counts.saved(&self.tenant, self.usage(services, tokens));
        }
    }

    fn usage(&self, services: &Services, tokens: TokenUsage) -> Usage {
        let cost_nanos = services.policy.prices.cost_nanos(&self.model, tokens);
        // Of what nobody has said, nothing is counted.
        Usage { input_tokens: tokens.input.unwrap_or_default(), output_tokens: tokens.output, cost_nanos }
    }
}
