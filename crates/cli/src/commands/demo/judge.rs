//! Whether an act went as it must. Its numbers come from the book alone.

use serde::Serialize;
use std::collections::BTreeMap;

/// How one act ended.
#[derive(Debug, Serialize)]
pub struct Act {
    pub name: &'static str,
    /// Charges by order.
    pub expected: BTreeMap<&'static str, u64>,
    pub counted: BTreeMap<&'static str, u64>,
    pub ok: bool,
    pub detail: String,
}

impl Act {
    pub fn new(name: &'static str, detail: &str) -> Act {
        Act { name, expected: BTreeMap::new(), counted: BTreeMap::new(), ok: true, detail: detail.to_owned() }
    }

    /// Compares a count with what it must be. The newest count of an order is the one reported.
    pub fn count(&mut self, order: &'static str, expected: u64, counted: u64) -> bool {
        self.expected.insert(order, expected);
        self.counted.insert(order, counted);
        let right = expected == counted;
        if !right {
            self.fail(format!("order {order} was charged {counted} times, expected {expected}"));
        }
        right
    }

    /// Something else must hold too, such as what the caller was told.
    pub fn must(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.fail(otherwise());
        }
    }

    fn fail(&mut self, why: String) {
        if self.ok {
            self.ok = false;
            self.detail = why;
        } else {
            self.detail = format!("{}; {why}", self.detail);
        }
    }
}

/// The whole demo, as `--json` prints it.
#[derive(Debug, Serialize)]
pub struct DemoVerdict {
    pub ok: bool,
    pub acts: Vec<Act>,
}

pub fn judge(acts: Vec<Act>) -> DemoVerdict {
    // A demo that counted nothing has shown nothing.
    let ok = !acts.is_empty() && acts.iter().all(|act| act.ok && !act.counted.is_empty());
    DemoVerdict { ok, acts }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn act(expected: u64, counted: u64) -> Act {
        let mut act = Act::new("an act", "fine");
        act.count("1001", expected, counted);
        act
    }

    #[test]
    fn a_wrong_count_fails_in_either_direction_and_says_which() {
        for (expected, counted) in [(1, 2), (1, 0), (2, 1)] {
            let verdict = judge(vec![act(1, 1), act(expected, counted)]);
            assert!(!verdict.ok);
            assert!(verdict.acts[0].ok && !verdict.acts[1].ok);
            let said = format!("order 1001 was charged {counted} times, expected {expected}");
            assert_eq!(verdict.acts[1].detail, said);
        }
        assert!(judge(vec![act(1, 1), act(2, 2)]).ok);
    }

    #[test]
    fn a_wrong_count_is_not_mended_by_a_later_right_one() {
        let mut act = act(1, 2);
        act.count("1001", 2, 2);
        assert!(!judge(vec![act]).ok);
    }

    #[test]
    fn a_wrong_answer_fails_though_the_count_is_right() {
        let mut act = act(1, 1);
        act.must(false, || "eleven of twelve were answered".into());
        act.must(false, || "one was told otherwise".into());
        assert_eq!(act.detail, "eleven of twelve were answered; one was told otherwise");
        assert!(!judge(vec![act]).ok);
    }

    #[test]
    fn without_a_count_nothing_is_shown() {
        assert!(!judge(Vec::new()).ok);
        assert!(!judge(vec![Act::new("an act", "fine")]).ok);
    }
}
