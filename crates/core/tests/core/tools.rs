//! The class that a name gets, measured on a long list of tools of real servers.
//!
//! The fixture holds facts (server, tool, declared hints) and our label: what a careful person says after reading the
//! tool's own description. *read* changes nothing outside; *consequential* pays, sends, publishes, creates, books,
//! deploys or starts something that costs; *act* is every other change.

#![allow(clippy::print_stdout, reason = "the matrix is what one runs these tests for")]

use semel_core::class::Class;
use semel_core::judgement::recognise;
use semel_core::policy::Annotations;
use std::collections::BTreeSet;
use std::fmt;

const LIST: &str = include_str!("../fixtures/tools.tsv");
const DOCUMENT: &str = include_str!("../../../../docs/concepts.md");

struct Tool {
    server: &'static str,
    name: &'static str,
    annotations: Annotations,
    label: Class,
}

fn tools() -> Vec<Tool> {
    let lines = LIST.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| tool(line).unwrap_or_else(|| panic!("{line}"))).collect()
}

fn tool(line: &'static str) -> Option<Tool> {
    let mut columns = line.split('\t');
    let (server, name, hints, label) = (columns.next()?, columns.next()?, columns.next()?, columns.next()?);
    let hint = |letter: char| hints.find(letter).map(|at| hints[at + 1..].starts_with('+'));
    let label = match label {
        "read" => Class::Read,
        "act" => Class::Act,
        "consequential" => Class::Consequential,
        _ => return None,
    };
    let annotations = Annotations { read_only: hint('r'), idempotent: hint('i'), destructive: hint('d') };
    Some(Tool { server, name, annotations, label })
}

/// Labels by rows, what we say by columns.
#[derive(Default)]
struct Matrix {
    counts: [[usize; 3]; 3],
    /// The tools off the diagonal, as `server/tool`.
    wrong: Vec<(Class, Class, String)>,
}

const CLASSES: [Class; 3] = [Class::Read, Class::Act, Class::Consequential];

impl Matrix {
    fn of<'a>(tools: impl Iterator<Item = &'a Tool>, hints: bool) -> Matrix {
        let mut matrix = Matrix::default();
        for tool in tools {
            let action = format!("mcp:{}/{}", tool.server, tool.name);
            let annotations = if hints { tool.annotations } else { Annotations::default() };
            let (said, _) = recognise::class(&action, annotations, false);
            let at = |class| CLASSES.iter().position(|known| *known == class).expect("one of the three");
            matrix.counts[at(tool.label)][at(said)] += 1;
            if said != tool.label {
                matrix.wrong.push((tool.label, said, format!("{}/{}", tool.server, tool.name)));
            }
        }
        matrix
    }

    fn wrong(&self, label: Class, said: Class) -> Vec<&str> {
        let of = |(l, s, _): &&(Class, Class, String)| (*l, *s) == (label, said);
        self.wrong.iter().filter(of).map(|(_, _, name)| name.as_str()).collect()
    }

    /// How many of what we call so are so, in thousandths.
    fn precision(&self, class: usize) -> usize {
        let said: usize = self.counts.iter().map(|row| row[class]).sum();
        self.counts[class][class] * 1000 / said.max(1)
    }

    /// How many of what are so we call so, in thousandths.
    fn recall(&self, class: usize) -> usize {
        let are: usize = self.counts[class].iter().sum();
        self.counts[class][class] * 1000 / are.max(1)
    }
}

impl fmt::Display for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<24}{:>6}{:>6}{:>15}", "label \\ said", "read", "act", "consequential")?;
        for (class, row) in CLASSES.iter().zip(self.counts) {
            writeln!(f, "{:<24}{:>6}{:>6}{:>15}", class.word(), row[0], row[1], row[2])?;
        }
        for (at, class) in CLASSES.iter().enumerate() {
            let (precision, recall) = (self.precision(at), self.recall(at));
            writeln!(
                f,
                "{class}: precision {}.{} %, recall {}.{} %",
                precision / 10,
                precision % 10,
                recall / 10,
                recall % 10
            )?;
        }
        Ok(())
    }
}

#[test]
fn the_list_is_long_and_holds_each_tool_once() {
    let tools = tools();
    let servers: BTreeSet<&str> = tools.iter().map(|tool| tool.server).collect();
    let names: BTreeSet<(&str, &str)> = tools.iter().map(|tool| (tool.server, tool.name)).collect();
    assert_eq!(names.len(), tools.len());
    assert!(
        tools.len() >= 1_500 && servers.len() >= 100,
        "{} tools of {} servers",
        tools.len(),
        servers.len()
    );
}

/// Changes whose names say that they only look. They declare `readOnlyHint: false`, which a name does not overrule.
const NAMED_LIKE_READS: [&str; 2] = ["firecrawl/firecrawl_search_feedback", "git/git_fetch"];

#[test]
fn a_name_alone_makes_a_read_of_no_change_but_those_listed() {
    let matrix = Matrix::of(tools().iter(), false);
    println!("by name alone\n{matrix}");
    assert_eq!(matrix.wrong(Class::Act, Class::Read), NAMED_LIKE_READS);
    assert_eq!(matrix.wrong(Class::Consequential, Class::Read), Vec::<&str>::new());
    println!("reads that stay act, which costs a flag: {:#?}", matrix.wrong(Class::Read, Class::Act));
    println!("reads taken for consequential: {:#?}", matrix.wrong(Class::Read, Class::Consequential));
    println!("consequential that stay act: {:#?}", matrix.wrong(Class::Consequential, Class::Act));
    println!("act taken for consequential: {:#?}", matrix.wrong(Class::Act, Class::Consequential));
    let floors = Floors { read_recall: 71, precision: 92, recall: 97 };
    floors.hold(&matrix);
    assert!(DOCUMENT.contains(&matrix.to_string()), "docs/concepts.md states what was measured:\n{matrix}");
}

#[test]
fn no_change_is_a_read_unless_its_server_says_so() {
    let tools = tools();
    let honest = tools.iter().filter(|tool| tool.annotations.read_only != Some(true));
    let matrix = Matrix::of(honest, true);
    for label in [Class::Act, Class::Consequential] {
        assert_eq!(matrix.wrong(label, Class::Read), Vec::<&str>::new());
    }
    let matrix = Matrix::of(tools.iter(), true);
    println!("with the hints that the servers declare, which are not trusted\n{matrix}");
    println!(
        "their servers call these reads, and we would not: {:#?}",
        matrix.wrong(Class::Act, Class::Read)
    );
    assert_eq!(matrix.wrong(Class::Consequential, Class::Read), Vec::<&str>::new());
    let floors = Floors { read_recall: 78, precision: 92, recall: 97 };
    floors.hold(&matrix);
    assert!(DOCUMENT.contains(&matrix.to_string()), "docs/concepts.md states what was measured:\n{matrix}");
}

/// What was measured, rounded down to whole percents: a change of the tables that loses something is seen.
struct Floors {
    read_recall: usize,
    precision: usize,
    recall: usize,
}

impl Floors {
    fn hold(&self, matrix: &Matrix) {
        let (read, consequential) = (0, 2);
        let measured = [matrix.recall(read), matrix.precision(consequential), matrix.recall(consequential)];
        let floors = [self.read_recall, self.precision, self.recall];
        for (measured, floor) in measured.into_iter().zip(floors) {
            assert!(
                measured / 10 >= floor,
                "{measured} thousandths, and {floor} % was measured before\n{matrix}"
            );
        }
    }
}
