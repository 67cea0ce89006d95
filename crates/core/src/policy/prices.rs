//! What models cost.

use std::collections::BTreeMap;

/// `[prices.MODEL]`, of the first file that has each.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prices(pub BTreeMap<String, Price>);

/// For a million tokens each.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Price {
    pub input: f64,
    pub output: f64,
}

/// What a generation took, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tokens {
    pub input: u64,
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

    /// What so many tokens cost, in billionths; 0 without a price.
    pub fn cost_nanos(&self, model: &str, input_tokens: u64, output_tokens: u64) -> u64 {
        let Some(price) = self.of(model) else { return 0 };
        // A million tokens at 1.0 are 1e9 billionths, so one token is a thousand.
        let nanos = (price.input * input_tokens as f64 + price.output * output_tokens as f64) * 1_000.0;
        nanos.round().clamp(0.0, u64::MAX as f64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_name_has_the_price() {
        let price = |input| Price { input, output: 10.0 };
        let prices = [("gpt-5", 1.0), ("gpt-5*", 2.0), ("gpt*", 3.0)];
        let prices = Prices(prices.map(|(name, input)| (name.to_owned(), price(input))).into());
        let input = |model: &str| prices.of(model).map(|price| price.input);
        assert_eq!((input("gpt-5"), input("gpt-5-mini"), input("gpt-4")), (Some(1.0), Some(2.0), Some(3.0)));
        assert_eq!(input("claude"), None);
        assert_eq!(prices.cost_nanos("gpt-5", 1_000_000, 100_000), 2_000_000_000);
        assert_eq!(prices.cost_nanos("claude", 1, 1), 0);
    }
}
