//! `[prices.MODEL]`.

use super::check::{Checker, Input};
use crate::policy::diagnostic::DiagnosticCode::BadServer;
use crate::policy::diagnostic::Diagnostics;
use crate::policy::file::{Entries, PriceTable, Spot};
use crate::policy::prices::Price;

/// Far beyond what any model costs: more is a price for one token, or a slip of the pen.
const PRICE_MAX: f64 = 100_000.0;

pub fn prices(
    input: Input<'_>,
    tables: &Entries<Spot<PriceTable>>,
    found: &mut Diagnostics,
) -> Vec<(String, Price)> {
    let mut check = Checker { input, found };
    let tables = tables.0.iter();
    tables
        .map(|(model, table)| {
            let PriceTable { input, output, cache_read, cache_write } = &table.value;
            let price = Price {
                input: check.amount(input.as_ref()).unwrap_or_default(),
                output: check.amount(output.as_ref()).unwrap_or_default(),
                cache_read: check.amount(cache_read.as_ref()),
                cache_write: check.amount(cache_write.as_ref()),
            };
            (model.value.clone(), price)
        })
        .collect()
}

impl Checker<'_> {
    fn amount(&mut self, amount: Option<&Spot<f64>>) -> Option<f64> {
        let amount = amount?;
        let value = amount.value;
        if !(0.0..=PRICE_MAX).contains(&value) {
            let what = format!("`{value}` is no price for a million tokens");
            self.error(amount, BadServer, what, "such as 2.5");
            return None;
        }
        Some(value)
    }
}
