//! What requests cost, and what joining and replaying saved.

use super::usage::TokenUsage;
use crate::hall::Hall;
use semel_gate::counts::Usage;

/// On whose account tokens go, and at which price.
#[derive(Debug, Clone)]
pub struct Meter {
    pub tenant: String,
    pub model: String,
}

impl Meter {
    pub fn used(&self, hall: &Hall, tokens: TokenUsage) {
        if let Ok(gate) = &hall.gate {
            gate.counts.used(&self.tenant, self.usage(hall, tokens));
        }
    }

    pub fn saved(&self, hall: &Hall, tokens: TokenUsage) {
        if let Ok(gate) = &hall.gate {
            gate.counts.saved(&self.tenant, self.usage(hall, tokens));
        }
    }

    fn usage(&self, hall: &Hall, tokens: TokenUsage) -> Usage {
        let cost_nanos = hall.policy.prices.cost_nanos(&self.model, tokens);
        // Of what nobody has said, nothing is counted.
        Usage { input_tokens: tokens.input.unwrap_or_default(), output_tokens: tokens.output, cost_nanos }
    }
}
