//! A policy that is tried without a world answers as the doors do.

use semel_core::policy::Policy;
use semel_detect::judge::Judge;
use semel_detect::policy_test::pairs::{self, PairReport};
use std::path::Path;

/// The doors' own tests play the same pairs against a world that counts.
#[test]
fn the_golden_pairs_get_the_answers_of_the_doors() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/golden");
    let judge = Judge::of(Policy::default());
    let mut report = PairReport::default();
    for file in folder.read_dir().expect("the golden set is there") {
        let path = file.expect("a directory can be read").path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text = std::fs::read_to_string(&path).expect("a file can be read");
            pairs::test(&text, &judge, &mut report).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        }
    }
    assert!(report.wrong.is_empty(), "{:#?}", report.wrong);
    assert!(report.tried >= 200, "{} sides were played", report.tried);
}
