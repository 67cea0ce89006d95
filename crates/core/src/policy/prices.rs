//! Prices of models.

use std::collections::BTreeMap;

/// `[prices.MODEL]`, of the first file that has each.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prices(pub BTreeMap<String, Price>);

/// For a million tokens each.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    /// Of what is sent, what the provider reads from its cache, and what it writes there. Without them it is input.
    pub cache_read: Option<f64>,
    pub cache_write: Option<f64>,
}

/// The tokens of a generation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenUsage {
    /// All that was sent. `None`: nobody has said how much.
    pub input: Option<u64>,
    /// Of that, what was read from the provider's cache, and what was written there.
    pub cache_read: u64,
    pub cache_write: u64,
    pub output: u64,
}

impl Prices {
    /// Of this very name, else of the longest name with a `*` behind it that this one begins with.
    pub fn of(&self, model: &str) -> Option<Price> {
        let begins = |(name, price): (&String, &Price)| {
            let beginning = name.strip_suffix('*').filter(|beginning| model.starts_with(beginning))?;
            Some((beginning.len(), *price))
        };
        let exact = self.0.get(model).copied();
        exact.or_else(|| {
            self.0.iter().filter_map(begins).max_by_key(|(length, _)| *length).map(|(_, price)| price)
        })
    }

    /// The cost of so many tokens, in billionths; 0 without a price.
    pub fn cost_nanos(&self, model: &str, tokens: TokenUsage) -> u64 {
        let Some(Price { input, output, cache_read, cache_write }) = self.of(model) else { return 0 };
        let TokenUsage { cache_read: read, cache_write: written, .. } = tokens;
        let amounts = [
            (input, tokens.input.unwrap_or(0).saturating_sub(read).saturating_sub(written)),
            (cache_read.unwrap_or(input), read),
            (cache_write.unwrap_or(input), written),
            (output, tokens.output),
        ];
        let millionths: f64 = amounts.iter().map(|(price, tokens)| price * *tokens as f64).sum();
        // A million tokens at 1.0 are 1e9 billionths, so one token is a thousand.
        let nanos = millionths * 1_000.0;
        nanos.round().clamp(0.0, u64::MAX as f64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_name_has_the_price() {
        let price = |input| Price { input, output: 10.0, ..Price::default() };
        let prices = [("gpt-5", 1.0), ("gpt-5*", 2.0), ("gpt*", 3.0)];
        let prices = Prices(prices.map(|(name, input)| (name.to_owned(), price(input))).into());
        let input = |model: &str| prices.of(model).map(|price| price.input);
        assert_eq!((input("gpt-5"), input("gpt-5-mini"), input("gpt-4")), (Some(1.0), Some(2.0), Some(3.0)));
        assert_eq!(input("claude"), None);
        let tokens = TokenUsage { input: Some(1_000_000), output: 100_000, ..TokenUsage::default() };
        assert_eq!(prices.cost_nanos("gpt-5", tokens), 2_000_000_000);
        assert_eq!(prices.cost_nanos("claude", tokens), 0);
    }

    #[test]
    fn what_a_cache_took_part_in_has_its_own_price_or_that_of_input() {
        let price = Price { input: 10.0, output: 0.0, cache_read: Some(1.0), cache_write: None };
        let prices = Prices([("m".to_owned(), price)].into());
        let tokens = TokenUsage { input: Some(100), cache_read: 60, cache_write: 30, output: 7 };
        assert_eq!(prices.cost_nanos("m", tokens), (10 * 10 + 60 + 30 * 10) * 1_000);
        let price = Price { cache_write: Some(12.5), ..price };
        let prices = Prices([("m".to_owned(), price)].into());
        assert_eq!(prices.cost_nanos("m", tokens), (10 * 10 + 60 + 375) * 1_000);
        let odd = TokenUsage { input: Some(1), cache_read: 60, ..tokens };
        assert_eq!(prices.cost_nanos("m", odd), (60 + 375) * 1_000, "a provider that counts them apart");
    }
}
