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

#[test]
fn a_pair_that_asks_for_another_answer_fails() {
    let judge = Judge::of(Policy::default());
    let pair = |expect: &str| {
        format!(
            "[[pair]]\nname = \"n\"\ntheme = \"t\"\ndoor = \"mcp\"\ncall = \"billing/create_charge\"\nargs = {{ amount = 5 }}\n\
             first = {{ answer = \"lost\" }}\nduplicate = {{ expect = \"{expect}\" }}\n"
        )
    };
    let test = |expect: &str| {
        let mut report = PairReport::default();
        pairs::test(&pair(expect), &judge, &mut report).map(|()| (report.tried, report.wrong.len()))
    };
    assert_eq!(test("held in_doubt"), Ok((1, 0)));
    for other in ["held superseded", "held held_for_person", "refused drift", "replayed", "ran"] {
        assert_eq!(test(other), Ok((1, 1)), "{other}");
    }
    assert!(test("hold").is_err(), "no such answer");
}
