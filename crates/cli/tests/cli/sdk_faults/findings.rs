//! All that is wrong with many cases, rather than the first of it.

use std::fmt::Display;

#[derive(Debug, Default)]
pub struct Findings(Vec<String>);

impl Findings {
    pub fn expect(&mut self, so: bool, case: &str, what: impl Display) {
        if !so {
            self.0.push(format!("{case}: {what}"));
        }
    }

    pub fn same<T: PartialEq + std::fmt::Debug>(
        &mut self,
        found: T,
        wanted: T,
        case: &str,
        what: impl Display,
    ) {
        self.expect(found == wanted, case, format_args!("{found:?} is not {wanted:?}: {what}"));
    }

    pub fn assert_none(self) {
        assert!(self.0.is_empty(), "{} findings\n{}", self.0.len(), self.0.join("\n"));
    }
}
