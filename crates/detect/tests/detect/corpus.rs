//! Precision and recall of the audit on the labelled corpus.

use crate::render::{FORMATS, Rendered, Step, render};
use semel_detect::audit::AuditReport;
use semel_detect::audit::finding::FindingLevel;
use semel_detect::audit::run::{AuditOptions, run};
use semel_detect::formats::mapped::Mapping;
use semel_detect::judge::Judge;
use semel_detect::source::discover;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Corpus {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    label: Label,
    #[serde(default)]
    formats: Vec<String>,
    steps: Vec<Step>,
}

#[derive(Deserialize, Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "snake_case")]
enum Label {
    Duplicate,
    /// A duplicate of which no transcript could be surer.
    Likely,
    Proven,
    Reworded,
    Legitimate,
}

#[derive(Default)]
struct Score {
    right: u32,
    wrong: u32,
}

fn audit(rendered: &Rendered, judge: &Judge) -> AuditReport {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, text) in &rendered.files {
        std::fs::write(directory.path().join(name), text).expect("writable");
    }
    let files = discover::candidates(directory.path()).expect("readable");
    let mapping = rendered.mapping.map(|mapping| Mapping::parse(mapping).expect("a mapping"));
    run(files, judge, &AuditOptions { mapping, workers: 1, since: None }, |_| {})
}

#[test]
#[allow(clippy::print_stdout, reason = "the table is what the command is run for")]
fn corpus() {
    let corpus: Corpus = toml::from_str(include_str!("../../corpus/cases.toml")).expect("the corpus reads");
    let judge = Judge::new(Vec::new()).expect("the packs load");
    let mut by_format: BTreeMap<(&str, Label), Score> = BTreeMap::new();
    let mut mistakes = Vec::new();
    for case in &corpus.case {
        for format in FORMATS {
            // A journal tells what was claimed, not what was asked for.
            let is_for_all = case.formats.is_empty() && format != "journal";
            let is_chosen = is_for_all || case.formats.iter().any(|name| name == format);
            let Some(rendered) = is_chosen.then(|| render(format, &case.steps)).flatten() else { continue };
            let report = audit(&rendered, &judge);
            assert_eq!(report.skipped.named, Vec::<String>::new(), "{} as {format}", case.name);
            let is_right = match case.label {
                Label::Duplicate => report.reaches(FindingLevel::Likely),
                Label::Likely => {
                    report.reaches(FindingLevel::Likely) && !report.reaches(FindingLevel::Proven)
                }
                Label::Proven => report.reaches(FindingLevel::Proven),
                Label::Reworded => report.reaches(FindingLevel::Possible),
                Label::Legitimate => !report.reaches(FindingLevel::Likely),
            };
            let score = by_format.entry((format, case.label)).or_default();
            if is_right {
                score.right += 1;
            } else {
                score.wrong += 1;
                mistakes.push(format!("{:?} {} as {format}: {:?}", case.label, case.name, report.counts));
            }
        }
    }
    let sum = |labels: &[Label]| {
        let scores = by_format.iter().filter(|((_, of), _)| labels.contains(of)).map(|(_, score)| score);
        scores.fold((0, 0), |(right, wrong), score| (right + score.right, wrong + score.wrong))
    };
    let (found, missed) = sum(&[Label::Duplicate, Label::Likely, Label::Proven]);
    let (passed, alarmed) = sum(&[Label::Legitimate]);
    let (reworded, unseen) = sum(&[Label::Reworded]);
    let all = found + missed + passed + alarmed + reworded + unseen;
    println!(
        "{all} cases: {} duplicates, {} reworded, {} legitimate",
        found + missed,
        reworded + unseen,
        passed + alarmed
    );
    println!(
        "precision {:.3}, recall {:.3}",
        f64::from(found) / f64::from(found + alarmed),
        f64::from(found) / f64::from(found + missed)
    );
    println!("reworded ones found as possible: {reworded} of {}", reworded + unseen);
    for mistake in &mistakes {
        println!("  {mistake}");
    }
    assert!(all >= 300, "the corpus has shrunk to {all} cases");
    assert!(2 * (passed + alarmed) + 60 >= all, "half of the cases are to be legitimate");
    assert_eq!(mistakes, Vec::<String>::new());
}
